//! Says what the numbers mean for a database, one plain sentence each, computed from the records.
//!
//! There is no sentence for numbers that were not measured. No sentence repeats a table; each says what
//! follows from it, and differs with the numbers.

mod order;
mod reads;
#[cfg(test)]
mod tests;
mod trust;
mod writes;

use seekscope_run::units::format_ns;
use seekscope_run::{DiskMeasurement, StepGroup};

use super::steps::{Measured, Ramp, held_to_per_s, of_group, p50_ns, p99_ns, ramps};
pub(super) use crate::numbers::format_block as block;
use crate::numbers::{format_mb, format_mean_ns, format_rate, format_times};

type Sentence = fn(&DiskMeasurement) -> Option<String>;

/// All sentences, by their keys, which never change: the JSON summary contains them.
const SENTENCES: [(&str, Sentence); 23] = [
    ("job", trust::job),
    ("rate", trust::rate),
    ("cache_miss", reads::cache_miss),
    ("concurrency", reads::concurrency),
    ("block_size", reads::block_size),
    ("cpu", reads::cpu),
    ("scan", reads::scan),
    ("order_gain", order::order_gain),
    ("partial_order", order::partial_order),
    ("read_ahead", order::read_ahead),
    ("read_ahead_random", order::read_ahead_random),
    ("commit", writes::commit),
    ("group_commit", writes::group_commit),
    ("fresh_file", writes::fresh_file),
    ("checkpoint", writes::checkpoint),
    ("mixed", writes::mixed),
    ("mmap", order::mmap),
    ("sustained", reads::sustained),
    ("generator", trust::generator),
    ("direct", trust::direct),
    ("model", trust::model),
    ("read_through", trust::read_through),
    ("limits", trust::limits),
];

/// Sentences about what the disk can do. Steps held to a rate do not show that.
const OF_ABILITY: [&str; 13] = [
    "concurrency",
    "cpu",
    "scan",
    "order_gain",
    "partial_order",
    "read_ahead",
    "read_ahead_random",
    "group_commit",
    "fresh_file",
    "mixed",
    "mmap",
    "sustained",
    "limits",
];

/// Returns the meaning of the numbers: key and sentence, in the order of the report.
pub fn sentences(measurement: &DiskMeasurement) -> Vec<(&'static str, String)> {
    let said = SENTENCES
        .iter()
        .filter_map(|&(key, _)| Some((key, sentence(measurement, key)?)));
    said.collect()
}

/// Returns the sentence of one key; `None` when it was not measured, or cannot be derived.
pub(super) fn sentence(measurement: &DiskMeasurement, key: &str) -> Option<String> {
    if OF_ABILITY.contains(&key) && held_to_per_s(measurement).is_some() {
        return None;
    }
    let (_, sentence) = SENTENCES.iter().find(|(name, _)| *name == key)?;
    sentence(measurement)
}

/// Returns a few numbers that describe the disk, for the head of the report: name and value.
pub(super) fn key_figures(measurement: &DiskMeasurement) -> Vec<(&'static str, String)> {
    let figures = match of_group(measurement, StepGroup::Job).next() {
        Some(job) => job_figures(&job),
        None => disk_figures(measurement),
    };
    figures
        .into_iter()
        .filter_map(|(what, value)| Some((what, value?)))
        .collect()
}

type KeyFigure = (&'static str, Option<String>);

fn job_figures(job: &Measured<'_>) -> Vec<KeyFigure> {
    let bytes = format_mb(job.job.bytes_per_s());
    vec![
        ("operations per second", Some(format_rate(job.job.iops()))),
        ("moved", Some(format!("{bytes} MB/s"))),
        ("median latency", p50_ns(job.latency()).map(format_ns)),
        ("99th percentile", p99_ns(job.latency()).map(format_ns)),
    ]
}

fn disk_figures(measurement: &DiskMeasurement) -> Vec<KeyFigure> {
    let ramps = ramps(measurement);
    let free = held_to_per_s(measurement).is_none();
    let best = ramps.first().and_then(Ramp::best).filter(|_| free);
    let knee = ramps.first().and_then(Ramp::knee);
    let miss = reads::one_read(measurement);
    let scan = reads::best_sequential(measurement).filter(|_| free);
    let commit = writes::plain_commit(measurement);
    vec![
        ("a cache miss", miss.map(|m| format_mean_ns(m.mean_ns()))),
        (
            "random reads per second, at best",
            best.map(|m| format_rate(m.job.iops())),
        ),
        (
            "reads in flight at the knee",
            knee.map(|m| m.in_flight().to_string()),
        ),
        (
            "in disk order",
            scan.map(|m| format!("{} MB/s", format_mb(m.job.bytes_per_s()))),
        ),
        (
            "order gain",
            order::told_gain(measurement).map(|gain| match gain > 1.0 {
                true => format!("{} times", format_times(gain)),
                false => "none".into(),
            }),
        ),
        (
            "a journaled commit, median",
            commit.and_then(|m| p50_ns(m.latency())).map(format_ns),
        ),
    ]
}

/// Returns the headline of the report; `None` when too little was measured to say anything.
pub(super) fn headline(measurement: &DiskMeasurement) -> Option<String> {
    if let Some(job) = of_group(measurement, StepGroup::Job).next() {
        let rate = format_rate(job.job.iops());
        let (access, size) = (job.facts().access.name(), block(job.facts().block_bytes));
        return Some(format!("{access} of {size}: {rate} per second"));
    }
    let miss = reads::one_read(measurement)
        .map(|m| format!("a cache miss costs {}", format_mean_ns(m.mean_ns())));
    let commit = writes::plain_commit(measurement)
        .and_then(|m| p50_ns(m.latency()))
        .map(|p50| format!("a journaled commit takes {}", format_ns(p50)));
    let order = order::told_gain(measurement)
        .filter(|&gain| gain > 1.0)
        .map(|gain| {
            format!(
                "disk order makes a cold scan {} times faster",
                format_times(gain)
            )
        });
    let parts: Vec<String> = [miss, commit, order].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| format!("On this disk {}", parts.join(", ")))
}

/// Formats like `one writer`, `8 writers`.
fn counted(count: u64, one: &str, many: &str) -> String {
    match count {
        1 => format!("one {one}"),
        n => format!("{n} {many}"),
    }
}

/// Returns all keys.
#[cfg(test)]
pub(super) fn keys() -> impl Iterator<Item = &'static str> {
    SENTENCES.iter().map(|(key, _)| *key)
}
