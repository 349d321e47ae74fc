//! What a disk run's records say, derived from the run directory each time: by `disk` at its end and by
//! `report` later.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use hdrhistogram::Histogram;
use seekscope_disk::model::{self, Order, PredictOptions, Region};
use seekscope_report::disk::{
    DiskReportInput, OrderPrediction, SecondPoint, histogram_key, html, terminal,
};
use seekscope_run::{
    DeviceModel, DiskMeasurement, DiskStep, Interval, Limitation, Outcome, RunDirectory, StepGroup,
    parse_tag,
};

use super::summary::DiskSummary;
use crate::args::OutputArgs;
use crate::ending;
use crate::output::{self, DiskRunOutput};
use crate::progress::Progress;
use crate::session::Session;

/// Largest relative error of the model for the survey's own orders; beyond it the run reports a limitation.
const PREDICTION_ERROR_MAX: f64 = 0.25;
/// The limitation of a survey whose model is.
const IS_OFF: &str = "the device model is off by more than a quarter for orders that were measured";

/// The latencies, seconds and predictions of a disk run.
pub struct Results {
    histograms: BTreeMap<String, Histogram<u64>>,
    seconds: Vec<SecondPoint>,
    predictions: Vec<OrderPrediction>,
}

impl Results {
    /// Reads the records, makes the model and fills in the summary.
    pub fn derive(session: &mut Session) -> Result<Self> {
        let predictions = make_model(session);
        let results = Self {
            histograms: histograms(&session.directory)?,
            seconds: session
                .directory
                .intervals()?
                .into_iter()
                .map(second)
                .collect(),
            predictions,
        };
        if let Some(measurement) = &session.document.disk {
            let summary = DiskSummary::of(measurement, &results.predictions);
            session.document.summary = serde_json::to_value(summary)?;
        }
        Ok(results)
    }

    /// Saves the run, and writes `report.html`.
    pub fn save(&self, session: &Session) -> Result<()> {
        session.save_with_page(&html(&self.input(session)))
    }

    fn input<'a>(&'a self, session: &'a Session) -> DiskReportInput<'a> {
        DiskReportInput {
            document: &session.document,
            histograms: &self.histograms,
            seconds: &self.seconds,
            predictions: &self.predictions,
        }
    }

    /// Saves the run, and prints tables or JSON on stdout, also if it cannot be saved.
    pub fn show(&self, session: &Session, args: &OutputArgs, progress: Progress) -> Result<()> {
        let saved = self.save(session);
        let document = &session.document;
        let json = |run_dir: &str| {
            let shown = DiskRunOutput::with_summary("disk", document, run_dir, &document.summary);
            output::print_json(&shown)
        };
        let text = |width| Ok(terminal(&self.input(session), width));
        ending::print(&session.directory, saved, args, progress, json, text)
    }
}

/// Returns the distributions of the run by the report's keys.
fn histograms(directory: &RunDirectory) -> Result<BTreeMap<String, Histogram<u64>>> {
    let by_tag = directory.latency_histograms()?;
    let keyed = by_tag.into_iter().filter_map(|(tag, histogram)| {
        let (step, operation) = parse_tag(&tag)?;
        Some((histogram_key(&step, &operation), histogram))
    });
    Ok(keyed.collect())
}

fn second(interval: Interval) -> SecondPoint {
    // With a schedule, the latency that a caller would have seen.
    let latency = interval.response.unwrap_or(interval.latency);
    SecondPoint {
        step: interval.step,
        operation: interval.operation,
        t_ns: interval.t_ns,
        duration_ns: interval.duration_ns,
        count: interval.count,
        p50_ns: latency.p50_ns,
        p99_ns: latency.p99_ns,
    }
}

/// Fits the model to a survey's steps and tests it on the measured orders.
fn make_model(session: &mut Session) -> Vec<OrderPrediction> {
    let document = &mut session.document;
    let (Some(measurement), Some(device)) = (&mut document.disk, &document.device) else {
        return Vec::new();
    };
    if measurement.profile == "job" {
        return Vec::new();
    }
    let direct = measurement.direct.real;
    match model::fit(&measurement.steps, device, device.request_bytes_max, direct) {
        Ok(mut fitted) => {
            if measurement.disk.is_emulated() {
                fitted.disk = format!("{}, {}", fitted.disk, measurement.disk.label());
            }
            let predictions = order_predictions(measurement, &fitted);
            measurement.model = Some(fitted);
            note_bad_predictions(session, &predictions);
            predictions
        }
        Err(error) => {
            let mut outcomes = measurement.steps.iter().filter_map(DiskStep::main);
            let remedy = match outcomes.any(|outcome| outcome.job.rate_per_s.is_some()) {
                true => "survey the disk without --next-to-database while nobody needs it",
                false => "let the survey run to its end",
            };
            session.limit(Limitation {
                what: "no device model was made".into(),
                why: error.to_string(),
                remedy: remedy.into(),
            });
            Vec::new()
        }
    }
}

fn order_predictions(measurement: &DiskMeasurement, model: &DeviceModel) -> Vec<OrderPrediction> {
    let orders = measurement
        .steps
        .iter()
        .filter(|s| s.group == StepGroup::Order);
    orders
        .filter_map(|step| order_prediction(measurement, model, step))
        .collect()
}

/// Predicts the same number of blocks in the same order, from a cold cache.
fn order_prediction(
    measurement: &DiskMeasurement,
    model: &DeviceModel,
    step: &DiskStep,
) -> Option<OrderPrediction> {
    let outcome = step.main()?;
    let facts = &outcome.job;
    let blocks = measurement.file_bytes.checked_div(facts.block_bytes)?;
    if outcome.operations() == 0 || outcome.operations() > blocks || facts.rate_per_s.is_some() {
        return None;
    }
    let order = match facts.run_blocks {
        None => Order::Sequential,
        Some(1) => Order::Shuffled,
        Some(n) => Order::Runs(n),
    };
    let region = Region {
        file: 0,
        offset: 0,
        blocks,
        block_bytes: facts.block_bytes,
    };
    let accesses = region.reads_up_to(order, 1, outcome.operations());
    let mut options = PredictOptions::with_memory(measurement.file_bytes.saturating_mul(2));
    options.file_bytes.insert(0, measurement.file_bytes);
    let predicted_ns = model::predict(model, &accesses, &options).elapsed_ns;
    Some(OrderPrediction {
        name: step.name.clone(),
        measured_per_s: outcome.iops(),
        predicted_per_s: accesses.len() as f64 * 1e9 / predicted_ns.max(1) as f64,
    })
}

fn note_bad_predictions(session: &mut Session, predictions: &[OrderPrediction]) {
    let off = |p: &&OrderPrediction| {
        (p.predicted_per_s / p.measured_per_s - 1.0).abs() > PREDICTION_ERROR_MAX
    };
    let bad: Vec<String> = predictions
        .iter()
        .filter(off)
        .map(|p| {
            format!(
                "{}: predicted {:.0}/s, measured {:.0}/s",
                p.name, p.predicted_per_s, p.measured_per_s
            )
        })
        .collect();
    if !bad.is_empty() {
        session.limit(Limitation {
            what: IS_OFF.into(),
            why: bad.join("; "),
            remedy: "the disk may have changed its speed during the run: run it again when the host is quiet, or with --profile full".into(),
        });
    }
}

/// Opens a survey's run for its model, whose disk is named with what makes the model less than it could be.
pub fn load_model(
    run: &Path,
) -> Result<(DeviceModel, DiskMeasurement, seekscope_run::RunDocument)> {
    let (_directory, document) = RunDirectory::open(run)?;
    let missing = || {
        crate::exit::Usage(format!(
            "{} holds no device model; name a run of `seekscope disk`",
            run.display()
        ))
    };
    let measurement = document.disk.clone().ok_or_else(missing)?;
    let mut model = measurement.model.clone().ok_or_else(missing)?;
    if document.outcome != Outcome::Ok {
        model.disk.push_str(", by a run that was not complete");
    }
    if document.limitations.iter().any(|one| one.what == IS_OFF) {
        model
            .disk
            .push_str(", by a model that was off by more than a quarter");
    }
    Ok((model, measurement, document))
}
