//! Reports `disk` runs: what a disk can do for a database.
//!
//! Read `steps` first (which step answers which question), then `sections` (what is shown, in which order).
//! [`sentences()`] says what the numbers mean; it and the tables are pure functions of the records, and
//! terminal and HTML show the same.

mod figures;
mod html;
#[cfg(test)]
mod made_up;
mod percentiles;
mod reservations;
mod sections;
mod sentences;
mod series;
mod steps;
mod tables;
mod terminal;

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use schemars::JsonSchema;
use seekscope_run::{DiskMeasurement, RunDocument};
use serde::Serialize;

pub use html::html;
pub use sentences::sentences;
pub use terminal::terminal;

/// Everything the report of a disk run is made from.
#[derive(Debug, Clone, Copy)]
pub struct DiskReportInput<'a> {
    pub document: &'a RunDocument,
    /// Latencies in ns, whole steps, by [`histogram_key`].
    pub histograms: &'a BTreeMap<String, Histogram<u64>>,
    /// Seconds in any order; those of steps that the document does not list are ignored.
    pub seconds: &'a [SecondPoint],
    /// What the run's device model predicts for the order steps, and for anything else it was tested on.
    pub predictions: &'a [OrderPrediction],
}

impl<'a> DiskReportInput<'a> {
    /// Returns what was measured; `None` for a run that ended before anything was.
    pub(crate) fn measurement(&self) -> Option<&'a DiskMeasurement> {
        self.document.disk.as_ref()
    }

    /// Returns the latencies of one operation ("read", "write", "sync") of a step.
    pub(crate) fn histogram(&self, step: &str, operation: &str) -> Option<&'a Histogram<u64>> {
        self.histograms.get(&histogram_key(step, operation))
    }
}

/// Returns the key of [`DiskReportInput::histograms`]: `STEP:OPERATION`, the step by its name in the
/// document.
pub fn histogram_key(step: &str, operation: &str) -> String {
    format!("{step}:{operation}")
}

/// What one operation of one step did in about a second.
#[derive(Debug, Clone, PartialEq)]
pub struct SecondPoint {
    /// A [`seekscope_run::DiskStep::name`].
    pub step: String,
    /// "read", "write" or "sync".
    pub operation: String,
    /// Start, CLOCK_MONOTONIC ns.
    pub t_ns: u64,
    /// Measured length, ns: an interval is not always exactly a second long.
    pub duration_ns: u64,
    pub count: u64,
    pub p50_ns: u64,
    pub p99_ns: u64,
}

impl SecondPoint {
    /// Returns operations per second; 0 for an interval without length.
    pub(crate) fn per_s(&self) -> f64 {
        match self.duration_ns {
            0 => 0.0,
            ns => self.count as f64 * 1e9 / ns as f64,
        }
    }
}

/// The device model's prediction for an order of blocks, beside the measurement.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct OrderPrediction {
    /// Name of the step that measured it ([`seekscope_run::DiskStep::name`]), or any other name.
    pub name: String,
    /// Measured blocks per second.
    pub measured_per_s: f64,
    /// Predicted blocks per second.
    pub predicted_per_s: f64,
}

impl OrderPrediction {
    /// Returns the relative error of the prediction: 0.1 is 10 % too fast.
    pub(crate) fn error(&self) -> f64 {
        self.predicted_per_s / self.measured_per_s - 1.0
    }
}
