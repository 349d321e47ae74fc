//! Decides the order of proposals.

use seekscope_stats::SplitMix64;
use serde::{Deserialize, Serialize};

use super::acquisition::{Part, Search, log_expected_improvement};
use super::setting::Setting;
use super::{Believed, Optimiser, Strategy, tpe};
use crate::space::Configuration;
use crate::space::Space;

/// Why a configuration is proposed.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Origin {
    Default,
    Preset,
    /// One of the first, evenly spread configurations.
    Design,
    /// The model has the highest expectation of it.
    Model,
    /// Its knobs are set as the best settings have them.
    Parzen,
    /// The most promising one in a neglected part of the space.
    Screening,
    /// It did so well that it may have been by luck.
    Retest,
}

/// What to run next.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Proposal {
    pub configuration: Configuration,
    pub origin: Origin,
}

/// Attempts to draw a configuration that was not tried before.
const ATTEMPTS: usize = 20;
/// Number of points around which to search closely.
const TOP: usize = 5;
/// The gain over the best result, in standard deviations of the noise, from which a run is repeated. Of some hundred
/// runs, several are one deviation too good; repeating those cost two points of regret.
const SURPRISE: f64 = 1.5;
/// Parts into which a numeric knob's range is divided for screening.
const PARTS: usize = 3;

/// Returns the next proposal of a session: `trial` is the number of trials so far.
pub(super) fn next(
    optimiser: &Optimiser,
    trial: usize,
    known: &[Setting],
    believed: Option<&Believed>,
) -> (Vec<f64>, Origin) {
    let (space, strategy) = (&optimiser.space, &optimiser.strategy);
    let mut rng =
        SplitMix64::new(optimiser.seed ^ (trial as u64).wrapping_mul(0x2545_f491_4f6c_dd1d));
    // The first numbers from neighbouring seeds are independent, the seeds themselves are not.
    let mut rng = SplitMix64::new(rng.next_u64());
    let tried: Vec<Vec<f64>> = known.iter().map(|s| s.levels.clone()).collect();
    let turn = |every: usize, at: usize| every > 0 && trial % every == at % every;
    if turn(strategy.parzen_every, 2) {
        for _ in 0..ATTEMPTS {
            let levels = space.levels_at(&tpe::propose(space, known, &mut rng));
            if space.within_limits(&levels) && !tried.contains(&levels) {
                return (levels, Origin::Parzen);
            }
        }
    }
    let Some((believed, best)) = believed.and_then(|b| Some((b, b.incumbent()?.1))) else {
        return (anywhere(space, &tried, &mut rng), Origin::Design);
    };
    if turn(strategy.retest_every, 0)
        && let Some(winner) = surprising(believed, best, strategy)
    {
        return (winner, Origin::Retest);
    }
    let mut top = believed.ranking();
    let mut search = Search {
        space,
        around: Vec::new(),
        part: None,
        tried: &tried,
    };
    let (mut origin, mut to_beat) = (Origin::Model, best);
    if turn(strategy.screening_every, 1)
        && let Some(part) = neglected(space, known, top[0].0, &mut rng)
    {
        // The best inside the part counts: it need not beat the best overall at once.
        top.retain(|(setting, _)| part.contains(&space.point_of(&setting.levels)));
        to_beat = top.first().map_or(believed.lowest(), |(_, mean)| *mean);
        search.part = Some(part);
        origin = Origin::Screening;
    }
    let centres = top.iter().take(TOP);
    search.around = centres
        .map(|(setting, _)| space.point_of(&setting.levels))
        .collect();
    let model = &believed.model;
    let promising = search.maximise(&mut rng, |features| {
        let works = model.feasible(features).max(1e-30).ln();
        log_expected_improvement(model.at(features), to_beat) + 2.0 * works
    });
    match promising {
        Some(levels) => (levels, origin),
        None => (anywhere(space, &tried, &mut rng), Origin::Design),
    }
}

/// Returns levels anywhere, new ones if there are any; the default if limits leave nothing else.
fn anywhere(space: &Space, tried: &[Vec<f64>], rng: &mut SplitMix64) -> Vec<f64> {
    let mut allowed = None;
    for _ in 0..ATTEMPTS {
        let point: Vec<f64> = space.knobs().iter().map(|_| rng.unit_f64()).collect();
        let levels = space.levels_at(&point);
        if space.within_limits(&levels) {
            if !tried.contains(&levels) {
                return levels;
            }
            allowed = Some(levels);
        }
    }
    allowed.unwrap_or_else(|| space.defaults().to_vec())
}

/// Returns the setting that measured best, if the model does not believe it and it has had few runs.
fn surprising(believed: &Believed, best: f64, strategy: &Strategy) -> Option<Vec<f64>> {
    let working = believed.known.iter().filter(|s| s.succeeds());
    let winner = working.max_by(|a, b| a.mean().total_cmp(&b.mean()))?;
    let noise = believed.model.noise() * winner.noise_scale().sqrt();
    let surprise = strategy.retest_gain.max(SURPRISE * noise);
    let retest = winner.runs() < strategy.retest_runs && winner.mean() > best + surprise;
    retest.then(|| winner.levels.clone())
}

/// Returns a part of the space without the best setting, likely one with few settings: a choice of a
/// category, or a third of a range.
fn neglected(
    space: &Space,
    known: &[Setting],
    best: &Setting,
    rng: &mut SplitMix64,
) -> Option<Part> {
    let best = space.point_of(&best.levels);
    let points: Vec<Vec<f64>> = known.iter().map(|s| space.point_of(&s.levels)).collect();
    let mut parts = Vec::new();
    for (coordinate, knob) in space.knobs().iter().enumerate() {
        let count = knob.choices().unwrap_or(PARTS);
        for nth in 0..count {
            let part = Part {
                coordinate,
                low: nth as f64 / count as f64,
                high: (nth + 1) as f64 / count as f64,
            };
            if !part.contains(&best) {
                let inside = points.iter().filter(|point| part.contains(point)).count();
                parts.push((part, 1.0 / (1.0 + inside as f64)));
            }
        }
    }
    let mut left = rng.unit_f64() * parts.iter().map(|(_, weight)| weight).sum::<f64>();
    let chosen = parts.iter().position(|(_, weight)| {
        left -= weight;
        left < 0.0
    });
    parts.into_iter().nth(chosen?).map(|(part, _)| part)
}
