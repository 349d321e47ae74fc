//! A job: identical threads that make one kind of access for a while. It is checked before anything
//! is touched.

use std::ops::Range;
use std::time::Duration;

use seekscope_run::{AccessKind, EngineKind, JobFacts};

use crate::{DiskError, TestFile};

/// The block size for direct I/O; every disk's blocks are at most this large.
pub const ALIGNMENT_BYTES: u64 = 4096;
/// The largest access: the kernel takes no more than 2 GiB in one call, and memory is finite.
pub const BLOCK_BYTES_MAX: u64 = 64 << 20;
pub const THREADS_MAX: u32 = 4096;
/// The lowest rate, one operation in a quarter of an hour; rarer ones are no measurement.
pub const RATE_MIN: f64 = 0.001;
/// The largest depth; the kernel's own limit for a submission queue is 32768 entries.
pub const DEPTH_MAX: u32 = 4096;

/// A job of identical threads. Build one with [`Job::new`] and change what differs.
#[derive(Debug, Clone)]
pub struct Job {
    pub facts: JobFacts,
    /// Time at the start that is not measured.
    pub warm_up: Duration,
    pub runtime: Duration,
    /// The bytes of the file that are accessed; `None` for all of it.
    pub region: Option<Range<u64>>,
    /// Whether to visit each block at most once, for cold caches; the job ends early when all have
    /// been visited.
    pub once: bool,
    /// Number of accesses, over all threads, after which the job ends early.
    pub operations_max: Option<u64>,
    /// Seed of the offsets; the same seed gives the same offsets.
    pub seed: u64,
}

/// What a measurement may do alongside others on the same disk.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateLimits {
    /// Requests to the disk per second; a write and its sync are two.
    pub requests_per_s: f64,
    pub bytes_per_s: f64,
    /// The share of time above which the measurement ends, if some task of the host waits for I/O
    /// for longer (PSI).
    pub pressure_max: f64,
}

impl Job {
    /// Sets a rate that keeps the job within its share of the limits, when `jobs` of its kind are
    /// running.
    pub fn hold_to(&mut self, limits: &RateLimits, jobs: u32) {
        let facts = &mut self.facts;
        let requests = if facts.sync_each_write { 2.0 } else { 1.0 };
        let bytes = facts.block_bytes.max(facts.window_bytes.unwrap_or(0));
        let by_requests = limits.requests_per_s / requests;
        let by_bytes = limits.bytes_per_s / bytes.max(1) as f64;
        let most = by_requests.min(by_bytes) / f64::from(jobs.max(1));
        facts.rate_per_s = Some(facts.rate_per_s.map_or(most, |rate| rate.min(most)));
    }

    /// Returns a job of one thread with one direct request of 4 KiB at a time, for a second.
    pub fn new(access: AccessKind, engine: EngineKind) -> Self {
        Self {
            facts: JobFacts::new(access, engine),
            warm_up: Duration::ZERO,
            runtime: Duration::from_secs(1),
            region: None,
            once: false,
            operations_max: None,
            seed: 1,
        }
    }

    /// Rejects what cannot be done, before anything is touched. `file_bytes` is the size of the
    /// file to run on; `null` jobs take any.
    pub fn check(&self, file_bytes: u64) -> Result<(), DiskError> {
        let facts = &self.facts;
        let block = facts.block_bytes;
        in_range("block size", block, 1, BLOCK_BYTES_MAX)?;
        in_range("threads", facts.threads.into(), 1, THREADS_MAX.into())?;
        in_range("depth", facts.depth.into(), 1, DEPTH_MAX.into())?;
        let queues = matches!(facts.engine, EngineKind::Uring | EngineKind::Null);
        require(queues || facts.depth == 1, || {
            format!(
                "the {} engine has one request in flight per thread: use --threads {} instead of \
                 --depth {}",
                facts.engine.name(),
                facts.depth,
                facts.depth
            )
        })?;
        require(!facts.direct || block.is_multiple_of(512), || {
            format!("direct I/O needs a block size that is a multiple of 512, not {block}")
        })?;
        require(!facts.direct || facts.engine != EngineKind::Mmap, || {
            "a mapping always uses the page cache: leave out the direct flag".into()
        })?;
        let buffers = u128::from(block) * u128::from(facts.depth) * u128::from(facts.threads);
        require(buffers <= 16 << 30, || {
            format!(
                "{} threads of {} buffers of {block} bytes need more than 16 GiB of memory",
                facts.threads, facts.depth
            )
        })?;
        require(
            !self.runtime.is_zero() || self.operations_max.is_some(),
            || "a runtime of 0 measures nothing".into(),
        )?;
        require(
            facts
                .rate_per_s
                .is_none_or(|r| (RATE_MIN..=1e9).contains(&r)),
            || format!("the rate must be from {RATE_MIN} to 1e9 per second"),
        )?;
        self.check_order()?;
        let region = self.region(file_bytes);
        require(
            region.end <= file_bytes || facts.engine == EngineKind::Null,
            || {
                format!(
                    "the region ends at {}, behind the file's end at {file_bytes}",
                    region.end
                )
            },
        )?;
        let blocks = (region.end.saturating_sub(region.start)) / block;
        require(blocks >= u64::from(facts.threads), || {
            format!(
                "{} bytes hold {blocks} blocks of {block}, fewer than the {} threads",
                region.end.saturating_sub(region.start),
                facts.threads
            )
        })
    }

    fn check_order(&self) -> Result<(), DiskError> {
        let facts = &self.facts;
        let share = facts.read_share;
        require((0.0..=1.0).contains(&share), || {
            "the share of reads is a number from 0 to 1".into()
        })?;
        require(facts.access.writes() || share >= 1.0, || {
            format!("{} only reads", facts.access.name())
        })?;
        require(facts.window_bytes.is_none() || !facts.direct, || {
            "read-ahead needs the page cache, which direct I/O goes around".into()
        })?;
        require(
            facts.window_bytes.is_none() || facts.engine == EngineKind::Sync,
            || "explicit read-ahead windows are made by the sync engine only".into(),
        )?;
        let sync_engine = matches!(facts.engine, EngineKind::Sync | EngineKind::Mmap);
        require(
            facts.sync_every_bytes.is_none_or(|b| b > 0 && sync_engine),
            || "a sync after so many bytes is made by the sync and mmap engines only".into(),
        )?;
        require(
            facts
                .run_blocks
                .is_none_or(|n| n > 0 && facts.access.is_random()),
            || "runs are of at least one block, in random order".into(),
        )
    }

    /// Returns the range that is accessed in a file of `file_bytes`.
    pub(crate) fn region(&self, file_bytes: u64) -> Range<u64> {
        self.region.clone().unwrap_or(0..file_bytes)
    }

    /// Rejects writing jobs on files that are not ours.
    pub fn check_on(&self, file: &TestFile) -> Result<(), DiskError> {
        require(file.is_own() || !self.facts.access.writes(), || {
            format!(
                "{} exists and is only ever read; {} would write it",
                file.path().display(),
                self.facts.access.name()
            )
        })?;
        self.check(file.bytes())
    }
}

fn require(condition: bool, why: impl FnOnce() -> String) -> Result<(), DiskError> {
    if condition {
        Ok(())
    } else {
        Err(DiskError::InvalidJob(why()))
    }
}

fn in_range(what: &str, value: u64, min: u64, max: u64) -> Result<(), DiskError> {
    require((min..=max).contains(&value), || {
        format!("the {what} must be from {min} to {max}, not {value}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn held_jobs_keep_to_requests_and_bytes() {
        let limits = RateLimits {
            requests_per_s: 200.0,
            bytes_per_s: 20e6,
            pressure_max: 0.5,
        };
        let rate = |change: &dyn Fn(&mut Job), jobs| {
            let mut job = Job::new(AccessKind::RandRead, EngineKind::Sync);
            change(&mut job);
            job.hold_to(&limits, jobs);
            job.facts.rate_per_s.unwrap()
        };
        assert_eq!(rate(&|_| {}, 1), 200.0);
        assert_eq!(rate(&|_| {}, 2), 100.0);
        assert_eq!(rate(&|j| j.facts.sync_each_write = true, 1), 100.0);
        assert_eq!(rate(&|j| j.facts.block_bytes = 1_000_000, 1), 20.0);
        assert_eq!(rate(&|j| j.facts.window_bytes = Some(2_000_000), 1), 10.0);
        assert_eq!(rate(&|j| j.facts.rate_per_s = Some(5.0), 1), 5.0);
    }

    #[test]
    fn what_cannot_be_done_is_refused_with_its_reason() {
        let refused = |change: &dyn Fn(&mut Job)| {
            let mut job = Job::new(AccessKind::RandRead, EngineKind::Sync);
            change(&mut job);
            job.check(1 << 20).unwrap_err().to_string()
        };
        assert!(
            Job::new(AccessKind::RandRead, EngineKind::Sync)
                .check(1 << 20)
                .is_ok()
        );
        assert!(refused(&|j| j.facts.block_bytes = 0).contains("block size"));
        assert!(refused(&|j| j.facts.block_bytes = 1000).contains("multiple of 512"));
        assert!(refused(&|j| j.facts.threads = 0).contains("threads"));
        assert!(refused(&|j| j.facts.depth = 8).contains("--threads 8"));
        assert!(refused(&|j| j.facts.threads = 300).contains("fewer than"));
        assert!(refused(&|j| j.facts.rate_per_s = Some(f64::NAN)).contains("rate"));
        assert!(refused(&|j| j.facts.rate_per_s = Some(0.0)).contains("rate"));
        assert!(refused(&|j| j.runtime = Duration::ZERO).contains("runtime"));
        assert!(refused(&|j| j.region = Some(0..2 << 20)).contains("region"));
        assert!(refused(&|j| j.facts.read_share = 0.5).contains("only reads"));
        assert!(refused(&|j| j.facts.run_blocks = Some(0)).contains("runs"));
        let huge = refused(&|j| {
            j.facts.engine = EngineKind::Uring;
            (j.facts.block_bytes, j.facts.depth, j.facts.threads) = (64 << 20, 4096, 4096);
        });
        assert!(huge.contains("16 GiB"), "{huge}");
    }
}
