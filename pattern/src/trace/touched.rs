//! Which bytes of a file were touched, in bounded space.

use std::collections::BTreeMap;

use super::hash::NumberMap;

pub(crate) const PAGE_BYTES: u64 = 4096;

/// The smallest pages of a bitmap: a sector, which direct I/O is aligned to at least.
const SECTOR_BYTES: u64 = 512;

/// The most ranges kept exactly before pages take over.
const STRETCHES_MAX: usize = 64;

/// The most words of 64 pages before pages become twice as large: about 2 MiB of memory, 16 GiB of
/// file at 4 KiB, 2 GiB at 512 bytes.
const WORDS_MAX: usize = 65_536;

/// Exact ranges while there are few; then a bitmap of pages as large as these were aligned to, 512 bytes
/// to 4 KiB, or larger ones if the places touched lie too far apart. In the bitmap a page counts whole
/// once any byte of it is touched, up to the bytes that were transferred.
#[derive(Debug, Clone, Default)]
pub(crate) struct Touched {
    stretches: BTreeMap<u64, u64>,
    bitmap: Option<Bitmap>,
    /// Where the last addition ended, if all of it was new: what follows in the same page is also
    /// new, although the page is already in the bitmap.
    fresh_to: Option<u64>,
}

#[derive(Debug, Clone)]
struct Bitmap {
    page_log2: u32,
    words: NumberMap<u64, u64>,
}

impl Touched {
    /// Marks `start..end`. Returns how many of these bytes are new.
    pub(crate) fn add(&mut self, start: u64, end: u64) -> u64 {
        if end <= start {
            return 0;
        }
        if let Some(bitmap) = &mut self.bitmap {
            let in_page_of_last = match self.fresh_to {
                Some(to) if to == start => bitmap.page_up(start).min(end) - start,
                _ => 0,
            };
            let new_bytes = (bitmap.add(start, end) + in_page_of_last).min(end - start);
            self.fresh_to = (new_bytes == end - start).then_some(end);
            return new_bytes;
        }
        let new_bytes = self.add_stretch(start, end);
        if self.stretches.len() > STRETCHES_MAX {
            let ends = self.stretches.iter();
            let alignment = ends.fold(PAGE_BYTES, |bits, (start, end)| bits | start | end);
            let smallest = SECTOR_BYTES.trailing_zeros();
            let mut bitmap = Bitmap {
                page_log2: alignment.trailing_zeros().max(smallest),
                words: NumberMap::default(),
            };
            for (start, end) in std::mem::take(&mut self.stretches) {
                bitmap.add(start, end);
            }
            self.bitmap = Some(bitmap);
        }
        new_bytes
    }

    fn add_stretch(&mut self, mut start: u64, mut end: u64) -> u64 {
        let mut new_bytes = end - start;
        // From the back: the ranges that touch or overlap the new one.
        while let Some((&from, &to)) = self.stretches.range(..=end).next_back() {
            if to < start {
                break;
            }
            let overlap = to.min(end).saturating_sub(from.max(start));
            // `start` and `end` grow below, but only by bytes that no other range covers.
            new_bytes = new_bytes.saturating_sub(overlap);
            self.stretches.remove(&from);
            start = start.min(from);
            end = end.max(to);
        }
        self.stretches.insert(start, end);
        new_bytes
    }

    /// Returns the ranges touched, ascending and disjoint.
    pub(crate) fn ranges(&self) -> Vec<(u64, u64)> {
        match &self.bitmap {
            Some(bitmap) => bitmap.ranges(),
            None => self
                .stretches
                .iter()
                .map(|(&from, &to)| (from, to))
                .collect(),
        }
    }

    /// Returns the bytes touched here but not there, where every page touched at all there counts
    /// whole.
    pub(crate) fn bytes_outside(&self, other: &Self) -> u64 {
        let others = other.ranges();
        let mut first = 0;
        let mut outside = 0;
        for (start, end) in self.ranges() {
            let mut at = start;
            while others
                .get(first)
                .is_some_and(|&(_, to)| page_up(to) <= start)
            {
                first += 1;
            }
            for &(from, to) in others[first..].iter().take_while(|o| o.0 < end) {
                let from = from / PAGE_BYTES * PAGE_BYTES;
                outside += from.min(end).saturating_sub(at);
                at = at.max(page_up(to));
            }
            outside += end.saturating_sub(at);
        }
        outside
    }
}

fn page_up(byte: u64) -> u64 {
    byte.checked_next_multiple_of(PAGE_BYTES)
        .unwrap_or(u64::MAX)
}

impl Bitmap {
    fn page_up(&self, byte: u64) -> u64 {
        let page_bytes = 1 << self.page_log2;
        byte.checked_next_multiple_of(page_bytes)
            .unwrap_or(u64::MAX)
    }

    fn add(&mut self, start: u64, end: u64) -> u64 {
        let mut new_pages = 0;
        let (first, last) = (start >> self.page_log2, (end - 1) >> self.page_log2);
        let mut page = first;
        while page <= last {
            let last_here = last.min(page | 63);
            let mask = (u64::MAX << (page & 63)) & (u64::MAX >> (63 - (last_here & 63)));
            let word = self.words.entry(page >> 6).or_default();
            new_pages += u64::from((mask & !*word).count_ones());
            *word |= mask;
            let Some(next) = last_here.checked_add(1) else {
                break;
            };
            page = next;
        }
        let new_bytes = new_pages << self.page_log2;
        while self.words.len() > WORDS_MAX {
            self.double_pages();
        }
        new_bytes
    }

    fn double_pages(&mut self) {
        let old = std::mem::take(&mut self.words);
        for (index, word) in old {
            *self.words.entry(index / 2).or_default() |= halve(word) << (index % 2 * 32);
        }
        self.page_log2 += 1;
    }

    fn ranges(&self) -> Vec<(u64, u64)> {
        let mut words: Vec<(u64, u64)> = self.words.iter().map(|(&i, &word)| (i, word)).collect();
        words.sort_unstable();
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for (index, mut rest) in words {
            while rest != 0 {
                let bit = rest.trailing_zeros();
                let length = (rest >> bit).trailing_ones();
                let from = ((index << 6) + u64::from(bit)) << self.page_log2;
                let to = from.saturating_add(u64::from(length) << self.page_log2);
                match ranges.last_mut() {
                    Some(last) if last.1 == from => last.1 = to,
                    _ => ranges.push((from, to)),
                }
                let upto = bit + length;
                rest = if upto == 64 { 0 } else { rest >> upto << upto };
            }
        }
        ranges
    }
}

/// Sets bit i of the result if bit 2i or 2i + 1 of `word` is set.
fn halve(word: u64) -> u64 {
    let mut bits = (word | word >> 1) & 0x5555_5555_5555_5555;
    for (shift, mask) in [
        (1, 0x3333_3333_3333_3333),
        (2, 0x0f0f_0f0f_0f0f_0f0f),
        (4, 0x00ff_00ff_00ff_00ff),
        (8, 0x0000_ffff_0000_ffff),
        (16, 0x0000_0000_ffff_ffff_u64),
    ] {
        bits = (bits | bits >> shift) & mask;
    }
    bits
}

#[cfg(test)]
mod tests {
    use super::*;
    use seekscope_stats::SplitMix64;
    use std::collections::HashSet;

    #[test]
    fn stretches_are_exact() {
        let mut touched = Touched::default();
        assert_eq!(touched.add(10, 20), 10);
        assert_eq!(touched.add(30, 40), 10);
        assert_eq!(touched.add(15, 35), 10);
        assert_eq!(touched.ranges(), [(10, 40)]);
        assert_eq!(touched.add(40, 41) + touched.add(9, 10), 2);
        assert_eq!(touched.add(0, u64::MAX), u64::MAX - 32);
        assert_eq!((touched.add(7, 7), touched.add(9, 7)), (0, 0));
    }

    #[test]
    fn many_pages_are_exact_and_few_bytes_far_apart_are_bounded() {
        let mut rng = SplitMix64::new(1);
        let (mut touched, mut pages, mut new_bytes) = (Touched::default(), HashSet::new(), 0);
        for _ in 0..20_000 {
            let (page, count) = (rng.below(2_000_000), 1 + rng.below(70));
            pages.extend(page..page + count);
            new_bytes += touched.add(page * PAGE_BYTES, (page + count) * PAGE_BYTES);
        }
        assert!(touched.bitmap.is_some());
        assert_eq!(new_bytes, pages.len() as u64 * PAGE_BYTES);
        let ranges = touched.ranges();
        assert_eq!(ranges.iter().map(|(a, b)| b - a).sum::<u64>(), new_bytes);
        for _ in 0..100_000 {
            let start = rng.next_u64();
            touched.add(start, start.saturating_add(100));
            assert!(touched.bitmap.as_ref().unwrap().words.len() <= WORDS_MAX);
        }
        assert!(touched.ranges().is_sorted());
    }

    #[test]
    fn sectors_are_told_apart() {
        const COUNT: u64 = 16_384;
        let mut touched = Touched::default();
        // A permutation: an odd factor has an inverse modulo a power of two.
        let mut round = || -> u64 {
            let sectors = (0..COUNT).map(|i| i * 5_471 % COUNT * SECTOR_BYTES);
            sectors
                .map(|start| touched.add(start, start + SECTOR_BYTES))
                .sum()
        };
        assert_eq!((round(), round()), (COUNT * SECTOR_BYTES, 0));
    }

    #[test]
    fn an_unaligned_scan_counts_its_bytes_once() {
        let mut touched = Touched::default();
        for i in 0..=STRETCHES_MAX as u64 {
            touched.add(i << 20, (i << 20) + 1);
        }
        let scan = |t: &mut Touched| {
            (0..1000)
                .map(|i| t.add(9000 + i * 100, 9100 + i * 100))
                .sum::<u64>()
        };
        assert_eq!(scan(&mut touched), 100_000);
        assert_eq!(scan(&mut touched), 0);
    }

    #[test]
    fn halving_joins_neighbours() {
        assert_eq!(halve(0b1101_0010), 0b1101);
        assert_eq!((halve(u64::MAX), halve(1 << 63)), (0xffff_ffff, 1 << 31));
    }

    #[test]
    fn the_difference_of_two() {
        let (mut device, mut asked) = (Touched::default(), Touched::default());
        device.add(0, 8 * PAGE_BYTES);
        device.add(100 * PAGE_BYTES, 101 * PAGE_BYTES);
        assert_eq!(device.bytes_outside(&asked), 9 * PAGE_BYTES);
        asked.add(PAGE_BYTES + 5, PAGE_BYTES + 6);
        asked.add(3 * PAGE_BYTES - 1, 5 * PAGE_BYTES + 1);
        assert_eq!(device.bytes_outside(&asked), 4 * PAGE_BYTES);
        asked.add(0, u64::MAX);
        assert_eq!(device.bytes_outside(&asked), 0);
    }
}
