//! Says which members took another role while they were watched, as at a failover.

use seekscope_run::{MemberRecord, MemberState};

use crate::Evidence;

/// Sentences at most: a cluster has many members.
const CHANGES_MAX: usize = 6;

/// Returns a sentence for each change; the old primary's is told with the new one's.
pub(in crate::answers) fn role_changes(evidence: &Evidence<'_>) -> Vec<String> {
    let members = evidence.examination().map_or(&[][..], |e| &e.members);
    let changes = members.iter().filter_map(|member| {
        let change = member.role_change?;
        let after_s = change.seen_ns.saturating_sub(began_ns(evidence)) / 1_000_000_000;
        let what = match (change.state, primary_before(members, member)) {
            (MemberState::Primary, Some(before)) => {
                format!(
                    "The primary changed from {} to {}",
                    before.name, member.name
                )
            }
            _ if is_succeeded(members, member) => return None,
            (state, _) => format!(
                "{} changed from {} to {}",
                member.name,
                member.state.name(),
                state.name()
            ),
        };
        Some(format!(
            "{what} within {after_s} s: figures of before and after are mixed."
        ))
    });
    changes.take(CHANGES_MAX).collect()
}

fn began_ns(evidence: &Evidence<'_>) -> u64 {
    let document = evidence.document;
    let phase = document.phases.first();
    phase.map_or(document.started.monotonic_ns, |phase| phase.started_ns)
}

/// Returns the member of the same set that was the primary.
fn primary_before<'a>(members: &'a [MemberRecord], of: &MemberRecord) -> Option<&'a MemberRecord> {
    let mut fellows = members.iter().filter(|member| member.shard == of.shard);
    fellows.find(|member| member.state == MemberState::Primary && member.name != of.name)
}

/// Returns whether it was the primary of a set that has another one now.
fn is_succeeded(members: &[MemberRecord], member: &MemberRecord) -> bool {
    let mut fellows = members.iter().filter(|other| other.shard == member.shard);
    let became_primary = |other: &MemberRecord| {
        let change = other.role_change;
        change.is_some_and(|change| change.state == MemberState::Primary)
    };
    member.state == MemberState::Primary && fellows.any(became_primary)
}
