//! Computes how much each knob matters: shares of the response's variance over the whole space.
//!
//! Functions are drawn from the posterior, and each is analysed like an experiment: the knob at some values,
//! crossed with random settings of all others (a two-way analysis of variance, whose estimates of the
//! variance between values have no bias). The spread over the functions drawn is the interval. Length scales
//! of the kernel are never shown: they say how fast a knob acts, not how much.

use seekscope_run::tune::{Importance, KnobImportance, PairImportance, Share};
use seekscope_stats::{SplitMix64, quantile_sorted};

use super::Analysis;
use crate::gp::Cholesky;

/// Values of the knob, settings of the others, functions drawn from the posterior.
const VALUES: usize = 8;
const BACKGROUNDS: usize = 24;
const FUNCTIONS: usize = 40;
/// The same for two knobs at once.
const PAIR_VALUES: usize = 5;
const PAIR_BACKGROUNDS: usize = 8;
/// Number of the most important knobs whose pairs are examined.
const PAIRED: usize = 4;

/// Returns the share from one estimate per function; estimates without bias can be below zero.
fn share_of(mut estimates: Vec<f64>) -> Share {
    estimates.sort_by(f64::total_cmp);
    let at = |q| {
        quantile_sorted(&estimates, q)
            .unwrap_or(0.0)
            .clamp(0.0, 1.0)
    };
    Share {
        share: at(0.5),
        low: at(0.025),
        high: at(0.975),
    }
}

impl Analysis {
    /// Returns the importance of every knob, and of pairs of the most important ones; the same for the same
    /// seed. `None` if nothing is known of any: the differences between settings may all be noise. The shares
    /// would be shares of that noise, and a single knob would always have all of it.
    pub fn importance(&self, seed: u64) -> Option<Importance> {
        if !self.believed.model.foretells() {
            return None;
        }
        let mut rng = SplitMix64::new(seed);
        let mut knobs: Vec<KnobImportance> = (0..self.space.knobs().len())
            .map(|knob| self.of_knob(knob, &mut rng))
            .collect();
        knobs.sort_by(|a, b| b.total.share.total_cmp(&a.total.share));
        let first: Vec<&str> = knobs.iter().take(PAIRED).map(|k| k.knob.as_str()).collect();
        let mut pairs = Vec::new();
        for (i, a) in first.iter().enumerate() {
            for b in &first[i + 1..] {
                pairs.extend(self.of_pair(a, b, &mut rng));
            }
        }
        pairs.sort_by(|a, b| b.together.share.total_cmp(&a.together.share));
        Some(Importance { knobs, pairs })
    }

    fn of_knob(&self, knob: usize, rng: &mut SplitMix64) -> KnobImportance {
        let values = self.values(knob, VALUES);
        let points = self.crossed(&[(knob, &values)], BACKGROUNDS, rng);
        let functions = self.draw(&points, rng);
        let (mut alone, mut total) = (Vec::new(), Vec::new());
        for function in &functions {
            let (between, interaction, all) = two_way(function, values.len());
            alone.push(between / all);
            total.push((between + interaction) / all);
        }
        let (mut alone, mut total) = (share_of(alone), share_of(total));
        let is_needed = self.needs(knob);
        if !is_needed {
            // Each function that is drawn varies with every knob, as what is not known of it is drawn too.
            (alone.low, total.low) = (0.0, 0.0);
        }
        KnobImportance {
            knob: self.space.knobs()[knob].name.clone(),
            distinguishable: is_needed,
            alone,
            total,
        }
    }

    /// Returns whether the knob is told from one that does nothing.
    pub(super) fn needs(&self, knob: usize) -> bool {
        let features = self.space.features();
        let model = &self.believed.model;
        model.needs(|feature| features[feature].1 == knob)
    }

    fn of_pair(&self, a: &str, b: &str, rng: &mut SplitMix64) -> Option<PairImportance> {
        let (first, second) = (self.space.index(a)?, self.space.index(b)?);
        let values = [
            self.values(first, PAIR_VALUES),
            self.values(second, PAIR_VALUES),
        ];
        let crossing = [(first, &values[0][..]), (second, &values[1][..])];
        let points = self.crossed(&crossing, PAIR_BACKGROUNDS, rng);
        let functions = self.draw(&points, rng);
        let shares = functions
            .iter()
            .map(|f| together(f, values[0].len(), values[1].len()));
        Some(PairImportance {
            knobs: [a.into(), b.into()],
            together: share_of(shares.collect()),
        })
    }

    /// Returns coordinates evenly spread over a knob's range, or all its choices.
    fn values(&self, knob: usize, count: usize) -> Vec<f64> {
        let count = self.space.knobs()[knob]
            .choices()
            .unwrap_or(count)
            .min(VALUES);
        (0..count)
            .map(|nth| (nth as f64 + 0.5) / count as f64)
            .collect()
    }

    /// Returns the features of random settings crossed with all values of the knobs; those of one setting
    /// together, the last knob's values innermost.
    fn crossed(
        &self,
        knobs: &[(usize, &[f64])],
        backgrounds: usize,
        rng: &mut SplitMix64,
    ) -> Vec<Vec<f64>> {
        let mut points = Vec::new();
        for _ in 0..backgrounds {
            let point: Vec<f64> = self.space.knobs().iter().map(|_| rng.unit_f64()).collect();
            let mut row = vec![point];
            for &(knob, values) in knobs {
                let moved = |point: &Vec<f64>, value: f64| {
                    let mut point = point.clone();
                    point[knob] = value;
                    point
                };
                row = (row.iter())
                    .flat_map(|point| values.iter().map(move |&value| moved(point, value)))
                    .collect();
            }
            points.extend(row);
        }
        points
            .iter()
            .map(|point| self.features(&self.space.levels_at(point)))
            .collect()
    }

    /// Returns values at the points of functions drawn from the posterior; none if their covariance cannot be
    /// decomposed.
    fn draw(&self, points: &[Vec<f64>], rng: &mut SplitMix64) -> Vec<Vec<f64>> {
        let (process, _) = self.believed.model.process();
        let joint: Vec<(f64, Vec<f64>)> = points.iter().map(|p| process.joint(p)).collect();
        let mut covariance = Vec::with_capacity(points.len() * (points.len() + 1) / 2);
        for i in 0..points.len() {
            for j in 0..=i {
                let explained = crate::gp::dot(&joint[i].1, &joint[j].1);
                let jitter = if i == j { 1e-6 } else { 0.0 };
                covariance
                    .push(process.prior_covariance(&points[i], &points[j]) - explained + jitter);
            }
        }
        let Some(factor) = Cholesky::of(covariance, points.len()) else {
            return Vec::new();
        };
        (0..FUNCTIONS)
            .map(|_| {
                let unit: Vec<f64> = points.iter().map(|_| rng.normal()).collect();
                let drawn = factor.colour(&unit);
                joint
                    .iter()
                    .zip(drawn)
                    .map(|((mean, _), drawn)| mean + drawn)
                    .collect()
            })
            .collect()
    }
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let n = values.len() as f64;
    values.sum::<f64>() / n
}

/// Returns the variance between the columns, that of the interaction, and the total, of rows of `columns`
/// values each.
fn two_way(function: &[f64], columns: usize) -> (f64, f64, f64) {
    let rows: Vec<&[f64]> = function.chunks_exact(columns).collect();
    let (r, c) = (rows.len() as f64, columns as f64);
    let grand = mean(function.iter().copied());
    let column_means: Vec<f64> = (0..columns)
        .map(|j| mean(rows.iter().map(|row| row[j])))
        .collect();
    let row_means: Vec<f64> = rows.iter().map(|row| mean(row.iter().copied())).collect();
    let between_columns = column_means
        .iter()
        .map(|m| (m - grand).powi(2))
        .sum::<f64>()
        / (c - 1.0);
    let between_rows = row_means.iter().map(|m| (m - grand).powi(2)).sum::<f64>() / (r - 1.0);
    let mut squares = 0.0;
    for (row, row_mean) in rows.iter().zip(&row_means) {
        for (value, column_mean) in row.iter().zip(&column_means) {
            squares += (value - row_mean - column_mean + grand).powi(2);
        }
    }
    let interaction = squares / ((r - 1.0) * (c - 1.0));
    // The values of the knob are all that it has, or represent them: a finite population of columns.
    let (between, rows) = (
        (between_columns - interaction / r) * (c - 1.0) / c,
        between_rows,
    );
    let interaction = interaction * (c - 1.0) / c;
    (
        between,
        interaction,
        (between + interaction + rows).max(f64::MIN_POSITIVE),
    )
}

/// Returns the share of the variance due to two knobs together, from rows of `first` times `second` values.
fn together(function: &[f64], first: usize, second: usize) -> f64 {
    let cells = first * second;
    let rows = function.len() / cells;
    // The interaction's contrast of each row: without both knobs' own effects in that row.
    let contrasts: Vec<Vec<f64>> = (function.chunks_exact(cells))
        .map(|row| {
            let grand = mean(row.iter().copied());
            let a = |i: usize| mean(row[i * second..(i + 1) * second].iter().copied());
            let b = |j: usize| mean((0..first).map(|i| row[i * second + j]));
            let (a, b): (Vec<f64>, Vec<f64>) =
                ((0..first).map(a).collect(), (0..second).map(b).collect());
            (0..cells)
                .map(|k| row[k] - a[k / second] - b[k % second] + grand)
                .collect()
        })
        .collect();
    let (mut common, mut own) = (0.0, 0.0);
    for k in 0..cells {
        let average = mean(contrasts.iter().map(|row| row[k]));
        common += average * average;
        own += contrasts
            .iter()
            .map(|row| (row[k] - average).powi(2))
            .sum::<f64>();
    }
    let own = own / (rows as f64 - 1.0).max(1.0);
    let grand = mean(function.iter().copied());
    let all: f64 =
        function.iter().map(|v| (v - grand).powi(2)).sum::<f64>() / function.len() as f64;
    (common - own / rows as f64) / cells as f64 / all.max(f64::MIN_POSITIVE)
}
