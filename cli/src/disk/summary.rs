//! The figures of a disk run as JSON: `summary` of `run.json` and of `--json`. Names are stable;
//! see `docs/schema/disk.schema.json`.

use seekscope_report::disk::{OrderPrediction, sentences};
use seekscope_run::{DiskMeasurement, DiskStep, JobOutcome, RunDocument};
use serde_json::{Map, Value, json};

use crate::latency::LatencyUs;

/// Builds it: of a survey all steps, of a single job its figures.
pub fn summary(measurement: &DiskMeasurement, predictions: &[OrderPrediction]) -> Value {
    let common = json!({
        "profile": measurement.profile,
        "direct": is_direct(measurement),
        "direct_evidence": measurement.direct.evidence,
        "disk": measurement.disk.label(),
        "emulated": measurement.disk.is_emulated(),
        "file_bytes": measurement.file_bytes,
        "existing_file": measurement.existing_file,
        "written_bytes": measurement.written_bytes,
        "clock_read_ns": measurement.clock_read_ns,
        "surroundings": measurement.surroundings,
    });
    let own = match measurement.profile.as_str() {
        "job" => measurement
            .steps
            .first()
            .and_then(job)
            .unwrap_or(Value::Null),
        _ => survey(measurement, predictions),
    };
    merged(common, own)
}

/// Direct I/O goes around the page cache here, and a single job used it.
fn is_direct(measurement: &DiskMeasurement) -> bool {
    let asked_for = |step: &DiskStep| step.main().is_some_and(|main| main.job.direct);
    let single =
        (measurement.profile == "job").then(|| measurement.steps.first().is_some_and(asked_for));
    measurement.direct.real && single.unwrap_or(true)
}

fn merged(first: Value, second: Value) -> Value {
    let mut all = Map::new();
    for part in [first, second] {
        if let Value::Object(fields) = part {
            all.extend(fields);
        }
    }
    Value::Object(all)
}

/// The document printed by `--json`.
pub fn document(run: &RunDocument, run_dir: &str) -> Value {
    json!({
        "schema": "seekscope/disk/1",
        "command": run.command,
        "outcome": run.outcome,
        "outcome_reason": run.outcome_reason,
        "run_dir": run_dir,
        "host": run.host,
        "device": run.device,
        "limitations": run.limitations,
        "summary": run.summary,
        "findings": run.findings,
    })
}

fn survey(measurement: &DiskMeasurement, predictions: &[OrderPrediction]) -> Value {
    let meanings = sentences(measurement);
    json!({
        "steps": measurement.steps.iter().map(step).collect::<Vec<_>>(),
        "model": measurement.model,
        "predictions": predictions.iter().map(|p| json!({
            "name": p.name,
            "measured_per_s": p.measured_per_s,
            "predicted_per_s": p.predicted_per_s,
        })).collect::<Vec<_>>(),
        "meaning": meanings.iter().map(|(about, text)| json!({
            "about": about,
            "text": text,
        })).collect::<Vec<_>>(),
    })
}

fn step(step: &DiskStep) -> Value {
    merged(
        json!({
            "name": step.name,
            "group": step.group,
            "device_read_bytes": step.device_read_bytes,
            "io_pressure": step.io_pressure,
            "load_1m": step.load_1m,
        }),
        step.main().map(outcome).unwrap_or_default(),
    )
}

fn job(step: &DiskStep) -> Option<Value> {
    let main = step.main()?;
    // Whether direct I/O was asked for and real stands at the top.
    let mut figures = outcome(main);
    if let Value::Object(fields) = &mut figures {
        fields.remove("direct");
    }
    Some(figures)
}

fn outcome(outcome: &JobOutcome) -> Value {
    let main = match outcome.reads.operations {
        0 => &outcome.writes,
        _ => &outcome.reads,
    };
    json!({
        "access": outcome.job.access,
        "engine": outcome.job.engine,
        "block_bytes": outcome.job.block_bytes,
        "depth": outcome.job.depth,
        "threads": outcome.job.threads,
        "rate_per_s": outcome.job.rate_per_s,
        "direct": outcome.job.direct,
        "elapsed_s": outcome.elapsed_ns as f64 / 1e9,
        "operations": outcome.operations(),
        "iops": outcome.iops(),
        "bytes_per_s": outcome.bytes_per_s(),
        "latency_us": LatencyUs::from(main.latency),
        "service_us": main.service.map(LatencyUs::from),
        "write_latency_us": (outcome.writes.operations > 0).then(|| LatencyUs::from(outcome.writes.latency)),
        "sync_latency_us": (outcome.syncs.operations > 0).then(|| LatencyUs::from(outcome.syncs.latency)),
        "cpu_us_per_io": outcome.cpu_us_per_io(),
        "behind": outcome.behind,
        "engine_notes": outcome.engine_notes,
    })
}
