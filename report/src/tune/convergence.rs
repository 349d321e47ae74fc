//! The session run by run: what was measured, what was expected of the best so far, how the machine
//! drifted meanwhile.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};
use seekscope_run::TuneRecord;
use seekscope_run::tune::{Expected, TrialPurpose, TrialStatus, TuneTrial};

use super::marks::{Shape, key, line_key, mark};
use super::plot::{Area, Axis, Figure, line, name, points, px, spaced, words, x_axis, y_axis};
use super::reading::{BASELINE, BEST, MINIMAL, metric_text, setting_text};
use super::runs::{purpose_words, status_words};
use super::sentences::SEARCH_GUIDES;
use crate::layout::sentences::hours_text;
use crate::numbers::format_rate;

/// Of a longer session the first so many runs are drawn.
const DRAWN_MAX: usize = 2000;
const PRESETS_DRAWN: usize = 6;
const HEIGHT: f64 = 380.0;
const AREA: Area = Area {
    left: 64.0,
    right: 590.0,
    top: 48.0,
    bottom: 318.0,
};
/// A wider spread of figures than this factor is drawn on a logarithmic axis.
const SPREAD_LOGARITHMIC: f64 = 30.0;

const HOUR_MS: f64 = 3_600_000.0;

/// The band is drawn so far beyond the measured figures, in spreads of these.
const BAND_REACH: f64 = 0.3;

const SEARCHED: usize = 0;
const FOUGHT: usize = 1;
const FOUND: usize = 6;

/// The figure; `None` where no run gave one.
pub(super) fn figure(record: &TuneRecord) -> Option<Markup> {
    let plot = Convergence::of(record)?;
    let caption = format!(
        "Each mark is a run; above the figure the time since the first. Crosses at the bottom edge: runs \
         without a figure. The band is the 95 % interval of the best setting so far under the model. \
         {SEARCH_GUIDES}"
    );
    let figure = Figure {
        id: "tune-convergence",
        heading: "Run by run",
        alternative: &format!(
            "{} over {} runs, with the expected best so far; the table of runs has every figure",
            metric_text(record),
            plot.trials.len()
        ),
        height: HEIGHT,
        legend: plot.legend(),
        caption: &caption,
    };
    Some(figure.around(&plot.drawing()))
}

struct Convergence<'a> {
    record: &'a TuneRecord,
    trials: &'a [TuneTrial],
    x: Axis,
    y: Axis,
}

impl<'a> Convergence<'a> {
    fn of(record: &'a TuneRecord) -> Option<Self> {
        let trials = &record.trials[..record.trials.len().min(DRAWN_MAX)];
        let values = || trials.iter().filter_map(|trial| trial.value);
        let (low, high) = values().fold(
            (f64::INFINITY, f64::NEG_INFINITY),
            |(low, high): (f64, f64), value| (low.min(value), high.max(value)),
        );
        let logarithmic = low > 0.0 && high / low > SPREAD_LOGARITHMIC;
        // A model that knows little yet must not press all measured points together.
        let reach = BAND_REACH * (high - low);
        let bests = trials.iter().filter_map(|trial| trial.best_so_far);
        let band = bests
            .flat_map(|best| [best.value, best.low, best.high])
            .map(|end| end.min(high + reach).max(low - reach).max(low.min(0.0)))
            .filter(|_| low <= high && reach.is_finite());
        Some(Self {
            record,
            trials,
            x: Axis::exactly(0.0, trials.len() as f64 + 1.0, AREA.left, AREA.right),
            y: Axis::around(values().chain(band), logarithmic, AREA.bottom, AREA.top)?,
        })
    }

    fn drawing(&self) -> Markup {
        html! {
            (y_axis(&self.y, &AREA, &metric_text(self.record)))
            (x_axis(&self.x, &AREA, "run"))
            (self.elapsed())
            (self.duel_begins())
            (self.best_so_far())
            (self.drift())
            (self.presets())
            @for (index, trial) in self.trials.iter().enumerate() { (self.run(index, trial)) }
        }
    }

    fn place(&self, index: usize, value: f64) -> (f64, f64) {
        (self.x.at(index as f64 + 1.0), self.y.at(value))
    }

    fn run(&self, index: usize, trial: &TuneTrial) -> Markup {
        let (shape, colour) = look(trial);
        let at = match trial.value {
            Some(value) => self.place(index, value),
            None => (self.x.at(index as f64 + 1.0), AREA.bottom),
        };
        let figure = trial.value.map_or_else(|| "no figure".into(), format_rate);
        let reason = if trial.reason.is_empty() {
            String::new()
        } else {
            format!(": {}", trial.reason)
        };
        let tip = format!(
            "run {} ({}), {}{reason}: {figure}; {}",
            trial.number,
            purpose_words(trial),
            status_words(trial.status),
            setting_text(self.record, &trial.values)
        );
        mark(shape, at, colour, &tip)
    }

    /// The second axis, above: time since the first run.
    fn elapsed(&self) -> Markup {
        let first_ms = self
            .trials
            .iter()
            .map(|trial| trial.started_unix_ms)
            .min()
            .unwrap_or(0);
        let labels = spaced(&self.x).into_iter().filter_map(|tick| {
            let index = crate::numbers::whole(tick).checked_sub(1)?;
            let trial = self.trials.get(usize::try_from(index).ok()?)?;
            let since_h = (trial.started_unix_ms - first_ms) as f64 / HOUR_MS;
            Some((self.x.at(tick), hours_text(since_h)))
        });
        html! {
            (words("axis-name", (AREA.right + 8.0, AREA.top - 10.0), "start", "since the first run"))
            @for (x, text) in labels { (words("tick", (x, AREA.top - 10.0), "middle", &text)) }
        }
    }

    fn duel_begins(&self) -> Markup {
        let first = self
            .trials
            .iter()
            .position(|trial| trial.purpose == TrialPurpose::Duel);
        html! {
            @if let Some(index) = first {
                @let x = self.x.at(index as f64 + 0.5);
                (line("axis dotted", (x, AREA.top), (x, AREA.bottom)))
                (words("tick", (x + 4.0, AREA.top + 10.0), "start", "duel"))
            }
        }
    }

    fn best_so_far(&self) -> Markup {
        let best: Vec<_> = (self.trials.iter().enumerate())
            .filter_map(|(index, trial)| Some((index, trial.best_so_far?)))
            .collect();
        if best.is_empty() {
            return html! {};
        }
        // What was known after a run holds until the next.
        let steps = |of: fn(&Expected) -> f64| {
            let mut places: Vec<(f64, f64)> = Vec::new();
            for (index, best) in &best {
                let (x, y) = self.place(*index, of(best));
                places.extend(places.last().map(|(_, before)| (x, *before)));
                places.push((x, y));
            }
            places
        };
        let lower = steps(|best| best.low).into_iter().rev();
        html! {
            polygon.band.line-0 points=(points(steps(|best| best.high).into_iter().chain(lower))) {}
            polyline.curve.line-0 points=(points(steps(|best| best.value))) {}
        }
    }

    /// Where the settings found at the start would be by their mean and drift.
    fn drift(&self) -> Markup {
        let Some(noise) = self.record.noise else {
            return html! {};
        };
        let found: Vec<(usize, f64, f64)> = (self.trials.iter().enumerate())
            .filter(|(_, trial)| is_baseline(trial))
            .filter_map(|(index, trial)| {
                Some((index, trial.started_unix_ms as f64 / HOUR_MS, trial.value?))
            })
            .collect();
        let count = found.len().max(1) as f64;
        let mean = found.iter().map(|(_, _, value)| value).sum::<f64>() / count;
        let middle = found.iter().map(|(_, hour, _)| hour).sum::<f64>() / count;
        let places = found.iter().map(|(index, hour, _)| {
            self.place(
                *index,
                mean * (1.0 + noise.drift_per_hour.unwrap_or(0.0) * (hour - middle)),
            )
        });
        html! { polyline.curve.dashed.line-6 points=(points(places)) {} }
    }

    /// A line at the mean of each preset, named at its right end; names give way to one another.
    fn presets(&self) -> Markup {
        const LABEL_PX: f64 = 13.0;
        let mut means: Vec<(&str, f64)> = preset_means(self.trials);
        means.truncate(PRESETS_DRAWN);
        means.sort_by(|a, b| b.1.total_cmp(&a.1));
        let mut last = f64::NEG_INFINITY;
        let placed = means.into_iter().map(|(preset, mean)| {
            let y = self.y.at(mean);
            last = (y + 4.0).max(last + LABEL_PX);
            (preset, y, last)
        });
        html! {
            @for (preset, y, label_y) in placed {
                (line("curve thin dotted line-3", (AREA.left, y), (AREA.right, y)))
                text.preset x=(px(AREA.right + 8.0)) y=(px(label_y)) {
                    (crate::escape::shortened(preset, 17)) title { (name(preset)) }
                }
            }
        }
    }

    fn legend(&self) -> Vec<Markup> {
        let used: BTreeSet<(Shape, usize)> = self.trials.iter().map(look).collect();
        let mut entries: Vec<Markup> = used
            .into_iter()
            .map(|(shape, colour)| key(shape, colour, meaning(shape, colour)))
            .collect();
        if self.trials.iter().any(|trial| trial.best_so_far.is_some()) {
            entries.push(line_key("curve line-0", "expected of the best so far"));
        }
        if self.record.noise.is_some() {
            entries.push(line_key(
                "curve dashed line-6",
                "settings found at the start, with drift",
            ));
        }
        if !preset_means(self.trials).is_empty() {
            entries.push(line_key("curve thin dotted line-3", "a preset's mean"));
        }
        entries
    }
}

fn is_baseline(trial: &TuneTrial) -> bool {
    trial.arm == BASELINE
        || matches!(
            trial.purpose,
            TrialPurpose::Baseline | TrialPurpose::Sentinel
        )
}

/// Shape by how it ended, colour by what it was for.
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
    (Shape::of_status(status).unwrap_or(shape), colour)
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

/// Presets and the means of their figures, in the order of their first runs.
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
