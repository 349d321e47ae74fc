//! Provides three made-up responses of a server to its settings, for judging tuners: noise, plateaus,
//! interactions, knobs that do nothing, settings that fail, and a deceptive basin.
//!
//! They take no time, their truth is known, and figures of other tuners on them are recorded beside the
//! benchmark `tune_regret`.

mod drift;
mod responses;
#[cfg(test)]
mod tests;

use seekscope_stats::SplitMix64;

pub use drift::Drift;

use crate::space::{Knob, Range, Scale, Space, SpaceError, Value};

/// One of the responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Surface {
    /// Eight knobs of a storage engine with plateaus and two interactions; too much memory fails.
    Wt8,
    /// Twenty knobs: five matter, five a little, ten not at all.
    Sparse20,
    /// Twelve knobs, and a default in a wide local basin.
    Deceptive12,
}

/// The truth about a setting.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Truth {
    /// Operations per second without noise.
    pub throughput: f64,
    /// True if a run of it fails.
    pub fails: bool,
    /// Standard deviation of the logarithm of a run's throughput.
    pub noise: f64,
}

type Row = (&'static str, char, f64, f64, bool, f64);

/// Name, type (float, int, category), bounds, logarithmic, default.
const WT8: [Row; 8] = [
    ("cache_gb", 'f', 0.25, 24.0, true, 7.5),
    ("dirty_trigger", 'i', 2.0, 80.0, false, 20.0),
    ("dirty_target_frac", 'f', 0.05, 1.0, false, 0.25),
    ("syncdelay", 'i', 5.0, 600.0, true, 60.0),
    ("evict_threads", 'i', 1.0, 32.0, true, 4.0),
    ("compressor", 'c', 0.0, 4.0, false, 1.0),
    ("tickets", 'i', 4.0, 1024.0, true, 128.0),
    ("readahead_kb", 'i', 4.0, 4096.0, true, 128.0),
];
const SPARSE20: [Row; 20] = [
    ("a0", 'f', 1e-3, 1e3, true, 3.0),
    ("a1", 'i', 0.0, 1000.0, false, 250.0),
    ("a2", 'f', 0.0, 1.0, false, 0.6),
    ("a3", 'i', 1.0, 256.0, true, 16.0),
    ("a4", 'f', 0.0, 1.0, false, 0.4),
    ("b0", 'f', 0.0, 1.0, false, 0.5),
    ("b1", 'f', 0.0, 1.0, false, 0.5),
    ("b2", 'f', 0.0, 1.0, false, 0.5),
    ("b3", 'f', 0.0, 1.0, false, 0.5),
    ("b4", 'f', 0.0, 1.0, false, 0.5),
    ("n0", 'f', 0.0, 1.0, false, 0.5),
    ("n1", 'f', 0.0, 1.0, false, 0.5),
    ("n2", 'f', 0.0, 1.0, false, 0.5),
    ("n3", 'f', 0.0, 1.0, false, 0.5),
    ("n4", 'f', 0.0, 1.0, false, 0.5),
    ("n5", 'f', 0.0, 1.0, false, 0.5),
    ("n6", 'f', 0.0, 1.0, false, 0.5),
    ("n7", 'f', 0.0, 1.0, false, 0.5),
    ("n8", 'c', 0.0, 3.0, false, 0.0),
    ("n9", 'c', 0.0, 2.0, false, 0.0),
];
const DECEPTIVE12: [Row; 12] = [
    ("algo", 'c', 0.0, 3.0, false, 0.0),
    ("sched", 'c', 0.0, 3.0, false, 1.0),
    ("compress", 'c', 0.0, 4.0, false, 1.0),
    ("alloc", 'c', 0.0, 2.0, false, 0.0),
    ("qdepth", 'i', 1.0, 256.0, true, 16.0),
    ("page_kb", 'i', 4.0, 512.0, true, 32.0),
    ("mem_frac", 'f', 0.1, 0.9, false, 0.5),
    ("interval_ms", 'i', 1.0, 1000.0, true, 100.0),
    ("threads", 'i', 1.0, 64.0, true, 4.0),
    ("low", 'f', 0.01, 0.5, true, 0.05),
    ("gap", 'f', 0.01, 0.5, true, 0.15),
    ("batch", 'i', 1.0, 4096.0, true, 64.0),
];

#[expect(
    clippy::cast_possible_truncation,
    reason = "the tables hold small whole numbers"
)]
fn knob(&(name, kind, low, high, log, default): &Row) -> Knob {
    let scale = if log { Scale::Log } else { Scale::Linear };
    let (range, default) = match kind {
        'c' => (
            Range::Categorical {
                choices: (0..high as i64).map(|choice| choice.to_string()).collect(),
            },
            Value::Text((default as i64).to_string()),
        ),
        'i' => (
            Range::Integer {
                low: low as i64,
                high: high as i64,
                scale,
            },
            Value::Integer(default as i64),
        ),
        _ => (Range::Float { low, high, scale }, Value::Float(default)),
    };
    Knob::new(name, range, default)
}

impl Surface {
    pub const ALL: [Self; 3] = [Self::Wt8, Self::Sparse20, Self::Deceptive12];

    /// Returns its knobs.
    pub fn space(self) -> Result<Space, SpaceError> {
        let rows: &[Row] = match self {
            Self::Wt8 => &WT8,
            Self::Sparse20 => &SPARSE20,
            Self::Deceptive12 => &DECEPTIVE12,
        };
        Space::new(rows.iter().map(knob).collect(), Vec::new())
    }

    /// Returns the highest throughput, found by long searches.
    pub fn optimum(self) -> f64 {
        match self {
            Self::Wt8 => 462_936.0,
            Self::Sparse20 => 112_320.0,
            Self::Deceptive12 => 169_442.0,
        }
    }

    /// Returns the truth about levels: one number per knob in the order of the space, for categories the
    /// index.
    pub fn truth(self, levels: &[f64]) -> Truth {
        match self {
            Self::Wt8 => responses::wt8(levels),
            Self::Sparse20 => responses::sparse20(levels),
            Self::Deceptive12 => responses::deceptive12(levels),
        }
    }

    /// Returns what one run measures; `None` if it fails.
    pub fn measure(self, levels: &[f64], rng: &mut SplitMix64) -> Option<f64> {
        let truth = self.truth(levels);
        let drawn = (truth.noise * rng.normal() - truth.noise.powi(2) / 2.0).exp();
        (!truth.fails).then_some(truth.throughput * drawn)
    }

    /// Returns the share of the optimum that a recommendation misses; 1 if it fails.
    pub fn regret(self, levels: &[f64]) -> f64 {
        let truth = self.truth(levels);
        if truth.fails {
            1.0
        } else {
            1.0 - truth.throughput / self.optimum()
        }
    }
}
