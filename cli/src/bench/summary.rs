//! The figures of a benchmark as JSON: `summary` of `run.json` and of `--json`. Names are stable; see
//! `docs/schema/bench.schema.json`.

use seekscope_report::bench::comparison::BenchComparison;
use seekscope_run::{
    BenchMeasurement, BenchStep, OperationResult, RunDocument, StorageFacts, Verification,
};
use serde_json::{Value, json};

use super::client_choice::name_of;
use crate::latency::LatencyUs;
use crate::output::run_document;

/// The document printed by `--json`.
pub fn document(run: &RunDocument, run_dir: &str) -> Value {
    // `bench` and `merge`, which makes one run of several.
    run_document(&format!("seekscope/{}/1", run.command), run, run_dir)
}

/// Builds the summary. The figures at its top are those of the runs; of the loads where nothing else
/// was done. `variants`: where several servers or settings took turns.
pub fn summary(measurement: &BenchMeasurement, variants: Option<&BenchComparison>) -> Value {
    let main = main_steps(measurement);
    let last = main.last();
    json!({
        "workload": measurement.workload,
        "edition": measurement.edition,
        "settings": measurement.settings,
        "database": measurement.database,
        "client_number": measurement.client_number.map(|(number, _)| number),
        "clients": measurement.client_number.map(|(_, count)| count),
        "merged_from": measurement.merged_from,
        "valid": measurement.steps.iter().all(is_valid),
        "client": last.map(|step| name_of(step.client)),
        "operations": measurement.steps.iter().flat_map(operations).collect::<Vec<_>>(),
        "client_cpu_us_per_op": cpu_us_per_op(&main, |step| Some(step.client_cpu_ns)),
        "server_cpu_us_per_op": cpu_us_per_op(&main, |step| step.server_cpu_ns),
        "storage": last.and_then(|step| step.storage_after.as_ref()),
        "bytes_per_document": last.and_then(|s| s.storage_after.as_ref()).and_then(StorageFacts::bytes_per_document),
        "write_amplification": write_amplification(measurement),
        "steps": measurement.steps.iter().map(step).collect::<Vec<_>>(),
        "variants": variants,
        "saturation": measurement.saturation,
        "index_builds": measurement.index_builds,
        "shapes": measurement.shapes,
        "experiments": measurement.experiments,
        "recommendation": measurement.recommendation,
    })
}

/// A step whose figures may be believed. Probes of a search are meant to find where they may not.
fn is_valid(step: &BenchStep) -> bool {
    let verified = step.verification.as_ref().is_none_or(|v| v.holds());
    step.kind == "probe" || (step.invalid.is_empty() && verified)
}

fn main_steps(measurement: &BenchMeasurement) -> Vec<&BenchStep> {
    let of_kind = |kind: &str| -> Vec<&BenchStep> {
        measurement
            .steps
            .iter()
            .filter(|s| s.kind == kind)
            .collect()
    };
    let runs = of_kind("run");
    if runs.is_empty() {
        of_kind("load")
    } else {
        runs
    }
}

fn operations(step: &BenchStep) -> Vec<Value> {
    let one = |operation: &OperationResult| {
        let service = LatencyUs::from(operation.service);
        json!({
            "step": step.name,
            "workload": step.workload,
            "variant": step.variant,
            "repetition": step.repetition,
            "name": operation.name,
            "is_transaction": operation.is_transaction,
            "count": operation.count,
            "errors": operation.errors,
            "documents": operation.documents,
            "bytes": operation.bytes,
            "per_s": operation.per_s,
            "per_s_interval": operation.per_s_interval,
            "service_us": service,
            // In a closed loop an operation starts when it is sent.
            "response_us": operation.response.map_or(service, LatencyUs::from),
        })
    };
    step.operations.iter().map(one).collect()
}

fn step(step: &BenchStep) -> Value {
    let per_request = |amount: Option<u64>| step.per_request(amount?);
    json!({
        "name": step.name,
        "kind": step.kind,
        "workload": step.workload,
        "variant": step.variant,
        "repetition": step.repetition,
        "client": name_of(step.client),
        "client_reason": step.client_reason,
        "arrivals": step.arrivals,
        "in_flight": step.in_flight,
        "elapsed_s": elapsed_s(step),
        "warm_up_s": step.warm_up_ended_ns.map(|ns| ns.saturating_sub(step.started_ns) as f64 / 1e9),
        "steady": step.steady,
        "valid": is_valid(step),
        "invalid": step.invalid,
        "requests": step.requests,
        "transactions": step.transactions,
        "offered_per_s": step.offered_per_s,
        "throughput_per_s": step.throughput_per_s,
        "throughput_interval": step.throughput_interval,
        "failures": step.failures.iter().map(|(operation, name, count, message)| json!({
            "operation": operation,
            "name": name,
            "count": count,
            "message": message,
        })).collect::<Vec<_>>(),
        "backlog_at_end": step.backlog_at_end,
        "lag_us": LatencyUs::from(step.lag),
        "client_cpu_us_per_op": per_request(Some(step.client_cpu_ns)).map(|ns| ns / 1e3),
        "server_cpu_us_per_op": per_request(step.server_cpu_ns).map(|ns| ns / 1e3),
        "server_read_bytes_per_op": per_request(step.server_read_bytes),
        "server_write_bytes_per_op": per_request(step.server_write_bytes),
        "client_rss_bytes": step.client_rss_bytes,
        "storage_before": step.storage_before,
        "storage_after": step.storage_after,
        "verification": step.verification,
        "verified": step.verification.as_ref().and_then(Verification::verdict),
    })
}

fn elapsed_s(step: &BenchStep) -> f64 {
    step.ended_ns.saturating_sub(step.started_ns) as f64 / 1e9
}

fn cpu_us_per_op(steps: &[&BenchStep], cpu_ns: impl Fn(&BenchStep) -> Option<u64>) -> Option<f64> {
    let total: Option<u64> = steps.iter().map(|step| cpu_ns(step)).sum();
    let requests: u64 = steps.iter().map(|step| step.requests).sum();
    total
        .filter(|_| requests > 0)
        .map(|ns| ns as f64 / 1e3 / requests as f64)
}

/// Bytes that the server wrote for each byte of data that was added, over the steps that added any.
fn write_amplification(measurement: &BenchMeasurement) -> Option<f64> {
    let (added, written) = measurement
        .steps
        .iter()
        .filter_map(BenchStep::added_and_written)
        .fold((0, 0), |sum, step| (sum.0 + step.0, sum.1 + step.1));
    (added > 0).then(|| written as f64 / added as f64)
}
