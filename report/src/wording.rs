//! Provides sentences that the terminal and the HTML report share.

use seekscope_run::units::format_count;
use seekscope_run::{Disk, Finding, Gain, Limitation, Outcome, RunDocument, TraceFacts};

use crate::numbers::{counted, format_rate, format_share};

/// Said with commands to copy: connection strings are recorded without user and password.
pub(crate) const COMMANDS_LACK_LOGIN: &str =
    "The commands shown carry no login: add yours where the server asks for one.";

/// Returns whether there is something that must be known before any figure is relied on.
pub(crate) fn has_reservations(document: &RunDocument) -> bool {
    !document.limitations.is_empty()
        || lost_events(document).is_some()
        || emulated_disks(document).is_some()
}

/// Returns one word for how the run ended, for style sheets and scripts.
pub(crate) fn outcome_word(document: &RunDocument) -> &'static str {
    match document.outcome {
        Outcome::Ok if loss_matters(document) => "lossy",
        Outcome::Ok => "ok",
        Outcome::Partial => "partial",
        Outcome::Failed => "failed",
        Outcome::Invalid => "invalid",
    }
}

/// Returns what a reader must know before relying on any number below.
pub(crate) fn outcome(document: &RunDocument) -> String {
    let reason = document
        .outcome_reason
        .as_deref()
        .unwrap_or("no reason was recorded")
        .trim_end_matches('.');
    let mut sentences = vec![match document.outcome {
        Outcome::Ok if loss_matters(document) => "Finished run, with gaps.".to_string(),
        Outcome::Ok if !document.limitations.is_empty() => format!(
            "Finished run, but not everything could be measured: {}.",
            document
                .limitations
                .iter()
                .map(|l| l.what.as_str())
                .collect::<Vec<_>>()
                .join("; ")
        ),
        Outcome::Ok if loss(document).is_some() => {
            "Complete run: what is missing of it changes no conclusion.".to_string()
        }
        Outcome::Ok => "Complete run: everything asked for was measured.".to_string(),
        Outcome::Partial => {
            format!("Partial run ({reason}): what is here is true, but not all of it is here.")
        }
        Outcome::Failed => format!("Failed run: {reason}."),
        Outcome::Invalid => {
            format!("Invalid run: a check on the measurement itself failed ({reason}).")
        }
    }];
    sentences.extend(lost_events(document));
    sentences.extend(emulated_disks(document));
    sentences.join(" ")
}

fn traces(document: &RunDocument) -> impl Iterator<Item = &TraceFacts> {
    document
        .phases
        .iter()
        .filter_map(|phase| phase.trace.as_ref())
}

/// Returns whether the losses are large enough to change conclusions.
fn loss_matters(document: &RunDocument) -> bool {
    traces(document).any(TraceFacts::loss_matters)
}

/// Says how much is missing, "5 of 900 events (0.6 %)"; `None` if nothing is. Of requests to disks, where they are all
/// that is missing: among all events even many would seem few.
fn loss(document: &RunDocument) -> Option<String> {
    let sum = |count: fn(&TraceFacts) -> u64| -> u64 { traces(document).map(count).sum() };
    let lost = sum(|trace| trace.lost);
    let requests = sum(TraceFacts::requests_of_files);
    let only_requests = requests > 0 && sum(|trace| trace.lost_end) == lost;
    let (all, what) = match only_requests {
        true => (requests, "requests to disks"),
        false => (sum(|trace| trace.seen), "events"),
    };
    (lost > 0).then(|| {
        format!(
            "{} of {} {what} ({})",
            format_count(lost),
            format_count(all),
            format_share(lost as f64 / all.max(1) as f64)
        )
    })
}

fn lost_events(document: &RunDocument) -> Option<String> {
    let loss = loss(document).filter(|_| loss_matters(document))?;
    Some(format!(
        "Events were lost: {loss}; counts and patterns below miss them."
    ))
}

/// Returns what could not be measured, including a loss of events that is too small to change a conclusion.
pub(crate) fn limitations(document: &RunDocument) -> Vec<Limitation> {
    let small_loss = loss(document).filter(|_| !loss_matters(document));
    let ends: u64 = traces(document).map(|trace| trace.lost_end).sum();
    let why = match ends {
        0 => "the buffer or a table of the kernel programs was full for a moment".into(),
        ends => format!(
            "the kernel ran no program at the end of {} of disks, so how long each took is not known",
            counted(ends, "request")
        ),
    };
    let small_loss = small_loss.map(|loss| Limitation {
        what: format!("{loss} of the trace, too few to change a conclusion"),
        why,
        remedy: String::new(),
    });
    let met = document.limitations.iter().cloned();
    met.chain(small_loss).collect()
}

fn emulated_disks(document: &RunDocument) -> Option<String> {
    let disks: Vec<&Disk> = document.phases.iter().map(|phase| &phase.disk).collect();
    let mut labels: Vec<String> = Vec::new();
    for label in disks
        .iter()
        .filter(|disk| disk.is_emulated())
        .map(|disk| disk.label())
    {
        if !labels.contains(&label) {
            labels.push(label);
        }
    }
    if labels.is_empty() {
        return None;
    }
    let share = if disks.iter().all(|disk| disk.is_emulated()) {
        "All"
    } else {
        "Some"
    };
    Some(format!(
        "{share} phases ran on an emulated disk, whose reads the kernel throttled: {}.",
        labels.join("; ")
    ))
}

/// Formats like `1,234 s per scan (between 1,190 and 1,270)`; a single pair has no range.
pub(crate) fn gain(gain: &Gain) -> String {
    let value = format!("{} {}", format_rate(gain.value), gain.unit);
    if gain.low == gain.high {
        return value;
    }
    format!(
        "{value} (between {} and {})",
        format_rate(gain.low),
        format_rate(gain.high)
    )
}

/// Returns the expected gain from acting on a finding, where known.
pub(crate) fn expected(finding: &Finding) -> Option<String> {
    let saved = || {
        let saved_s = finding.saves_s_per_hour.filter(|s| s.is_finite())?;
        let saved = format_rate(saved_s);
        Some(match finding.alone_s_per_hour {
            Some(alone_s) => format!(
                "about {} s of waiting per hour by itself, {saved} s beyond what the other findings save",
                format_rate(alone_s)
            ),
            None => format!("about {saved} s of waiting per hour"),
        })
    };
    // Where others take a part first, an interval of both would say nothing.
    let own_gain = finding
        .gain
        .as_ref()
        .filter(|_| finding.alone_s_per_hour.is_none());
    own_gain.map(gain).or_else(saved)
}
