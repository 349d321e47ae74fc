//! Performs Gaussian-process regression: from noisy measurements at some configurations to a belief about all
//! (Rasmussen and Williams, "Gaussian Processes for Machine Learning", 2006).

mod cholesky;
mod fit;
mod kernel;

pub(crate) use cholesky::{Cholesky, dot};
pub(crate) use fit::{Data, Learner, prior};
pub(crate) use kernel::Hyper;
use kernel::{SQRT_5, additive_term, distance, matern_polynomial, wendland};

use crate::space::Feature;

/// A normally distributed belief about one number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Belief {
    pub(crate) mean: f64,
    pub(crate) deviation: f64,
}

/// A process with parameters and data.
#[derive(Debug, Clone)]
pub(crate) struct Process {
    kinds: Vec<Feature>,
    hyper: Hyper,
    /// Features stored by columns, so that a prediction runs along them.
    columns: Vec<Vec<f64>>,
    factor: Cholesky,
    alpha: Vec<f64>,
    outcomes: Vec<f64>,
    noise_scale: Vec<f64>,
    prior_variance: f64,
}

impl Process {
    /// Builds the process; `None` if data and parameters do not give a covariance.
    pub(crate) fn new(data: &Data, hyper: Hyper) -> Option<Self> {
        let factor = Learner::new(data).factor(&hyper)?;
        let alpha = factor.solve(&data.outcomes);
        let column = |f: usize| data.points.iter().map(|p| p[f]).collect();
        Some(Self {
            columns: (0..data.kinds.len()).map(column).collect(),
            kinds: data.kinds.clone(),
            prior_variance: hyper.prior_variance(),
            hyper,
            factor,
            alpha,
            outcomes: data.outcomes.clone(),
            noise_scale: data.noise_scale.clone(),
        })
    }

    /// Returns the process with the same parameters and data, but without what these features say.
    pub(crate) fn without(&self, is_left_out: impl Fn(usize) -> bool) -> Option<Self> {
        let value = |(f, column): (usize, &Vec<f64>), point: usize| match is_left_out(f) {
            true => 0.0,
            false => column[point],
        };
        let columns = || self.columns.iter().enumerate();
        let point = |at: usize| columns().map(|column| value(column, at)).collect();
        let data = Data {
            kinds: self.kinds.clone(),
            points: (0..self.outcomes.len()).map(point).collect(),
            outcomes: self.outcomes.clone(),
            noise_scale: self.noise_scale.clone(),
        };
        Self::new(&data, self.hyper.clone())
    }

    pub(crate) fn outcomes(&self) -> &[f64] {
        &self.outcomes
    }

    pub(crate) fn hyper(&self) -> &Hyper {
        &self.hyper
    }

    /// Returns each outcome less what the others predict there (Rasmussen and Williams, 5.4.2).
    pub(crate) fn left_out_residuals(&self) -> Vec<f64> {
        let weights = self.factor.inverse_diagonal();
        let pairs = self.alpha.iter().zip(weights);
        pairs.map(|(alpha, weight)| alpha / weight).collect()
    }

    /// Returns the covariances of a point with all data.
    fn covariances(&self, point: &[f64]) -> Vec<f64> {
        let n = self.alpha.len();
        let (mut polynomial, mut exponent) = (vec![self.hyper.product(); n], vec![0.0; n]);
        let (mut sum, mut squares) = (vec![0.0; n], vec![0.0; n]);
        for (f, column) in self.columns.iter().enumerate() {
            let (length, variance, at) = (self.hyper.length(f), self.hyper.additive(f), point[f]);
            match self.kinds[f] {
                Feature::Numeric => {
                    let scale = SQRT_5 / length;
                    for j in 0..n {
                        let apart = (at - column[j]).abs();
                        polynomial[j] *= matern_polynomial(apart * scale);
                        exponent[j] += apart * scale;
                        let term = variance * wendland(apart);
                        sum[j] += term;
                        squares[j] += term * term;
                    }
                }
                Feature::Category => {
                    for j in 0..n {
                        let apart = f64::from(u8::from(at != column[j]));
                        exponent[j] += apart / length;
                        let term = variance * (1.0 - apart);
                        sum[j] += term;
                        squares[j] += term * term;
                    }
                }
            }
        }
        for j in 0..n {
            sum[j] = self.hyper.orders(sum[j], squares[j]) + polynomial[j] * (-exponent[j]).exp();
        }
        sum
    }

    /// Returns the prior covariance of two points.
    pub(crate) fn prior_covariance(&self, a: &[f64], b: &[f64]) -> f64 {
        let (mut polynomial, mut exponent) = (self.hyper.product(), 0.0);
        let (mut sum, mut squares) = (0.0, 0.0);
        for (f, &kind) in self.kinds.iter().enumerate() {
            let apart = distance(kind, a[f], b[f]);
            let scaled = apart / self.hyper.length(f);
            let term = self.hyper.additive(f) * additive_term(kind, apart);
            sum += term;
            squares += term * term;
            if kind == Feature::Numeric {
                polynomial *= matern_polynomial(SQRT_5 * scaled);
                exponent += SQRT_5 * scaled;
            } else {
                exponent += scaled;
            }
        }
        self.hyper.orders(sum, squares) + polynomial * (-exponent).exp()
    }

    /// Returns the belief about the truth at a point, without a run's noise.
    pub(crate) fn at(&self, point: &[f64]) -> Belief {
        let covariances = self.covariances(point);
        let explained = self.factor.whitened_square(&covariances);
        Belief {
            mean: dot(&covariances, &self.alpha),
            deviation: (self.prior_variance - explained).max(1e-10).sqrt(),
        }
    }

    pub(crate) fn mean(&self, point: &[f64]) -> f64 {
        dot(&self.covariances(point), &self.alpha)
    }

    /// Returns the mean at a point, and its covariances with the data, whitened by the factor; the posterior
    /// covariance of two points is their prior covariance less the product of these.
    pub(crate) fn joint(&self, point: &[f64]) -> (f64, Vec<f64>) {
        let covariances = self.covariances(point);
        (
            dot(&covariances, &self.alpha),
            self.factor.whiten(&covariances),
        )
    }
}
