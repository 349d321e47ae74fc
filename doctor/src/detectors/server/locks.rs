//! `locks.queued`: operations wait for one another: for locks, or because they write what an open transaction has written.
//! `locks.fsync`: they wait because somebody has locked the whole server against writes (`db.fsyncLock()`).
//!
//! A transaction holds its locks and documents until it ends, also while its client does nothing. Who wants the same
//! lock queues; who wants the same document is refused by the engine and tries again (a write conflict).

use seekscope_run::{Finding, OperationSeen};

use super::tickets::EXHAUSTED_SHARE_MIN;
use super::{Detector, flow_control};
use crate::answers::tickets_of;
use crate::detectors::io::saved_per_hour;
use crate::evidence::waiting::QUEUED;
use crate::wording::{duration, mongosh};
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &["locks.fsync", "locks.queued"],
    detect,
};

const CONFLICTS: &str = "metrics.operation.writeConflicts";
/// Lists the transactions that are open.
pub(in crate::detectors) const OPEN_TRANSACTIONS: &str = "db.getSiblingDB('admin').aggregate([{$currentOp: {allUsers: true, idleSessions: true}}, \
     {$match: {transaction: {$exists: true}}}])";
/// Lists the operations that wait for a lock.
const WAITING: &str = "db.currentOp({waitingForLock: true})";
/// Lists the updates that are running, with the documents that they are after.
const UPDATES: &str = "db.currentOp({op: \"update\"})";
/// Mean number of operations that wait; fewer are everyday.
const QUEUED_MIN: f64 = 1.0;
/// A transaction that has been open for this long, s, is one that its client has forgotten, or waits with.
const HELD_OPEN_MIN_S: f64 = 5.0;
/// Write conflicts per second, of operations that try again until a transaction ends.
const CONFLICTS_PER_S_MIN: f64 = 1.0;
/// The same of operations that are in each other's way: more per second, and per update or this many of them.
const CONTENDED_PER_S_MIN: f64 = 100.0;
const CONTENDED_PER_UPDATE_MIN: f64 = 0.5;

/// A transaction that is open while its client does nothing.
#[derive(Debug, Clone, Copy)]
pub(in crate::detectors) struct HeldOpen {
    /// How long the oldest was seen open, s.
    pub(in crate::detectors) oldest_s: f64,
}

impl HeldOpen {
    /// Many short ones, of which there is always one, are none.
    pub(in crate::detectors) fn of(evidence: &Evidence<'_>) -> Option<Self> {
        let mut seen = evidence.examined()?.operations.iter();
        let open = seen.find(|operation| operation.kind == OperationSeen::IDLE_TRANSACTION)?;
        let oldest_s = open.running_us as f64 / 1e6;
        (oldest_s >= HELD_OPEN_MIN_S).then_some(Self { oldest_s })
    }
}

/// Returns how many operations wait for locks on average; `None` where that is everyday.
pub(crate) fn queued_for_locks(evidence: &Evidence<'_>) -> Option<f64> {
    // Those that wait for a ticket, or for flow control, are in the same queue.
    let mut tickets = tickets_of(evidence).into_iter();
    let is_for_tickets = tickets.any(|tickets| tickets.exhausted_share >= EXHAUSTED_SHARE_MIN);
    let for_flow_control = flow_control::waiting(evidence).unwrap_or(0.0);
    // Its waits are counted when they end, and the queue is looked at meanwhile.
    let queued = evidence.status(&[QUEUED])?.mean()?;
    let is_for_locks = queued >= QUEUED_MIN && !is_for_tickets && for_flow_control < queued / 2.0;
    is_for_locks.then_some(queued)
}

fn detect(evidence: &Evidence<'_>, _answers: &Answers) -> Vec<Finding> {
    let found = locked_by_fsync(evidence).or_else(|| judge(evidence));
    found.into_iter().collect()
}

fn locked_by_fsync(evidence: &Evidence<'_>) -> Option<Finding> {
    let member = evidence.examined()?;
    let locked = member.fsync_lock_looks?;
    let title = match locked < member.operation_looks {
        false => "fsyncLock is on: no write is possible until db.fsyncUnlock()".into(),
        true => format!(
            "fsyncLock was on in {locked} of {} looks: no write was possible meanwhile",
            member.operation_looks
        ),
    };
    let saved = queued_for_locks(evidence).map(|queued| queued * 3600.0);
    let waited = saved.map(|saved| {
        format!(
            "{:.1} operations waited for it at a time, {} per hour (serverStatus).",
            saved / 3600.0,
            duration(saved)
        )
    });
    let mut sentences = vec![format!(
        "The server said so in {locked} of {} looks (currentOp): db.fsyncLock() holds a lock that keeps all writes out, until \
         it has been undone as often as it was called.",
        member.operation_looks
    )];
    sentences.extend(waited);
    Some(Finding {
        id: "locks.fsync".into(),
        title,
        evidence: sentences,
        gain: saved.map(|saved| saved_per_hour(saved, saved, saved)),
        saves_s_per_hour: saved,
        confidence: "high".into(),
        risk: "A backup or snapshot of the files may need it, and is worthless if writes go on before it has ended: ask who \
               called it."
            .into(),
        command: mongosh(evidence.uri(), "db.fsyncUnlock()"),
        ..Finding::default()
    })
}

fn judge(evidence: &Evidence<'_>) -> Option<Finding> {
    let queued = queued_for_locks(evidence);
    let held_open = HeldOpen::of(evidence);
    let updates = evidence.status_rate(&["opcounters.update"]).unwrap_or(0.0);
    let is_contended =
        |per_s: f64| per_s >= CONTENDED_PER_S_MIN && per_s >= CONTENDED_PER_UPDATE_MIN * updates;
    let conflicts = evidence.status_rate(&[CONFLICTS]);
    let conflicts = conflicts.filter(|per_s| {
        is_contended(*per_s) || (*per_s >= CONFLICTS_PER_S_MIN && held_open.is_some())
    });
    let held = match (queued, conflicts) {
        (Some(queued), _) => format!("{queued:.0} operations wait for locks on average"),
        (None, Some(per_s)) => format!(
            "Writes are refused {} per second because others have written the same documents",
            times(per_s)
        ),
        (None, None) => return None,
    };
    let by = held_open.map_or(
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
        format!(
            "{per_s:.1} write conflicts per second beside {updates:.0} updates: an operation tries again until the other \
             one ends (serverStatus)."
        )
    }));
    sentences.extend(held_open.map(|held| {
        format!(
            "The oldest was seen open for {} (currentOp): it keeps its locks, and the documents that it has written, \
             until it is committed, aborted, or as old as transactionLifetimeLimitSeconds allows (60 unless set).",
            duration(held.oldest_s)
        )
    }));
    // Who else holds the locks is not known, nor what it would do without them.
    let saved = queued.filter(|_| held_open.is_some());
    let saved = saved.map(|queued| queued * 3600.0);
    let script = match (held_open, queued) {
        (Some(_), _) => OPEN_TRANSACTIONS,
        (None, Some(_)) => WAITING,
        (None, None) => UPDATES,
    };
    Some(Finding {
        id: "locks.queued".into(),
        title: format!("{held}{by}"),
        evidence: sentences,
        gain: saved.map(|saved| saved_per_hour(saved, saved * 0.5, saved)),
        saves_s_per_hour: saved,
        confidence: "medium".into(),
        risk: match (held_open, queued) {
            (None, None) => {
                "Documents that everybody updates, such as counters, have to be split, or updated less often."
            }
            _ => "Ending somebody's operation or transaction undoes what it has written.",
        }
        .into(),
        command: mongosh(evidence.uri(), script),
        ..Finding::default()
    })
}

fn times(per_s: f64) -> String {
    match per_s.round() {
        ..=1.0 => "once".into(),
        per_s => format!("{per_s:.0} times"),
    }
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
        recording.hold_transaction_open(45);
        let found = recording.findings(&DETECTOR);
        assert!(
            found[0].title.ends_with("whose client does nothing"),
            "{found:?}"
        );
        assert!(found[0].command.contains("transaction"), "{found:?}");
    }

    /// A regression: of a server whose writes were all locked out, the first finding was that its disk is well.
    #[test]
    fn a_server_that_is_locked_is_told_so_before_its_disk_is_acquitted() {
        let mut recording = Recording::new();
        recording.rising("opcounters.query", 10.0);
        for name in ["reads", "writes", "read_bytes", "write_bytes"] {
            recording.values("diskstats", name, |s| s);
        }
        recording.steady(QUEUED, 3.0);
        recording.examined().operation_looks = 20;
        let first_two = |recording: &Recording| {
            let findings = recording.diagnosis().findings.into_iter();
            findings.map(|found| found.id).take(2).collect::<Vec<_>>()
        };
        let well = crate::thresholds::NOTHING_WRONG;
        assert_eq!(first_two(&recording), ["locks.queued", well]);
        recording.examined().fsync_lock_looks = Some(20);
        assert_eq!(first_two(&recording), ["locks.fsync", well]);
        let found = recording.diagnosis().findings.remove(0);
        assert_eq!(
            found.title,
            "fsyncLock is on: no write is possible until db.fsyncUnlock()"
        );
        assert_eq!(found.saves_s_per_hour, Some(10_800.0));
        assert!(found.command.contains("fsyncUnlock"), "{found:?}");
        recording.examined().fsync_lock_looks = Some(5);
        let title = recording.diagnosis().findings.remove(0).title;
        assert!(
            title.starts_with("fsyncLock was on in 5 of 20 looks"),
            "{title}"
        );
    }

    #[test]
    fn a_transaction_that_is_ended_saves_what_was_waited_for_it() {
        let mut recording = Recording::new();
        recording.steady(QUEUED, 7.0);
        assert_eq!(recording.findings(&DETECTOR)[0].saves_s_per_hour, None);
        recording.hold_transaction_open(45);
        let found = recording.diagnosis().findings.remove(0);
        assert_eq!(found.saves_s_per_hour, Some(25_200.0), "{found:?}");
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
        recording.hold_transaction_open(45);
        let found = recording.findings(&DETECTOR);
        assert!(
            found[0].title.contains("refused 30 times per second"),
            "{found:?}"
        );
    }

    #[test]
    fn documents_that_everybody_updates() {
        let mut recording = Recording::new();
        recording.rising(CONFLICTS, 4_000.0);
        recording.rising("opcounters.update", 2_000.0);
        let found = recording.findings(&DETECTOR).remove(0);
        assert!(
            found
                .title
                .contains("refused 4000 times per second because"),
            "{found:?}"
        );
        assert!(found.command.contains("update"), "{found:?}");
    }

    #[test]
    fn short_transactions_hold_nothing_open() {
        let mut recording = Recording::new();
        recording.rising(CONFLICTS, 7.0);
        recording.hold_transaction_open(1);
        assert_eq!(recording.findings(&DETECTOR), []);
    }

    #[test]
    fn healthy() {
        let mut recording = Recording::new();
        recording.hold_transaction_open(45);
        recording.steady(QUEUED, 0.3);
        recording.rising(CONFLICTS, 0.1);
        assert_eq!(recording.findings(&DETECTOR), []);
        // They wait for flow control.
        recording.steady(QUEUED, 5.0);
        recording.rising("flowControl.timeAcquiringMicros", 4_800_000.0);
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
