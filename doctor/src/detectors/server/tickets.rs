//! `tickets.exhausted`: operations queue because all read or write tickets are taken.

use seekscope_run::Finding;

use super::Detector;
use crate::answers::{Tickets, tickets_of};
use crate::wording::{mongosh, percent};
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &["tickets.exhausted"],
    detect,
};

/// Share of the samples; a burst that is over in a moment takes all tickets too.
pub(super) const EXHAUSTED_SHARE_MIN: f64 = 0.1;
/// Mean number of operations that wait for one.
const QUEUED_MIN: f64 = 1.0;
/// Fewest samples; fewer say nothing.
const SAMPLES_MIN: usize = 10;

fn detect(evidence: &Evidence<'_>, _answers: &Answers) -> Vec<Finding> {
    let tickets = tickets_of(evidence).into_iter().filter(is_exhausted);
    tickets
        .map(|tickets| finding(&tickets, evidence.uri()))
        .collect()
}

/// Returns whether the tickets are exhausted. From 7.0 on the server removes tickets on purpose, so having none free is
/// not enough.
fn is_exhausted(tickets: &Tickets) -> bool {
    tickets.samples >= SAMPLES_MIN
        && tickets.exhausted_share >= EXHAUSTED_SHARE_MIN
        && tickets.queued >= QUEUED_MIN
}

fn finding(tickets: &Tickets, uri: &str) -> Finding {
    let Tickets {
        kind,
        exhausted_share,
        queued,
        samples,
        ..
    } = *tickets;
    let total = tickets
        .total
        .map_or(String::new(), |t| format!(" of {t:.0}"));
    Finding {
        id: "tickets.exhausted".into(),
        subject: kind.into(),
        title: format!(
            "No {kind} ticket was free {} of the time: {queued:.0} operations queue on average",
            percent(exhausted_share)
        ),
        evidence: vec![
            format!(
                "None{total} {kind} tickets were free in {} of {samples} samples (serverStatus).",
                percent(exhausted_share)
            ),
            format!(
                "{queued:.1} operations waited in the queue at a time, {:.0} s of waiting per hour \
                 (serverStatus).",
                queued * 3600.0
            ),
            "Tickets run out because operations hold them for long: what holds them up is among the other \
             findings."
                .into(),
        ],
        confidence: "medium".into(),
        risk: "More tickets on a busy disk make every operation slower.".into(),
        command: mongosh(uri, "db.currentOp({active: true, secs_running: {$gte: 1}})"),
        ..Finding::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Recording;

    const FREE: &str = "wiredTiger.concurrentTransactions.write.available";

    #[test]
    fn ill() {
        let mut recording = Recording::new();
        recording.values("serverStatus", FREE, |s| if s < 30.0 { 0.0 } else { 100.0 });
        recording.steady(
            "wiredTiger.concurrentTransactions.write.totalTickets",
            128.0,
        );
        recording.steady("globalLock.currentQueue.writers", 40.0);
        let found = recording.findings(&DETECTOR);
        assert_eq!(found.len(), 1);
        assert_eq!(
            found[0].title,
            "No write ticket was free 49 % of the time: 40 operations queue on average"
        );
    }

    #[test]
    fn healthy() {
        let mut recording = Recording::new();
        assert_eq!(recording.findings(&DETECTOR), []);
        recording.steady(FREE, 3.0);
        recording.steady("globalLock.currentQueue.writers", 40.0);
        // The names of 7.1 and later; none is free, but nobody waits.
        recording.steady("queues.execution.read.available", 0.0);
        recording.steady("globalLock.currentQueue.readers", 0.0);
        assert_eq!(recording.findings(&DETECTOR), []);
    }
}
