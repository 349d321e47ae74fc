//! Contains sentences about writes that must reach the disk.

use seekscope_run::units::format_ns;
use seekscope_run::{DiskMeasurement, LatencySummary, StepGroup};

use super::super::steps::{Measured, alone, commits, of_group, p50_ns, p99_ns, ramps};
use super::{block, counted};
use crate::numbers::{format_mb, format_rate, format_times};

/// Ratios closer to 1 than this are noise: syncs vary more than anything else.
const NOTICEABLE: f64 = 1.25;

/// Returns the commit that databases wait for most: the smallest write by the fewest writers.
pub(super) fn plain_commit(measurement: &DiskMeasurement) -> Option<Measured<'_>> {
    commits(measurement, StepGroup::Journal).first().copied()
}

pub(super) fn commit(measurement: &DiskMeasurement) -> Option<String> {
    let commit = plain_commit(measurement)?;
    let latency = commit.latency();
    let mut text = format!(
        "A journaled commit (j:true) waits {} at the median",
        format_ns(p50_ns(latency).unwrap_or(latency.max_ns))
    );
    if let Some(p99) = p99_ns(latency) {
        text.push_str(&format!(" and {} at the 99th percentile", format_ns(p99)));
    }
    let (what, size) = ("and fdatasync", block(commit.facts().block_bytes));
    if commit.facts().rate_per_s.is_some() {
        return Some(format!("{text} ({size} {what})."));
    }
    Some(format!(
        "{text}; {} that waits for each cannot commit more than {} times \
         per second ({size} {what}).",
        counted(commit.in_flight(), "writer", "writers"),
        format_rate(commit.job.iops())
    ))
}

pub(super) fn group_commit(measurement: &DiskMeasurement) -> Option<String> {
    let few = plain_commit(measurement)?;
    let many = commits(measurement, StepGroup::Journal)
        .into_iter()
        .rfind(|m| {
            m.facts().block_bytes == few.facts().block_bytes
                && m.facts().fresh_blocks == few.facts().fresh_blocks
                && m.in_flight() > few.in_flight()
        })?;
    let ratio = many.job.iops() / few.job.iops();
    let writers = counted(many.in_flight(), "writer", "writers");
    let rate = format_rate(many.job.iops());
    Some(if ratio >= NOTICEABLE {
        format!(
            "{writers} share flushes: together {rate} commits per second, {} times as many.",
            format_times(ratio)
        )
    } else {
        format!(
            "{writers} together are no faster: {rate} commits per second, so flushes are not \
             merged and each writer waits for all others."
        )
    })
}

pub(super) fn fresh_file(measurement: &DiskMeasurement) -> Option<String> {
    let all = commits(measurement, StepGroup::Journal);
    let fresh = all.iter().find(|m| m.facts().fresh_blocks)?;
    let old = all
        .iter()
        .filter(|m| !m.facts().fresh_blocks)
        .find(|m| m.is_alike(fresh))?;
    // One long wait among some hundred decides a mean.
    let (fresh_ns, old_ns) = (p50_ns(fresh.latency())?, p50_ns(old.latency())?);
    let ratio = fresh_ns as f64 / old_ns.max(1) as f64;
    let medians = format!(
        "{} and {} at the median",
        format_ns(fresh_ns),
        format_ns(old_ns)
    );
    let mut text = if ratio >= NOTICEABLE {
        format!(
            "Commits to blocks that were never written take {} times as long as to old ones \
             ({medians}): journal files that are preallocated and reused pay off here.",
            format_times(ratio)
        )
    } else if ratio <= 1.0 / NOTICEABLE {
        format!(
            "Commits to blocks that were never written are {} times faster than to old ones \
             ({medians}): preallocating journal files gains nothing here.",
            format_times(1.0 / ratio)
        )
    } else {
        format!(
            "Whether a commit goes to new blocks or to old ones makes no \
             difference beyond noise ({medians})."
        )
    };
    let stall_ns = [fresh, old].into_iter().filter_map(Measured::stall_ns);
    if let Some(stall_ns) = stall_ns.max() {
        text.push_str(&format!(
            " One commit took {}, more than all others of its step together: this is a stall, \
             which does not affect the medians.",
            format_ns(stall_ns)
        ));
    }
    Some(text)
}

pub(super) fn checkpoint(measurement: &DiskMeasurement) -> Option<String> {
    let in_burst = commits(measurement, StepGroup::Checkpoint)
        .first()
        .copied()?;
    let latency = in_burst.latency();
    let alone = alone(measurement, &in_burst);
    let burst = in_burst.step.jobs.get(1);
    let beside = burst.map_or_else(String::new, |job| {
        format!(" ({} MB/s)", format_mb(job.bytes_per_s()))
    });
    let times = |percentile: fn(&LatencySummary) -> Option<u64>| {
        let (with, without) = (percentile(latency)?, percentile(alone?.latency())?);
        Some(format!(
            " ({} times as long as alone)",
            format_times(with as f64 / without as f64)
        ))
    };
    let mut text = format!(
        "While a checkpoint-like burst writes{beside}, a commit waits {} at the median{}",
        format_ns(p50_ns(latency).unwrap_or(latency.max_ns)),
        times(p50_ns).unwrap_or_default()
    );
    if let Some(p99) = p99_ns(latency) {
        let ratio = times(p99_ns).unwrap_or_default();
        text.push_str(&format!(
            " and {} at the 99th percentile{ratio}",
            format_ns(p99)
        ));
    }
    Some(format!(
        "{text}; the longest stall was {}.",
        format_ns(latency.max_ns)
    ))
}

pub(super) fn mixed(measurement: &DiskMeasurement) -> Option<String> {
    let mixed = of_group(measurement, StepGroup::Mixed).next()?;
    let reads = &mixed.job.reads;
    let mut text = format!(
        "With {:.0} % writes among the reads and {} in flight, the disk does \
         {} operations per second",
        (1.0 - mixed.facts().read_share) * 100.0,
        mixed.in_flight(),
        format_rate(mixed.job.iops())
    );
    let p50 = p50_ns(&reads.latency)?;
    text.push_str(&format!("; a read waits {} at the median", format_ns(p50)));
    let ramps = ramps(measurement);
    let alike = ramps.iter().flat_map(|ramp| &ramp.points).find(|m| {
        m.facts().block_bytes == mixed.facts().block_bytes && m.in_flight() == mixed.in_flight()
    });
    if let Some(without) = alike.and_then(|m| p50_ns(m.latency())) {
        let ratio = format_times(p50 as f64 / without as f64);
        text.push_str(&format!(", {ratio} times as long as without the writes"));
    }
    Some(text + ".")
}
