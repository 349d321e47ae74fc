//! Learns the kernel's parameters: the most probable ones given the data and a prior.

use super::cholesky::{Cholesky, row_start};
use super::kernel::{Hyper, SQRT_5, additive_term, distance, matern_polynomial};
use crate::space::Feature;

/// Data to learn from: standardised outcomes at points.
#[derive(Debug, Clone)]
pub(crate) struct Data {
    pub(crate) kinds: Vec<Feature>,
    /// One row of features per point.
    pub(crate) points: Vec<Vec<f64>>,
    pub(crate) outcomes: Vec<f64>,
    /// Variance of each outcome in units of one run's: 1/n for the mean of n runs.
    pub(crate) noise_scale: Vec<f64>,
}

/// Pairwise distances, which stay the same while parameters are tried.
pub(crate) struct Learner<'a> {
    data: &'a Data,
    /// Per feature: for each pair of points their scaled distance, and the additive term.
    distances: Vec<Vec<f64>>,
    additive: Vec<Vec<f64>>,
}

/// Returns the prior: mean and standard deviation of each parameter's logarithm.
pub(crate) fn prior(features: usize) -> Vec<(f64, f64)> {
    let d = features.max(1) as f64;
    let mut prior = vec![((0.30 * d.sqrt()).ln(), 1.2); features];
    prior.extend(vec![((0.5 / d).ln(), 1.5); features]);
    prior.push((0.5f64.ln(), 1.0));
    prior.push((0.15f64.ln(), 1.0));
    prior.push((2f64.ln(), 1.0));
    prior
}

impl<'a> Learner<'a> {
    pub(crate) fn new(data: &'a Data) -> Self {
        let n = data.points.len();
        let mut distances = Vec::with_capacity(data.kinds.len());
        let mut additive = Vec::with_capacity(data.kinds.len());
        for (f, &kind) in data.kinds.iter().enumerate() {
            let mut d = Vec::with_capacity(row_start(n));
            for i in 0..n {
                d.extend((0..=i).map(|j| distance(kind, data.points[i][f], data.points[j][f])));
            }
            additive.push(d.iter().map(|&d| additive_term(kind, d)).collect());
            distances.push(d);
        }
        Self {
            data,
            distances,
            additive,
        }
    }

    /// Returns the product part, packed.
    fn product(&self, hyper: &Hyper) -> Vec<f64> {
        let pairs = row_start(self.data.points.len());
        let (mut polynomial, mut exponent) = (vec![hyper.product(); pairs], vec![0.0; pairs]);
        for (f, distances) in self.distances.iter().enumerate() {
            let inverse = 1.0 / hyper.length(f);
            match self.data.kinds[f] {
                Feature::Numeric => {
                    let scale = SQRT_5 * inverse;
                    for p in 0..pairs {
                        let t = distances[p] * scale;
                        polynomial[p] *= matern_polynomial(t);
                        exponent[p] += t;
                    }
                }
                Feature::Category => {
                    for p in 0..pairs {
                        exponent[p] += distances[p] * inverse;
                    }
                }
            }
        }
        for (value, exponent) in polynomial.iter_mut().zip(exponent) {
            *value *= (-exponent).exp();
        }
        polynomial
    }

    /// Returns sums of the additive terms and of their squares, packed.
    fn sums(&self, hyper: &Hyper) -> (Vec<f64>, Vec<f64>) {
        let pairs = row_start(self.data.points.len());
        let (mut sum, mut squares) = (vec![0.0; pairs], vec![0.0; pairs]);
        for (f, terms) in self.additive.iter().enumerate() {
            let variance = hyper.additive(f);
            for p in 0..pairs {
                let term = variance * terms[p];
                sum[p] += term;
                squares[p] += term * term;
            }
        }
        (sum, squares)
    }

    fn covariance(
        &self,
        hyper: &Hyper,
        product: &[f64],
        (sum, squares): &(Vec<f64>, Vec<f64>),
    ) -> Vec<f64> {
        let orders = sum
            .iter()
            .zip(squares)
            .map(|(&sum, &squares)| hyper.orders(sum, squares));
        let mut matrix: Vec<f64> = orders
            .zip(product)
            .map(|(orders, product)| orders + product)
            .collect();
        for (i, scale) in self.data.noise_scale.iter().enumerate() {
            matrix[row_start(i) + i] += hyper.noise() * scale + 1e-8;
        }
        matrix
    }

    pub(crate) fn factor(&self, hyper: &Hyper) -> Option<Cholesky> {
        let matrix = self.covariance(hyper, &self.product(hyper), &self.sums(hyper));
        Cholesky::of(matrix, self.data.points.len())
    }

    /// Returns the logarithm of the probability of parameters and data, up to a constant, and its gradient.
    pub(crate) fn evidence(&self, hyper: &Hyper) -> Option<(f64, Vec<f64>)> {
        let n = self.data.points.len();
        let features = self.data.kinds.len();
        let product = self.product(hyper);
        let sums = self.sums(hyper);
        let factor = Cholesky::of(self.covariance(hyper, &product, &sums), n)?;
        let alpha = factor.solve(&self.data.outcomes);
        let fit: f64 = alpha
            .iter()
            .zip(&self.data.outcomes)
            .map(|(a, y)| a * y)
            .sum();
        let mut log_probability = -0.5 * (fit + factor.log_determinant);
        // Half of alpha alpha' - K^-1; pairs off the diagonal count twice.
        let mut weights = factor.inverse();
        for i in 0..n {
            let row = &mut weights[row_start(i)..=row_start(i) + i];
            for (j, w) in row.iter_mut().enumerate() {
                *w = (alpha[i] * alpha[j] - *w) * if i == j { 0.5 } else { 1.0 };
            }
        }
        let mut gradient = vec![0.0; hyper.values.len()];
        gradient[2 * features + 1] = (0..n)
            .map(|i| weights[row_start(i) + i] * self.data.noise_scale[i] * hyper.noise())
            .sum();
        for f in 0..features {
            gradient[features + f] = self.additive_gradient(f, hyper, &weights, &sums.0);
        }
        gradient[2 * features + 2] = (weights.iter().zip(sums.0.iter().zip(&sums.1)))
            .map(|(w, (sum, squares))| w * (sum * sum - squares))
            .sum::<f64>()
            * 0.5
            * hyper.pairwise();
        for (w, p) in weights.iter_mut().zip(&product) {
            *w *= p;
        }
        gradient[2 * features] = weights.iter().sum();
        for (f, slope) in gradient.iter_mut().enumerate().take(features) {
            *slope = self.length_gradient(f, hyper.length(f), &weights);
        }
        for (i, (mean, deviation)) in prior(features).into_iter().enumerate() {
            let off = (hyper.values[i] - mean) / deviation;
            log_probability -= 0.5 * off * off;
            gradient[i] -= off / deviation;
        }
        log_probability
            .is_finite()
            .then_some((log_probability, gradient))
    }

    fn additive_gradient(
        &self,
        feature: usize,
        hyper: &Hyper,
        weights: &[f64],
        sum: &[f64],
    ) -> f64 {
        let (variance, pairwise) = (hyper.additive(feature), hyper.pairwise());
        let terms = self.additive[feature].iter().zip(sum);
        weights
            .iter()
            .zip(terms)
            .map(|(w, (term, sum))| {
                let term = variance * term;
                w * term * (1.0 + pairwise * (sum - term))
            })
            .sum()
    }

    fn length_gradient(&self, feature: usize, length: f64, weights: &[f64]) -> f64 {
        let pairs = weights.iter().zip(&self.distances[feature]);
        match self.data.kinds[feature] {
            Feature::Numeric => {
                let scale = SQRT_5 / length;
                pairs
                    .map(|(w, d)| {
                        let t = d * scale;
                        w * t * t * (1.0 + t) / (3.0 * matern_polynomial(t))
                    })
                    .sum()
            }
            Feature::Category => pairs.map(|(w, d)| w * d).sum::<f64>() / length,
        }
    }

    /// Climbs for this many steps, with a separate step size for each parameter (Igel and Hüsken, "Improving
    /// the Rprop learning algorithm", 2000): needs no scale and no line search.
    pub(crate) fn climb(&self, start: Hyper, steps: usize) -> Hyper {
        let mut pace = vec![0.15_f64; start.values.len()];
        let mut last = vec![0.0_f64; start.values.len()];
        let (mut at, mut best) = (start.clone(), (f64::NEG_INFINITY, start));
        for _ in 0..steps {
            let Some((value, gradient)) = self.evidence(&at) else {
                break;
            };
            if value > best.0 {
                best = (value, at.clone());
            }
            for i in 0..pace.len() {
                let turned = gradient[i] * last[i];
                pace[i] = if turned > 0.0 {
                    (pace[i] * 1.3).min(0.8)
                } else if turned < 0.0 {
                    pace[i] * 0.5
                } else {
                    pace[i]
                };
                last[i] = if turned < 0.0 { 0.0 } else { gradient[i] };
                if last[i] != 0.0 {
                    at.values[i] = (at.values[i] + pace[i] * last[i].signum()).clamp(-12.0, 6.0);
                }
            }
        }
        best.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use seekscope_stats::SplitMix64;

    fn some_data(n: usize) -> Data {
        let mut rng = SplitMix64::new(3);
        let kinds = vec![Feature::Numeric, Feature::Category, Feature::Numeric];
        let points: Vec<Vec<f64>> = (0..n)
            .map(|_| vec![rng.unit_f64(), rng.below(3) as f64, rng.unit_f64()])
            .collect();
        let outcomes = points
            .iter()
            .map(|p| (5.0 * p[0]).sin() + p[1] * p[2] - 0.5)
            .collect();
        let noise_scale = (0..n).map(|i| 1.0 / (1 + i % 3) as f64).collect();
        Data {
            kinds,
            points,
            outcomes,
            noise_scale,
        }
    }

    #[test]
    fn the_gradient_is_that_of_small_steps() {
        let data = some_data(20);
        let learner = Learner::new(&data);
        let start: Vec<f64> = prior(3)
            .iter()
            .map(|(mean, deviation)| mean + 0.3 * deviation)
            .collect();
        let (_, gradient) = learner.evidence(&Hyper::new(start.clone())).unwrap();
        for (i, slope) in gradient.iter().enumerate() {
            let value = |step: f64| {
                let mut moved = start.clone();
                moved[i] += step;
                learner.evidence(&Hyper::new(moved)).unwrap().0
            };
            let numeric = (value(1e-5) - value(-1e-5)) / 2e-5;
            assert!(
                (slope - numeric).abs() < 1e-4 * (1.0 + slope.abs()),
                "{i}: {slope} {numeric}"
            );
        }
    }

    #[test]
    fn climbing_never_ends_lower() {
        let data = some_data(25);
        let learner = Learner::new(&data);
        let start = Hyper::new(prior(3).iter().map(|p| p.0).collect());
        let before = learner.evidence(&start).unwrap().0;
        let after = learner.evidence(&learner.climb(start, 30)).unwrap().0;
        assert!(after > before + 1.0, "{before} {after}");
    }
}
