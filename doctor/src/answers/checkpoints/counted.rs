//! Checkpoints and operations as the server counts them.

use seekscope_pattern::Checkpoint;

use super::CheckpointAnswer;
use crate::Evidence;
use crate::evidence::Series;

/// How long the last one took, ms; before and since WiredTiger 11.3.
const LAST_MS: [&str; 2] = [
    "wiredTiger.transaction.transaction checkpoint most recent time (msecs)",
    "wiredTiger.checkpoint.most recent time (msecs)",
];
/// Rises with every checkpoint.
const NUMBER: [&str; 4] = [
    "wiredTiger.transaction.transaction checkpoints",
    "wiredTiger.checkpoint.total succeed number of checkpoints",
    "wiredTiger.transaction.transaction checkpoint generation",
    "wiredTiger.checkpoint.generation",
];
const OPERATIONS: [&str; 5] = ["insert", "query", "update", "delete", "getmore"];
/// Steps of the counters on either side; with fewer, chance decides.
const STEPS_MIN: usize = 5;

/// Those that ended while the counters were sampled; `None` without such counters, or without any.
pub(super) fn checkpoints(evidence: &Evidence<'_>) -> Option<Vec<Checkpoint>> {
    let last_ms = evidence.status(&LAST_MS)?;
    let number = evidence.status(&NUMBER)?;
    let mut found = Vec::new();
    for pair in number.points.windows(2) {
        let ((_, before), (t_ns, after)) = (pair[0], pair[1]);
        // A number that falls is that of a server that started anew.
        if after <= before {
            continue;
        }
        let at = last_ms.points.partition_point(|(t, _)| *t < t_ns);
        let Some(&(_, took_ms)) = last_ms.points.get(at) else {
            continue;
        };
        let took_ns = nanoseconds(took_ms);
        let started_ns = t_ns.saturating_sub(took_ns);
        let started_ns = found
            .last()
            .map_or(started_ns, |c: &Checkpoint| started_ns.max(c.ended_ns));
        found.push(Checkpoint {
            started_ns,
            ended_ns: t_ns,
            ..Checkpoint::default()
        });
    }
    (!found.is_empty()).then_some(found)
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
        let sides = [true, false].map(|during| side(series, answer, during));
        for (steps, (sum, seconds, count)) in found.iter_mut().zip(sides) {
            if count < STEPS_MIN {
                return None;
            }
            steps.sum += sum;
            steps.mean += sum / seconds;
        }
    }
    let [during, otherwise] = found;
    (during.sum + otherwise.sum > 0.0).then_some((during, otherwise))
}

/// Rise, length (s) and number of the steps on one side.
fn side(series: &Series, answer: &CheckpointAnswer, during: bool) -> (f64, f64, usize) {
    let steps = series.points.windows(2).filter(|pair| {
        let middle_ns = pair[0].0 + (pair[1].0 - pair[0].0) / 2;
        pair[1].1 >= pair[0].1 && answer.runs_at(middle_ns) == during
    });
    steps.fold((0.0, 0.0, 0), |(sum, seconds, count), pair| {
        let length_s = (pair[1].0 - pair[0].0) as f64 / 1e9;
        (sum + pair[1].1 - pair[0].1, seconds + length_s, count + 1)
    })
}
