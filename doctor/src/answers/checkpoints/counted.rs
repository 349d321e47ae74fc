//! Checkpoints and operations as the server counts them.

use seekscope_pattern::Checkpoint;

use super::CheckpointAnswer;
use crate::Evidence;
use crate::evidence::Series;

/// How long all of them took since the server's start, ms; before and since WiredTiger 11.3. It rises when
/// one has ended, by its length. Their number and the generation rise when one begins, the former even
/// if there is nothing to write, and what "most recent" says is of the one before until then
/// (`__session_checkpoint`, `__txn_checkpoint`).
const TOTAL_MS: [&str; 2] = [
    "wiredTiger.transaction.transaction checkpoint total time (msecs)",
    "wiredTiger.checkpoint.total time (msecs)",
];
/// 0 while none runs, likewise.
const STATE: [&str; 2] = [
    "wiredTiger.transaction.transaction checkpoint currently running",
    "wiredTiger.checkpoint.progress state",
];
const OPERATIONS: [&str; 5] = ["insert", "query", "update", "delete", "getmore"];
/// Steps of the counters on either side; with fewer, chance decides.
const STEPS_MIN: usize = 5;

/// Those that ended while the counters were sampled, and the one that had not when they ended; `None`
/// without such counters, or without any.
pub(super) fn checkpoints(evidence: &Evidence<'_>) -> Option<Vec<Checkpoint>> {
    let mut found = evidence.status(&TOTAL_MS).map(ended).unwrap_or_default();
    let state = evidence.status(&STATE);
    found.extend(state.and_then(|state| under_way(state, found.last())));
    (!found.is_empty()).then_some(found)
}

fn ended(total_ms: &Series) -> Vec<Checkpoint> {
    let mut found: Vec<Checkpoint> = Vec::new();
    for pair in total_ms.points.windows(2) {
        let ((_, before), (ended_ns, after)) = (pair[0], pair[1]);
        // A total that falls is that of a server that started anew.
        if after <= before {
            continue;
        }
        let started_ns = ended_ns.saturating_sub(nanoseconds(after - before));
        let free_from_ns = found.last().map_or(0, |last| last.ended_ns);
        found.push(Checkpoint {
            started_ns: started_ns.max(free_from_ns),
            ended_ns,
            ..Checkpoint::default()
        });
    }
    found
}

/// From the first sample that saw it to the last one: it took at least so long.
fn under_way(state: &Series, last: Option<&Checkpoint>) -> Option<Checkpoint> {
    let ended_ns = state.points.last()?.0;
    let none_ran = state.points.iter().rposition(|(_, state)| *state == 0.0);
    let (seen_ns, _) = *state.points.get(none_ran.map_or(0, |at| at + 1))?;
    let started_ns = last.map_or(seen_ns, |last| seen_ns.max(last.ended_ns));
    (started_ns < ended_ns).then(|| Checkpoint {
        started_ns,
        ended_ns,
        ..Checkpoint::default()
    })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped to a day"
)]
fn nanoseconds(ms: f64) -> u64 {
    (ms.clamp(0.0, 86_400_000.0) * 1e6) as u64
}

/// Operations per second while checkpoints ran over otherwise.
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
    /// Per second.
    pub(crate) mean: f64,
    /// How much they rose altogether.
    pub(crate) sum: f64,
    /// Of time, s.
    pub(crate) seconds: f64,
}

/// The steps of some of the server's counters that fell into checkpoints, and the others; `None` with
/// too few of either.
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

/// The steps of a counter that fell into checkpoints, and the others; `None` for a side with too few.
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

/// How much faster a counter rises because of checkpoints, per second of all time: beyond what it does
/// otherwise, or all of it where they leave no time to know that. 0 unless it rises `times` as fast.
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
