//! Explains a session's figures in words.

use seekscope_doctor::wording::javascript_text;
use seekscope_run::tune::{
    Expected, MinimalChange, TrialPurpose, TuneDuel, TuneNoise, TuneVerdict, TunedKnob,
};
use seekscope_run::{Outcome, RunDocument, TuneRecord, TuneTrial};

use super::reading::{
    BEST, DURABILITY, MINIMAL, deciding_duel, direction, durability_moved, is_baseline,
    is_durability, is_told, labelled, metric_text, same_in_all_runs, told_ratio, unit_text,
    verdict,
};
use crate::numbers::{counted, format_number, format_rate, format_share};

/// The gain below which a duel reports none (`seekscope_tune::duel::GAIN_MIN`).
const GAIN_MIN: f64 = 0.02;
/// Smallest detectable gain above which much remains unseen.
const COARSE: f64 = 0.05;

/// Shown with all figures of the model.
pub(super) const SEARCH_GUIDES: &str = "Figures of the search guide, and only the duel proves: the best of \
    many noisy runs looks better than it is.";

/// Describes the session in one sentence.
pub(super) fn headline(document: &RunDocument, record: &TuneRecord) -> String {
    if let Some((value, runs)) = same_in_all_runs(record) {
        return format!(
            "the metric was {value} in all {}: nothing that was varied reaches it, or the command does not measure the server",
            self::runs(runs)
        );
    }
    let Some(duel) = deciding_duel(record) else {
        return without_duel(document, record);
    };
    if duel.failed > 0 {
        return format!(
            "no real gain: {} of {} failed in the duel, and a setting that fails is not better",
            runs(duel.failed),
            duel.candidate
        );
    }
    let Some(measured) = measured(record, duel) else {
        return format!(
            "unresolved: {} of {} and {} are too few to tell",
            pairs(duel.pairs),
            duel.candidate,
            duel.against
        );
    };
    let mut said = match verdict(record) {
        Some(TuneVerdict::Better) => measured,
        Some(TuneVerdict::NotBetter) => without_gain(duel, &measured),
        // Who looks several times at a duel has to ask for more than a single look does.
        _ if duel.low > 1.0 || duel.high < 1.0 => format!(
            "unresolved: {measured}; the interval is that of a single look, which is not enough for a duel that is \
             looked at several times: more pairs would tell"
        ),
        _ => format!("unresolved: {measured}; it could be either, more pairs would tell"),
    };
    if ![BEST, MINIMAL].contains(&duel.candidate.as_str()) {
        said = format!("{said}, with {}", duel.candidate);
    }
    if verdict(record) == Some(TuneVerdict::Better) && record.recommended.is_empty() {
        said.push_str("; still nothing is recommended");
    }
    said
}

/// Says that a duel showed no gain. A duel that had little prospect is given up after few pairs, whose interval still
/// contains gains that matter.
fn without_gain(duel: &TuneDuel, measured: &str) -> String {
    let gain_min = format_share(GAIN_MIN);
    match duel.high {
        high if high < 1.0 => format!("no real gain but a loss: {measured}"),
        high if high <= 1.0 + GAIN_MIN => format!("no real gain: {measured}"),
        _ => format!(
            "no gain was shown: {measured}; the duel was given up because {gain_min} or more had become unlikely"
        ),
    }
}

/// Returns text like "1.42 × the throughput (1.31 to 1.52, 6 pairs)".
fn measured(record: &TuneRecord, duel: &TuneDuel) -> Option<String> {
    let (value, low, high) = told_ratio(duel)?;
    let of = match (record.maximise, record.metric.is_empty()) {
        (true, true) => "the metric".to_string(),
        (true, false) => format!("the {}", record.metric),
        // The ratio is in the direction of the goal: above 1 means less of the metric.
        (false, true) => "less of the metric".to_string(),
        (false, false) => format!("less {}", record.metric),
    };
    Some(format!(
        "{} × {of} ({} to {}, {})",
        format_number(value),
        format_number(low),
        format_number(high),
        pairs(duel.pairs)
    ))
}

fn without_duel(document: &RunDocument, record: &TuneRecord) -> String {
    let of_search = |trial: &TuneTrial| trial.purpose == TrialPurpose::Search;
    let mut searched = record
        .trials
        .iter()
        .filter(|trial| of_search(trial))
        .peekable();
    let was_searched = searched.peek().is_some();
    let all_failed = was_searched && searched.all(|trial| trial.value.is_none());
    let why = if all_failed {
        "every setting that was tried failed, so nothing is known of any"
    } else if was_searched && is_baseline(record, &record.best) && document.outcome == Outcome::Ok {
        return nothing_promised(record);
    } else if record.trials.is_empty() {
        "nothing was run"
    } else if record.trials.iter().all(|trial| trial.value.is_none()) {
        "no run gave a figure"
    } else if document.outcome == Outcome::Ok {
        "the search had no candidate that promised enough"
    } else {
        "the session did not get that far"
    };
    match verdict(record) {
        Some(TuneVerdict::NotBetter) => format!("no real gain: no duel was fought, {why}"),
        _ => format!("no duel was fought: {why}"),
    }
}

/// Says that nothing was better in the search, and what that says of gains at most.
fn nothing_promised(record: &TuneRecord) -> String {
    const WHY: &str = "nothing that was tried promised more than the settings found at the start, so no duel was fought";
    match record.noise.as_ref().and_then(detectable_gain) {
        Some(gain) if gain <= COARSE => format!("no real gain: {WHY}"),
        Some(gain) => format!(
            "no gain was found, and one of less than {} would hardly have been seen: {WHY}",
            format_share(gain)
        ),
        None => format!(
            "no gain was found, and how large one would have been seen cannot be told from so few runs: {WHY}"
        ),
    }
}

fn pairs(count: u64) -> String {
    counted(count, "pair")
}

fn runs(count: u64) -> String {
    counted(count, "run")
}

/// Says what is measured, and the constraints; `None` if the session ended before that was settled.
pub(super) fn goal(record: &TuneRecord) -> Option<String> {
    if record.metric.is_empty() {
        return None;
    }
    let workload = match record.workload.as_str() {
        "" => String::new(),
        workload => format!(" under {workload}"),
    };
    let constraints = match record.constraints.is_empty() {
        true => String::new(),
        false => format!(", as long as {}", record.constraints.join(" and ")),
    };
    let trials = counted(record.trials.len() as u64, "run");
    Some(format!(
        "Goal: {}{workload}, {}{constraints}; {trials}, seed {}.",
        metric_text(record),
        direction(record),
        record.seed
    ))
}

/// Warns, before anything else, that a crash may lose writes.
pub(super) fn durability(record: &TuneRecord) -> Option<String> {
    let knobs = durability_moved(record);
    let names: Vec<&str> = knobs.iter().map(|knob| knob.name.as_str()).collect();
    (!names.is_empty()).then(|| {
        format!(
            "{DURABILITY} The recommended change moves what decides how much a crash may lose, or how long \
             recovery from it takes: {}.",
            names.join(", ")
        )
    })
}

/// Says what the search expected of its best setting; nothing if none of its figures is shown.
pub(super) fn expected(record: &TuneRecord) -> Option<String> {
    if same_in_all_runs(record).is_some() {
        return None;
    }
    let Some(Expected { value, low, high }) = record.expected else {
        let guessed = record.importance.is_some() || !record.duels.is_empty();
        return guessed.then(|| SEARCH_GUIDES.into());
    };
    let unit = match unit_text(record) {
        unit if unit.is_empty() => record.metric.clone(),
        unit => unit,
    };
    let interval = match is_told(low, high) {
        true => format!("{} to {}", format_rate(low), format_rate(high)),
        false => "too few runs to tell how sure that is".into(),
    };
    Some(format!(
        "The search expected {} {unit} of its best setting ({interval}). {SEARCH_GUIDES}",
        format_rate(value),
    ))
}

/// Returns the risks of the change, a line for each knob that affects more than performance.
pub(super) fn risks(record: &TuneRecord) -> Vec<String> {
    let label = |risk: &String| {
        let names = |knob: &&TunedKnob| is_durability(knob) && risk.contains(knob.name.as_str());
        match record.knobs.iter().find(names) {
            Some(_) => format!("{DURABILITY} {risk}"),
            None => risk.clone(),
        }
    };
    record.exports.risks.iter().map(label).collect()
}

/// Returns the gain that a duel would show. Earlier versions recorded one for a single pair of runs, too, which tells
/// nothing.
fn detectable_gain(noise: &TuneNoise) -> Option<f64> {
    noise.detectable_gain.filter(|_| noise.runs >= 4)
}

/// Describes noise and drift of the settings found at the start.
pub(super) fn noise(noise: &TuneNoise) -> String {
    if noise.runs >= 2 && noise.coefficient_of_variation < 1e-9 {
        return format!(
            "{} of the settings found at the start gave the same figure.",
            runs(noise.runs)
        );
    }
    let mut said = format!(
        "{} of the settings found at the start: a run differs from the mean by {} (coefficient of \
         variation), a pair's ratio by {}{}.",
        runs(noise.runs),
        format_share(noise.coefficient_of_variation),
        format_share(noise.pair_deviation),
        match noise.drift_per_hour {
            Some(drift) => format!("; the metric drifts by {} per hour", signed_share(drift)),
            None => String::new(),
        }
    );
    let Some(detectable_gain) = detectable_gain(noise) else {
        said.push_str(&format!(
            " How small a gain {} pairs show cannot be told from so few.",
            noise.duel_pairs
        ));
        return said;
    };
    said.push_str(&format!(
        " {} pairs are likely to show a gain of {} or more",
        noise.duel_pairs,
        format_share(detectable_gain)
    ));
    said.push_str(match detectable_gain > COARSE {
        true => "; smaller ones stay unseen: measure longer, or on a quieter machine.",
        false => ".",
    });
    said
}

/// Formats like "+1.2 %".
pub(super) fn signed_share(share: f64) -> String {
    let sign = if share > 0.0 { "+" } else { "" };
    match share.is_finite() {
        true => format!("{sign}{:.1} %", share * 100.0),
        false => "unknown".into(),
    }
}

/// Returns the knobs that went back, and what that costs.
pub(super) fn reset(record: &TuneRecord) -> Option<String> {
    let minimal = record.minimal.as_ref()?;
    let names: Vec<String> = (minimal.reset.iter())
        .map(|name| labelled(record, name))
        .collect();
    (!names.is_empty()).then(|| {
        format!(
            "Back to where they were in the minimal change, because the model cannot tell their effect from nothing, or \
             gives each less than 1 %: {}. {}.{}",
            names.join(", "),
            loss(minimal),
            match recommends_best(record, minimal) {
                true => " The duel showed that together they do help, so what is recommended has them.",
                false => "",
            }
        )
    })
}

/// Returns whether it is the best setting that is recommended, with the knobs that the minimal change leaves out.
fn recommends_best(record: &TuneRecord, minimal: &MinimalChange) -> bool {
    record.recommended == record.best && record.best != minimal.values
}

/// Returns what that costs according to the model, if known.
fn loss(minimal: &MinimalChange) -> String {
    let (low, high) = (minimal.loss_low, minimal.loss_high);
    if !is_told(1.0 - high, 1.0 - low) {
        return "Of what that costs too few runs tell".into();
    }
    format!(
        "By the model that costs {} ({} to {})",
        signed_share(minimal.loss),
        signed_share(low),
        signed_share(high)
    )
}

/// Returns what people should know of the tuned knobs.
pub(super) fn cautions(record: &TuneRecord) -> Vec<String> {
    let said = record.cautions.iter();
    said.map(|(knob, said)| format!("{}: {said}.", labelled(record, knob)))
        .collect()
}

/// Returns whether settings may differ from those found at the start.
pub(super) fn may_be_changed(document: &RunDocument, record: &TuneRecord) -> bool {
    match record.restored {
        Some(restored) => !restored,
        None => document.ended_ns.is_none(),
    }
}

/// Says which database the session leaves, and how it is removed.
pub fn left_database(record: &TuneRecord) -> Option<String> {
    let name = record.left_database.as_deref()?;
    Some(format!(
        "The documents of the workload stay in the database {name} for the next session; when they are of no more use: \
         db.getSiblingDB({}).dropDatabase()",
        javascript_text(name)
    ))
}

/// Says whether everything is as it was.
pub(super) fn restored(document: &RunDocument, record: &TuneRecord) -> &'static str {
    match record.restored {
        None if document.ended_ns.is_none() => {
            "The session has not ended, or was killed: settings may differ from those found at the start. If it was \
             killed, seekscope tune --restore with this run's folder puts them back."
        }
        Some(true) if record.left_to_others => {
            "Every setting was put back and read back, but for what somebody else has set since: that is as they left it."
        }
        Some(true) => {
            "Every setting was put back and read back: the server's settings are as they were found."
        }
        Some(false) => {
            "NOT every setting was put back: seekscope tune --restore with this run's folder tries again."
        }
        None => "No setting was changed, so none had to be put back.",
    }
}
