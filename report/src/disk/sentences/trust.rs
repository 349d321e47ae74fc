//! Contains sentences about the requested job, the model, and how reliable the numbers are.

use seekscope_run::units::{format_bytes, format_count, format_ns, whole};
use seekscope_run::{DiskMeasurement, StepGroup, TokenBucket};

use super::super::steps::{
    Measured, NEARLY_ALL, direct_reads, fetched_share, of_group, p50_ns, p99_ns, ramps,
};
use super::block;
use crate::numbers::{
    format_mb, format_mean_ns, format_number, format_rate, format_share, format_times,
};

/// Below this many times the disk's best rate the generator itself is a limit.
const AMPLE: f64 = 2.0;
/// A rate is kept when no more than this share of what was due had not begun: operations that happened to be
/// due at the very end, and a chance burst, prove nothing.
const BEHIND_SHARE_MAX: f64 = 0.01;
/// A model whose line misses a measured size by more is unreliable.
const FIT_ERROR_MAX: f64 = 0.25;

fn the_job(measurement: &DiskMeasurement) -> Option<Measured<'_>> {
    of_group(measurement, StepGroup::Job).next()
}

pub(super) fn job(measurement: &DiskMeasurement) -> Option<String> {
    let job = the_job(measurement)?;
    let mut text = format!(
        "{} of {} with {} in flight: {} per second, {} MB/s",
        job.facts().access.name(),
        block(job.facts().block_bytes),
        job.in_flight(),
        format_rate(job.job.iops()),
        format_mb(job.job.bytes_per_s())
    );
    if let Some(p50) = p50_ns(job.latency()) {
        text.push_str(&format!("; half take at most {}", format_ns(p50)));
    }
    if let Some(p99) = p99_ns(job.latency()) {
        text.push_str(&format!(", one in a hundred at least {}", format_ns(p99)));
    }
    Some(text + ".")
}

pub(super) fn rate(measurement: &DiskMeasurement) -> Option<String> {
    let job = the_job(measurement)?;
    let wanted = job.facts().rate_per_s?;
    let since = "latency counts from the moment an operation was due";
    let due = wanted * job.job.elapsed_ns as f64 / 1e9;
    Some(if job.job.behind as f64 > BEHIND_SHARE_MAX * due {
        format!(
            "The rate of {} per second was more than the disk can serve: {} operations were due \
             but had not begun when the time was over; {since}, so it includes the time in the \
             queue.",
            format_rate(wanted),
            format_count(job.job.behind)
        )
    } else {
        format!(
            "The rate of {} per second was reached; {since}.",
            format_rate(wanted)
        )
    })
}

pub(super) fn generator(measurement: &DiskMeasurement) -> Option<String> {
    let null = of_group(measurement, StepGroup::Generator)
        .max_by(|a, b| a.job.iops().total_cmp(&b.job.iops()))?;
    let threads = f64::from(null.facts().threads.max(1));
    let per_thread = null.job.iops() / threads;
    let text = format!(
        "Without a disk, seekscope's own loop does {} operations per second and thread ({} each)",
        format_rate(per_thread),
        format_mean_ns(1e9 / per_thread)
    );
    let rates = ramps(measurement);
    let best = rates
        .iter()
        .filter_map(|r| r.best())
        .map(|m| m.job.iops())
        .reduce(f64::max);
    Some(match best.map(|best| null.job.iops() / best) {
        None => format!("{text}."),
        Some(ratio) if ratio >= AMPLE => format!(
            "{text}, {} times the most that this disk did: the load generator was not the limit.",
            format_times(ratio)
        ),
        Some(ratio) => format!(
            "{text}, only {} times the most that this disk did: close to that rate, the figures \
             show the CPU, not the disk.",
            format_times(ratio)
        ),
    })
}

pub(super) fn direct(measurement: &DiskMeasurement) -> Option<String> {
    direct_reads(measurement).next()?;
    let facts = &measurement.direct;
    let evidence = match facts.evidence.as_str() {
        "" => String::new(),
        evidence => format!(" ({evidence})"),
    };
    if !facts.real {
        return Some(format!(
            "Direct reads did not bypass the page cache{evidence}: the figures show \
             memory, not the disk."
        ));
    }
    let text = format!("Direct reads bypassed the page cache{evidence}");
    let Some(share) = fetched_share(measurement) else {
        return Some(format!("{text}."));
    };
    let counted = format!(
        "according to the kernel, the block layer fetched {} of their bytes",
        format_share(share)
    );
    Some(if share >= NEARLY_ALL {
        format!("{text}; {counted}.")
    } else {
        format!(
            "{text}, but {counted}: the others were never written, or came from a cache, and did \
             not reach the disk."
        )
    })
}

pub(super) fn model(measurement: &DiskMeasurement) -> Option<String> {
    let model = measurement
        .model
        .as_ref()
        .filter(|model| model.l0_ns > 0.0)?;
    let text = format!(
        "For planning: one read costs {} plus {} for each KiB",
        format_mean_ns(model.l0_ns),
        format_mean_ns(model.ns_per_byte * 1024.0)
    );
    let off = format_share(model.fit_error);
    Some(if model.fit_error <= FIT_ERROR_MAX {
        format!("{text}; every size that was measured is within {off} of that.")
    } else {
        format!(
            "{text}, but one of the sizes measured differs from that by {off}: predictions based \
             on it are rough."
        )
    })
}

pub(super) fn read_through(measurement: &DiskMeasurement) -> Option<String> {
    let model = measurement.model.as_ref()?;
    let gap = model.l0_ns * model.sequential_bytes_per_s / 1e9;
    (gap >= 1.0).then(|| {
        format!(
            "Gaps of up to {} between blocks are cheaper to read through than to jump over.",
            format_bytes(whole(gap))
        )
    })
}

pub(super) fn limits(measurement: &DiskMeasurement) -> Option<String> {
    let model = measurement.model.as_ref()?;
    let bucket = |bucket: &TokenBucket, per_s: String, burst: String| {
        if bucket.burst > 0.0 {
            format!("{per_s} once a burst of {burst} is used up")
        } else {
            per_s
        }
    };
    let iops = model.iops_bucket.as_ref().map(|b| {
        bucket(
            b,
            format!("{} requests per second", format_rate(b.per_s)),
            format!("{} requests", format_rate(b.burst)),
        )
    });
    let bytes = model.bytes_bucket.as_ref().map(|b| {
        bucket(
            b,
            format!("{} MB/s", format_mb(b.per_s)),
            format!("{} MB", format_number(b.burst / 1e6)),
        )
    });
    let limits: Vec<String> = iops.into_iter().chain(bytes).collect();
    (!limits.is_empty()).then(|| {
        format!(
            "The disk behaves as if limited to {}: plan with that, not with the burst.",
            limits.join(" and ")
        )
    })
}
