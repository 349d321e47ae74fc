//! Shows the session run by run: what was measured, what was expected of the best so far, how the machine
//! drifted meanwhile.

use std::collections::{BTreeMap, BTreeSet};

use seekscope_run::TuneRecord;
use seekscope_run::tune::{TrialPurpose, TrialStatus, TuneTrial};

use super::reading::{BASELINE, BEST, MINIMAL, drawable, metric_text, setting_text};
use super::runs::{purpose_words, status_words};
use super::sentences::SEARCH_GUIDES;
use crate::escape::visible;
use crate::html::charts::{Line, LineChart, Mark, Scale, Shape};
use crate::layout::sentences::hours_text;
use crate::numbers::format_rate;
use crate::page::{Block, Figure};

/// The most runs that are drawn, from the first.
const DRAWN_MAX: usize = 2000;
const PRESETS_DRAWN: usize = 6;
/// Ratio of figures above which the axis is logarithmic.
const SPREAD_LOGARITHMIC: f64 = 30.0;
/// How far the band is drawn beyond the measured figures, as a multiple of their spread.
const BAND_REACH: f64 = 0.3;
const HOUR_MS: f64 = 3_600_000.0;

const SEARCHED: usize = 0;
const FOUGHT: usize = 1;
const FOUND: usize = 6;
const PRESET: usize = 3;

/// Returns the figure; `None` if no run gave one.
pub(super) fn figure(record: &TuneRecord) -> Option<Block> {
    let trials = &record.trials[..record.trials.len().min(DRAWN_MAX)];
    let values = || trials.iter().filter_map(|trial| drawable(trial.value?));
    let low = values().reduce(f64::min)?;
    let high = values().reduce(f64::max)?;
    let logarithmic = low > 0.0 && high / low > SPREAD_LOGARITHMIC;
    // A logarithmic axis has no place for zero and below.
    let floor = if logarithmic { low } else { low.min(0.0) };
    let mut lines: Vec<Line> = best_so_far(trials, (low, high), floor)
        .into_iter()
        .collect();
    lines.extend(drift(record, trials, floor));
    lines.extend(presets(trials));
    lines.extend(runs(record, trials, low));
    let numbers = (1..=trials.len()).map(|number| number as f64).collect();
    let is_duel = |trial: &TuneTrial| trial.purpose == TrialPurpose::Duel;
    let duel = trials.iter().position(is_duel).map(|index| Mark {
        x: index as f64 + 0.5,
        label: "duel".into(),
    });
    let reading = format!(
        "Each mark is a run; runs without a figure stand at the lowest. The band is the 95 % interval of the \
         best setting so far under the model. {SEARCH_GUIDES}"
    );
    let chart = LineChart {
        marks: duel.into_iter().collect(),
        x_name: Some("run".into()),
        y_name: Some(visible(&metric_text(record))),
        ..LineChart::new(
            "tune-convergence",
            (Scale::Value, Scale::value(logarithmic)),
            numbers,
            lines,
        )
    };
    Some(Figure::new("Run by run", reading).lines(chart))
}

/// Draws the best so far: what was known after a run holds until the next.
fn best_so_far(trials: &[TuneTrial], (low, high): (f64, f64), floor: f64) -> Option<Line> {
    // A model that knows little yet must not squeeze all measured points together.
    let reach = BAND_REACH * (high - low);
    let within = |value: f64| value.min(high + reach).max(low - reach).max(floor);
    let mut last = None;
    let known = trials.iter().map(|trial| {
        last = trial.best_so_far.or(last);
        last
    });
    let known: Vec<_> = known.collect();
    last?;
    let values = known.iter().map(|best| Some(within((*best)?.value)));
    let intervals = known
        .iter()
        .map(|best| best.map(|b| (within(b.low), within(b.high))));
    Some(Line {
        intervals: intervals.collect(),
        ..Line::numbered(SEARCHED, "expected of the best so far", values.collect())
    })
}

/// Draws where the settings found at the start would be according to their mean and drift.
fn drift(record: &TuneRecord, trials: &[TuneTrial], floor: f64) -> Option<Line> {
    let noise = record.noise?;
    let hour = |trial: &TuneTrial| trial.started_unix_ms as f64 / HOUR_MS;
    let found: Vec<(f64, f64)> = (trials.iter().filter(|trial| is_baseline(trial)))
        .filter_map(|trial| Some((hour(trial), drawable(trial.value?)?)))
        .collect();
    let count = found.len().max(1) as f64;
    let mean = found.iter().map(|(_, value)| value).sum::<f64>() / count;
    let middle = found.iter().map(|(hour, _)| hour).sum::<f64>() / count;
    let per_hour = noise.drift_per_hour.unwrap_or(0.0);
    let at = |trial: &TuneTrial| {
        let value = mean * (1.0 + per_hour * (hour(trial) - middle));
        drawable(value).filter(|value| *value >= floor)
    };
    let values = trials.iter().map(at).collect();
    let line = Line::numbered(FOUND, "settings found at the start, with drift", values);
    Some(line.dashed(true))
}

/// Returns a line at the mean of each preset.
fn presets(trials: &[TuneTrial]) -> impl Iterator<Item = Line> {
    let means = preset_means(trials).into_iter().take(PRESETS_DRAWN);
    means.map(|(preset, mean)| {
        let values = vec![drawable(mean); trials.len()];
        let line = Line::numbered(PRESET, &format!("mean of {preset}"), values);
        line.dashed(true)
    })
}

/// Returns marks, a line of them for each look.
fn runs(record: &TuneRecord, trials: &[TuneTrial], lowest: f64) -> Vec<Line> {
    let first_ms = trials.iter().map(|trial| trial.started_unix_ms).min();
    let looks: BTreeSet<(Shape, usize)> = trials.iter().map(look).collect();
    let line = |(shape, colour)| {
        let marks = trials.iter().map(|trial| {
            let value = trial.value.and_then(drawable).unwrap_or(lowest);
            let is_marked = look(trial) == (shape, colour);
            is_marked.then(|| (value, note(record, trial, first_ms.unwrap_or(0))))
        });
        Line::marked((shape, colour), meaning(shape, colour), marks)
    };
    looks.into_iter().map(line).collect()
}

fn note(record: &TuneRecord, trial: &TuneTrial, first_ms: u64) -> String {
    let figure = trial.value.map_or_else(|| "no figure".into(), format_rate);
    let reason = match trial.reason.as_str() {
        "" => String::new(),
        reason => format!(": {reason}"),
    };
    let since_h = trial.started_unix_ms.saturating_sub(first_ms) as f64 / HOUR_MS;
    format!(
        "run {} ({}), after {}, {}{reason}: {figure}; {}",
        trial.number,
        purpose_words(trial),
        hours_text(since_h),
        status_words(trial.status),
        setting_text(record, &trial.values)
    )
}

/// Returns the shape for a run that gave no ordinary figure; `None` if it gave one.
fn shape_of(status: TrialStatus) -> Option<Shape> {
    match status {
        TrialStatus::Measured => None,
        TrialStatus::EndedEarly => Some(Shape::Triangle),
        TrialStatus::ConstraintMissed => Some(Shape::Diamond),
        TrialStatus::Failed => Some(Shape::Cross),
    }
}

fn is_baseline(trial: &TuneTrial) -> bool {
    trial.arm == BASELINE
        || matches!(
            trial.purpose,
            TrialPurpose::Baseline | TrialPurpose::Sentinel
        )
}

/// Returns the shape, by how the run ended, and the colour, by its purpose.
fn look(trial: &TuneTrial) -> (Shape, usize) {
    let (shape, colour) = match trial.purpose {
        _ if is_baseline(trial) => (Shape::Square, FOUND),
        TrialPurpose::Duel => (Shape::Plus, FOUGHT),
        _ => (Shape::Dot, SEARCHED),
    };
    let status = match trial.value {
        None => TrialStatus::Failed,
        Some(_) => trial.status,
    };
    (shape_of(status).unwrap_or(shape), colour)
}

fn meaning(shape: Shape, colour: usize) -> &'static str {
    match (shape, colour) {
        (Shape::Dot, _) => "tried in the search",
        (Shape::Square, _) => "as found at the start",
        (Shape::Plus, _) => "candidate in the duel",
        (Shape::Triangle, FOUND) => "ended early, as found at the start",
        (Shape::Triangle, FOUGHT) => "ended early in the duel",
        (Shape::Triangle, _) => "ended early",
        (Shape::Diamond, FOUND) => "constraint missed, as found at the start",
        (Shape::Diamond, FOUGHT) => "constraint missed in the duel",
        (Shape::Diamond, _) => "constraint missed",
        (Shape::Cross, FOUND) => "failed, as found at the start",
        (Shape::Cross, FOUGHT) => "failed in the duel",
        (Shape::Cross, _) => "failed",
    }
}

/// Returns presets and the means of their figures, in the order of their first runs.
fn preset_means(trials: &[TuneTrial]) -> Vec<(&str, f64)> {
    let is_preset = |trial: &&TuneTrial| {
        let fights =
            trial.purpose == TrialPurpose::Duel && ![BEST, MINIMAL].contains(&trial.arm.as_str());
        !trial.arm.is_empty() && !is_baseline(trial) && (trial.origin == "preset" || fights)
    };
    let mut sums: BTreeMap<&str, (usize, f64, f64)> = BTreeMap::new();
    for (index, trial) in trials
        .iter()
        .enumerate()
        .filter(|(_, trial)| is_preset(trial))
    {
        if let Some(value) = trial
            .value
            .filter(|_| trial.status == TrialStatus::Measured)
        {
            let sum = sums.entry(&trial.arm).or_insert((index, 0.0, 0.0));
            sum.1 += value;
            sum.2 += 1.0;
        }
    }
    let mut means: Vec<_> = sums.into_iter().collect();
    means.sort_by_key(|(_, (first, _, _))| *first);
    means
        .into_iter()
        .map(|(arm, (_, sum, count))| (arm, sum / count))
        .collect()
}
