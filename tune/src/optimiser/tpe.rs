//! Implements the tree-structured Parzen estimator: draws each knob as in the best settings and unlike the
//! others (Bergstra et al., "Algorithms for hyper-parameter optimization", 2011; weights and widths as in
//! Watanabe, "Tree-structured Parzen estimator: understanding its algorithm components", 2023).
//!
//! It ignores interactions and distances between settings, and so keeps trying what a smooth model has given
//! up.

use seekscope_stats::{SplitMix64, normal_below, normal_density};

use super::setting::Setting;
use crate::space::Space;

/// Share of the settings that counts as good, and their largest number.
const GOOD_SHARE: f64 = 0.1;
const GOOD_MAX: f64 = 25.0;
/// Number of draws per knob, of which the best is used.
const DRAWS: usize = 24;
/// Number of the newest settings with full weight; older ones have less.
const FULL_WEIGHT: usize = 25;

/// Returns the next point of the cube.
pub(crate) fn propose(space: &Space, settings: &[Setting], rng: &mut SplitMix64) -> Vec<f64> {
    let mut order: Vec<&Setting> = settings.iter().collect();
    // Failed settings come last.
    order.sort_by(|a, b| {
        let score = |s: &Setting| {
            if s.succeeds() {
                s.mean()
            } else {
                f64::NEG_INFINITY
            }
        };
        score(b).total_cmp(&score(a))
    });
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 1 and 25"
    )]
    let good = (GOOD_SHARE * order.len() as f64)
        .ceil()
        .clamp(1.0, GOOD_MAX) as usize;
    let (good, others) = order.split_at(good.min(order.len()));
    let coordinates = |settings: &[&Setting]| -> Vec<Vec<f64>> {
        let mut by_age: Vec<&Setting> = settings.to_vec();
        by_age.sort_by_key(|s| s.first);
        by_age.iter().map(|s| space.point_of(&s.levels)).collect()
    };
    let (good, others) = (coordinates(good), coordinates(others));
    (space.knobs().iter().enumerate())
        .map(|(i, knob)| {
            let column = |points: &[Vec<f64>]| points.iter().map(|p| p[i]).collect::<Vec<f64>>();
            let estimator = |points: &[Vec<f64>]| match knob.choices() {
                None => Estimator::of_numbers(&column(points)),
                Some(choices) => Estimator::of_choices(&column(points), choices),
            };
            let (like, unlike) = (estimator(&good), estimator(&others));
            let draws = (0..DRAWS).map(|_| like.draw(rng));
            let rated = draws.map(|u| (like.density(u).ln() - unlike.density(u).ln(), u));
            rated
                .max_by(|a, b| a.0.total_cmp(&b.0))
                .map_or(0.5, |best| best.1)
        })
        .collect()
}

/// A density on the unit interval.
enum Estimator {
    /// Truncated normals: weight, centre, width, and the share of each inside the interval.
    Numbers(Vec<(f64, f64, f64, f64)>),
    /// Probability of each choice, which has an equal part of the interval.
    Choices(Vec<f64>),
}

/// Returns weights of settings in the order of their age, oldest first, and of the prior, last; sum 1.
fn weights(n: usize) -> Vec<f64> {
    let old = n.saturating_sub(FULL_WEIGHT);
    let mut weights: Vec<f64> = (0..n)
        .map(|i| {
            if i >= old {
                1.0
            } else {
                let least = 1.0 / n as f64;
                least + (1.0 - least) * i as f64 / (old as f64 - 1.0).max(1.0)
            }
        })
        .collect();
    weights.push(1.0);
    let sum: f64 = weights.iter().sum();
    weights.iter_mut().for_each(|w| *w /= sum);
    weights
}

impl Estimator {
    fn of_numbers(centres: &[f64]) -> Self {
        let weights = weights(centres.len());
        let mut sorted: Vec<(f64, usize)> = centres.iter().copied().zip(0..).collect();
        sorted.push((0.5, centres.len()));
        sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
        let narrowest = 1.0 / (1.0 + sorted.len() as f64).min(100.0);
        let parts = (0..sorted.len()).map(|at| {
            let (centre, index) = sorted[at];
            let below = at.checked_sub(1).map(|b| centre - sorted[b].0);
            let above = sorted.get(at + 1).map(|a| a.0 - centre);
            let gap = match (below, above) {
                (Some(below), Some(above)) => below.max(above),
                (gap, None) | (None, gap) => gap.unwrap_or(1.0),
            };
            // The prior covers everything.
            let width = if index == centres.len() {
                1.0
            } else {
                gap.clamp(narrowest, 1.0)
            };
            let inside = normal_below((1.0 - centre) / width) - normal_below(-centre / width);
            (weights[index], centre, width, inside.max(1e-12))
        });
        Self::Numbers(parts.collect())
    }

    fn of_choices(coordinates: &[f64], choices: usize) -> Self {
        let weights = weights(coordinates.len());
        let smoothing = 1.0 / (coordinates.len() as f64 + 1.0);
        let row_sum = 1.0 + smoothing * choices as f64;
        let mut probabilities = vec![weights[coordinates.len()] / choices as f64; choices];
        for (&at, weight) in coordinates.iter().zip(&weights) {
            for (choice, probability) in probabilities.iter_mut().enumerate() {
                let own = f64::from(u8::from(choice == chosen(at, choices)));
                *probability += weight * (smoothing + own) / row_sum;
            }
        }
        Self::Choices(probabilities)
    }

    fn draw(&self, rng: &mut SplitMix64) -> f64 {
        let mut left = rng.unit_f64();
        match self {
            Self::Numbers(parts) => {
                let part = parts.iter().find(|part| {
                    left -= part.0;
                    left < 0.0
                });
                let Some(&(_, centre, width, _)) = part else {
                    return rng.unit_f64();
                };
                // The centre is inside, so at least a third of the draws are; 40 in a row never miss.
                let mut draws = (0..40).map(|_| centre + width * rng.normal());
                draws.find(|u| (0.0..=1.0).contains(u)).unwrap_or(centre)
            }
            Self::Choices(probabilities) => {
                let choice = probabilities.iter().position(|p| {
                    left -= p;
                    left < 0.0
                });
                let choice = choice.unwrap_or(probabilities.len() - 1);
                (choice as f64 + 0.5) / probabilities.len() as f64
            }
        }
    }

    fn density(&self, u: f64) -> f64 {
        match self {
            Self::Numbers(parts) => parts
                .iter()
                .map(|(weight, centre, width, inside)| {
                    weight * normal_density((u - centre) / width) / (width * inside)
                })
                .sum::<f64>()
                .max(f64::MIN_POSITIVE),
            Self::Choices(probabilities) => probabilities[chosen(u, probabilities.len())],
        }
    }
}

fn chosen(coordinate: f64, choices: usize) -> usize {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a coordinate is between 0 and 1"
    )]
    let choice = (coordinate * choices as f64) as usize;
    choice.min(choices - 1)
}
