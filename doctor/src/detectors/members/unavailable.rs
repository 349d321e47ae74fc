//! `member.unavailable`: a member that keeps data is down, or at work on its data and serves nobody meanwhile.

use std::collections::BTreeSet;

use seekscope_run::{Finding, MemberRecord, MemberState};

use super::Detector;
use crate::wording::{duration, mongosh};
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &["member.unavailable"],
    detect,
};

fn detect(evidence: &Evidence<'_>, _answers: &Answers) -> Vec<Finding> {
    let members = evidence.examination().map_or(&[][..], |e| &e.members);
    let of_members = members.iter();
    let of_members = of_members.filter_map(|member| finding(evidence, members, member));
    of_members
        .chain(unknown_shards(evidence, members))
        .collect()
}

/// Finds shards of which nobody could be asked, so that not even their states are known.
fn unknown_shards(evidence: &Evidence<'_>, members: &[MemberRecord]) -> Vec<Finding> {
    let shards = members.iter().filter_map(|member| member.shard.as_deref());
    let shards: BTreeSet<&str> = shards.collect();
    let unknown = shards.into_iter().filter_map(|shard| {
        let of_it = || members.iter().filter(|m| m.shard.as_deref() == Some(shard));
        let is_silent = of_it().all(|m| m.not_asked.is_some() && doing(m.state_at_end()).is_none());
        let first = of_it().next().filter(|_| is_silent)?;
        Some(Finding {
            id: "member.unavailable".into(),
            subject: shard.into(),
            title: format!("No member of the shard {shard} could be asked"),
            evidence: vec![format!(
                "{}: {}.",
                first.name,
                first.not_asked.as_deref().unwrap_or_default()
            )],
            confidence: "medium".into(),
            risk: "If it is down, and has not just refused to answer or been out of reach of this host, whatever asks \
                   for its data fails."
                .into(),
            command: mongosh(evidence.uri(), "sh.status()"),
            ..Finding::default()
        })
    });
    unknown.collect()
}

/// Returns what a member in this state does; `None` for one that serves, or that is no member.
fn doing(state: MemberState) -> Option<&'static str> {
    Some(match state {
        MemberState::Down => "is down: the other members do not reach it",
        MemberState::InitialSync => {
            "copies all data from another member (initial sync), and serves nobody meanwhile"
        }
        MemberState::Recovering => "is recovering, and serves nobody meanwhile",
        MemberState::Rollback => {
            "rolls back writes that the others do not have, and serves nobody meanwhile"
        }
        MemberState::Startup => "is starting, and serves nobody yet",
        _ => return None,
    })
}

fn finding(
    evidence: &Evidence<'_>,
    members: &[MemberRecord],
    member: &MemberRecord,
) -> Option<Finding> {
    let state = member.state_at_end();
    let doing = doing(state)?;
    let sentence = match member.role_change {
        Some(_) => format!(
            "It was {} when the watch began and {} when it ended (replSetGetStatus).",
            member.state.name(),
            state.name()
        ),
        None => format!("Its state is {} (replSetGetStatus).", state.name()),
    };
    let mut of_set = members.iter().filter(|other| other.shard == member.shard);
    let window_s = of_set.find_map(|other| Some(other.oplog?.window_s));
    let window = window_s.filter(|s| *s > 0.0).map_or(String::new(), |s| {
        format!(" A member that is away for longer than the oplog reaches back ({}) has to be synced anew.", duration(s))
    });
    Some(Finding {
        id: "member.unavailable".into(),
        subject: member.name.clone(),
        title: format!("{} {doing}", member.name),
        evidence: vec![sentence],
        confidence: "high".into(),
        risk: format!(
            "Until it is back, writes that it has to acknowledge wait, and the set survives one failure fewer.{window}"
        ),
        command: mongosh(evidence.uri(), "rs.status()"),
        ..Finding::default()
    })
}

#[cfg(test)]
mod tests {
    use seekscope_run::RoleChange;

    use super::*;
    use crate::testing::Recording;

    /// A set of three, the last of which is in this state.
    fn with(state: MemberState) -> Recording {
        let mut recording = Recording::new();
        recording.examined().state = MemberState::Primary;
        for (name, state) in [("db2:27017", MemberState::Secondary), ("db3:27017", state)] {
            recording.examination().members.push(MemberRecord {
                name: name.into(),
                state,
                ..MemberRecord::default()
            });
        }
        recording
    }

    #[test]
    fn ill() {
        let found = with(MemberState::Down).findings(&DETECTOR);
        assert_eq!(
            found[0].title,
            "db3:27017 is down: the other members do not reach it"
        );
        let found = with(MemberState::InitialSync).findings(&DETECTOR);
        assert!(found[0].title.contains("(initial sync)"), "{found:?}");
    }

    #[test]
    fn what_it_became_counts() {
        let mut recording = with(MemberState::Down);
        recording.examination().members[1].role_change = Some(RoleChange {
            state: MemberState::Down,
            seen_ns: 1,
        });
        let found = recording.findings(&DETECTOR);
        assert!(
            found[0].evidence[0].contains("was secondary when"),
            "{found:?}"
        );
    }

    #[test]
    fn a_shard_of_which_nobody_answers() {
        let mut recording = with(MemberState::Other);
        let members = &mut recording.examination().members;
        members[2].shard = Some("s2".into());
        members[2].not_asked = Some("nothing listens there".into());
        let found = recording.findings(&DETECTOR);
        assert_eq!(found[0].title, "No member of the shard s2 could be asked");
    }

    #[test]
    fn healthy() {
        for state in [
            MemberState::Secondary,
            MemberState::Arbiter,
            MemberState::Removed,
        ] {
            assert_eq!(with(state).findings(&DETECTOR), []);
        }
    }
}
