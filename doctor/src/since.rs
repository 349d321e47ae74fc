//! Reports what changed since an earlier run, and whether its predictions came true.
//!
//! Findings are identified by id and subject, and by the operations that they are about where both tell. What is compared
//! is measured in both runs in the same way: the predicted scan of the same file, the time of the same operations, the
//! waiting for the same collection or index, free bytes, the median checkpoint. A finding counts as gone only if what it
//! depends on was examined again, and, if it is one of load, the server did as much work: an idle server waits for nothing.

mod layout;
mod logged;
mod measured;
mod other_server;
mod work;

use std::collections::BTreeSet;

use seekscope_run::{Finding, FindingChange, Gain, MemberRecord, RunDocument};

use crate::Diagnosis;
use crate::ranking::PER_HOUR;
use crate::thresholds::NOTHING_WRONG;
use layout::InOrder;
use logged::InLog;
use measured::{Measured, Quantity, explain_the_same, measured};
use other_server::are_names_different;
pub use other_server::other_server;

/// Relative changes up to this are considered noise: the device model is off by as much between surveys.
const SAME_WITHIN: f64 = 0.1;
/// What is printed with three digits is not told apart beyond them.
const ROUNDING: f64 = 0.005;
/// A single predicted value is right within this factor of what came.
const ABOUT: f64 = 0.25;

const HASHED_OTHERWISE: &str = "the names of one of the runs are hashed, or hashed with another salt, or of another \
                                server, so what is named in one is not found in the other; compare runs that were collected with the same \
                                --salt-file, or without --hash-names";

/// A run and its present diagnosis.
#[derive(Debug, Clone, Copy)]
pub struct Examined<'a> {
    pub document: &'a RunDocument,
    pub diagnosis: &'a Diagnosis,
}

/// Returns every finding of either run: those of the earlier in its order, then the new ones.
pub fn compare(earlier: Examined<'_>, now: Examined<'_>) -> Vec<FindingChange> {
    let illnesses = |run: Examined<'_>| -> Vec<Finding> {
        let findings = run.diagnosis.findings.iter();
        findings
            .filter(|finding| finding.id != NOTHING_WRONG)
            .cloned()
            .collect()
    };
    let (before, after) = (illnesses(earlier), illnesses(now));
    let change_of = |finding: &Finding, told_at: Option<&Finding>| {
        let again = after.iter().find(|other| is_same(finding, other));
        change_of(finding, again, told_at, earlier, now)
    };
    let alone = before.iter().map(|finding| change_of(finding, None));
    let alone: Vec<FindingChange> = alone.collect();
    let known = before.iter().zip(&alone).map(|(finding, change)| {
        match told_at(finding, before.iter().zip(&alone), earlier) {
            Some(other) => change_of(finding, Some(other)),
            None => change.clone(),
        }
    });
    let new = after
        .iter()
        .filter(|finding| !before.iter().any(|other| is_same(finding, other)));
    known
        .chain(new.map(|finding| new_one(finding, earlier, now)))
        .collect()
}

/// Returns the finding at which the change of waiting is told that this one explains as well, if that is another: what
/// was saved is told once, where something can be told. `all` are the findings with what each says alone. One that is gone
/// is taken for the cause, else the first.
fn told_at<'a>(
    finding: &Finding,
    all: impl Iterator<Item = (&'a Finding, &'a FindingChange)>,
    earlier: Examined<'_>,
) -> Option<&'a Finding> {
    let is_told = |change: &FindingChange| change.change != "unknown" && change.after.is_some();
    let tellers =
        all.filter(|(other, change)| is_told(change) && explain_the_same(finding, other, earlier));
    let tellers: Vec<(&Finding, &FindingChange)> = tellers.collect();
    let gone = tellers.iter().find(|(_, change)| change.change == "gone");
    let (teller, _) = gone.or_else(|| tellers.first())?;
    (!is_same(teller, finding)).then_some(*teller)
}

/// Are both the same illness? Findings that name other operations on the same collection are not.
pub(crate) fn is_same(a: &Finding, b: &Finding) -> bool {
    (&a.id, &a.subject) == (&b.id, &b.subject) && may_be_about_the_same(a, b)
}

/// Are findings about the same operations, as far as both name any?
fn may_be_about_the_same(a: &Finding, b: &Finding) -> bool {
    let (a, b) = (&a.operations, &b.operations);
    a.is_empty() || b.is_empty() || a.iter().any(|kind| b.contains(kind))
}

fn new_one(finding: &Finding, earlier: Examined<'_>, now: Examined<'_>) -> FindingChange {
    if are_names_different(earlier.document, now.document) && !finding.subject.is_empty() {
        return FindingChange {
            id: finding.id.clone(),
            subject: finding.subject.clone(),
            change: "unknown".into(),
            verdict: format!("cannot be told: {HASHED_OTHERWISE}"),
            ..FindingChange::default()
        };
    }
    let in_log = |run| Some(InLog::of(finding, run)?.s_per_hour);
    let before = in_log(earlier).filter(|s| *s > 0.0);
    FindingChange {
        id: finding.id.clone(),
        subject: finding.subject.clone(),
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
        ..FindingChange::default()
    }
}

fn change_of(
    finding: &Finding,
    again: Option<&Finding>,
    told_at: Option<&Finding>,
    earlier: Examined<'_>,
    now: Examined<'_>,
) -> FindingChange {
    let mut found = measured(finding, again, earlier, now);
    if let Some(other) = told_at {
        found.untold.get_or_insert_with(|| {
            format!(
                "it explains the same waiting as {}, and what became of that is told there",
                other.id
            )
        });
        found.after = None;
    }
    let unseen = match again {
        Some(_) => None,
        None => why_unseen(finding, earlier, now),
    };
    let not_acted_on = why_not_acted_on(finding, earlier, now);
    if told_at.is_none() && not_acted_on.is_some() {
        found.tell_growth();
    }
    let is_less = match direction(found.before, found.after) {
        "same" => again.is_none(),
        way => way == "better",
    };
    // That the loads differ says more.
    let is_open = is_less && found.untold.is_none();
    let looked_at = unseen.is_none();
    if let Some(why) = unseen {
        found.untold = Some(why.into());
        found.after = None;
    } else if let Some(why) = not_acted_on.filter(|_| is_open) {
        found.untold = Some(match found.after.filter(|_| again.is_some()) {
            Some(after) => format!("{why}; it is found again, with {} now", figure(after)),
            None => why.into(),
        });
        found.after = None;
    }
    let in_order = InOrder::of(finding, earlier, now);
    let order = in_order.map(InOrder::change);
    let same_order = in_order.filter(|_| order == Some("same"));
    if same_order.is_some() && Quantity::of(finding).is_per_hour() {
        // Something else changed what is waited.
        found.after = None;
    }
    let is_told = found.untold.is_none()
        || (looked_at && is_fact(&finding.id))
        // What has no figure and is found again is the same. That it is gone would be another matter.
        || (again.is_some() && (found.before.is_none() || order.is_some()))
        || order == Some("better");
    let change = match is_told {
        // Whatever the models of the disk say, and whoever reads the file.
        _ if same_order.is_some() => "same",
        true => told_change(again.is_some(), &found, order),
        false => "unknown",
    };
    FindingChange {
        id: finding.id.clone(),
        subject: finding.subject.clone(),
        operations: finding.operations.clone(),
        change: change.into(),
        before: found.before,
        after: found.after,
        predicted: predicted(finding),
        verdict: match same_order {
            Some(in_order) => format!("nothing changed: {}", in_order.in_words()),
            None if again.is_none() && has_become_index_scan(finding, now) => format!(
                "{}; its operations use an index now, and read too much of it: see query.index-scan",
                verdict(finding, change, &found)
            ),
            None if change == "worse" && not_acted_on.is_some() => worse_by_itself(finding, &found),
            None => verdict(finding, change, &found),
        },
        work: found.work,
    }
}

/// Returns how a finding changed of which something is told.
fn told_change(
    is_found_again: bool,
    found: &Measured,
    order: Option<&'static str>,
) -> &'static str {
    let direction = direction(found.before, found.after);
    match (is_found_again, found.after) {
        (true, None) => order.unwrap_or("same"),
        (true, Some(_)) => direction,
        // What it is about may have grown while other findings explain it now.
        (false, _) if direction == "worse" => direction,
        (false, _) => "gone",
    }
}

/// Was it a scan of a collection, and does an index that was made serve its queries badly?
fn has_become_index_scan(finding: &Finding, now: Examined<'_>) -> bool {
    let mut others = now.diagnosis.findings.iter();
    finding.id == "query.collection-scan"
        && !finding.subject.is_empty()
        && others.any(|other| {
            other.id == "query.index-scan"
                && other.subject == finding.subject
                && may_be_about_the_same(finding, other)
        })
}

/// Returns why nothing says that a finding is gone which was not made again.
fn why_unseen(finding: &Finding, earlier: Examined<'_>, now: Examined<'_>) -> Option<&'static str> {
    if are_names_different(earlier.document, now.document) && !finding.subject.is_empty() {
        return Some(HASHED_OTHERWISE);
    }
    if !was_looked_at(now, &finding.id) {
        return Some("what it needs was not measured this time");
    }
    // Scans that were counted, and seen too seldom to be named, are a finding without a collection.
    let mut others = now.diagnosis.findings.iter();
    let is_unnamed = |other: &Finding| other.id == finding.id && other.subject.is_empty();
    (is_of_queries(finding) && others.any(is_unnamed))
        .then_some("scans were counted again, and none was seen often enough to be named")
}

/// Returns why it is not the remedy that a finding is gone or smaller: what it advised was not done.
fn why_not_acted_on(
    finding: &Finding,
    earlier: Examined<'_>,
    now: Examined<'_>,
) -> Option<&'static str> {
    let before = earlier.document.examination.as_ref()?.examined()?;
    let after = now.document.examination.as_ref()?.examined()?;
    match finding.id.as_str() {
        "cache.too-small" => {
            let is_larger = before.target.cache_bytes? < after.target.cache_bytes?;
            (!is_larger).then_some(
                "the cache is no larger than it was, so it is what is asked of the server that changed",
            )
        }
        "disk.limited" => {
            let limits = |run: Examined<'_>| {
                let host = run.document.examination.as_ref()?.host.as_ref()?;
                Some(host.surroundings.io_limits.clone())
            };
            let known = limits(earlier).filter(|known| !known.is_empty())?;
            (known == limits(now)?).then_some(
                "the limits are what they were, so it is what is asked of the disk that changed",
            )
        }
        "query.collection-scan" | "query.index-scan" => {
            let indexes = |member: &MemberRecord| {
                let facts = member.collection(&finding.subject)?;
                let keys = facts.indexes.iter().map(|index| index.keys.clone());
                Some(keys.collect::<BTreeSet<String>>())
            };
            let known = indexes(before).filter(|known| !known.is_empty())?;
            (known == indexes(after)?).then_some(
                "the collection has the indexes that it had, so it is what is asked of the server that changed",
            )
        }
        _ => None,
    }
}

/// Is it about operations that an index would serve?
fn is_of_queries(finding: &Finding) -> bool {
    ["query.collection-scan", "query.index-scan"].contains(&finding.id.as_str())
}

/// Is it true or false whatever the server is doing?
fn is_fact(id: &str) -> bool {
    const FACTS: [&str; 12] = [
        "evidence.",
        "filesystem.",
        "host.",
        "huge-pages.",
        "index.unused",
        "member.",
        "memory.limit-ignored",
        "numa.",
        "scheduler.",
        "server.",
        "shards.",
        "space.",
    ];
    FACTS.iter().any(|fact| id.starts_with(fact))
}

fn direction(before: Option<f64>, after: Option<f64>) -> &'static str {
    match before.zip(after) {
        Some((before, after)) if after < before * (1.0 - SAME_WITHIN) => "better",
        Some((before, after)) if after > before * (1.0 + SAME_WITHIN) => "worse",
        _ => "same",
    }
}

fn was_traced(run: Examined<'_>) -> bool {
    let phase = run.document.phases.first();
    phase.is_some_and(|phase| phase.trace.is_some())
}

/// Were the facts that a finding of this id depends on examined?
fn was_looked_at(run: Examined<'_>, id: &str) -> bool {
    let family = id.split('.').next().unwrap_or_default();
    let document = run.document;
    // From diagnostic files nothing is known but the server's counters: what is not found there need not be gone.
    if is_of_files_alone(document) {
        return family == "checkpoint";
    }
    let host = || {
        document
            .examination
            .as_ref()
            .is_some_and(|e| e.host.is_some())
    };
    match (family, id) {
        ("layout", _) => document.layout.is_some(),
        ("shards", _) => {
            let examination = document.examination.as_ref();
            examination.is_some_and(|e| e.cluster.is_some())
        }
        (_, "space.reusable") => !run.diagnosis.answers.space.is_empty(),
        (_, "space.nearly-full") => document.device.is_some(),
        (_, "index.random-inserts" | "cache.too-small")
        | ("schema" | "read-ahead" | "journal", _) => was_traced(run),
        ("filesystem" | "scheduler" | "huge-pages" | "numa" | "memory" | "host", _) => host(),
        _ => document.examination.is_some() && !document.phases.is_empty(),
    }
}

fn is_of_files_alone(document: &RunDocument) -> bool {
    let examination = document.examination.as_ref();
    examination.is_some_and(|of| of.ftdc.is_some() && of.members.is_empty())
}

fn verdict(finding: &Finding, change: &str, found: &Measured) -> String {
    let gain = predicted(finding);
    let untold = found.untold.as_ref();
    if let Some(why) = untold.filter(|_| change == "unknown" || gain.is_some()) {
        return match change {
            "same" => format!("it is as it was; what it costs now cannot be told: {why}"),
            _ => format!("cannot be told: {why}"),
        };
    }
    let Some(gain) = &gain else {
        return match change {
            "same" => "it is as it was; nothing was predicted".into(),
            _ => "nothing was predicted".into(),
        };
    };
    match (found.before, found.after) {
        (Some(_), Some(_)) if change == "same" => {
            "nothing changed: not acted on, or without effect".into()
        }
        (Some(before), Some(after)) => {
            let told = against_prediction(gain, before - after);
            format!("{told}{}", for_which_work(found))
        }
        _ => {
            let what = match change {
                "gone" => "cannot be told what that saved",
                _ => "cannot be told",
            };
            format!(
                "{what}: it was not measured in both runs, or its files were not used this time"
            )
        }
    }
}

/// Says how much worse it became although, or because, nobody acted on it.
fn worse_by_itself(finding: &Finding, found: &Measured) -> String {
    let more = found
        .before
        .zip(found.after)
        .map(|(before, after)| after - before);
    let more = more.map_or("more".into(), |more| format!("{} more", figure(more)));
    let unit = predicted(finding).map_or_else(String::new, |gain| format!(" {}", gain.unit));
    format!(
        "what it advises was not done, and it became worse: {more}{unit}{}",
        for_which_work(found)
    )
}

/// Says for which work figures are told, where that matters.
fn for_which_work(found: &Measured) -> String {
    let work = found.work.as_ref().map(work::in_words);
    work.map_or_else(String::new, |work| {
        format!(", for the work of then ({work})")
    })
}

/// Returns the gain that the finding promised, with an interval, in the unit in which it is measured.
fn predicted(finding: &Finding) -> Option<Gain> {
    let saved = || {
        let value = saved_alone(finding).filter(|_| Quantity::of(finding).is_per_hour())?;
        Some(Gain {
            value,
            low: value * (1.0 - ABOUT),
            high: value * (1.0 + ABOUT),
            unit: PER_HOUR.into(),
        })
    };
    finding.gain.clone().or_else(saved)
}

/// Returns what acting on the finding alone would save, s per hour, whatever others save of the same waiting.
fn saved_alone(finding: &Finding) -> Option<f64> {
    finding.alone_s_per_hour.or(finding.saves_s_per_hour)
}

fn against_prediction(gain: &Gain, saved: f64) -> String {
    let Gain {
        low, high, unit, ..
    } = gain;
    if saved < 0.0 {
        let more = figure(-saved);
        return format!("it became worse: {more} {unit} more, where acting on it was to save some");
    }
    let word = match saved {
        s if s < *low * (1.0 - ROUNDING) => "less than predicted",
        s if s > *high * (1.0 + ROUNDING) => "more than predicted",
        _ => "as predicted",
    };
    let [saved, low, high] = [saved, *low, *high].map(figure);
    format!("{word}: saved {saved} {unit}, predicted {low} to {high}")
}

/// Returns a number with three digits at least.
fn figure(value: f64) -> String {
    match value.abs() {
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        1.0.. => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests;
