//! Contains sentences about reads that bypass the page cache.

use seekscope_run::units::{format_count, format_ns};
use seekscope_run::{DiskMeasurement, StepGroup};

use super::super::steps::{Measured, NEARLY_ALL, Orders, Ramp, of_group, p50_ns, p99_ns, ramps};
use super::{block, counted};
use crate::numbers::{format_mb, format_mean_ns, format_rate, format_share, format_times};

/// A mean this many times the median is due to a few long waits.
const BURSTY: f64 = 3.0;
/// A buffered scan that is slower than this share of a direct one is held back by something else.
const BUFFERED_ENOUGH: f64 = 0.8;
/// Size of the example scan for people: 100 GiB.
const SCAN_BYTES: f64 = 100.0 * (1u64 << 30) as f64;

/// Returns the smallest random read, one at a time.
pub(super) fn one_read(measurement: &DiskMeasurement) -> Option<Measured<'_>> {
    let ramps = ramps(measurement);
    let from_ramp = ramps.first().and_then(Ramp::one_at_a_time);
    from_ramp
        .or_else(|| of_group(measurement, StepGroup::Size).min_by_key(|m| m.facts().block_bytes))
}

/// Returns the best direct reads in order.
fn best_direct(measurement: &DiskMeasurement) -> Option<Measured<'_>> {
    fastest(of_group(measurement, StepGroup::SequentialDirect))
}

/// Returns the best reads in order, direct or through the page cache.
pub(super) fn best_sequential(measurement: &DiskMeasurement) -> Option<Measured<'_>> {
    let buffered = Orders::of(measurement).in_order;
    fastest(best_direct(measurement).into_iter().chain(buffered))
}

fn fastest<'a>(steps: impl Iterator<Item = Measured<'a>>) -> Option<Measured<'a>> {
    steps.max_by(|a, b| a.job.bytes_per_s().total_cmp(&b.job.bytes_per_s()))
}

pub(super) fn cache_miss(measurement: &DiskMeasurement) -> Option<String> {
    let read = one_read(measurement)?;
    let latency = read.latency();
    let mut text = format!(
        "A WiredTiger cache miss costs about {} (a random {} read, one at a time",
        format_mean_ns(read.mean_ns()),
        block(read.facts().block_bytes)
    );
    if let Some(p50) = p50_ns(latency) {
        text.push_str(&format!("; half of them take at most {}", format_ns(p50)));
    }
    if let Some(p99) = p99_ns(latency) {
        text.push_str(&format!(", one in a hundred at least {}", format_ns(p99)));
    }
    text.push_str(").");
    if let Some(stall_ns) = read.stall_ns() {
        text.push_str(&format!(
            " The longest of the {} reads took {}, more than all others together: such a stall \
             comes from other work on the host or from a layer between the host and the disk, and \
             is excluded from this cost, but not from the rate of the step.",
            format_count(latency.count),
            format_ns(stall_ns)
        ));
    }
    if read.mean_ns() > BURSTY * latency.p50_ns as f64 {
        text.push_str(
            " A few long waits dominate this mean: the reads are served in bursts, as under a \
             limit on requests, or a cache in front of the disk serves many of them.",
        );
    }
    Some(text)
}

pub(super) fn concurrency(measurement: &DiskMeasurement) -> Option<String> {
    let ramps = ramps(measurement);
    let ramp = ramps.first().filter(|ramp| ramp.points.len() > 1)?;
    let (best, knee, deepest) = (ramp.best()?, ramp.knee()?, ramp.deepest()?);
    let first = ramp.points.first()?;
    let best_rate = format!(
        "{} random reads of {} per second",
        format_rate(best.job.iops()),
        block(ramp.block_bytes)
    );
    let share = format_share(knee.job.iops() / best.job.iops());
    if knee.in_flight() == first.in_flight() {
        return Some(format!(
            "Concurrency gains nothing here: with {} in flight, the disk already reaches {share} \
             of the best rate, {best_rate}, as it does under a limit on requests per second.",
            counted(first.in_flight(), "read", "reads")
        ));
    }
    if knee.in_flight() == deepest.in_flight() {
        return Some(format!(
            "The rate was still rising with {} reads in flight, the most that were tried: \
             {best_rate}; the disk may be able to serve more.",
            deepest.in_flight()
        ));
    }
    let mut text = format!(
        "Beyond {} reads in flight, more concurrency adds latency, not throughput: these reach \
         {share} of the best rate, {best_rate}",
        knee.in_flight()
    );
    if let (Some(at_knee), Some(at_most)) = (p50_ns(knee.latency()), p50_ns(deepest.latency())) {
        text.push_str(&format!(
            ", and half of the reads take at most {}; with {} in flight it is {}",
            format_ns(at_knee),
            deepest.in_flight(),
            format_ns(at_most)
        ));
    }
    Some(text + ".")
}

pub(super) fn block_size(measurement: &DiskMeasurement) -> Option<String> {
    let ramps = ramps(measurement);
    let small = ramps.first()?.one_at_a_time()?;
    let large = ramps.last()?.one_at_a_time()?;
    let (small_bytes, large_bytes) = (small.facts().block_bytes, large.facts().block_bytes);
    if small_bytes == large_bytes {
        return None;
    }
    let data = large_bytes as f64 / small_bytes as f64;
    let time = large.mean_ns() / small.mean_ns();
    let text = format!(
        "A {} read takes {} times as long as one of {} and brings {} times the data",
        block(large_bytes),
        format_times(time),
        block(small_bytes),
        format_times(data)
    );
    // Half-way between "a request costs the same whatever its size" and "only bytes count".
    Some(if time < data.sqrt() {
        format!("{text}: what is read together should lie together in large blocks.")
    } else {
        format!(
            "{text}: here the number of bytes matters more than the number of requests, so smaller \
             blocks and compression pay off."
        )
    })
}

pub(super) fn cpu(measurement: &DiskMeasurement) -> Option<String> {
    let ramps = ramps(measurement);
    let ramp = ramps.first()?;
    let best = ramp.best()?;
    let cpus = best.job.cpu_ns as f64 / best.job.elapsed_ns.max(1) as f64;
    let threads = f64::from(best.facts().threads.max(1));
    let mut text = format!("Each {} read costs", block(ramp.block_bytes));
    if let Some(first) = ramp
        .one_at_a_time()
        .filter(|m| m.in_flight() < best.in_flight())
    {
        let us = first.job.cpu_us_per_io()?;
        text.push_str(&format!(
            " {} of CPU time one at a time and",
            format_mean_ns(us * 1e3)
        ));
    }
    text.push_str(&format!(
        " {} with {} in flight, where {} CPUs are busy for the disk's best rate",
        format_mean_ns(best.job.cpu_us_per_io()? * 1e3),
        best.in_flight(),
        crate::numbers::format_number(cpus)
    ));
    Some(if cpus >= NEARLY_ALL * threads {
        format!(
            "{text}: the reading threads had no time to spare, so the disk may be capable of more."
        )
    } else {
        format!("{text}: the reading threads had time to spare, so the disk was the limit.")
    })
}

pub(super) fn scan(measurement: &DiskMeasurement) -> Option<String> {
    let direct = best_direct(measurement);
    let buffered = Orders::of(measurement).in_order;
    let best = best_sequential(measurement)?;
    let mb = |m: Measured<'_>| format!("{} MB/s", format_mb(m.job.bytes_per_s()));
    let mut text = format!(
        "A scan, an initial sync or a backup in disk order reads at most {}, which is {} for 100 GiB",
        mb(best),
        long_time(SCAN_BYTES / best.job.bytes_per_s())
    );
    if let (Some(direct), Some(buffered)) = (direct, buffered) {
        let size = block(buffered.facts().block_bytes);
        let ratio = buffered.job.bytes_per_s() / direct.job.bytes_per_s();
        if ratio > 1.0 {
            text.push_str(&format!(
                ", through a cold page cache in calls of {size}; direct calls of {} reach {}: the \
                 kernel's read-ahead makes larger requests",
                block(direct.facts().block_bytes),
                mb(direct)
            ));
        } else {
            text.push_str(&format!(
                "; through a cold page cache in calls of {size} it is {} ({})",
                mb(buffered),
                format_share(ratio)
            ));
        }
        if ratio < BUFFERED_ENOUGH {
            text.push_str(", so small calls and read-ahead, not the disk, set the pace there");
        }
    }
    Some(text + ".")
}

pub(super) fn sustained(measurement: &DiskMeasurement) -> Option<String> {
    let read = of_group(measurement, StepGroup::Sustained).next()?;
    let minutes = read.job.elapsed_ns as f64 / 60e9;
    Some(format!(
        "Over {} minutes, the disk sustained {} reads of {} per second on average with {} in \
         flight; a server with more cache misses per second has to wait.",
        format_times(minutes),
        format_rate(read.job.iops()),
        block(read.facts().block_bytes),
        read.in_flight()
    ))
}

/// Formats seconds for people, where precision would be misleading.
fn long_time(seconds: f64) -> String {
    match seconds {
        s if !s.is_finite() => "unknown".into(),
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7_200.0 => format!("{:.0} minutes", s / 60.0),
        s => format!("{} hours", format_times(s / 3600.0)),
    }
}
