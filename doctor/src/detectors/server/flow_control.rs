//! `flow-control.engaged`: a primary lets fewer writes through, because a majority of its set is behind.
//!
//! From MongoDB 4.2 on, a primary tracks how far the majority is behind, and rations the locks of writers once that
//! nears `flowControlTargetLagSeconds` (10). In a set of one member, it is the member's own journal that is behind.

use seekscope_run::Finding;

use super::Detector;
use crate::detectors::io::saved_per_hour;
use crate::evidence::waiting::FLOW_CONTROL_US;
use crate::ranking::NOTICEABLE_S_PER_HOUR;
use crate::wording::{duration, mongosh, percent};
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &["flow-control.engaged"],
    detect,
};

const LAGGED_US: &str = "flowControl.isLaggedTimeMicros";
/// Writes that are let through per second, as the server sets it.
const LET_THROUGH: &str = "flowControl.targetRateLimit";

/// Returns the mean number of operations that wait for flow control; `None` where the server does not have it.
pub(super) fn waiting(evidence: &Evidence<'_>) -> Option<f64> {
    evidence
        .status_rate(&[FLOW_CONTROL_US])
        .map(|us_per_s| us_per_s / 1e6)
}

fn detect(evidence: &Evidence<'_>, _answers: &Answers) -> Vec<Finding> {
    judge(evidence).into_iter().collect()
}

fn judge(evidence: &Evidence<'_>) -> Option<Finding> {
    let waited = waiting(evidence)? * 3600.0;
    if waited < NOTICEABLE_S_PER_HOUR {
        return None;
    }
    let lagged = evidence.status_rate(&[LAGGED_US]).map(|us| us / 1e6);
    let least = evidence
        .status(&[LET_THROUGH])
        .and_then(|series| series.min());
    let mut sentences = vec![format!(
        "Writes waited {} per hour for it (serverStatus).",
        duration(waited)
    )];
    sentences.extend(lagged.filter(|share| *share > 0.0).map(|share| {
        format!(
            "The majority of the set was too far behind for {} of the time (serverStatus).",
            percent(share.min(1.0))
        )
    }));
    sentences.push(
        "It is an effect: a member that does not keep up, or a disk that takes seconds to sync the journal, is the \
         cause, and is among the other findings if it was seen."
            .into(),
    );
    Some(Finding {
        id: "flow-control.engaged".into(),
        title: match least.filter(|least| *least < 1e6) {
            Some(least) => format!(
                "Flow control holds writes back, at times to {least:.0} per second: the set's majority is behind"
            ),
            None => "Flow control holds writes back: the set's majority is behind".into(),
        },
        evidence: sentences,
        gain: Some(saved_per_hour(waited, waited * 0.5, waited)),
        saves_s_per_hour: Some(waited),
        confidence: "medium".into(),
        risk: "Without it (enableFlowControl) writes go on, the members fall further behind, and the primary keeps more \
               history in its cache for them."
            .into(),
        command: mongosh(evidence.uri(), "db.serverStatus().flowControl"),
        ..Finding::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Recording;

    #[test]
    fn ill() {
        let mut recording = Recording::new();
        recording.rising(FLOW_CONTROL_US, 1_500_000.0);
        recording.rising(LAGGED_US, 250_000.0);
        recording.values("serverStatus", LET_THROUGH, |s| {
            if s < 40.0 { 1e9 } else { 100.0 }
        });
        let found = recording.findings(&DETECTOR).remove(0);
        assert!(
            found.title.contains("at times to 100 per second"),
            "{found:?}"
        );
        assert!(found.evidence[0].contains("90 min per hour"), "{found:?}");
        assert!(found.evidence[1].contains("25 % of the time"), "{found:?}");
    }

    #[test]
    fn healthy() {
        let mut recording = Recording::new();
        assert_eq!(recording.findings(&DETECTOR), []);
        // What taking a ticket costs that is free.
        recording.rising(FLOW_CONTROL_US, 2_000.0);
        recording.steady(LET_THROUGH, 1e9);
        assert_eq!(recording.findings(&DETECTOR), []);
    }
}
