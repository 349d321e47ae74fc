//! Tells what the earlier run did not find: whether it is new, or what an older trouble left.

use seekscope_run::units::format_bytes;
use seekscope_run::{Finding, FindingChange};

use super::acted::{Acted, caches};
use super::logged::InLog;
use super::measured::Quantity;
use super::other_server::are_names_different;
use super::printed::{figure, saved_alone, saves};
use super::work::{self, Load};
use super::{Examined, HASHED_OTHERWISE, SAME_WITHIN, is_same};
use crate::claims;
use crate::ranking::PER_HOUR;
use crate::thresholds::SYNC_BOUND;

/// Returns what became of the waiting that such a finding explains. `before` are the findings of the earlier run, `after`
/// those of this one.
pub(super) fn change_of(
    finding: &Finding,
    (before, after): (&[Finding], &[Finding]),
    earlier: Examined<'_>,
    now: Examined<'_>,
) -> FindingChange {
    let told = FindingChange {
        id: finding.id.clone(),
        subject: finding.subject.clone(),
        ..FindingChange::default()
    };
    if are_names_different(earlier.document, now.document) && !finding.subject.is_empty() {
        return FindingChange {
            change: "unknown".into(),
            verdict: format!("cannot be told: {HASHED_OTHERWISE}"),
            ..told
        };
    }
    let is_over = |other: &&Finding| {
        let is_found = after.iter().any(|again| is_same(other, again));
        !is_found || Acted::of(other, earlier, now) == Acted::Done
    };
    let mut older = before.iter().filter(is_over);
    if let Some((change, verdict)) = older.find_map(|older| left_of(older, finding, earlier, now)) {
        return FindingChange {
            change: change.into(),
            verdict,
            ..told
        };
    }
    let in_log = |run| Some(InLog::of(finding, run)?.s_per_hour);
    let before = in_log(earlier).filter(|s| *s > 0.0);
    FindingChange {
        operations: finding.operations.clone(),
        change: "new".into(),
        before,
        after: in_log(now)
            .or_else(|| Quantity::of(finding).measure(now, &finding.subject))
            .or_else(|| saved_alone(finding)),
        verdict: match before {
            Some(_) => "not named in the earlier run, in which these operations ran, too".into(),
            None => "not found in the earlier run".into(),
        },
        ..told
    }
}

/// Returns the id by which the waiting is counted that a finding explains.
fn counted_as(id: &str) -> &str {
    match id {
        SYNC_BOUND => "journal.slow-sync",
        id => id,
    }
}

/// Says that a finding explains what is left of the waiting that an older one explained; `None` where more is waited than
/// then, or where they explain other waiting.
fn left_of(
    older: &Finding,
    finding: &Finding,
    earlier: Examined<'_>,
    now: Examined<'_>,
) -> Option<(&'static str, String)> {
    let id = counted_as(&finding.id);
    let is_the_same = older.id != finding.id
        && Quantity::of(older) == Quantity::Waiting
        && claims::explain_the_same(&older.id, id);
    let waited = |run: Examined<'_>| run.diagnosis.answers.waited.explained_by(&older.id);
    let (then, left) = waited(earlier).zip(waited(now)).filter(|_| is_the_same)?;
    // What cures one of the causes leaves fewer reads, each of which may wait for longer.
    let work = work::of_clients(earlier, now);
    let scale = work.as_ref().map_or(1.0, Load::scale);
    if then <= 0.0 || left * scale > then * (1.0 + SAME_WITHIN) {
        return None;
    }
    let change = match left * scale < then * (1.0 - SAME_WITHIN) {
        true => "better",
        false => "same",
    };
    let its_gain = saves(older).map_or_else(String::new, |s| {
        format!(", which was predicted to save {}", figure(s))
    });
    let work = work.map_or_else(String::new, |work| format!(" ({})", work::in_words(&work)));
    let verdict = format!(
        "not new: the same waiting was explained by {}{its_gain}: it was {} {PER_HOUR} then and is {} now{work}{}",
        older.id,
        figure(then),
        figure(left),
        grown_cache(finding, earlier, now).unwrap_or_default()
    );
    Some((change, verdict))
}

/// Says that the memory may be short because the cache was made larger.
fn grown_cache(finding: &Finding, earlier: Examined<'_>, now: Examined<'_>) -> Option<String> {
    let (then, now) = caches(earlier, now).filter(|(then, now)| then < now)?;
    (finding.id == "memory.short").then(|| {
        format!(
            "; the cache grew from {} to {} between the runs, and that memory is no longer available to the page cache",
            format_bytes(then),
            format_bytes(now)
        )
    })
}
