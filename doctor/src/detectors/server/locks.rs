//! `locks.queued`: operations wait for one another: for locks, or because they write what an open transaction has written.
//!
//! A transaction holds its locks and documents until it ends, also while its client does nothing. Who wants the same
//! lock queues; who wants the same document is refused by the engine and tries again (a write conflict).

use seekscope_run::Finding;

use super::Detector;
use super::tickets::EXHAUSTED_SHARE_MIN;
use crate::answers::tickets_of;
use crate::wording::mongosh;
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &["locks.queued"],
    detect,
};

const QUEUED: &str = "globalLock.currentQueue.total";
const CONFLICTS: &str = "metrics.operation.writeConflicts";
pub(in crate::detectors) const IDLE_TRANSACTIONS: &str = "transactions.currentInactive";
/// Lists the transactions that are open.
pub(in crate::detectors) const OPEN_TRANSACTIONS: &str = "db.getSiblingDB('admin').aggregate([{$currentOp: {allUsers: true, idleSessions: true}}, \
     {$match: {transaction: {$exists: true}}}])";
/// Lists the operations that wait for a lock.
const WAITING: &str = "db.currentOp({waitingForLock: true})";
/// Mean number of operations that wait; fewer are everyday.
const QUEUED_MIN: f64 = 1.0;
/// Mean number of transactions whose clients do nothing: one, nearly all the time.
pub(in crate::detectors) const IDLE_MIN: f64 = 0.9;
/// Write conflicts per second, of operations that try again and again.
const CONFLICTS_PER_S_MIN: f64 = 1.0;

fn detect(evidence: &Evidence<'_>, _answers: &Answers) -> Vec<Finding> {
    judge(evidence).into_iter().collect()
}

fn judge(evidence: &Evidence<'_>) -> Option<Finding> {
    let mean = |name| evidence.status(&[name])?.mean();
    // Those that wait for a ticket are in the same queue.
    let mut tickets = tickets_of(evidence).into_iter();
    let is_for_tickets = tickets.any(|tickets| tickets.exhausted_share >= EXHAUSTED_SHARE_MIN);
    let queued = mean(QUEUED).filter(|queued| *queued >= QUEUED_MIN && !is_for_tickets);
    let idle = mean(IDLE_TRANSACTIONS).filter(|idle| *idle >= IDLE_MIN);
    let conflicts = evidence.status_rate(&[CONFLICTS]);
    let conflicts = conflicts.filter(|per_s| *per_s >= CONFLICTS_PER_S_MIN && idle.is_some());
    let held = match (queued, conflicts) {
        (Some(queued), _) => format!("{queued:.0} operations wait for locks on average"),
        (None, Some(per_s)) => format!(
            "Writes are refused {per_s:.0} times per second because others have written the same documents"
        ),
        (None, None) => return None,
    };
    let by = idle.map_or(
        "",
        |_| ", and a transaction stays open whose client does nothing",
    );
    let mut sentences = Vec::new();
    sentences.extend(queued.map(|queued| {
        format!(
            "{queued:.1} operations were in the queue at a time, {:.0} s of waiting per hour, which is none for the disk \
             (serverStatus).",
            queued * 3600.0
        )
    }));
    sentences.extend(conflicts.map(|per_s| {
        format!("{per_s:.1} write conflicts per second: an operation tries again until the other one ends (serverStatus).")
    }));
    sentences.extend(idle.map(|idle| {
        format!(
            "{idle:.1} transactions were open and idle on average: each keeps its locks and documents until it is \
             committed, aborted, or 60 s old (transactionLifetimeLimitSeconds)."
        )
    }));
    let script = if idle.is_some() {
        OPEN_TRANSACTIONS
    } else {
        WAITING
    };
    Some(Finding {
        id: "locks.queued".into(),
        title: format!("{held}{by}"),
        evidence: sentences,
        confidence: if idle.is_some() { "high" } else { "medium" }.into(),
        risk: "Ending somebody's operation or transaction undoes what it has written.".into(),
        command: mongosh(evidence.uri(), script),
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
        recording.steady(QUEUED, 7.0);
        let found = recording.findings(&DETECTOR);
        assert_eq!(found[0].title, "7 operations wait for locks on average");
        assert!(found[0].command.contains("waitingForLock"));
        recording.steady(IDLE_TRANSACTIONS, 1.0);
        let found = recording.findings(&DETECTOR);
        assert!(
            found[0].title.ends_with("whose client does nothing"),
            "{found:?}"
        );
        assert!(found[0].command.contains("transaction"), "{found:?}");
    }

    #[test]
    fn documents_that_a_transaction_holds() {
        let mut recording = Recording::new();
        recording.rising(CONFLICTS, 30.0);
        assert_eq!(
            recording.findings(&DETECTOR),
            [],
            "that is how writers get along"
        );
        recording.steady(IDLE_TRANSACTIONS, 1.0);
        let found = recording.findings(&DETECTOR);
        assert!(
            found[0].title.contains("refused 30 times per second"),
            "{found:?}"
        );
    }

    #[test]
    fn healthy() {
        let mut recording = Recording::new();
        recording.steady(IDLE_TRANSACTIONS, 1.0);
        recording.steady(QUEUED, 0.3);
        recording.rising(CONFLICTS, 0.1);
        assert_eq!(recording.findings(&DETECTOR), []);
        // They wait for tickets.
        recording.steady(QUEUED, 40.0);
        recording.steady("globalLock.currentQueue.writers", 40.0);
        recording.steady("wiredTiger.concurrentTransactions.write.available", 0.0);
        recording.steady(
            "wiredTiger.concurrentTransactions.write.totalTickets",
            128.0,
        );
        assert_eq!(recording.findings(&DETECTOR), []);
    }
}
