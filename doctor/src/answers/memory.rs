//! Estimates the reads that more cache would save, from the re-use distances of the trace.
//!
//! The reads of the trace are those that the server's own cache missed, so their distances are those of a
//! second cache behind the first. That is what added cache is, and the estimate does not promise too much: a
//! page that is read again after d different bytes had at most the first cache's contents referenced in
//! between as well, so an LRU cache larger by d keeps it. Distances are in bytes of the file; a page takes
//! more in the cache, by the factor that the server counts ("bytes read into cache" over "bytes read" by its
//! block manager).
//!
//! The page cache behind it already serves the shortest distances, at little cost. So of the reads that added
//! cache would serve, as many as were page-cache hits count as hits, and only those beyond as reads from the
//! disk. Hits of what the disk had sent ahead are not re-use: the disk reads that again each time. Each read
//! saved also saves its share of what reads cost beside the call itself: checksum and decompression, which the
//! server's own clock covers and the trace does not.

use schemars::JsonSchema;
use seekscope_pattern::{FileTrace, TraceAnalysis};
use seekscope_run::units::{format_bytes, whole};
use serde::{Deserialize, Serialize};

use super::host::{memory_limit, mongod_version};
use crate::Evidence;
use crate::evidence::waiting::{READ_TIME, waited};

/// Smallest addition on the curve; more than four points an octave would exceed its accuracy.
const ADDED_MIN_BYTES: u64 = 32 << 20;
const ADDED_MAX_BYTES: u64 = 1 << 42;
/// Fewest pages that were referenced again; with fewer there is no curve.
const REFERENCES_MIN: u64 = 1000;
/// Bytes in the cache per byte in the file where nothing is known: WiredTiger's own rule of thumb for snappy
/// is 2 to 3.
const EXPANSION_UNKNOWN: f64 = 3.0;
const EXPANSION_MAX: f64 = 20.0;
/// Error of distances that are counted exactly, but kept to 2^-5 of an octave.
const ERROR_EXACT: f64 = 0.01;
/// Error of a sample of 16,384 pages at most (SHARDS, FAST 2015, reports 0.006 at 8,192 and 0.02 at 1,024).
const ERROR_SAMPLED: f64 = 0.02;

/// Reads saved by more cache.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MemoryAnswer {
    /// Present size of the server's cache, bytes.
    pub cache_bytes: Option<u64>,
    /// Points of the curve, by ascending added cache, from 0.
    pub points: Vec<MemoryPoint>,
    /// How it was calculated, its error and the source of the method.
    pub method: String,
    /// Largest expected error of the miss ratio, 0 to 1.
    pub error: f64,
}

/// The effect of this much more cache.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MemoryPoint {
    pub added_bytes: u64,
    /// Share of the reads that now go to the file that still would.
    pub miss_ratio: f64,
    pub reads_saved_per_s: f64,
    /// Waiting saved, s per hour.
    pub waiting_saved_s_per_hour: f64,
}

pub(super) fn memory(evidence: &Evidence<'_>) -> Option<MemoryAnswer> {
    let trace = evidence.trace?;
    let seconds = evidence.traced_s()?;
    let reuse = &trace.reuse;
    if reuse.references < REFERENCES_MIN {
        return None;
    }
    let reads = Reads::of(evidence, trace, seconds);
    let (expansion, expansion_from) = expansion(evidence);
    let mut points = Vec::new();
    for added_bytes in added(evidence) {
        let of_file = whole(added_bytes as f64 / expansion);
        let miss_ratio = reuse.miss_ratio(of_file)?.clamp(0.0, 1.0);
        points.push(MemoryPoint {
            added_bytes,
            miss_ratio,
            reads_saved_per_s: (1.0 - miss_ratio) * reads.all() / seconds,
            waiting_saved_s_per_hour: reads.saved_s(1.0 - miss_ratio) / seconds * 3600.0,
        });
    }
    points.dedup_by(|b, a| a.miss_ratio == b.miss_ratio && a.added_bytes > 0);
    let exact = reuse.sampling_rate >= 1.0;
    Some(MemoryAnswer {
        cache_bytes: cache_bytes(evidence),
        points,
        error: if exact { ERROR_EXACT } else { ERROR_SAMPLED },
        method: format!(
            "LRU stack distances (Mattson and others, 1970) of {} references to blocks of 4 KiB that missed the \
             server's cache, {} (SHARDS, Waldspurger and others, FAST 2015), so of a cache added behind \
             it; a byte of a file takes {expansion:.1} in the cache ({expansion_from}){}; miss ratio within \
             {:.0} % of all reads; what is re-used after more than {} is not seen",
            reuse.references,
            match exact {
                true => "all of them followed".into(),
                false => format!("one block in {:.0} followed", 1.0 / reuse.sampling_rate),
            },
            match reads.beside_s > 0.0 {
                true if counts_decompression(evidence) =>
                    "; checksum and decompression count as the server's clock has them beyond the calls",
                true =>
                    "; checksums count as the server's clock has them beyond the calls, and decompression, which \
                     servers from 6.0 on do not time, is saved beside that",
                false => "",
            },
            if exact {
                ERROR_EXACT * 100.0
            } else {
                ERROR_SAMPLED * 100.0
            },
            crate::wording::duration(seconds),
        ),
    })
}

/// Reads, divided by whether the page cache served them.
#[derive(Debug, Clone, Copy, Default)]
struct Reads {
    hits: f64,
    hits_s: f64,
    /// Hits due to read-ahead, not re-use.
    read_ahead_hits: f64,
    waited: f64,
    waited_s: f64,
    /// Time that the server counts for all of them beyond the calls, s.
    beside_s: f64,
}

impl Reads {
    fn of(evidence: &Evidence<'_>, trace: &TraceAnalysis, seconds: f64) -> Self {
        let mut reads = Self::default();
        for file in trace.files.iter().filter(|file| !file.file.is_temporary()) {
            let (count, ns) = waited(file);
            reads.waited += count as f64;
            reads.waited_s += ns / 1e9;
            let hit = &file.latency_by_outcome.hit_ns;
            reads.hits += hit.count as f64;
            reads.hits_s += hit.count as f64 * hit.mean as f64 / 1e9;
            reads.read_ahead_hits += read_ahead(file, count as f64).min(hit.count as f64);
        }
        // Counts application threads alone, while the calls are those of all threads: at worst too little.
        let counted_us_per_s = evidence.status_rate_while_traced(&[READ_TIME]);
        let counted_s = counted_us_per_s.unwrap_or(0.0) / 1e6 * seconds;
        reads.beside_s = (counted_s - reads.hits_s - reads.waited_s).max(0.0);
        reads
    }

    fn all(&self) -> f64 {
        self.hits + self.waited
    }

    /// Returns the waiting that is saved when this share of the reads, the soonest re-used, is served, s.
    fn saved_s(&self, share: f64) -> f64 {
        let saved = share * self.all();
        let saved_hits = saved.min(self.re_used_hits());
        // What is left was read from the disk each time, whether it was waited for or came ahead.
        let from_disk = (self.waited + self.read_ahead_hits).max(1.0);
        let saved_waits = (saved - saved_hits).min(from_disk) * self.waited / from_disk;
        saved_hits * self.hit_s() + saved_waits * (self.wait_s() + self.beside_each_s())
    }

    /// Returns the part of a saving that is waiting for the disk, s: hits come first, see [`Self::saved_s`].
    fn of_disk_s(&self, saved_s: f64) -> f64 {
        let of_waits_s = (saved_s - self.re_used_hits() * self.hit_s()).max(0.0);
        let wait_s = self.wait_s();
        of_waits_s * wait_s / (wait_s + self.beside_each_s()).max(1e-12)
    }

    fn re_used_hits(&self) -> f64 {
        (self.hits - self.read_ahead_hits).max(0.0)
    }

    /// Returns the time of one hit.
    fn hit_s(&self) -> f64 {
        self.hits_s / self.hits.max(1.0) + self.beside_each_s()
    }

    /// Returns the time that one waiting read waits for the disk.
    fn wait_s(&self) -> f64 {
        self.waited_s / self.waited.max(1.0)
    }

    fn beside_each_s(&self) -> f64 {
        self.beside_s / self.all().max(1.0)
    }
}

/// Returns how many reads of this file found what the disk had sent ahead of them, given the number of those that
/// waited.
fn read_ahead(file: &FileTrace, waited: f64) -> f64 {
    let calls = &file.reads.transfers;
    let mean_bytes = calls.bytes as f64 / calls.calls.max(1) as f64;
    let sent = file
        .cache
        .device_read_bytes
        .saturating_sub(file.device.never_asked_bytes);
    (sent as f64 / mean_bytes.max(1.0) - waited).max(0.0)
}

/// Returns the part of what more cache would save by the memory answer, s per hour, that is waiting for the
/// disk; the rest are page-cache hits, checksums and decompression. Returns all of it without such an answer.
pub(crate) fn saved_of_disk(evidence: &Evidence<'_>, saved_s_per_hour: f64) -> f64 {
    let followed = |trace: &&TraceAnalysis| trace.reuse.references >= REFERENCES_MIN;
    let (Some(trace), Some(seconds)) = (evidence.trace.filter(followed), evidence.traced_s())
    else {
        return saved_s_per_hour;
    };
    let hours = seconds / 3600.0;
    let reads = Reads::of(evidence, trace, seconds);
    reads.of_disk_s(saved_s_per_hour * hours) / hours
}

/// Returns the waiting for reads that does not involve the disk, s per hour: page-cache hits, checksums,
/// decompression. 0 where reads cannot be distinguished, when all of them count as waiting for the disk.
pub(crate) fn waiting_beside_disk_s_per_hour(evidence: &Evidence<'_>) -> f64 {
    let followed = |trace: &&TraceAnalysis| trace.reuse.references >= REFERENCES_MIN;
    let (Some(trace), Some(seconds)) = (evidence.trace.filter(followed), evidence.traced_s())
    else {
        return 0.0;
    };
    let reads = Reads::of(evidence, trace, seconds);
    (reads.hits_s + reads.beside_s) / seconds * 3600.0
}

/// Returns whether the time that the server counts for reads of pages contains their decompression: until 6.0 the
/// clock ran around `__wt_bt_read`, since then around the block manager's read alone (`__wt_blkcache_read`).
pub(crate) fn counts_decompression(evidence: &Evidence<'_>) -> bool {
    mongod_version(evidence).is_none_or(|version| version < 6)
}

/// Returns the server's cache size: as configured at start, else as reported now.
fn cache_bytes(evidence: &Evidence<'_>) -> Option<u64> {
    let target = evidence.examined().and_then(|m| m.target.cache_bytes);
    let told = || {
        evidence
            .status(&["wiredTiger.cache.maximum bytes configured"])?
            .last()
    };
    target.or_else(|| told().map(whole).filter(|bytes| *bytes > 0))
}

/// Returns the bytes that a byte of a file takes in the cache, and the source of that figure.
fn expansion(evidence: &Evidence<'_>) -> (f64, &'static str) {
    let rate = |name| evidence.status_rate(&[name]).filter(|rate| *rate > 0.0);
    let into_cache = rate("wiredTiger.cache.bytes read into cache");
    let from_files = rate("wiredTiger.block-manager.bytes read");
    if let (Some(cache), Some(files)) = (into_cache, from_files) {
        return ((cache / files).clamp(1.0, EXPANSION_MAX), "serverStatus");
    }
    let collections = evidence.examined().map_or(&[][..], |m| &m.collections);
    let used = |c: &seekscope_run::CollectionFacts| {
        c.storage_bytes
            .saturating_sub(c.reusable_bytes.unwrap_or(0))
    };
    let sum = |sizes: &mut dyn Iterator<Item = u64>| sizes.fold(0, u64::saturating_add);
    let data = sum(&mut collections.iter().map(|c| c.data_bytes));
    let stored = sum(&mut collections.iter().map(used));
    if stored > 0 && data > 0 {
        let ratio = data as f64 / stored as f64;
        return (ratio.clamp(1.0, EXPANSION_MAX), "sizes of the collections");
    }
    (EXPANSION_UNKNOWN, "assumed")
}

/// Returns 0, then powers of two up to what the host has.
fn added(evidence: &Evidence<'_>) -> impl Iterator<Item = u64> {
    let most = memory_limit(evidence).map_or(ADDED_MAX_BYTES, |(bytes, _)| bytes);
    let doubled = std::iter::successors(Some(ADDED_MIN_BYTES), |bytes| bytes.checked_mul(2));
    std::iter::once(0).chain(doubled.take_while(move |bytes| *bytes <= most.min(ADDED_MAX_BYTES)))
}

impl MemoryAnswer {
    /// Returns the smallest added cache, up to a size, that saves nearly (nine tenths) as much waiting as the
    /// best one.
    pub(crate) fn worth_adding(&self, upto_bytes: u64) -> Option<&MemoryPoint> {
        let saved = |point: &MemoryPoint| point.waiting_saved_s_per_hour;
        let mut points = self.points.iter().filter(|p| p.added_bytes <= upto_bytes);
        let most = points.clone().map(saved).fold(0.0, f64::max);
        points.find(|p| most > 0.0 && saved(p) >= 0.9 * most)
    }

    /// Returns a sentence like "with 1.0 GiB more 62 % of these reads would go, …", for the points up to a
    /// size.
    pub(crate) fn sentence(&self, upto_bytes: u64) -> String {
        let points = self
            .points
            .iter()
            .filter(|p| p.added_bytes > 0 && p.added_bytes <= upto_bytes);
        let mut words: Vec<String> = points
            .map(|p| {
                let added = format_bytes(p.added_bytes);
                format!("{added} more saves {:.0} %", (1.0 - p.miss_ratio) * 100.0)
            })
            .collect();
        let from = words.len().saturating_sub(4);
        words.drain(..from);
        words.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use seekscope_run::FileRole;

    use super::*;
    use crate::testing::{Call, Recording, shuffled};

    /// Reads `pages` pages of 32 KiB in turn, `rounds` times.
    fn in_turn(pages: u32, rounds: u32, hits: bool) -> Option<MemoryAnswer> {
        let mut recording = Recording::new();
        let file_id = recording.file("a.wt", FileRole::Collection, None);
        let tid = recording.thread("conn1");
        let reads = pages * rounds;
        for i in 0..reads {
            let page = u64::from(i % pages * 7919 % pages);
            let call = Call {
                tid,
                file_id,
                at_s: 60.0 * f64::from(i) / f64::from(reads),
                offset: page * 32_768,
                bytes: 32_768,
                latency_s: if hits { 1e-5 } else { 0.01 },
            };
            if hits && i >= pages {
                recording.hit(call)
            } else {
                recording.miss(call)
            }
        }
        recording.rising("wiredTiger.cache.bytes read into cache", 2e6);
        recording.rising("wiredTiger.block-manager.bytes read", 1e6);
        recording.examine(|_, answers| answers.memory.clone())
    }

    #[test]
    fn a_working_set_that_is_read_again_and_again() {
        // 64 MiB of file, which takes 128 MiB in the cache, read four times: three quarters are repeats.
        let answer = in_turn(2048, 4, false).unwrap();
        let at = |mib: u64| {
            answer
                .points
                .iter()
                .find(|p| p.added_bytes == mib << 20)
                .unwrap()
        };
        assert_eq!(
            (at(0).miss_ratio, at(0).waiting_saved_s_per_hour),
            (1.0, 0.0)
        );
        assert_eq!(at(32).miss_ratio, 1.0);
        let best = answer.worth_adding(u64::MAX).unwrap();
        assert_eq!(answer.worth_adding(32 << 20), None);
        assert!([128, 256].contains(&(best.added_bytes >> 20)), "{best:?}");
        assert!((best.miss_ratio - 0.25).abs() < 0.02, "{best:?}");
        // 8192 reads of 10 ms, in a minute.
        let expected = 0.75 * 81.92 * 60.0;
        assert!(
            (best.waiting_saved_s_per_hour / expected - 1.0).abs() < 0.05,
            "{best:?}"
        );
        assert!(answer.method.contains("Mattson"), "{}", answer.method);
    }

    #[test]
    fn what_the_page_cache_serves_saves_little() {
        let answer = in_turn(2048, 4, true).unwrap();
        let best = answer.worth_adding(u64::MAX).unwrap();
        assert!(best.miss_ratio < 0.3, "{best:?}");
        assert!(best.waiting_saved_s_per_hour < 5.0, "{best:?}");
    }

    /// Each read that waits brings what the next three ask for.
    #[test]
    fn what_is_read_ahead_again_and_again_is_no_re_use() {
        let mut recording = Recording::new();
        let file_id = recording.file("a.wt", FileRole::Collection, None);
        let tid = recording.thread("conn1");
        for i in 0..4 * 2048_u32 {
            let waits = i.is_multiple_of(4);
            let call = Call {
                tid,
                file_id,
                at_s: f64::from(i) * 0.007,
                // Blocks of four pages, in no order.
                offset: u64::from(i % 2048 / 4 * 7919 % 512 * 4 + i % 4) * 32_768,
                bytes: 32_768,
                latency_s: if waits { 0.01 } else { 1e-5 },
            };
            match waits {
                true => recording.miss_with_read_ahead(call, 4 * 32_768),
                false => recording.hit(call),
            }
        }
        let answer = recording.examine(|_, answers| answers.memory.clone());
        let best = *answer.as_ref().unwrap().worth_adding(u64::MAX).unwrap();
        // Three rounds of four are repeats, each with 512 waits of 10 ms, in a minute.
        let expected = 3.0 * 512.0 * 0.01 * 60.0;
        let saved = best.waiting_saved_s_per_hour;
        assert!((saved / expected - 1.0).abs() < 0.05, "{saved} {expected}");
    }

    #[test]
    fn checksum_and_decompression_are_saved_as_well() {
        // 2048 misses of 10 ms and 6144 hits of 10 µs, each with 1 ms on the server's clock beyond the call.
        let mut recording = Recording::new();
        let file_id = recording.file("a.wt", FileRole::Collection, None);
        let tid = recording.thread("conn1");
        let pages = [
            shuffled(2048),
            shuffled(2048),
            shuffled(2048),
            shuffled(2048),
        ]
        .concat();
        for (i, page) in pages.into_iter().enumerate() {
            let call = Call {
                tid,
                file_id,
                at_s: i as f64 * 0.007,
                offset: u64::from(page) * 32_768,
                bytes: 32_768,
                latency_s: if i < 2048 { 0.01 } else { 1e-5 },
            };
            match i < 2048 {
                true => recording.miss(call),
                false => recording.hit(call),
            }
        }
        recording.rising(READ_TIME, (20.48 + 0.061_44 + 8.192) / 60.0 * 1e6);
        let answer = recording
            .examine(|_, answers| answers.memory.clone())
            .unwrap();
        let best = answer.worth_adding(u64::MAX).unwrap();
        let hits = 6144.0 * 0.001_01 * 60.0;
        let saved = best.waiting_saved_s_per_hour;
        assert!((saved / hits - 1.0).abs() < 0.05, "{saved} {hits}");
        assert!(answer.method.contains("checksum"), "{}", answer.method);
        let of_disk = |saved| recording.examine(|evidence, _| saved_of_disk(evidence, saved));
        assert!(of_disk(0.95 * hits) < 1e-6, "hits come first");
        let beyond = of_disk(hits + 110.0);
        assert!((beyond / 100.0 - 1.0).abs() < 0.05, "{beyond}");
        assert_eq!(Recording::new().examine(|e, _| saved_of_disk(e, 7.0)), 7.0);
    }

    #[test]
    fn what_the_server_counts_after_the_trace_is_not_of_the_calls_traced() {
        let mut recording = Recording::new();
        let file_id = recording.file("a.wt", FileRole::Collection, None);
        let tid = recording.thread("conn1");
        for page in 0..2000_u32 {
            recording.miss(Call {
                tid,
                file_id,
                at_s: f64::from(page) * 0.01,
                offset: u64::from(page) * 32_768,
                bytes: 32_768,
                latency_s: 0.005,
            });
        }
        recording.document.phases[0].ended_ns = crate::testing::START_NS + 20_000_000_000;
        // 0.6 s per second for reads of 0.5 s, and four times as much once nobody traces.
        recording.values("serverStatus", READ_TIME, |s| {
            (s.min(20.0) * 0.6 + (s - 20.0).max(0.0) * 2.4) * 1e6
        });
        let beside = recording.examine(|evidence, _| waiting_beside_disk_s_per_hour(evidence));
        assert!((beside / 360.0 - 1.0).abs() < 0.05, "{beside}");
    }

    #[test]
    fn reads_without_repeats_have_nothing_to_gain() {
        let answer = in_turn(2048, 1, false).unwrap();
        assert!(answer.points.iter().all(|p| p.miss_ratio == 1.0));
        assert_eq!(answer.worth_adding(u64::MAX), None);
        assert_eq!(in_turn(10, 1, false), None, "too few");
    }
}
