//! Checkpoints and operations as the server counts them.

use seekscope_run::units::whole;

use super::CheckpointAnswer;
use crate::Evidence;
use crate::evidence::{CHECKPOINT_LAST_MS, CHECKPOINT_STATE, Series};

/// Total duration of all checkpoints since the server's start, ms; before and since WiredTiger 11.3. It rises
/// by a checkpoint's duration when that checkpoint ends. Their number and the generation rise when one
/// begins, the number even if there is nothing to write, and until it ends the "most recent" counters
/// describe the one before (`__session_checkpoint`, `__txn_checkpoint`).
const TOTAL_MS: [&str; 2] = [
    "wiredTiger.transaction.transaction checkpoint total time (msecs)",
    "wiredTiger.checkpoint.total time (msecs)",
];
const OPERATIONS: [&str; 5] = ["insert", "query", "update", "delete", "getmore"];
/// Fewest steps of the counters on either side; with fewer, the result is left to chance.
const STEPS_MIN: usize = 5;
/// The most checkpoints that are distinguished within one step.
const STEP_MAX: u64 = 100;

/// Number of checkpoints, under both names.
const NUMBER: [&str; 2] = [
    "wiredTiger.transaction.transaction checkpoints",
    "wiredTiger.checkpoint.generation",
];

/// A checkpoint as timed by the server's own clock. When it ended is known to within one step of the
/// counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counted {
    pub(super) took_ns: u64,
    /// Time of the last sample before it ended, CLOCK_MONOTONIC ns.
    pub(super) ended_after_ns: u64,
    /// Time of the first sample after it ended, ns; for one that had not ended yet, the last sample.
    pub(super) ended_by_ns: u64,
}

/// Returns the checkpoints that ended while the counters were sampled, and the one still running when
/// sampling ended; empty without such counters.
pub(super) fn counted(evidence: &Evidence<'_>) -> Vec<Counted> {
    let mut found = evidence
        .status(&TOTAL_MS)
        .map(|total_ms| ended(total_ms, &Others::of(evidence)))
        .unwrap_or_default();
    let state = evidence.status(&CHECKPOINT_STATE);
    found.extend(state.and_then(|state| under_way(state, found.last())));
    found
}

/// Returns whether a checkpoint was still running when the counters ended. If so, its full duration is unknown.
pub(super) fn one_is_under_way(evidence: &Evidence<'_>) -> bool {
    let state = evidence.status(&CHECKPOINT_STATE).and_then(Series::last);
    state.is_some_and(|state| state != 0.0)
}

/// The counters that distinguish several checkpoints within one step.
struct Others<'a> {
    most_recent_ms: Option<&'a Series>,
    number: Option<&'a Series>,
}

impl<'a> Others<'a> {
    fn of(evidence: &Evidence<'a>) -> Self {
        Self {
            most_recent_ms: evidence.status(&CHECKPOINT_LAST_MS),
            number: evidence.status(&NUMBER),
        }
    }

    /// Returns the durations of the checkpoints that ended in a step, ms, given their sum. Counters of one
    /// sample have the same time.
    fn lengths_ms(&self, sum_ms: f64, from_ns: u64, to_ns: u64) -> Vec<f64> {
        let last_ms = self.most_recent_ms.and_then(|series| series.at(to_ns));
        let Some(last_ms) = last_ms.filter(|last_ms| (0.0..sum_ms).contains(last_ms)) else {
            return vec![sum_ms];
        };
        let at = |t_ns| self.number?.at(t_ns);
        let began = at(from_ns).zip(at(to_ns)).map_or(0.0, |(a, b)| b - a);
        // The number rises for checkpoints with nothing to write too, so this is an upper bound on those
        // before the last; nothing says how long each of them took.
        let before = whole(began - 1.0).clamp(1, STEP_MAX);
        let each_ms = (sum_ms - last_ms) / before as f64;
        let mut lengths_ms: Vec<f64> = (0..before).map(|_| each_ms).collect();
        lengths_ms.push(last_ms);
        lengths_ms
    }
}

fn ended(total_ms: &Series, others: &Others<'_>) -> Vec<Counted> {
    let mut found: Vec<Counted> = Vec::new();
    for pair in total_ms.points.windows(2) {
        let ((from_ns, before), (to_ns, after)) = (pair[0], pair[1]);
        // A falling total means that the server was restarted.
        if after <= before {
            continue;
        }
        let lengths_ms = others.lengths_ms(after - before, from_ns, to_ns);
        let several = lengths_ms.len() > 1;
        let mut ended_by_ns = to_ns;
        let mut of_step: Vec<Counted> = Vec::new();
        for ms in lengths_ms.into_iter().rev() {
            let took_ns = nanoseconds(ms);
            of_step.push(Counted {
                took_ns,
                // They ran one after another, so the times at which they ended are worked out backwards from the
                // sample.
                ended_after_ns: if several { ended_by_ns } else { from_ns },
                ended_by_ns,
            });
            ended_by_ns = ended_by_ns.saturating_sub(took_ns);
        }
        found.extend(of_step.into_iter().rev());
    }
    found
}

/// Returns a checkpoint that is still running, from the first sample that saw it to the last: it took at
/// least that long.
fn under_way(state: &Series, last: Option<&Counted>) -> Option<Counted> {
    let ended_by_ns = state.points.last()?.0;
    let none_ran = state.points.iter().rposition(|(_, state)| *state == 0.0);
    let (seen_ns, _) = *state.points.get(none_ran.map_or(0, |at| at + 1))?;
    let started_ns = last.map_or(seen_ns, |last| seen_ns.max(last.ended_by_ns));
    (started_ns < ended_by_ns).then_some(Counted {
        took_ns: ended_by_ns - started_ns,
        ended_after_ns: ended_by_ns,
        ended_by_ns,
    })
}

/// Converts ms to ns, at most a day.
fn nanoseconds(ms: f64) -> u64 {
    whole(ms.min(86_400_000.0) * 1e6)
}

/// Returns operations per second while checkpoints ran, divided by operations per second otherwise.
pub(super) fn throughput_ratio(evidence: &Evidence<'_>, answer: &CheckpointAnswer) -> Option<f64> {
    let names: Vec<String> = OPERATIONS
        .iter()
        .map(|name| format!("opcounters.{name}"))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (during, otherwise) = split(evidence, answer, &names)?;
    (otherwise.mean > 0.0).then(|| during.mean / otherwise.mean)
}

/// Steps of counters, summed over the counters.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Steps {
    /// Mean rise per second.
    pub(crate) mean: f64,
    /// Total rise.
    pub(crate) sum: f64,
    /// Time covered, s.
    pub(crate) seconds: f64,
}

/// Splits the steps of some of the server's counters into those during checkpoints and the others; `None`
/// with too few of either.
pub(crate) fn split(
    evidence: &Evidence<'_>,
    answer: &CheckpointAnswer,
    names: &[&str],
) -> Option<(Steps, Steps)> {
    let mut found = [Steps::default(); 2];
    for name in names {
        let Some(series) = evidence.status(&[name]) else {
            continue;
        };
        let [during, otherwise] = sides(evidence, answer, series);
        // Counters of one server are sampled together.
        for (steps, side) in found.iter_mut().zip([during?, otherwise?]) {
            steps.sum += side.sum;
            steps.mean += side.mean;
            steps.seconds = steps.seconds.max(side.seconds);
        }
    }
    let [during, otherwise] = found;
    (during.sum + otherwise.sum > 0.0).then_some((during, otherwise))
}

/// Splits the steps of a counter into those during checkpoints and the others; `None` for a side with too
/// few.
pub(crate) fn sides(
    evidence: &Evidence<'_>,
    answer: &CheckpointAnswer,
    series: &Series,
) -> [Option<Steps>; 2] {
    let covered = answer.covered_ns(evidence);
    [true, false].map(|during| {
        let steps = series.points.windows(2).filter(|pair| {
            let middle_ns = pair[0].0 + (pair[1].0 - pair[0].0) / 2;
            pair[1].1 >= pair[0].1
                && covered.contains(&middle_ns)
                && answer.runs_at(middle_ns) == during
        });
        let (sum, seconds, count) = steps.fold((0.0, 0.0, 0), |(sum, seconds, count), pair| {
            let length_s = (pair[1].0 - pair[0].0) as f64 / 1e9;
            (sum + pair[1].1 - pair[0].1, seconds + length_s, count + 1)
        });
        (count >= STEPS_MIN && seconds > 0.0).then(|| Steps {
            mean: sum / seconds,
            sum,
            seconds,
        })
    })
}

/// Returns how much faster a counter rises because of checkpoints, per second of all time: the rise beyond
/// its rate otherwise, or all of it where checkpoints leave no time to know that. 0 unless it rises `times`
/// as fast.
pub(crate) fn extra_per_s(
    evidence: &Evidence<'_>,
    answer: &CheckpointAnswer,
    series: &Series,
    times: f64,
) -> f64 {
    let [during, otherwise] = sides(evidence, answer, series);
    let Some(during) = during else {
        return 0.0;
    };
    let otherwise = otherwise.unwrap_or_default();
    if during.mean < times * otherwise.mean {
        return 0.0;
    }
    let extra = (during.mean - otherwise.mean) * during.seconds;
    extra / (during.seconds + otherwise.seconds)
}
