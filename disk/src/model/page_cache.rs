//! A page cache shared by all files of a simulation: which 4 KiB pages are in memory, evicted in
//! least recently used order, and which of them carry a read-ahead mark.
//!
//! Pages are kept in chunks of 64 with a bit per page, and whole chunks are evicted: the kernel
//! also evicts by folios of up to 2 MiB. A chunk takes about 100 bytes of memory, so simulating a
//! cache costs 0.04 % of its size for streams and at worst 2.5 % (one page per chunk). There are
//! never more than 2²⁴ chunks.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;

use super::read_ahead::Mark;

/// The page size assumed throughout.
pub(crate) const PAGE_BYTES: u64 = 4096;

/// Keeps neighbouring chunks adjacent in the map, as read-ahead looks back over dozens of them;
/// only the seven highest bits, by which the map distinguishes keys of a group, are mixed.
#[derive(Debug, Clone, Copy, Default)]
struct ChunkHasher(u64);

impl Hasher for ChunkHasher {
    fn finish(&self) -> u64 {
        const LOW: u64 = u64::MAX >> 7;
        (self.0 & LOW) | (self.0.wrapping_mul(GOLDEN) & !LOW)
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = self.0.wrapping_mul(GOLDEN).wrapping_add(value);
    }
}

/// 2^64 / golden ratio, as in Fibonacci hashing (Knuth, volume 3, 6.4).
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

const CHUNK_PAGES: u64 = 64;
const NONE: u32 = u32::MAX;

/// The most chunks: 4 TiB of streams, in about 1.6 GB.
const CHUNKS_MAX: usize = 1 << 24;

/// What a look-up needs, stored in the map itself: one cache miss of the host instead of two.
struct Entry {
    /// The chunk's index in the list of chunks.
    at: u32,
    present: u64,
}

struct Chunk {
    file: u32,
    number: u64,
    newer: u32,
    older: u32,
}

/// A simulated page cache.
pub(crate) struct PageCache {
    capacity_pages: u64,
    chunks_max: usize,
    pages: u64,
    index: HashMap<(u32, u64), Entry, BuildHasherDefault<ChunkHasher>>,
    chunks: Vec<Chunk>,
    free: Vec<u32>,
    newest: u32,
    oldest: u32,
    /// Pages of the marked folio, by file and first page.
    marks: BTreeMap<(u32, u64), u64>,
}

/// Returns the bits of a chunk's pages that lie in the range.
fn mask(number: u64, range: &Range<u64>) -> u64 {
    let first = number * CHUNK_PAGES;
    let from = range.start.saturating_sub(first);
    let to = range.end.saturating_sub(first).min(CHUNK_PAGES);
    if from >= to {
        return 0;
    }
    (u64::MAX >> (CHUNK_PAGES - (to - from))) << from
}

fn chunks_of(range: &Range<u64>) -> Range<u64> {
    range.start / CHUNK_PAGES..range.end.div_ceil(CHUNK_PAGES)
}

impl PageCache {
    /// Returns an empty cache. It can hold at least one chunk, whatever its capacity.
    pub(crate) fn new(capacity_bytes: u64) -> Self {
        Self {
            capacity_pages: capacity_bytes / PAGE_BYTES,
            chunks_max: CHUNKS_MAX,
            pages: 0,
            index: HashMap::default(),
            chunks: Vec::new(),
            free: Vec::new(),
            newest: NONE,
            oldest: NONE,
            marks: BTreeMap::new(),
        }
    }

    fn present(&self, file: u32, number: u64) -> u64 {
        self.index
            .get(&(file, number))
            .map_or(0, |entry| entry.present)
    }

    /// Returns the first page of the range that is not cached.
    pub(crate) fn first_missing(&self, file: u32, range: &Range<u64>) -> Option<u64> {
        chunks_of(range).find_map(|number| {
            let absent = mask(number, range) & !self.present(file, number);
            (absent != 0).then(|| number * CHUNK_PAGES + u64::from(absent.trailing_zeros()))
        })
    }

    /// Returns the first page of the range that is cached.
    pub(crate) fn first_cached(&self, file: u32, range: &Range<u64>) -> Option<u64> {
        chunks_of(range).find_map(|number| {
            let present = mask(number, range) & self.present(file, number);
            (present != 0).then(|| number * CHUNK_PAGES + u64::from(present.trailing_zeros()))
        })
    }

    /// Returns the number of cached pages directly before `page`, at most `max`.
    pub(crate) fn cached_before(&self, file: u32, page: u64, max: u64) -> u64 {
        let range = page.saturating_sub(max)..page;
        let missing = chunks_of(&range).rev().find_map(|number| {
            let absent = mask(number, &range) & !self.present(file, number);
            (absent != 0).then(|| number * CHUNK_PAGES + u64::from(63 - absent.leading_zeros()))
        });
        missing.map_or(page - range.start, |missing| page - missing - 1)
    }

    /// Returns the number of cached pages from `page` on, at most `max`.
    pub(crate) fn cached_from(&self, file: u32, page: u64, max: u64) -> u64 {
        self.first_missing(file, &(page..page + max))
            .map_or(max, |missing| missing - page)
    }

    /// Makes the cached chunks of the range the most recently used.
    pub(crate) fn touch(&mut self, file: u32, range: &Range<u64>) {
        for number in chunks_of(range) {
            if let Some(&Entry { at, .. }) = self.index.get(&(file, number)) {
                self.make_newest(at);
            }
        }
    }

    /// Caches the range as the most recently used, and evicts what no longer fits: even the
    /// beginning of the range, if it is larger than the cache. Returns the parts that had been
    /// missing.
    pub(crate) fn insert(&mut self, file: u32, range: &Range<u64>) -> Vec<Range<u64>> {
        let mut fetched: Vec<Range<u64>> = Vec::new();
        for number in chunks_of(range) {
            let wanted = mask(number, range);
            let absent = wanted & !self.add(file, number, wanted);
            self.pages += u64::from(absent.count_ones());
            add_runs(&mut fetched, number * CHUNK_PAGES, absent);
            while self.is_too_full() && self.oldest != self.newest {
                self.evict_oldest();
            }
        }
        fetched
    }

    fn is_too_full(&self) -> bool {
        self.pages > self.capacity_pages || self.index.len() > self.chunks_max
    }

    /// Sets a mark; `folio` must be cached.
    pub(crate) fn set_mark(&mut self, file: u32, folio: Mark) {
        self.marks.insert((file, folio.start), folio.pages);
    }

    /// Returns the first marked folio that has a page in the range.
    pub(crate) fn first_mark(&self, file: u32, range: &Range<u64>) -> Option<Mark> {
        if self.marks.is_empty() {
            return None;
        }
        let folio = |(&(_, start), &pages): (&(u32, u64), &u64)| Mark { start, pages };
        let around = self
            .marks
            .range((file, 0)..=(file, range.start))
            .next_back()
            .map(folio)
            .filter(|mark| mark.start + mark.pages > range.start);
        around.or_else(|| {
            let mut later = self.marks.range((file, range.start)..(file, range.end));
            later.next().map(folio)
        })
    }

    pub(crate) fn clear_mark(&mut self, file: u32, folio: Mark) {
        self.marks.remove(&(file, folio.start));
    }

    /// Adds pages of a chunk and makes the chunk the newest. Returns those that had been present.
    fn add(&mut self, file: u32, number: u64, pages: u64) -> u64 {
        if let Some(entry) = self.index.get_mut(&(file, number)) {
            let (at, before) = (entry.at, entry.present);
            entry.present |= pages;
            self.make_newest(at);
            return before;
        }
        let chunk = Chunk {
            file,
            number,
            newer: NONE,
            older: NONE,
        };
        let at = match self.free.pop() {
            Some(at) => {
                self.chunks[at as usize] = chunk;
                at
            }
            None => {
                self.chunks.push(chunk);
                // CHUNKS_MAX chunks and one more fit.
                u32::try_from(self.chunks.len() - 1).unwrap_or(NONE)
            }
        };
        let entry = Entry { at, present: pages };
        self.index.insert((file, number), entry);
        self.link_newest(at);
        0
    }

    fn make_newest(&mut self, at: u32) {
        if self.newest != at {
            self.unlink(at);
            self.link_newest(at);
        }
    }

    fn link_newest(&mut self, at: u32) {
        let older = std::mem::replace(&mut self.newest, at);
        self.chunks[at as usize].older = older;
        self.chunks[at as usize].newer = NONE;
        match self.chunks.get_mut(older as usize) {
            Some(chunk) => chunk.newer = at,
            None => self.oldest = at,
        }
    }

    fn unlink(&mut self, at: u32) {
        let Chunk { newer, older, .. } = self.chunks[at as usize];
        match self.chunks.get_mut(newer as usize) {
            Some(chunk) => chunk.older = older,
            None => self.newest = older,
        }
        match self.chunks.get_mut(older as usize) {
            Some(chunk) => chunk.newer = newer,
            None => self.oldest = newer,
        }
    }

    fn evict_oldest(&mut self) {
        let at = self.oldest;
        self.unlink(at);
        let Chunk { file, number, .. } = self.chunks[at as usize];
        let entry = self.index.remove(&(file, number));
        self.pages -= entry.map_or(0, |entry| u64::from(entry.present.count_ones()));
        self.free.push(at);
        let first = number * CHUNK_PAGES;
        while let Some(mark) = self
            .first_mark(file, &(first..first + CHUNK_PAGES))
            .filter(|mark| mark.start >= first)
        {
            self.clear_mark(file, mark);
        }
    }
}

/// Appends the runs of set bits, joining the first to the last range if it continues it.
fn add_runs(ranges: &mut Vec<Range<u64>>, first: u64, mut bits: u64) {
    while bits != 0 {
        let from = bits.trailing_zeros();
        let length = (bits >> from).trailing_ones();
        bits &= !(u64::MAX >> (64 - length) << from);
        let start = first + u64::from(from);
        let end = start + u64::from(length);
        match ranges.last_mut() {
            Some(last) if last.end == start => last.end = end,
            _ => ranges.push(start..end),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cache_of_pages(pages: u64) -> PageCache {
        PageCache::new(pages * PAGE_BYTES)
    }

    #[test]
    fn the_least_recently_used_chunk_leaves() {
        let mut cache = cache_of_pages(3 * 64);
        for chunk in 0..3 {
            cache.insert(1, &(chunk * 64..chunk * 64 + 64));
        }
        cache.touch(1, &(5..6));
        // Another file's chunk replaces the whole of chunk 1, and nothing else.
        assert_eq!(cache.insert(2, &(0..8)).first(), Some(&(0..8)));
        assert_eq!(cache.first_missing(1, &(0..192)), Some(64));
        assert_eq!(cache.cached_from(1, 128, 64), 64);
        assert_eq!(cache.cached_from(1, 64, 64), 0);
        assert_eq!(cache.pages, 2 * 64 + 8);
    }

    #[test]
    fn what_was_missing_comes_back_joined() {
        let mut cache = cache_of_pages(1 << 20);
        assert_eq!(cache.insert(1, &(60..70)).first(), Some(&(60..70)));
        assert_eq!(cache.insert(1, &(50..80)), [50..60, 70..80]);
        assert!(cache.insert(1, &(50..80)).is_empty());
        assert_eq!(cache.insert(1, &(0..640)), [0..50, 80..640]);
        assert_eq!(cache.cached_before(1, 640, 100), 100);
        assert_eq!(cache.cached_before(1, 640, 10_000), 640);
        assert_eq!(cache.cached_before(2, 640, 10_000), 0);
    }

    #[test]
    fn marks_cover_their_folio_and_leave_with_it() {
        let mut cache = cache_of_pages(64);
        cache.insert(1, &(0..64));
        let folio = Mark {
            start: 16,
            pages: 16,
        };
        cache.set_mark(1, folio);
        assert_eq!(cache.first_mark(1, &(0..16)), None);
        assert_eq!(cache.first_mark(1, &(31..40)), Some(folio));
        assert_eq!(cache.first_mark(1, &(32..40)), None);
        assert_eq!(cache.first_mark(1, &(0..64)), Some(folio));
        assert_eq!(cache.first_mark(2, &(0..64)), None);
        cache.insert(1, &(64..128));
        assert_eq!(cache.first_mark(1, &(0..64)), None);
    }

    #[test]
    fn a_cache_smaller_than_a_chunk_keeps_the_last_one() {
        let mut cache = cache_of_pages(1);
        cache.insert(1, &(0..64));
        cache.insert(1, &(640..648));
        assert_eq!(cache.cached_from(1, 640, 8), 8);
        assert_eq!(cache.cached_from(1, 0, 8), 0);
    }

    #[test]
    fn a_range_larger_than_the_cache_leaves_its_end_and_takes_no_more_memory() {
        let mut cache = cache_of_pages(3 * 64);
        assert_eq!(cache.insert(1, &(0..64_000)).first(), Some(&(0..64_000)));
        assert_eq!(cache.pages, 3 * 64);
        assert_eq!(cache.cached_before(1, 64_000, 1000), 3 * 64);
        assert_eq!(cache.chunks.len(), 4);
        // Pages far apart, in a cache without bound.
        let mut cache = cache_of_pages(u64::MAX / PAGE_BYTES);
        cache.chunks_max = 5;
        for page in 0..100 {
            cache.insert(1, &(page * 1000..page * 1000 + 1));
        }
        assert_eq!((cache.index.len(), cache.chunks.len()), (5, 6));
    }

    proptest! {
        /// Compares with a plain set of pages, with room for all.
        #[test]
        fn agrees_with_a_set(ranges in prop::collection::vec((0u64..500, 1u64..200), 1..20)) {
            let mut cache = cache_of_pages(1 << 20);
            let mut set = std::collections::BTreeSet::new();
            for (start, length) in ranges {
                let fetched: Vec<u64> = cache.insert(7, &(start..start + length)).into_iter().flatten().collect();
                let expected: Vec<u64> = (start..start + length).filter(|&page| set.insert(page)).collect();
                prop_assert_eq!(fetched, expected);
                let first = (start..start + 600).find(|p| set.contains(p));
                prop_assert_eq!(cache.first_cached(7, &(start..start + 600)), first);
                for page in [start, start + length] {
                    let after = (page..).take_while(|p| set.contains(p)).take(90).count() as u64;
                    prop_assert_eq!(cache.cached_from(7, page, 90), after);
                    let before = (0..page).rev().take_while(|p| set.contains(p)).take(90).count() as u64;
                    prop_assert_eq!(cache.cached_before(7, page, 90), before);
                }
                prop_assert_eq!(cache.pages, set.len() as u64);
            }
        }
    }
}
