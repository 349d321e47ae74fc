//! Interprets a record: which arm was recommended, which duel decides about it, which knobs are dangerous.

use seekscope_run::TuneRecord;
use seekscope_run::tune::{
    Importance, KnobValues, TrialPurpose, TuneDuel, TuneTrial, TuneVerdict, TunedKnob,
};

/// The arm of the settings found at the start.
pub(super) const BASELINE: &str = "baseline";
/// The arm of the search's best setting.
pub(super) const BEST: &str = "best";
/// The arm of the best setting with as many knobs as possible at their original values.
pub(super) const MINIMAL: &str = "minimal";
/// Appended to a knob that decides what a crash may lose, wherever it is named.
pub(super) const DURABILITY: &str = "[DURABILITY]";

/// Returns the value, unless a figure cannot show it: differences of larger ones would overflow.
pub(super) fn drawable(value: f64) -> Option<f64> {
    (value.is_finite() && value.abs() < 1e100).then_some(value)
}

/// Returns the metric's value and the number of runs, if all runs that gave a figure gave the same one, whatever was set.
pub(super) fn same_in_all_runs(record: &TuneRecord) -> Option<(f64, u64)> {
    let mut values = record.trials.iter().filter_map(|trial| trial.value);
    let first = values.clone().next()?;
    let is_searched = (record.trials.iter())
        .any(|trial| trial.purpose == TrialPurpose::Search && trial.value.is_some());
    (is_searched && values.all(|value| value == first)).then(|| {
        let runs = record.trials.iter().filter(|trial| trial.value.is_some());
        (first, runs.count() as u64)
    })
}

/// Returns how much each knob matters. Earlier versions also recorded it for a metric that never changed.
pub(super) fn importance_told(record: &TuneRecord) -> Option<&Importance> {
    let importance = record.importance.as_ref();
    importance.filter(|_| same_in_all_runs(record).is_none())
}

/// Returns the knob with that name, if it was tuned.
pub(super) fn knob<'a>(record: &'a TuneRecord, name: &str) -> Option<&'a TunedKnob> {
    record.knobs.iter().find(|knob| knob.name == name)
}

/// Returns whether a crash may lose acknowledged writes if this knob is changed.
pub(super) fn is_durability(knob: &TunedKnob) -> bool {
    knob.risk == "D"
}

/// Returns the knob's name, labelled if it affects durability.
pub(super) fn labelled(record: &TuneRecord, name: &str) -> String {
    match knob(record, name).is_some_and(is_durability) {
        true => format!("{name} {DURABILITY}"),
        false => name.to_string(),
    }
}

/// Returns how `values` differ from the start: "cache = 3, journal [DURABILITY] = false".
pub(super) fn setting_text(record: &TuneRecord, values: &KnobValues) -> String {
    let differs =
        |name: &str| knob(record, name).is_none_or(|k| values.get(name) != Some(&k.baseline));
    let changed: Vec<String> = values
        .iter()
        .filter(|(name, _)| differs(name))
        .map(|(name, value)| format!("{} = {value}", labelled(record, name)))
        .collect();
    match changed.is_empty() {
        true => "as at the start".into(),
        false => changed.join(", "),
    }
}

/// Returns whether `values` are what the server had at the start.
pub(super) fn is_baseline(record: &TuneRecord, values: &KnobValues) -> bool {
    (record.knobs.iter()).all(|knob| {
        values
            .get(&knob.name)
            .is_none_or(|value| *value == knob.baseline)
    })
}

/// Returns the arm that the recommendation comes from; without a recommendation the best.
pub(super) fn recommended_arm(record: &TuneRecord) -> String {
    if record.recommended.is_empty() {
        return BEST.into();
    }
    let minimal = record.minimal.as_ref().map(|minimal| &minimal.values);
    if record.recommended == record.best {
        BEST.into()
    } else if minimal == Some(&record.recommended) {
        MINIMAL.into()
    } else {
        duel_trials(record)
            .find(|trial| trial.values == record.recommended)
            .map_or_else(|| BEST.into(), |trial| trial.arm.clone())
    }
}

/// Returns the duel of what is recommended, or of the best, against the baseline.
pub(super) fn deciding_duel(record: &TuneRecord) -> Option<&TuneDuel> {
    let arm = recommended_arm(record);
    let mut against_baseline = record.duels.iter().filter(|d| d.against == BASELINE);
    let first = against_baseline.clone().next();
    against_baseline
        .find(|duel| duel.candidate == arm)
        .or(first)
}

/// Returns the session's verdict; an interrupted session may have none although a duel had begun.
pub(super) fn verdict(record: &TuneRecord) -> Option<TuneVerdict> {
    record
        .verdict
        .or_else(|| deciding_duel(record).map(|duel| duel.verdict))
}

/// Returns a duel's ratio and interval, unless it had too few pairs for them.
pub(super) fn ratio(duel: &TuneDuel) -> Option<(f64, f64, f64)> {
    let usable = |value: f64| value.is_finite() && value > 0.0;
    (usable(duel.ratio) && usable(duel.low) && usable(duel.high))
        .then_some((duel.ratio, duel.low, duel.high))
}

/// Width, as a factor, above which an interval that includes 1 says nothing of its ratio.
const SPAN_MAX: f64 = 100.0;

/// Returns the same for people, without meaningless intervals: with two pairs that disagree an interval may
/// be from 2.88e-5 to 137540.
pub(super) fn told_ratio(duel: &TuneDuel) -> Option<(f64, f64, f64)> {
    ratio(duel).filter(|(_, low, high)| *low >= 1.0 || *high <= 1.0 || is_told(*low, *high))
}

/// Returns whether an interval of positive figures says anything.
pub(super) fn is_told(low: f64, high: f64) -> bool {
    low > 0.0 && high / low <= SPAN_MAX
}

fn duel_trials(record: &TuneRecord) -> impl Iterator<Item = &TuneTrial> {
    (record.trials.iter()).filter(|trial| trial.purpose == TrialPurpose::Duel)
}

/// Returns pairs of block and ratio of candidate to the other in the direction of the goal, for each block in
/// which both have a usable value.
pub(super) fn pair_ratios(record: &TuneRecord, duel: &TuneDuel) -> Vec<(u32, f64)> {
    let value = |arm: &str, block: u32| {
        duel_trials(record)
            .find(|trial| trial.arm == arm && trial.block == Some(block))
            .and_then(|trial| trial.value)
            .filter(|value| value.is_finite() && *value > 0.0)
    };
    let mut blocks: Vec<u32> = duel_trials(record)
        .filter_map(|trial| trial.block)
        .collect();
    blocks.sort_unstable();
    blocks.dedup();
    blocks
        .into_iter()
        .filter_map(|block| {
            let (candidate, against) =
                value(&duel.candidate, block).zip(value(&duel.against, block))?;
            let ratio = match record.maximise {
                true => candidate / against,
                false => against / candidate,
            };
            Some((block, ratio))
        })
        .collect()
}

/// Returns the knobs that the recommendation changes and that affect durability.
pub(super) fn durability_moved(record: &TuneRecord) -> Vec<&TunedKnob> {
    let moved = |knob: &&TunedKnob| {
        let becomes = record.recommended.get(&knob.name);
        is_durability(knob) && becomes.is_some_and(|value| *value != knob.baseline)
    };
    record.knobs.iter().filter(moved).collect()
}

/// Returns text like "throughput (per s)".
pub(super) fn metric_text(record: &TuneRecord) -> String {
    let unit = unit_text(record);
    match (record.metric.is_empty(), unit.is_empty()) {
        (true, _) => "metric".into(),
        (false, true) => record.metric.clone(),
        (false, false) => format!("{} ({unit})", record.metric),
    }
}

/// Returns text like "per s"; empty if the metric has no unit.
pub(super) fn unit_text(record: &TuneRecord) -> String {
    record.unit.replace('_', " ")
}

/// Returns text like "higher is better".
pub(super) fn direction(record: &TuneRecord) -> &'static str {
    match record.maximise {
        true => "higher is better",
        false => "lower is better",
    }
}
