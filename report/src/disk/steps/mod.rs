//! Finds the steps that answer each question. Steps are identified by their group and their first job, not by
//! their names, which only have to be unique.

mod journal;
mod order;
mod percentile;

use seekscope_run::{
    DiskMeasurement, DiskStep, EngineKind, JobFacts, JobOutcome, LatencySummary, StepGroup,
};

pub(super) use journal::{alone, commits};
pub(super) use order::{Orders, Window, WindowPoint, windows};
pub(super) use percentile::{at_quantile, is_supported, p50_ns, p99_ns, p999_ns};

/// Share of the best rate that the knee reaches, and that counts as "as good as the best" elsewhere.
pub(super) const NEARLY_ALL: f64 = 0.9;

/// Fewer operations may well be ruled by one that had to wait for its turn.
const STALLED_AMONG_MIN: u64 = 100;

/// A step in which something was done, with its main job.
#[derive(Debug, Clone, Copy)]
pub(super) struct Measured<'a> {
    pub(super) step: &'a DiskStep,
    pub(super) job: &'a JobOutcome,
}

impl<'a> Measured<'a> {
    /// Returns `None` when nothing was done.
    pub(super) fn of(step: &'a DiskStep) -> Option<Self> {
        let job = step.main().filter(|job| job.operations() > 0)?;
        Some(Self { step, job })
    }

    /// Returns the job's description.
    pub(super) fn facts(&self) -> &'a JobFacts {
        &self.job.job
    }

    /// Returns requests in flight, all threads together.
    pub(super) fn in_flight(&self) -> u64 {
        in_flight(self.facts())
    }

    /// Returns whether it has the same block size and as much in flight.
    pub(super) fn is_alike(&self, other: &Measured<'_>) -> bool {
        self.facts().block_bytes == other.facts().block_bytes
            && self.in_flight() == other.in_flight()
    }

    /// Returns the latency of reads, where there are any, else of writes (with their fdatasync).
    pub(super) fn latency(&self) -> &'a LatencySummary {
        if self.job.reads.operations > 0 {
            &self.job.reads.latency
        } else {
            &self.job.writes.latency
        }
    }

    /// Returns the time of the longest operation, ns, if it took more than all others together: a stall, which tells of
    /// the host rather than of the disk. Where a limit makes requests wait, many are long.
    pub(super) fn stall_ns(&self) -> Option<u64> {
        let latency = self.latency();
        let all_ns = latency.mean_ns * latency.count as f64;
        let is_stall = latency.max_ns as f64 > all_ns / 2.0;
        (is_stall && latency.count >= STALLED_AMONG_MIN).then_some(latency.max_ns)
    }

    /// Returns the mean time of an operation, ns, without a stall.
    pub(super) fn mean_ns(&self) -> f64 {
        let latency = self.latency();
        let count = latency.count as f64;
        match self.stall_ns() {
            Some(stall_ns) => (latency.mean_ns * count - stall_ns as f64) / (count - 1.0),
            None => latency.mean_ns,
        }
    }

    /// Returns the bytes fetched from the device per byte read; only where nothing else ran beside the job.
    pub(super) fn fetched_per_byte(&self) -> Option<f64> {
        let alone = self.step.jobs.len() == 1 && self.job.reads.bytes > 0;
        let fetched = self.step.device_read_bytes.filter(|_| alone)?;
        Some(fetched as f64 / self.job.reads.bytes as f64)
    }
}

/// Returns requests in flight, all threads together; blocking engines have one per thread.
pub(super) fn in_flight(job: &JobFacts) -> u64 {
    let per_thread = match job.engine {
        EngineKind::Uring | EngineKind::Null => job.depth.max(1),
        EngineKind::Sync | EngineKind::Mmap => 1,
    };
    u64::from(per_thread) * u64::from(job.threads.max(1))
}

/// Returns whether the step's job was held to a rate. If so, its rate is not the disk's.
fn is_held(m: &Measured<'_>) -> bool {
    m.facts().rate_per_s.is_some()
}

/// Returns the largest rate, per second, that steps about the disk's capability were held to; `None` where
/// there was none. A user's own job has another purpose, and the generator involves no disk.
pub(super) fn held_to_per_s(measurement: &DiskMeasurement) -> Option<f64> {
    (measurement.steps.iter())
        .filter(|step| !matches!(step.group, StepGroup::Job | StepGroup::Generator))
        .filter_map(|step| step.main()?.job.rate_per_s)
        .reduce(f64::max)
}

/// Returns the steps of a group in which something was done, in order.
pub(super) fn of_group(
    measurement: &DiskMeasurement,
    group: StepGroup,
) -> impl Iterator<Item = Measured<'_>> {
    let steps = measurement.steps.iter().filter(move |s| s.group == group);
    steps.filter_map(Measured::of)
}

/// Direct random reads of one size.
#[derive(Debug, Clone)]
pub(super) struct Ramp<'a> {
    pub(super) block_bytes: u64,
    /// Points by rising depth; never empty.
    pub(super) points: Vec<Measured<'a>>,
}

impl<'a> Ramp<'a> {
    /// Returns the point with the highest rate.
    pub(super) fn best(&self) -> Option<Measured<'a>> {
        let rate = |m: &Measured<'_>| m.job.iops();
        let points = self.points.iter().copied();
        points.max_by(|a, b| rate(a).total_cmp(&rate(b)))
    }

    /// Returns the index of the smallest depth that reaches [`NEARLY_ALL`] of the best rate. `None` for reads
    /// held to a rate.
    pub(super) fn knee_index(&self) -> Option<usize> {
        if self.points.iter().any(is_held) {
            return None;
        }
        let enough = self.best()?.job.iops() * NEARLY_ALL;
        self.points.iter().position(|m| m.job.iops() >= enough)
    }

    /// Returns the step at the knee.
    pub(super) fn knee(&self) -> Option<Measured<'a>> {
        self.points.get(self.knee_index()?).copied()
    }

    /// Returns the step with one read at a time.
    pub(super) fn one_at_a_time(&self) -> Option<Measured<'a>> {
        self.points.first().copied().filter(|m| m.in_flight() == 1)
    }

    /// Returns the step with most reads in flight.
    pub(super) fn deepest(&self) -> Option<Measured<'a>> {
        self.points.last().copied()
    }
}

/// Returns the ramps, by rising block size.
pub(super) fn ramps(measurement: &DiskMeasurement) -> Vec<Ramp<'_>> {
    let mut points: Vec<Measured<'_>> = of_group(measurement, StepGroup::Ramp).collect();
    points.sort_by_key(|m| (m.facts().block_bytes, m.in_flight()));
    points
        .chunk_by(|a, b| a.facts().block_bytes == b.facts().block_bytes)
        .map(|points| Ramp {
            block_bytes: points[0].facts().block_bytes,
            points: points.to_vec(),
        })
        .collect()
}

/// Returns the share of the bytes read directly that the block layer fetched, by the kernel's own count;
/// `None` when nothing was read directly, or nothing was counted. A share below 1 means a cache, or blocks
/// that were never written.
pub(super) fn fetched_share(measurement: &DiskMeasurement) -> Option<f64> {
    let counted = direct_reads(measurement)
        .filter_map(|m| Some((m.job.reads.bytes as f64, m.fetched_per_byte()?)));
    let (bytes, fetched) = counted.fold((0.0, 0.0), |(bytes, fetched), (read, per_byte)| {
        (bytes + read, fetched + read * per_byte)
    });
    // Counted at both ends of a step, so a few requests more or fewer than were measured.
    (bytes > 0.0).then(|| f64::min(fetched / bytes, 1.0))
}

/// Returns the steps in which reads were meant to bypass the page cache.
pub(super) fn direct_reads(measurement: &DiskMeasurement) -> impl Iterator<Item = Measured<'_>> {
    [StepGroup::Ramp, StepGroup::Sustained, StepGroup::Job]
        .into_iter()
        .flat_map(|group| of_group(measurement, group))
        .filter(|m| {
            m.facts().direct && m.job.reads.bytes > 0 && m.facts().engine != EngineKind::Null
        })
}

#[cfg(test)]
mod tests {
    use super::super::made_up::{MadeUp, commit, random};
    use super::*;

    #[test]
    fn the_knee_is_the_smallest_depth_that_is_nearly_the_best() {
        let mut made_up = MadeUp::default();
        // Out of order on purpose, with one step in which nothing was done.
        for (depth, rate) in [(8, 95.0), (1, 20.0), (32, 100.0), (4, 89.0), (64, 0.0)] {
            made_up.step(StepGroup::Ramp, "", random(4096, depth), rate, 1);
        }
        let ramps = ramps(&made_up.measurement);
        let depths: Vec<u64> = ramps[0].points.iter().map(Measured::in_flight).collect();
        assert_eq!(depths, [1, 4, 8, 32]);
        assert_eq!(ramps[0].knee().map(|m| m.in_flight()), Some(8));
        assert_eq!(ramps[0].best().map(|m| m.in_flight()), Some(32));
    }

    #[test]
    fn engines_that_block_have_one_request_per_thread() {
        let mut job = commit(4096, 8);
        job.depth = 32;
        assert_eq!(in_flight(&job), 8);
        job.engine = EngineKind::Uring;
        assert_eq!(in_flight(&job), 256);
    }
}
