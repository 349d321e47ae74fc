//! Reports what changed since an earlier run, and whether its predictions came true.
//!
//! Findings are identified by id and subject, and by the operations that they are about where both tell. What is
//! compared is measured in both runs in the same way: the predicted scan of the same file, the time of the same
//! operations, the waiting for the same collection or index, free bytes, the median checkpoint. A finding counts as
//! gone only if what it depends on was examined again, and, if it is one of load, the server did as much work: an idle
//! server waits for nothing. What was not acted on (`acted.rs`) is no remedy's doing; of queries it is told by what
//! they take for what they examine (`pace.rs`), and what others did to the CPUs (`cpus.rs`) is credited to nobody
//! unless less is examined (`examined.rs`). The figures are those that the reports print (`printed.rs`).

mod acted;
mod appeared;
mod cpus;
mod examined;
mod layout;
mod logged;
mod measured;
mod other_server;
mod pace;
mod printed;
mod verdict;
mod work;

use seekscope_run::{Finding, FindingChange, RunDocument};

use crate::Diagnosis;
use crate::claims;
use crate::thresholds::NOTHING_WRONG;
use acted::{Acted, Undone};
use cpus::Cpus;
use layout::InOrder;
use measured::{Measured, Quantity, explain_the_same, measured};
pub use other_server::other_server;
use other_server::{are_names_different, are_two_servers, side_by_side};
use printed::predicted;
use verdict::{verdict, worse_by_itself};

/// Relative changes up to this are considered noise: the device model is off by as much between surveys.
const SAME_WITHIN: f64 = 0.1;

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
    if are_two_servers(earlier.document, now.document) {
        return side_by_side(&before, &after);
    }
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
        .chain(new.map(|finding| appeared::change_of(finding, (&before, &after), earlier, now)))
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

/// Returns whether both are the same problem. Findings that name other operations on the same collection are not.
pub(crate) fn is_same(a: &Finding, b: &Finding) -> bool {
    (&a.id, &a.subject) == (&b.id, &b.subject) && may_be_about_the_same(a, b)
}

/// Returns whether the findings are about the same operations, as far as both name any.
fn may_be_about_the_same(a: &Finding, b: &Finding) -> bool {
    let (a, b) = (&a.operations, &b.operations);
    a.is_empty() || b.is_empty() || a.iter().any(|kind| b.contains(kind))
}

fn change_of(
    finding: &Finding,
    again: Option<&Finding>,
    told_at: Option<&Finding>,
    earlier: Examined<'_>,
    now: Examined<'_>,
) -> FindingChange {
    let acted = Acted::of(finding, earlier, now);
    let told = again.and_then(|again| {
        let of_others = cpus::change_of(finding, again, earlier, now);
        of_others.or_else(|| pace::change_of(finding, again, acted, earlier, now))
    });
    if let Some(change) = told {
        return change;
    }
    let found = measured(finding, again, earlier, now);
    let mut found = found.in_printed_figures(finding, again, acted == Acted::Done);
    if told_at.is_none() && acted.undone().is_some() {
        found.tell_growth();
    }
    if let Some(why) = explained_by_cpus(finding, &found, earlier, now) {
        found.untold = Some(why);
        found.after = None;
    }
    let undone = acted.undone().zip(again);
    if let Some(change) = undone.and_then(|of| still_there(finding, of, told_at, &found)) {
        return change;
    }
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
    let looked_at = unseen.is_none();
    if let Some(why) = unseen {
        found.untold = Some(why.into());
        found.after = None;
    } else if let Some(undone) = acted.undone().filter(|_| is_open(&found, again)) {
        found.untold = Some(undone.what_changed());
        found.after = None;
    }
    concluded(finding, (again, looked_at), &acted, found, (earlier, now))
}

/// Says that operations need not have become slower, or quicker, by themselves where they waited for CPUs in one of the
/// runs.
fn explained_by_cpus(
    finding: &Finding,
    found: &Measured,
    earlier: Examined<'_>,
    now: Examined<'_>,
) -> Option<String> {
    if !is_of_queries(finding) {
        return None;
    }
    match direction(found.before, found.after) {
        "worse" => {
            let cpus = Cpus::short(now)?.in_words();
            Some(format!("its operations took longer, and {cpus} now"))
        }
        "better" => {
            let were_short = Cpus::short(earlier).filter(|_| Cpus::short(now).is_none());
            let is_spared = examined::is_less(finding, earlier, now);
            let cpus = were_short.filter(|_| !is_spared)?.in_words();
            Some(format!(
                "its operations are quicker, but {cpus} then, and nothing shows that less is examined for them now"
            ))
        }
        _ => None,
    }
}

/// Returns whether less came of it, or nothing, and nothing says yet why that cannot be told. That the loads differ
/// says more.
fn is_open(found: &Measured, again: Option<&Finding>) -> bool {
    let is_less = match direction(found.before, found.after) {
        "same" => again.is_none(),
        way => way == "better",
    };
    is_less && found.untold.is_none()
}

/// Says of a finding that is made again, and was not acted on, what it costs now, where nothing else can be told of it;
/// `None` where it can.
fn still_there(
    finding: &Finding,
    (undone, again): (Undone, &Finding),
    told_at: Option<&Finding>,
    found: &Measured,
) -> Option<FindingChange> {
    let is_told = told_at.is_none() && found.untold.is_none() && !is_open(found, Some(again));
    if is_told || !Quantity::of(finding).is_per_hour() {
        return None;
    }
    let why = match (told_at, &found.untold) {
        (Some(other), _) => format!(
            "{}; what became of the waiting that it shares with {} is told there",
            undone.in_words(),
            other.id
        ),
        (None, Some(untold)) => format!("{}; {untold}", undone.in_words()),
        (None, None) => undone.what_changed(),
    };
    Some(FindingChange {
        id: finding.id.clone(),
        subject: finding.subject.clone(),
        operations: finding.operations.clone(),
        change: "same".into(),
        before: found.before,
        after: printed::saves(again),
        predicted: predicted(finding),
        verdict: format!("still there, not acted on: {why}"),
        work: found.work.clone(),
    })
}

/// Returns the change of a finding of which everything is known that can be told.
fn concluded(
    finding: &Finding,
    (again, looked_at): (Option<&Finding>, bool),
    acted: &Acted,
    mut found: Measured,
    (earlier, now): (Examined<'_>, Examined<'_>),
) -> FindingChange {
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
                verdict(finding, change, &found, *acted)
            ),
            None if change == "worse" && acted.undone().is_some() => {
                worse_by_itself(finding, &found)
            }
            None => verdict(finding, change, &found, *acted),
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
/// Returns whether it was a scan of a collection, and an index that was created serves its queries badly.
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

/// Returns whether it is about operations that an index would serve.
fn is_of_queries(finding: &Finding) -> bool {
    claims::READING.contains(&finding.id.as_str())
}

/// Returns whether it is true or false whatever the server is doing.
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

/// Returns whether the facts that a finding of this ID depends on were examined.
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

#[cfg(test)]
mod tests;
