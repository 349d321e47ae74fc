//! Decides whether two runs did enough work of the same kind to be compared.
//!
//! Waiting is compared per unit of work. What a run under a lighter load does not show need not be gone, and
//! what shows more under a heavier one need not be worse; in the opposite cases a change can be recognised.

use seekscope_run::units::{format_count, whole};
use seekscope_run::{Finding, WorkCompared};

use super::Examined;
use super::measured::sum_over_users;
use crate::Answers;
use crate::answers::WorkAnswer;

/// Largest ratio of loads that are considered alike.
const ALIKE: f64 = 2.0;
/// Fewest operations per second. With less the server did next to nothing.
const PER_S_MIN: f64 = 1.0;
/// What is counted of the operations on one collection, and the fewest of them per second: that many scan it all day.
const ON_IT: &str = "operations-on-it";
const ON_IT_PER_S_MIN: f64 = 0.05;
/// What the log tells of the operations that the finding is about.
pub(super) const ITS_OPERATIONS: &str = "its-operations";

/// The unit of work for a finding's waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Operations,
    Writes,
    /// Reads that the server's cache did not serve.
    Reads,
}

/// How much work there was now, compared with then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Load {
    Lighter,
    Alike,
    Heavier,
    /// Neither run did work that is counted, so nothing tells whether it was the same.
    Unknown,
}

/// Families of findings due to journal and checkpoints, that is, to writes.
const OF_WRITES: [&str; 2] = ["journal.", "checkpoint."];
/// Families concerning the cost of a single read, or of reading again.
const OF_READS: [&str; 5] = ["layout.", "read-ahead.", "disk.", "scheduler.", "memory."];

impl Unit {
    /// Returns the unit. A disk may have held back writes alone, or most of all.
    fn of(finding: &Finding, answers: &Answers, before: &WorkAnswer) -> Self {
        let belongs = |families: &[&str]| families.iter().any(|f| finding.id.starts_with(f));
        let waited = &answers.waited;
        let held_back_writes =
            belongs(&["disk."]) && waited.syncs > waited.reads && before.writes_per_s.is_some();
        if belongs(&OF_WRITES) || held_back_writes {
            return Self::Writes;
        }
        let reads = before.pages_read_per_s.or(before.read_calls_per_s);
        match belongs(&OF_READS) && reads.is_some_and(|reads| reads >= PER_S_MIN) {
            true => Self::Reads,
            false => Self::Operations,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Operations => "operations",
            Self::Writes => "writes",
            Self::Reads => "reads",
        }
    }

    /// Returns the work then and now, counted in the same way.
    fn per_s(self, before: &WorkAnswer, after: &WorkAnswer) -> Option<(f64, f64)> {
        let both = |of: fn(&WorkAnswer) -> Option<f64>| of(before).zip(of(after));
        match self {
            Self::Operations => both(|work| work.operations_per_s),
            Self::Writes => both(|work| work.writes_per_s),
            Self::Reads => {
                both(|work| work.pages_read_per_s).or(both(|work| work.read_calls_per_s))
            }
        }
    }
}

/// Compares the work; `None` where one of the runs does not record it.
pub(super) fn compared(
    finding: &Finding,
    earlier: Examined<'_>,
    now: Examined<'_>,
) -> Option<WorkCompared> {
    of_file(finding, earlier, now)
        .or_else(|| of_collection(finding, earlier, now))
        .or_else(|| of_server(finding, earlier, now))
}

/// Compares all operations of clients, whatever a finding is about.
pub(super) fn of_clients(earlier: Examined<'_>, now: Examined<'_>) -> Option<WorkCompared> {
    let (before, after) = (earlier.diagnosis.answers.work?, now.diagnosis.answers.work?);
    let (before_per_s, after_per_s) = Unit::Operations.per_s(&before, &after)?;
    Some(WorkCompared {
        unit: Unit::Operations.name().into(),
        before_per_s,
        after_per_s,
    })
}

/// Compares the operations on the collection that those are sent to which lack an index: others do not tell whether it is
/// still asked for.
fn of_collection(
    finding: &Finding,
    earlier: Examined<'_>,
    now: Examined<'_>,
) -> Option<WorkCompared> {
    let asked = finding.operations.first();
    let asked = asked.map_or(&finding.subject, |kind| &kind.namespace);
    let per_s = |run: Examined<'_>| {
        let member = run.document.examination.as_ref()?.examined()?;
        let facts = member.collection(asked)?;
        let watched_s = run.document.phases.first()?.duration_ns() as f64 / 1e9;
        (watched_s > 0.0).then(|| Some(facts.operations? as f64 / watched_s))?
    };
    if !super::is_of_queries(finding) {
        return None;
    }
    Some(WorkCompared {
        unit: ON_IT.into(),
        before_per_s: per_s(earlier)?,
        // Collections that nobody uses are not asked about.
        after_per_s: per_s(now).unwrap_or(0.0),
    })
}

/// Compares the calls on the finding's file, for findings about the cost of a single call.
fn of_file(finding: &Finding, earlier: Examined<'_>, now: Examined<'_>) -> Option<WorkCompared> {
    let is_of_reads = OF_READS.iter().any(|f| finding.id.starts_with(f));
    let calls = |run| sum_over_users(run, &finding.subject, |user| user.calls_per_s);
    let before_per_s = calls(earlier).filter(|_| is_of_reads)?;
    Some(WorkCompared {
        unit: "calls".into(),
        before_per_s,
        after_per_s: calls(now).unwrap_or(0.0),
    })
}

fn of_server(finding: &Finding, earlier: Examined<'_>, now: Examined<'_>) -> Option<WorkCompared> {
    let (before, after) = (earlier.diagnosis.answers.work?, now.diagnosis.answers.work?);
    let unit = Unit::of(finding, &earlier.diagnosis.answers, &before);
    let (before_per_s, after_per_s) = unit.per_s(&before, &after)?;
    Some(WorkCompared {
        unit: unit.name().into(),
        before_per_s,
        after_per_s,
    })
}

impl Load {
    pub(super) fn of(work: &WorkCompared) -> Self {
        let (before, after) = (work.before_per_s, work.after_per_s);
        let least = least_per_s(work);
        if before.max(after) < least {
            Self::Unknown
        } else if after < least || after * ALIKE < before {
            Self::Lighter
        } else if after > before * ALIKE {
            Self::Heavier
        } else {
            Self::Alike
        }
    }

    /// Returns the factor by which waiting now is multiplied to correspond to the earlier work.
    pub(super) fn scale(work: &WorkCompared) -> f64 {
        match work.after_per_s.min(work.before_per_s) >= least_per_s(work) {
            true => work.before_per_s / work.after_per_s,
            false => 1.0,
        }
    }

    /// Returns whether a change in this direction can be recognised.
    pub(super) fn tells(self, became_worse: bool) -> bool {
        match self {
            Self::Lighter => became_worse,
            Self::Alike => true,
            Self::Unknown => false,
            Self::Heavier => !became_worse,
        }
    }
}

fn least_per_s(work: &WorkCompared) -> f64 {
    match work.unit.as_str() {
        ON_IT => ON_IT_PER_S_MIN,
        _ => PER_S_MIN,
    }
}

/// Returns words like "12 operations per second then, 0 now".
pub(super) fn in_words(work: &WorkCompared) -> String {
    let unit = match work.unit.as_str() {
        "reads" => "reads past the cache",
        "calls" => "calls on the file",
        ON_IT => "operations on the collection",
        ITS_OPERATIONS => "such operations in the log",
        unit => unit,
    };
    format!(
        "{} {unit} per second then, {} now",
        per_s(work.before_per_s),
        per_s(work.after_per_s)
    )
}

fn per_s(rate: f64) -> String {
    match rate {
        rate if rate > 0.0 && rate < 0.1 => format!("{rate:.3}"),
        rate if rate != 0.0 && rate < 10.0 => format!("{rate:.1}"),
        rate => format_count(whole(rate)),
    }
}
