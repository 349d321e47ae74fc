//! What pairs say.

use std::fmt;

use anyhow::{Context, Result};
use seekscope_stats::{holm, median, paired_log_ratio};

/// Pairs of (without, with), seconds.
#[derive(Debug, Clone, Default)]
pub struct Pairs {
    pub values: Vec<(f64, f64)>,
}

/// How many times as fast, and the interval that holds the truth in 95 % of cases.
#[derive(Debug, Clone, Copy)]
pub struct TimesFaster {
    pub ratio: f64,
    pub low: f64,
    pub high: f64,
}

impl Pairs {
    pub fn push(&mut self, without: f64, with: f64) {
        self.values.push((without, with));
    }

    /// without / with, by Student's t on logarithms.
    pub fn times_faster(&self) -> Result<TimesFaster> {
        let swapped: Vec<(f64, f64)> = self.values.iter().map(|&(a, b)| (b, a)).collect();
        let estimate = paired_log_ratio(&swapped).context("too few pairs, or one took no time")?;
        let all = holm(&[estimate]);
        let one = all.first().context("no comparison")?;
        Ok(TimesFaster {
            ratio: one.ratio,
            low: one.low,
            high: one.high,
        })
    }
}

impl fmt::Display for Pairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (without, with): (Vec<f64>, Vec<f64>) = self.values.iter().copied().unzip();
        let (without, with) = (Spread::of(&without), Spread::of(&with));
        write!(f, "{without}  {with}")?;
        match self.times_faster() {
            Ok(r) => write!(
                f,
                "  {:6.2} ({:5.2} to {:6.2}, {} pairs)",
                r.ratio,
                r.low,
                r.high,
                self.values.len()
            ),
            Err(error) => write!(f, "  {error}"),
        }
    }
}

/// Median, least and greatest.
struct Spread([f64; 3]);

impl Spread {
    fn of(values: &[f64]) -> Self {
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let greatest = values.iter().copied().fold(0.0, f64::max);
        Self([median(values).unwrap_or(f64::NAN), least, greatest])
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self([middle, least, greatest]) = self;
        write!(f, "{middle:8.3} ({least:7.3} to {greatest:7.3})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faster_is_more_than_one() {
        let mut pairs = Pairs::default();
        for noise in [1.0, 1.1, 0.9, 1.05] {
            pairs.push(6.0 * noise, 2.0);
        }
        let faster = pairs.times_faster().unwrap();
        assert!(
            faster.low < 3.0 && 3.0 < faster.high && faster.low > 2.0,
            "{faster:?}"
        );
        assert!(Pairs::default().times_faster().is_err());
    }
}
