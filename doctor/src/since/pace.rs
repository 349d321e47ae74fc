//! Compares how long the operations of a finding take for what they examine, where nothing was done that would spare it.
//!
//! The log has the operations that take longer than a limit. Where they have to wait for a CPU, more of them do: neither
//! their number nor their time together tells whether more of them ran. What each takes for what it examines does tell
//! whether it became slower, if it is more than the spread of their durations, and if the CPUs were theirs.

use seekscope_run::{Finding, FindingChange, WorkCompared};

use super::acted::Acted;
use super::cpus::Cpus;
use super::logged::InLog;
use super::printed::{differ, figure, predicted, saves};
use super::{Examined, SAME_WITHIN, work};
use crate::ranking::PER_HOUR;

/// Standard errors beyond which two means differ.
const SURE: f64 = 2.0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Slower,
    Alike,
    Faster,
}

/// Returns what became of a finding that is made again; `None` where its operations are served in another way now, or where
/// the logs do not tell of them.
pub(super) fn change_of(
    finding: &Finding,
    again: &Finding,
    acted: Acted,
    earlier: Examined<'_>,
    now: Examined<'_>,
) -> Option<FindingChange> {
    let (then, left) = (InLog::of(finding, earlier)?, InLog::of(finding, now)?);
    let (ms_then, ms_now) = (then.ms_each()?, left.ms_each()?);
    let examined = then.examined_each().zip(left.examined_each());
    let as_many = examined.is_some_and(|(then, now)| !differ(then, now));
    let undone = match acted {
        Acted::Not(undone) => undone.in_words(),
        _ if as_many => "each of its operations examines as much as it did",
        _ => return None,
    };
    // Of a collection that grew, each examines more, and takes longer without being slower.
    let for_as_much = examined.map_or(1.0, |(then, now)| then / now);
    let way = way(then, left, ms_now / ms_then * for_as_much);
    let short = match way {
        Way::Slower => Cpus::short(now).map(|cpus| format!("{} now", cpus.in_words())),
        Way::Faster => Cpus::short(earlier).map(|cpus| format!("{} then", cpus.in_words())),
        Way::Alike => None,
    };
    let (before, after) = (saves(finding)?, saves(again)?);
    let asked = work::compared(finding, earlier, now);
    let is_other = |asked: &&WorkCompared| differ(asked.before_per_s, asked.after_per_s);
    let how_many = asked.as_ref().filter(is_other).map(work::in_words);
    let told = format!(
        "{undone}, and its operations took {} ms on average then and take {} now",
        figure(ms_then),
        figure(ms_now)
    );
    let (change, verdict) = in_words(way, short, &told, after);
    Some(FindingChange {
        id: finding.id.clone(),
        subject: finding.subject.clone(),
        operations: finding.operations.clone(),
        change: change.into(),
        before: Some(before),
        after: Some(after).filter(|_| change != "unknown"),
        predicted: predicted(finding),
        verdict: match how_many {
            Some(how_many) => format!("{verdict}; {how_many}"),
            None => verdict,
        },
        work: asked,
    })
}

/// Returns the change and its verdict. `short` says that there were too few CPUs while they took longer, `told` what is known
/// of them, and `after` what the finding is to save now.
fn in_words(way: Way, short: Option<String>, told: &str, after: f64) -> (&'static str, String) {
    match (way, short) {
        (_, Some(short)) => (
            "unknown",
            format!(
                "cannot be told: {told}, but {short}; it is found again, with {} {PER_HOUR} now",
                figure(after)
            ),
        ),
        (Way::Slower, None) => (
            "worse",
            format!("what it advises was not done, and it became worse: {told}"),
        ),
        (Way::Alike, None) => (
            "same",
            format!(
                "still there, not acted on: {told}, a difference within the spread of their own durations"
            ),
        ),
        (Way::Faster, None) => ("same", format!("still there, not acted on: {told}")),
    }
}

/// Says which way the time of an operation went, given its ratio for as much that is examined.
fn way(then: InLog, now: InLog, ratio: f64) -> Way {
    let error = then.relative_error().hypot(now.relative_error());
    let noise = SAME_WITHIN.ln_1p() + SURE * error;
    match ratio.ln() {
        more if more > noise => Way::Slower,
        less if less < -noise => Way::Faster,
        _ => Way::Alike,
    }
}
