//! Derives the few numbers of a [`DeviceModel`] from measured steps.

use seekscope_run::{
    AccessKind, DepthPoint, DeviceFacts, DeviceModel, DiskStep, JobOutcome, SizePoint, StepGroup,
    SyncPoint,
};
use thiserror::Error;

use super::limits::{bytes_limit, iops_limit, knee};

/// Why no model can be made from steps.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FitError {
    #[error(
        "no device model: it needs random reads one at a time in at least two sizes, and {found} \
         could be used (steps held to a rate do not count); measure 4, 32, 128 and 1024 KiB"
    )]
    TooFewSizes { found: usize },
}

/// A cold read step is not cold if the device read less than this share of the bytes.
const COLD_SHARE_MIN: f64 = 0.1;

/// Makes the model of a device from what was measured on it.
///
/// `direct` says whether the steps bypassed the page cache; `request_bytes_max` is the device's
/// `queue/max_sectors_kb` in bytes. Groups that are missing leave their fields 0 or empty, except
/// that latencies of at least two sizes are needed. Steps without elapsed time or operations are
/// left out, and so are those held to a rate: they show the rate, not the device.
///
/// Latencies are elapsed time per read, not medians: on a throttled disk, which serves requests in
/// bursts, only the mean predicts totals.
///
/// # Errors
///
/// [`FitError::TooFewSizes`].
pub fn fit(
    steps: &[DiskStep],
    device: &DeviceFacts,
    request_bytes_max: Option<u64>,
    direct: bool,
) -> Result<DeviceModel, FitError> {
    let sizes: Vec<SizePoint> = jobs(steps, StepGroup::Size).map(size_point).collect();
    let depths: Vec<DepthPoint> = depth_points(steps);
    let singles: Vec<(f64, f64)> = sizes
        .iter()
        .map(|p| (p.bytes as f64, p.mean_ns))
        .chain(
            depths
                .iter()
                .filter(|p| p.depth == 1)
                .map(|p| (p.block_bytes as f64, 1e9 / p.iops)),
        )
        .collect();
    let (l0_ns, ns_per_byte) = line(&singles).ok_or(FitError::TooFewSizes {
        found: distinct(&singles),
    })?;
    let fit_error = sizes
        .iter()
        .map(|p| ((l0_ns + ns_per_byte * p.bytes as f64) / p.mean_ns - 1.0).abs())
        .fold(0.0, f64::max);
    let sequential_bytes_per_s = median(
        jobs(steps, StepGroup::SequentialDirect)
            .filter(|job| at_once(job) == 1)
            .map(JobOutcome::bytes_per_s),
    );
    let cached_ns_per_byte = median(jobs(steps, StepGroup::Cached).map(cached_ns_per_byte));
    let smallest: Vec<DepthPoint> = smallest_blocks(&depths);
    Ok(DeviceModel {
        disk: disk_name(device),
        direct,
        l0_ns,
        ns_per_byte,
        fit_error,
        parallelism: knee(&smallest).unwrap_or(0),
        sequential_bytes_per_s,
        bytes_per_s_max: bytes_per_s_max(steps),
        buffered_bytes_per_s: median(in_order(steps).map(JobOutcome::bytes_per_s)),
        cached_ns_per_byte,
        miss_ns: median(lone_reads(steps).map(|job| {
            let bytes = job.job.block_bytes as f64;
            miss_ns(job, l0_ns + (ns_per_byte + cached_ns_per_byte) * bytes)
        })),
        stream_ns_per_byte: median(
            in_order(steps)
                .filter(|job| job.bytes_per_s() < sequential_bytes_per_s)
                .map(|job| (ns_per_byte_of_cpu(job) - cached_ns_per_byte).max(0.0)),
        ),
        read_ahead_bytes: device.read_ahead_kib.unwrap_or(0).saturating_mul(1024),
        request_bytes_max: request_bytes_max.unwrap_or(0),
        sync: jobs(steps, StepGroup::Journal).map(sync_point).collect(),
        iops_bucket: iops_limit(&depths),
        bytes_bucket: bytes_limit(&depths),
        sizes,
        depths,
    })
}

/// Returns what a byte in the page cache takes to read. That is work of the CPU: where some of the file was not in the
/// cache yet, which a throttle makes last, the rest of the time was waiting for the disk.
fn cached_ns_per_byte(job: &JobOutcome) -> f64 {
    let ns = match job.cpu_ns {
        0 => job.elapsed_ns,
        cpu_ns => cpu_ns.min(job.elapsed_ns),
    };
    ns as f64 / job.reads.bytes.max(1) as f64
}

/// Returns the job that the step is about, unless it was held to a rate.
fn unheld(step: &DiskStep) -> Option<&JobOutcome> {
    step.main().filter(|job| job.job.rate_per_s.is_none())
}

/// Returns the main jobs of a group's steps, if they did something.
fn jobs(steps: &[DiskStep], group: StepGroup) -> impl Iterator<Item = &JobOutcome> {
    steps
        .iter()
        .filter(move |step| step.group == group)
        .filter_map(unheld)
        .filter(|job| job.elapsed_ns > 0 && job.operations() > 0)
}

/// Returns the buffered sequential reads of data that was not in the page cache.
fn in_order(steps: &[DiskStep]) -> impl Iterator<Item = &JobOutcome> {
    steps
        .iter()
        .filter(|step| step.group == StepGroup::Order)
        .filter_map(|step| Some((unheld(step)?, step.device_read_bytes)))
        .filter(|(job, _)| job.elapsed_ns > 0 && job.reads.bytes > 0)
        .filter(|(job, _)| job.job.access == AccessKind::Read && job.job.run_blocks.is_none())
        .filter(|(job, device)| {
            device.is_none_or(|bytes| bytes as f64 >= COLD_SHARE_MIN * job.reads.bytes as f64)
        })
        .map(|(job, _)| job)
}

/// Returns the buffered reads in random order, none next to another.
fn lone_reads(steps: &[DiskStep]) -> impl Iterator<Item = &JobOutcome> {
    jobs(steps, StepGroup::Order)
        .filter(|job| job.job.access == AccessKind::RandRead && at_once(job) == 1)
        .filter(|job| job.job.run_blocks.unwrap_or(1) == 1)
}

/// Returns what a lone buffered read takes beyond `expected_ns`, which is the device and copying.
/// Never more than the CPU time that it used, if known: in the rest of the difference the disk was
/// slower than when the sizes were measured.
fn miss_ns(job: &JobOutcome, expected_ns: f64) -> f64 {
    let per_read = |ns: u64| ns as f64 / job.operations() as f64;
    let beyond_ns = (per_read(job.elapsed_ns) - expected_ns).max(0.0);
    match job.cpu_ns {
        0 => beyond_ns,
        cpu_ns => beyond_ns.min(per_read(cpu_ns)),
    }
}

/// Returns the highest rate over all steps that show the device's own speed.
fn bytes_per_s_max(steps: &[DiskStep]) -> f64 {
    [
        StepGroup::Size,
        StepGroup::Ramp,
        StepGroup::SequentialDirect,
    ]
    .into_iter()
    .flat_map(|group| jobs(steps, group))
    .chain(in_order(steps))
    .map(JobOutcome::bytes_per_s)
    .fold(0.0, f64::max)
}

/// Returns the CPU cost per byte of a stream that was slower than the device. If the stream
/// computed most of the time, the CPU was the limit, and all of its time counts.
fn ns_per_byte_of_cpu(job: &JobOutcome) -> f64 {
    let cpu_bound = job.cpu_ns == 0 || job.cpu_ns > job.elapsed_ns / 2;
    let ns = if cpu_bound {
        job.elapsed_ns
    } else {
        job.cpu_ns
    };
    ns as f64 / job.reads.bytes as f64
}

/// Returns the number of requests in flight.
fn at_once(job: &JobOutcome) -> u32 {
    job.job.depth.saturating_mul(job.job.threads).max(1)
}

fn size_point(job: &JobOutcome) -> SizePoint {
    SizePoint {
        bytes: job.job.block_bytes,
        mean_ns: job.elapsed_ns as f64 * f64::from(at_once(job)) / job.operations() as f64,
        p50_ns: job.reads.latency.p50_ns,
    }
}

fn sync_point(job: &JobOutcome) -> SyncPoint {
    SyncPoint {
        block_bytes: job.job.block_bytes,
        writers: job.job.threads,
        per_s: job.iops(),
        latency: job.writes.latency,
    }
}

/// Returns the depth table, by block size, then depth. Threads count as depth.
fn depth_points(steps: &[DiskStep]) -> Vec<DepthPoint> {
    let mut points: Vec<DepthPoint> = jobs(steps, StepGroup::Ramp)
        .map(|job| DepthPoint {
            block_bytes: job.job.block_bytes,
            depth: at_once(job),
            iops: job.iops(),
            p50_ns: job.reads.latency.p50_ns,
            p99_ns: job.reads.latency.p99_ns,
        })
        .collect();
    points.sort_by_key(|p| (p.block_bytes, p.depth));
    points
}

/// Returns the knee of the ramp among `steps`: the depth beyond which more gains less than a tenth,
/// at the smallest block size. `None` before there is a ramp.
pub fn knee_depth(steps: &[DiskStep]) -> Option<u32> {
    knee(&smallest_blocks(&depth_points(steps)))
}

fn smallest_blocks(depths: &[DepthPoint]) -> Vec<DepthPoint> {
    let smallest = depths.first().map_or(0, |p| p.block_bytes);
    depths
        .iter()
        .copied()
        .take_while(|p| p.block_bytes == smallest)
        .collect()
}

/// Returns the median; 0 without values.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    seekscope_stats::median(&values.collect::<Vec<_>>()).unwrap_or(0.0)
}

fn distinct(points: &[(f64, f64)]) -> usize {
    let mut sizes: Vec<u64> = points.iter().map(|p| p.0.to_bits()).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes.len()
}

/// Returns the line y = a + b x, with neither of them negative, that has the least sum of squared
/// relative errors; relative, because a percent of the largest read would be more than all of the
/// smallest. `None` for fewer than two different x.
fn line(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    if distinct(points) < 2 {
        return None;
    }
    // Weighted normal equations; each weight is 1 / y².
    let sum = |term: fn(f64, f64) -> f64| -> f64 {
        points.iter().map(|&(x, y)| term(x, y) / (y * y)).sum()
    };
    let (w, wx, wy) = (sum(|_, _| 1.0), sum(|x, _| x), sum(|_, y| y));
    let (wxx, wxy) = (sum(|x, _| x * x), sum(|x, y| x * y));
    let slope = (w * wxy - wx * wy) / (w * wxx - wx * wx);
    let intercept = (wy - slope * wx) / w;
    Some(if slope < 0.0 {
        (wy / w, 0.0)
    } else if intercept < 0.0 {
        (0.0, wxy / wxx)
    } else {
        (intercept, slope)
    })
}

/// Returns a name such as "ext4 on vda".
fn disk_name(device: &DeviceFacts) -> String {
    match &device.disk {
        Some(disk) => format!("{} on {disk}", device.filesystem),
        None => device.filesystem.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::test_steps::{disk, step};

    const KIB: u64 = 1024;

    fn sizes(latency_ns: impl Fn(u64) -> f64) -> Vec<DiskStep> {
        [4, 32, 128, 1024]
            .map(|kib| {
                let bytes = kib * KIB;
                step(
                    StepGroup::Size,
                    AccessKind::RandRead,
                    bytes,
                    1,
                    latency_ns(bytes),
                )
            })
            .to_vec()
    }

    fn close(value: f64, expected: f64) -> bool {
        (value - expected).abs() <= 1e-6 * expected.abs()
    }

    #[test]
    fn recovers_the_line() {
        let steps = sizes(|bytes| 80_000.0 + 0.9 * bytes as f64);
        let model = fit(&steps, &disk(), Some(1 << 20), true).unwrap();
        assert!(close(model.l0_ns, 80_000.0), "{model:?}");
        assert!(close(model.ns_per_byte, 0.9), "{model:?}");
        assert!(model.fit_error < 1e-6);
        assert_eq!(model.disk, "ext4 on vda");
        assert_eq!(
            (model.read_ahead_bytes, model.request_bytes_max),
            (128 * KIB, 1 << 20)
        );
        assert_eq!((model.sizes.len(), model.parallelism), (4, 0));
    }

    #[test]
    fn never_negative() {
        let falling = sizes(|bytes| 1e6 - 0.5 * bytes as f64);
        let model = fit(&falling, &disk(), None, true).unwrap();
        assert!(model.ns_per_byte == 0.0 && model.l0_ns > 0.0, "{model:?}");
        let steep = sizes(|bytes| bytes as f64 * bytes as f64);
        let model = fit(&steep, &disk(), None, true).unwrap();
        assert!(model.l0_ns == 0.0 && model.ns_per_byte > 0.0, "{model:?}");
        assert!(model.fit_error > 0.5);
    }

    #[test]
    fn too_little_says_what_is_missing() {
        let one = &sizes(|_| 1.0)[..1];
        let error = fit(one, &disk(), None, true).unwrap_err();
        assert_eq!(error, FitError::TooFewSizes { found: 1 });
        assert!(error.to_string().contains("1 could be used"));
        assert!(fit(&[], &disk(), None, true).is_err());
    }

    #[test]
    fn steps_held_to_a_rate_do_not_count() {
        let mut held = sizes(|bytes| bytes as f64);
        let group = |group, access| step(group, access, 4 * KIB, 1, 1e9);
        held.extend([
            group(StepGroup::Ramp, AccessKind::RandRead),
            group(StepGroup::SequentialDirect, AccessKind::Read),
            group(StepGroup::Order, AccessKind::Read),
            group(StepGroup::Order, AccessKind::RandRead),
            group(StepGroup::Cached, AccessKind::Read),
            group(StepGroup::Journal, AccessKind::Write),
        ]);
        for step in &mut held {
            step.jobs[0].job.rate_per_s = Some(50.0);
        }
        let error = fit(&held, &disk(), None, true).unwrap_err();
        assert_eq!(error, FitError::TooFewSizes { found: 0 });
        assert!(error.to_string().contains("held to a rate"));
        assert_eq!(knee_depth(&held), None);
        // Beside free steps they change nothing.
        let free = sizes(|bytes| 80_000.0 + 0.9 * bytes as f64);
        let both = [free.clone(), held].concat();
        assert_eq!(
            fit(&both, &disk(), None, true),
            fit(&free, &disk(), None, true)
        );
    }

    #[test]
    fn the_ramp_can_stand_in_for_the_sizes() {
        let ramp = |kib: u64, depth, latency| {
            step(
                StepGroup::Ramp,
                AccessKind::RandRead,
                kib * KIB,
                depth,
                latency,
            )
        };
        let steps = [
            ramp(32, 1, 132_768.0),
            ramp(4, 1, 104_096.0),
            ramp(4, 8, 200_000.0),
            ramp(4, 2, 110_000.0),
        ];
        let model = fit(&steps, &disk(), None, true).unwrap();
        assert!(close(model.l0_ns, 100_000.0) && close(model.ns_per_byte, 1.0));
        let order: Vec<_> = model
            .depths
            .iter()
            .map(|p| (p.block_bytes, p.depth))
            .collect();
        assert_eq!(order, [(4096, 1), (4096, 2), (4096, 8), (32_768, 1)]);
        assert_eq!(model.parallelism, 8);
        assert!(model.sizes.is_empty());
    }

    /// In a control group with 20 MB/s, beside other load, a step of 100 ms still read much of the file from the disk.
    #[test]
    fn reads_from_the_page_cache_cost_no_waiting() {
        let mut steps = sizes(|_| 1e6);
        let mut cached = step(
            StepGroup::Cached,
            AccessKind::Read,
            32 * KIB,
            1,
            2_083_333.0,
        );
        let job = &mut cached.jobs[0];
        job.cpu_ns = job.reads.bytes / 10;
        steps.push(cached);
        let model = fit(&steps, &disk(), None, true).unwrap();
        assert!(close(model.cached_ns_per_byte, 0.1), "{model:?}");
    }

    #[test]
    fn the_rest_of_the_groups() {
        let mut steps = sizes(|_| 1e6);
        steps.push(step(
            StepGroup::SequentialDirect,
            AccessKind::Read,
            1 << 20,
            1,
            1e6,
        ));
        let cold = step(StepGroup::Order, AccessKind::Read, 32 * KIB, 1, 50_000.0);
        let cached = step(StepGroup::Cached, AccessKind::Read, 32 * KIB, 1, 3_276.8);
        // 1 ms of device, 3 µs of copying, 30 µs more.
        let shuffled = step(
            StepGroup::Order,
            AccessKind::RandRead,
            32 * KIB,
            1,
            1_033_276.8,
        );
        let mut runs = step(StepGroup::Order, AccessKind::RandRead, 32 * KIB, 1, 9e6);
        runs.jobs[0].job.run_blocks = Some(8);
        steps.extend([cold, cached, shuffled, runs]);
        let mut journal = step(StepGroup::Journal, AccessKind::Write, 4 * KIB, 1, 1e6);
        journal.jobs[0].job.threads = 8;
        steps.push(journal);
        let model = fit(&steps, &disk(), None, true).unwrap();
        assert!(close(model.sequential_bytes_per_s, 1_048_576_000.0));
        assert!(close(model.buffered_bytes_per_s, 655_360_000.0));
        assert!(close(model.cached_ns_per_byte, 0.1));
        assert!((model.miss_ns - 30_000.0).abs() < 1.0, "{model:?}");
        assert!(close(model.bytes_per_s_max, 1_048_576_000.0));
        // 50 µs for 32 KiB, of which the copying is known.
        assert!(close(model.stream_ns_per_byte, 50_000.0 / 32_768.0 - 0.1));
        assert_eq!(
            (model.sync[0].writers, model.sync[0].block_bytes),
            (8, 4096)
        );
    }
}
