//! Predicts how long a scan, an index build and a resync of the big collections take on this disk.
//!
//! Cold and alone: nothing in memory, no other load. Each figure has a range, wide where it rests on
//! assumptions; the constants of `work.rs` say which were measured and which were not.

mod reading;
mod subject;
mod work;

use schemars::JsonSchema;
use seekscope_run::OplogFacts;
use serde::{Deserialize, Serialize};

use crate::Evidence;
use crate::wording::{counted as counted_in_words, percent};
use reading::Reading;
use subject::Subject;
use work::{Span, Work};

/// The most collections for which durations are given, the largest first.
const COLLECTIONS_MAX: usize = 10;

/// One job on one collection, or a resync of all ("*").
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct JobDuration {
    pub namespace: String,
    /// The kind of job: "collection scan", "index build", "resync".
    pub job: String,
    /// In the present layout, s: the expected time, and the range it should lie in.
    pub now_s: f64,
    pub low_s: f64,
    pub high_s: f64,
    /// Time if disk order were key order, s.
    pub ordered_s: Option<f64>,
    /// Shares of the phases, e.g. "reading 71 %, sorting and loading 29 %".
    pub phases: String,
    /// What it is based on: "layout walked, disk measured", "size and a typical disk".
    pub basis: String,
    /// The oplog window that a resync has to fit in, s; if the oplog is not full yet, its window once it is.
    pub oplog_window_s: Option<f64>,
}

impl JobDuration {
    /// Returns whether a resync fits in the oplog's window, even at its slowest. `None` for other jobs, and without an
    /// oplog.
    pub fn stays_within_oplog(&self) -> Option<bool> {
        Some(self.high_s < self.oplog_window_s?)
    }
}

/// Returns scans and index builds by collection, the resync last. Empty without a device model and a layout.
pub(super) fn durations(evidence: &Evidence<'_>) -> Vec<JobDuration> {
    let mut subjects = subject::subjects(evidence);
    subjects.sort_by(|a, b| {
        b.reading
            .span
            .expected_s
            .total_cmp(&a.reading.span.expected_s)
    });
    let work = Work::of(evidence);
    let big = subjects.iter().take(COLLECTIONS_MAX);
    let mut jobs: Vec<JobDuration> = big
        .flat_map(|subject| [Some(scan(subject)), index_build(subject, &work)])
        .flatten()
        .collect();
    jobs.extend(resync(evidence, &subjects, &work));
    jobs
}

fn scan(subject: &Subject) -> JobDuration {
    let Reading {
        span,
        ordered_s,
        basis,
    } = &subject.reading;
    JobDuration {
        namespace: subject.namespace.clone(),
        job: "collection scan".into(),
        now_s: span.expected_s,
        low_s: span.low_s,
        high_s: span.high_s,
        ordered_s: *ordered_s,
        phases: "reading 100 %".into(),
        basis: basis.clone(),
        oplog_window_s: None,
    }
}

/// Predicts the build of one more index on one field, from the size of the existing indexes.
fn index_build(subject: &Subject, work: &Work) -> Option<JobDuration> {
    let rest = work.index(subject)?;
    let reading = &subject.reading;
    let all = reading.span.plus(rest);
    Some(JobDuration {
        namespace: subject.namespace.clone(),
        job: "index build".into(),
        now_s: all.expected_s,
        low_s: all.low_s,
        high_s: all.high_s,
        ordered_s: reading.ordered_s.map(|s| s + rest.expected_s),
        phases: phases(&[
            ("reading", reading.span.expected_s),
            ("sorting and loading", rest.expected_s),
        ]),
        basis: format!("{}; {}", reading.basis, work.index_basis()),
        oplog_window_s: None,
    })
}

/// Predicts an initial sync (MongoDB 4.4 and later build the indexes while they copy): each collection is
/// scanned at the source, its documents are inserted at the target, whose disk is assumed to be like this
/// one, and its indexes are loaded. `None` where no collection's documents are known.
fn resync(evidence: &Evidence<'_>, subjects: &[Subject], work: &Work) -> Option<JobDuration> {
    let (mut copying, mut indexes) = (Span::default(), Span::default());
    let mut ordered_s = 0.0;
    let mut counted = 0;
    for subject in subjects {
        let Some(copy) = work.copy(subject) else {
            continue;
        };
        let index = work.index(subject).unwrap_or_default();
        let builds = index.times(subject.index_bytes.len().max(1) as f64);
        ordered_s += subject
            .reading
            .ordered_s
            .unwrap_or(subject.reading.span.low_s);
        ordered_s += copy.expected_s + builds.expected_s;
        copying = copying.plus(subject.reading.span).plus(copy);
        indexes = indexes.plus(builds);
        counted += 1;
    }
    (counted > 0).then_some(())?;
    let left_out = evidence.examined().map_or(0, |m| m.collections_left_out);
    let all = copying.plus(indexes);
    let beyond = match left_out {
        0 => String::new(),
        n => format!(
            "; nothing was asked of {}, so it takes longer than this",
            counted_in_words(n, "further collection")
        ),
    };
    Some(JobDuration {
        namespace: "*".into(),
        job: "resync".into(),
        now_s: all.expected_s,
        low_s: all.low_s,
        high_s: all.high_s,
        ordered_s: Some(ordered_s),
        phases: phases(&[
            ("copying", copying.expected_s),
            ("building indexes", indexes.expected_s),
        ]),
        basis: format!(
            "{}; {}{beyond}",
            match counted {
                1 => "one collection".into(),
                _ => format!("{counted} collections one after another"),
            },
            work.copy_basis()
        ),
        oplog_window_s: oplog_window_s(evidence),
    })
}

/// Returns the shortest of the members' windows: any of them may be copied from.
fn oplog_window_s(evidence: &Evidence<'_>) -> Option<f64> {
    let members = evidence.examination()?.members.iter();
    members
        .filter_map(|member| full_window_s(&member.oplog?))
        .reduce(f64::min)
}

/// Returns the window that an oplog that is not full yet will have at the rate so far: a server that was set
/// up an hour ago has an hour in it.
fn full_window_s(oplog: &OplogFacts) -> Option<f64> {
    let filled = match (oplog.used_bytes, oplog.size_bytes) {
        (0, _) | (_, 0) => 1.0,
        (used, size) => (used as f64 / size as f64).min(1.0),
    };
    (oplog.window_s > 0.0).then(|| oplog.window_s / filled)
}

/// Formats shares of the expected time.
fn phases(parts: &[(&str, f64)]) -> String {
    let all: f64 = parts.iter().map(|(_, s)| s).sum();
    let share = |s: f64| percent(if all > 0.0 { s / all } else { 0.0 });
    let texts: Vec<String> = parts
        .iter()
        .map(|(name, s)| format!("{name} {}", share(*s)))
        .collect();
    texts.join(", ")
}

#[cfg(test)]
mod tests;
