//! `writes.unacknowledged`: writes wait for other members of the set to acknowledge them.
//!
//! With a write concern of several members or a majority, a client waits until these have the write as well. If too few
//! are up, it waits for ever unless it gave a time limit (`wtimeout`), and only then does the server count the write.

use seekscope_run::{Finding, MemberRecord, MemberState};

use super::Detector;
use crate::detectors::io::saved_per_hour;
use crate::evidence::waiting::{Acknowledged, Unacknowledged};
use crate::ranking::NOTICEABLE_S_PER_HOUR;
use crate::wording::{duration, mongosh};
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &["writes.unacknowledged"],
    detect,
};

/// Mean time that writes wait for other members which neither a network nor a disk in good health needs, ns.
const SLOW_MIN_NS: f64 = 20e6;
/// A member that is this far behind holds up whoever waits for it, s.
const BEHIND_MIN_S: f64 = 1.0;

fn detect(evidence: &Evidence<'_>, answers: &Answers) -> Vec<Finding> {
    judge(evidence, answers).into_iter().collect()
}

fn judge(evidence: &Evidence<'_>, answers: &Answers) -> Option<Finding> {
    let waited = answers.waited.members;
    if waited < NOTICEABLE_S_PER_HOUR {
        return None;
    }
    let acknowledged = evidence.acknowledged();
    let waiting = evidence.unacknowledged();
    let title = match (waiting, acknowledged) {
        (Some(waiting), _) => title_of(waiting),
        (None, Some(acknowledged)) if acknowledged.mean_ns >= SLOW_MIN_NS => format!(
            "Writes wait {} on average for other members to acknowledge them",
            duration(acknowledged.mean_ns / 1e9)
        ),
        (None, _) => return None,
    };
    let looks = evidence
        .examined()
        .map_or(0, |member| member.operation_looks);
    let mut sentences = Vec::new();
    sentences.extend(waiting.map(|waiting| seen(waiting, looks)));
    sentences.extend(acknowledged.map(counted));
    sentences.extend(held_up_by(evidence));
    Some(Finding {
        id: "writes.unacknowledged".into(),
        title,
        evidence: sentences,
        gain: Some(saved_per_hour(waited, waited * 0.3, waited)),
        saves_s_per_hour: Some(waited),
        confidence: "medium".into(),
        risk: "A write concern of fewer members is acknowledged sooner, and what only they have is lost if they fail."
            .into(),
        command: mongosh(evidence.uri(), "rs.printSecondaryReplicationInfo()"),
        ..Finding::default()
    })
}

fn title_of(waiting: Unacknowledged<'_>) -> String {
    let longest = duration(waiting.longest.running_us as f64 / 1e6);
    match waiting.at_once {
        1 => format!("A write waits for other members to acknowledge it, for at least {longest}"),
        several => format!(
            "{several} writes wait for other members to acknowledge them, the longest for at least {longest}"
        ),
    }
}

fn seen(waiting: Unacknowledged<'_>, looks: u32) -> String {
    let to = waiting.longest.namespace.as_deref();
    format!(
        "One{} was seen in {} of {looks} looks: it is made, holds no lock, and has yet to be acknowledged; without \
         wtimeout it waits for ever (currentOp).",
        to.map_or(String::new(), |namespace| format!(" to {namespace}")),
        waiting.longest.looks
    )
}

fn counted(acknowledged: Acknowledged) -> String {
    format!(
        "{:.1} writes per second were acknowledged, after {} on average (serverStatus).",
        acknowledged.per_s,
        duration(acknowledged.mean_ns / 1e9)
    )
}

/// Names the members of the set that do not keep up, or are not there.
fn held_up_by(evidence: &Evidence<'_>) -> Option<String> {
    let members = evidence.examination().map_or(&[][..], |e| &e.members);
    let why = |member: &MemberRecord| match (member.state_at_end(), member.lag_s) {
        (MemberState::Secondary, Some(s)) if s >= BEHIND_MIN_S => {
            Some(format!("{} is {} behind", member.name, duration(s)))
        }
        (MemberState::Primary | MemberState::Secondary | MemberState::Arbiter, _) => None,
        (state, _) => Some(format!("{} is {}", member.name, state.name())),
    };
    let others: Vec<String> = members.iter().skip(1).filter_map(why).collect();
    (!others.is_empty()).then(|| format!("{} (replSetGetStatus).", others.join(", ")))
}

#[cfg(test)]
mod tests {
    use seekscope_run::OperationSeen;

    use super::*;
    use crate::testing::Recording;

    /// A primary, and a secondary that is down.
    fn of_a_set() -> Recording {
        let mut recording = Recording::new();
        recording.examined().state = MemberState::Primary;
        recording.examination().members.push(MemberRecord {
            name: "db3:27017".into(),
            state: MemberState::Down,
            ..MemberRecord::default()
        });
        recording
    }

    fn acknowledged(recording: &mut Recording, ms: f64) {
        recording.rising("metrics.getLastError.wtime.num", 100.0);
        recording.rising("metrics.getLastError.wtime.totalMillis", 100.0 * ms);
    }

    fn waiting(seconds: u64) -> OperationSeen {
        OperationSeen {
            kind: OperationSeen::UNACKNOWLEDGED_WRITE.into(),
            namespace: Some("shop.orders".into()),
            running_us: seconds * 1_000_000,
            looks: 15,
            at_once: 3,
            sightings: 45,
            ..OperationSeen::default()
        }
    }

    /// Reproduces writes with `w: 3` to a set whose third member is down.
    #[test]
    fn writes_that_never_return() {
        let mut recording = of_a_set();
        recording.examined().operations = vec![waiting(120)];
        recording.examined().operation_looks = 30;
        let found = recording.findings(&DETECTOR).remove(0);
        assert!(found.title.starts_with("3 writes wait"), "{found:?}");
        let saved = found.saves_s_per_hour.unwrap();
        assert!((saved - 1.5 * 3600.0).abs() < 1.0, "{saved}");
        let by = found.evidence.last().unwrap();
        assert_eq!(by, "db3:27017 is DOWN (replSetGetStatus).");
        // They are counted by nobody else, and are not lost where all claims are added up.
        let all = recording.diagnosis().findings;
        let found = all.iter().find(|f| f.id == "writes.unacknowledged");
        assert_eq!(found.unwrap().saves_s_per_hour, Some(saved));
    }

    #[test]
    fn writes_that_wait_long() {
        let mut recording = of_a_set();
        acknowledged(&mut recording, 250.0);
        let found = recording.findings(&DETECTOR).remove(0);
        assert!(found.title.starts_with("Writes wait 250 ms"), "{found:?}");
        let saved = found.saves_s_per_hour.unwrap();
        assert!((saved - 25.0 * 3600.0).abs() < 1.0, "{saved}");
    }

    #[test]
    fn healthy() {
        let mut recording = of_a_set();
        assert_eq!(recording.findings(&DETECTOR), []);
        acknowledged(&mut recording, 2.0);
        recording.examined().operations = vec![waiting(1)];
        recording.examined().operation_looks = 30;
        assert_eq!(recording.findings(&DETECTOR), []);
        // A set of one waits for its own journal.
        let mut alone = Recording::new();
        acknowledged(&mut alone, 250.0);
        assert_eq!(alone.findings(&DETECTOR), []);
    }
}
