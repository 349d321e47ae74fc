//! Defines how similar two configurations are expected to be.
//!
//! The kernel is a sum of three parts. The additive part, one term per knob, learns from every measurement
//! about every knob, which matters while there are fewer measurements than corners of the cube. The pairwise
//! part, the products of any two of these terms, covers knobs that work together (Duvenaud, Nickisch and
//! Rasmussen, "Additive Gaussian processes", 2011). The product part (Matérn 5/2 per knob, Hamming for names)
//! covers the rest, near what was measured.

use crate::space::Feature;

/// Distance beyond which a knob's own term expects no similarity.
const ADDITIVE_REACH: f64 = 0.8;
/// Variance of the unknown mean, which is part of the kernel: as much as that of the data.
pub(crate) const MEAN_VARIANCE: f64 = 1.0;

/// Learnt parameters, all as natural logarithms: per feature a length and an additive variance, then the
/// variance of the product part, that of the noise of one run, and the weight of the pairwise part.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Hyper {
    pub(crate) values: Vec<f64>,
    features: usize,
}

impl Hyper {
    pub(crate) fn new(values: Vec<f64>) -> Self {
        let features = (values.len() - 3) / 2;
        Self { values, features }
    }
    pub(crate) fn length(&self, feature: usize) -> f64 {
        self.values[feature].exp()
    }
    pub(crate) fn additive(&self, feature: usize) -> f64 {
        self.values[self.features + feature].exp()
    }
    pub(crate) fn product(&self) -> f64 {
        self.values[2 * self.features].exp()
    }
    pub(crate) fn noise(&self) -> f64 {
        self.values[2 * self.features + 1].exp()
    }
    pub(crate) fn pairwise(&self) -> f64 {
        self.values[2 * self.features + 2].exp()
    }
    /// Returns the prior variance, without noise.
    pub(crate) fn prior_variance(&self) -> f64 {
        let terms = (0..self.features).map(|f| self.additive(f));
        let (sum, squares) = terms.fold((0.0, 0.0), |(s, q), z| (s + z, q + z * z));
        self.orders(sum, squares) + self.product()
    }
    /// Returns mean, additive and pairwise part from the sum of the terms and the sum of their squares.
    pub(crate) fn orders(&self, sum: f64, squares: f64) -> f64 {
        MEAN_VARIANCE + sum + self.pairwise() * 0.5 * (sum * sum - squares)
    }
}

/// Returns the polynomial of the Matérn 5/2 kernel; the exponential factors of all features are computed at
/// once.
pub(crate) fn matern_polynomial(t: f64) -> f64 {
    1.0 + t + t * t / 3.0
}

/// Returns the additive term at a distance: Wendland's function, which is positive definite on a line,
/// smooth, and needs no exponential ("Piecewise polynomial, positive definite and compactly supported radial
/// functions of minimal degree", 1995).
pub(crate) fn wendland(distance: f64) -> f64 {
    let r = (distance * (1.0 / ADDITIVE_REACH)).min(1.0);
    let near = 1.0 - r;
    near * near * near * (3.0 * r + 1.0)
}

/// Returns the distance of one feature: a difference for numbers, and 0 or 1 for names.
pub(crate) fn distance(kind: Feature, a: f64, b: f64) -> f64 {
    match kind {
        Feature::Numeric => (a - b).abs(),
        Feature::Category => f64::from(u8::from(a != b)),
    }
}

pub(crate) fn additive_term(kind: Feature, distance: f64) -> f64 {
    match kind {
        Feature::Numeric => wendland(distance),
        Feature::Category => 1.0 - distance,
    }
}

pub(crate) const SQRT_5: f64 = 2.236_067_977_499_79;
