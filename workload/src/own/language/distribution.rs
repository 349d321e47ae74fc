//! Defines distributions of numbers.

use serde::Deserialize;

use super::short_form::{ShortForm, deserialize_short_form, only};

/// A number, or a table that specifies how numbers are drawn.
#[derive(Debug, Clone, PartialEq)]
pub enum Distribution {
    Constant(f64),
    /// Uniform, both ends included.
    Uniform {
        low: f64,
        high: f64,
    },
    Normal {
        mean: f64,
        deviation: f64,
        limits: Limits,
    },
    Exponential {
        mean: f64,
        limits: Limits,
    },
    /// `from` is drawn most often, then the next number, and so on.
    Zipf {
        from: u64,
        to: u64,
        theta: f64,
    },
    /// Ranges, both ends included, with weights.
    Histogram(Vec<Bucket>),
}

/// Limits; a draw beyond is set to the limit.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Limits {
    pub min: Option<f64>,
    pub max: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct Bucket(pub f64, pub f64, pub f64);

/// The most buckets of a histogram.
const BUCKETS_MAX: usize = 1_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    uniform: Option<[f64; 2]>,
    normal: Option<Normal>,
    exponential: Option<Exponential>,
    zipf: Option<Zipf>,
    histogram: Option<Vec<Bucket>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Normal {
    mean: f64,
    deviation: f64,
    min: Option<f64>,
    max: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Exponential {
    mean: f64,
    min: Option<f64>,
    max: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Zipf {
    #[serde(default)]
    from: u64,
    to: u64,
    #[serde(default = "usual_theta")]
    theta: f64,
}

/// Returns YCSB's exponent.
pub(super) fn usual_theta() -> f64 {
    0.99
}

impl ShortForm for Distribution {
    type Table = Table;
    const ALLOWED: &'static str = "write a number or one of { uniform = [LOW, HIGH] }, \
        { normal = { mean, deviation, min, max } }, { exponential = { mean, min, max } }, \
        { zipf = { from, to, theta } }, { histogram = [[LOW, HIGH, WEIGHT], …] }";

    fn from_scalar(scalar: toml::Value) -> Result<Self, String> {
        let number = match scalar {
            toml::Value::Integer(number) => number as f64,
            toml::Value::Float(number) => number,
            _ => return Err(Self::ALLOWED.into()),
        };
        Self::Constant(number).checked()
    }

    fn from_table(table: Table) -> Result<Self, String> {
        let given = [
            table.uniform.map(|[low, high]| Self::Uniform { low, high }),
            table.normal.map(|normal| Self::Normal {
                mean: normal.mean,
                deviation: normal.deviation,
                limits: Limits {
                    min: normal.min,
                    max: normal.max,
                },
            }),
            table.exponential.map(|exponential| Self::Exponential {
                mean: exponential.mean,
                limits: Limits {
                    min: exponential.min,
                    max: exponential.max,
                },
            }),
            table.zipf.map(|zipf| Self::Zipf {
                from: zipf.from,
                to: zipf.to,
                theta: zipf.theta,
            }),
            table.histogram.map(Self::Histogram),
        ];
        only(given, Self::ALLOWED)?.checked()
    }
}

impl Distribution {
    fn checked(self) -> Result<Self, String> {
        self.check()?;
        Ok(self)
    }

    fn check(&self) -> Result<(), String> {
        let finite = |numbers: &[f64]| numbers.iter().all(|n| n.is_finite());
        match self {
            Self::Constant(value) if !finite(&[*value]) => Err("must be a finite number".into()),
            Self::Uniform { low, high } if !finite(&[*low, *high]) || low > high => Err(format!(
                "[{low}, {high}] is not a range; the first number must not be above the second"
            )),
            Self::Normal {
                mean,
                deviation,
                limits,
            } => {
                if !finite(&[*mean, *deviation]) || *deviation < 0.0 {
                    return Err(
                        "mean and deviation must be finite, and deviation must not be below 0"
                            .into(),
                    );
                }
                limits.check()
            }
            Self::Exponential { mean, limits } => {
                if !mean.is_finite() || *mean <= 0.0 {
                    return Err("mean must be above 0".into());
                }
                limits.check()
            }
            Self::Zipf { from, to, theta } => {
                if from > to || *to >= 1 << 53 {
                    return Err(format!("{from} to {to} is not a range"));
                }
                if !theta.is_finite() || !(0.0..=20.0).contains(theta) {
                    return Err(format!("theta = {theta} is not between 0 and 20"));
                }
                Ok(())
            }
            Self::Histogram(buckets) => check_buckets(buckets),
            _ => Ok(()),
        }
    }
}

impl Limits {
    fn check(self) -> Result<(), String> {
        let (min, max) = (self.min.unwrap_or(f64::MIN), self.max.unwrap_or(f64::MAX));
        if min.is_finite() && max.is_finite() && min <= max {
            Ok(())
        } else {
            Err(format!("min {min} and max {max} are not a range"))
        }
    }
}

fn check_buckets(buckets: &[Bucket]) -> Result<(), String> {
    if buckets.is_empty() || buckets.len() > BUCKETS_MAX {
        return Err(format!("a histogram must have 1 to {BUCKETS_MAX} buckets"));
    }
    let good =
        |b: &Bucket| [b.0, b.1, b.2].iter().all(|n| n.is_finite()) && b.0 <= b.1 && b.2 >= 0.0;
    if !buckets.iter().all(good) {
        return Err(
            "a bucket is [LOW, HIGH, WEIGHT]; LOW must not be above HIGH, and WEIGHT must \
             not be below 0"
                .into(),
        );
    }
    if buckets.iter().map(|b| b.2).sum::<f64>() <= 0.0 {
        return Err("all weights are 0".into());
    }
    Ok(())
}

deserialize_short_form!(Distribution);
