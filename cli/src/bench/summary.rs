//! The figures of a benchmark as JSON: `summary` of `run.json` and of `--json`. Names are stable; see
//! `docs/schema/bench.schema.json`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use seekscope_report::bench::comparison::BenchComparison;
use seekscope_report::bench::index_builds::{BuildComparison, compared};
use seekscope_run::{
    Arrivals, BenchIndexBuild, BenchMeasurement, BenchSharding, BenchStep, ClientKind, IndexedFile,
    OperationResult, Saturation, SchemaExperiment, SchemaShape, Steady, StepShards, StorageFacts,
    Verification,
};
use serde::Serialize;

use crate::latency::LatencyUs;

/// What a benchmark measured. Its top-level figures are for the runs, or for the loads if there were no runs.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BenchSummary<'a> {
    workload: &'a str,
    /// The rules that were followed: ycsb, corrected, an era of sysbench-mongodb, …
    edition: &'a str,
    /// Every setting as resolved, by name; no credentials.
    settings: &'a BTreeMap<String, String>,
    /// The database written to.
    database: &'a str,
    /// This client's number, from 1; null unless several clients shared one job.
    client_number: Option<u32>,
    /// Number of clients that shared the job; null unless there were several.
    clients: Option<u32>,
    /// Run directories that a merged run was made of.
    merged_from: &'a [String],
    /// How collections were sharded, and how their documents are spread; null without `--shard`.
    sharding: Option<&'a BenchSharding>,
    /// Whether the clients kept to their schedules and acknowledged writes were found, in all steps except probes.
    valid: bool,
    client: Option<ClientKind>,
    operations: Vec<OperationSummary<'a>>,
    /// CPU time of the client per request, in the runs, or in the loads if there were no runs.
    client_cpu_us_per_op: Option<f64>,
    /// CPU time of the server per request; null if its process cannot be seen.
    server_cpu_us_per_op: Option<f64>,
    storage: Option<&'a StorageFacts>,
    /// Size of data files and indexes per document of the collections; leftover copies on shards are not counted.
    bytes_per_document: Option<f64>,
    /// Bytes that the server's process wrote for each byte of documents that loads added; null if unknown or none was
    /// added.
    write_amplification: Option<f64>,
    steps: Vec<StepSummary<'a>>,
    /// Servers or settings that took turns (`--vs`, `--vs-config`), compared with the first; as in the summary of
    /// seekscope/compare/1.
    variants: Option<&'a BenchComparison>,
    /// The search for the highest rate.
    saturation: Option<&'a Saturation>,
    index_builds: &'a [BenchIndexBuild],
    /// Index builds on two servers in turn (`--vs`), compared; empty for one server.
    index_comparisons: Vec<BuildComparison>,
    /// The files that index builds read, with `--shard` and `--vs`.
    indexed_files: &'a [IndexedFile],
    /// One entry for each shape of a schema lab.
    shapes: &'a [SchemaShape],
    /// What the lab's published forerunners found, beside what the lab found.
    experiments: &'a [SchemaExperiment],
    /// What the lab recommends, and why.
    recommendation: Option<&'a str>,
}

/// One kind of operation over a step, warm-up left out.
#[derive(Debug, Serialize, JsonSchema)]
struct OperationSummary<'a> {
    step: &'a str,
    workload: &'a str,
    variant: &'a str,
    repetition: u32,
    /// READ, UPDATE, INSERT, SCAN, READ-MODIFY-WRITE, transaction, …
    name: &'a str,
    /// Whether it is made up of several requests, which are also counted by themselves.
    is_transaction: bool,
    /// Operations that succeeded, without the warm-up.
    count: u64,
    errors: u64,
    documents: u64,
    bytes: u64,
    /// `count` per second of the measured time: failures never count.
    per_s: f64,
    /// 95 % interval of `per_s`, from batch means; null if the time was too short.
    per_s_interval: Option<(f64, f64)>,
    /// Time from sending to the reply.
    service_us: LatencyUs,
    /// Time from the scheduled start to the reply; in a closed loop the same as `service_us`.
    response_us: LatencyUs,
}

/// A stretch of work of one kind.
#[derive(Debug, Serialize, JsonSchema)]
struct StepSummary<'a> {
    name: &'a str,
    #[schemars(extend("enum" = ["load", "run", "probe"]))]
    kind: &'a str,
    workload: &'a str,
    /// Which of several servers or settings; empty if there is only one.
    variant: &'a str,
    repetition: u32,
    client: ClientKind,
    /// Why this client was chosen, for people.
    client_reason: &'a str,
    arrivals: &'a Arrivals,
    /// Operations that could be in flight at once.
    in_flight: u32,
    elapsed_s: f64,
    /// Duration of the warm-up, which is left out of the figures; null if none was seen or wanted.
    warm_up_s: Option<f64>,
    steady: Option<&'a Steady>,
    valid: bool,
    /// Why the figures must not be trusted; empty if they may be.
    invalid: &'a [String],
    /// Requests that were answered or failed, warm-up included.
    requests: u64,
    /// Transactions begun, warm-up included. A request that belongs to no transaction counts as one.
    transactions: u64,
    /// Transactions due per second by the schedule; null in a closed loop.
    offered_per_s: Option<f64>,
    /// Transactions that succeeded, per second. A request that belongs to no transaction counts as one.
    throughput_per_s: f64,
    /// 95 % interval of `throughput_per_s`, from batch means; null if the time was too short.
    throughput_interval: Option<(f64, f64)>,
    failures: Vec<FailureSummary<'a>>,
    /// Operations that were due but never begun.
    backlog_at_end: u64,
    /// The client's own lateness while it had a free connection.
    lag_us: LatencyUs,
    /// CPU time of the client per request; null without requests.
    client_cpu_us_per_op: Option<f64>,
    /// CPU time of the server per request; null if its process cannot be seen.
    server_cpu_us_per_op: Option<f64>,
    /// Bytes that the server's process read from its disk per request, from the checkpoint before the step to the end
    /// of the one after it; null if there was none.
    server_read_bytes_per_op: Option<f64>,
    /// Bytes that the server's process wrote to its disk per request, from the checkpoint before the step to the end of
    /// the one after it; null if there was none.
    server_write_bytes_per_op: Option<f64>,
    /// Peak resident memory of the client.
    client_rss_bytes: u64,
    storage_before: Option<&'a StorageFacts>,
    /// After a checkpoint has written everything to the files; null if there was none.
    storage_after: Option<&'a StorageFacts>,
    /// Documents of `storage_after` that are copies, left or not finished by moves of chunks between shards, which no query
    /// returns.
    copies_on_shards: u64,
    verification: Option<&'a Verification>,
    /// Whether acknowledged writes were there afterwards; null if nothing was counted or read back.
    verified: Option<bool>,
    /// What each shard did; null unless the server is a mongos.
    shards: Option<&'a StepShards>,
}

/// Failures of one kind, with one message.
#[derive(Debug, Serialize, JsonSchema)]
struct FailureSummary<'a> {
    operation: &'a str,
    name: &'a str,
    count: u64,
    message: &'a str,
}

impl<'a> BenchSummary<'a> {
    /// Makes the summary of a record. `variants`: set where several servers or settings took turns.
    pub fn of(measurement: &'a BenchMeasurement, variants: Option<&'a BenchComparison>) -> Self {
        let main = main_steps(measurement);
        let last = main.last();
        let storage = last.and_then(|step| step.storage_after.as_ref());
        Self {
            workload: &measurement.workload,
            edition: &measurement.edition,
            settings: &measurement.settings,
            database: &measurement.database,
            client_number: measurement.client_number.map(|(number, _)| number),
            clients: measurement.client_number.map(|(_, count)| count),
            merged_from: &measurement.merged_from,
            sharding: measurement.sharding.as_ref(),
            valid: measurement.steps.iter().all(is_valid),
            client: last.map(|step| step.client),
            operations: measurement.steps.iter().flat_map(operations).collect(),
            client_cpu_us_per_op: cpu_us_per_op(&main, |step| Some(step.client_cpu_ns)),
            server_cpu_us_per_op: cpu_us_per_op(&main, |step| step.server_cpu_ns),
            storage,
            bytes_per_document: last.and_then(|step| step.disk_bytes_per_document()),
            write_amplification: write_amplification(measurement),
            steps: measurement.steps.iter().map(StepSummary::of).collect(),
            variants,
            saturation: measurement.saturation.as_ref(),
            index_builds: &measurement.index_builds,
            index_comparisons: compared(measurement),
            indexed_files: &measurement.indexed_files,
            shapes: &measurement.shapes,
            experiments: &measurement.experiments,
            recommendation: measurement.recommendation.as_deref(),
        }
    }
}

impl<'a> OperationSummary<'a> {
    fn of(step: &'a BenchStep, operation: &'a OperationResult) -> Self {
        let service = LatencyUs::from(operation.service);
        Self {
            step: &step.name,
            workload: &step.workload,
            variant: &step.variant,
            repetition: step.repetition,
            name: &operation.name,
            is_transaction: operation.is_transaction,
            count: operation.count,
            errors: operation.errors,
            documents: operation.documents,
            bytes: operation.bytes,
            per_s: operation.per_s,
            per_s_interval: operation.per_s_interval,
            service_us: service,
            // In a closed loop an operation starts when it is sent.
            response_us: operation.response.map_or(service, LatencyUs::from),
        }
    }
}

impl<'a> StepSummary<'a> {
    fn of(step: &'a BenchStep) -> Self {
        let per_request = |amount: Option<u64>| step.per_request(amount?);
        let since_start_s = |ns: u64| ns.saturating_sub(step.started_ns) as f64 / 1e9;
        Self {
            name: &step.name,
            kind: &step.kind,
            workload: &step.workload,
            variant: &step.variant,
            repetition: step.repetition,
            client: step.client,
            client_reason: &step.client_reason,
            arrivals: &step.arrivals,
            in_flight: step.in_flight,
            elapsed_s: since_start_s(step.ended_ns),
            warm_up_s: step.warm_up_ended_ns.map(since_start_s),
            steady: step.steady.as_ref(),
            valid: is_valid(step),
            invalid: &step.invalid,
            requests: step.requests,
            transactions: step.transactions,
            offered_per_s: step.offered_per_s,
            throughput_per_s: step.throughput_per_s,
            throughput_interval: step.throughput_interval,
            failures: step.failures.iter().map(FailureSummary::of).collect(),
            backlog_at_end: step.backlog_at_end,
            lag_us: LatencyUs::from(step.lag),
            client_cpu_us_per_op: per_request(Some(step.client_cpu_ns)).map(|ns| ns / 1e3),
            server_cpu_us_per_op: per_request(step.server_cpu_ns).map(|ns| ns / 1e3),
            server_read_bytes_per_op: per_request(step.server_read_bytes),
            server_write_bytes_per_op: per_request(step.server_write_bytes),
            client_rss_bytes: step.client_rss_bytes,
            storage_before: step.storage_before.as_ref(),
            storage_after: step.storage_after.as_ref(),
            copies_on_shards: step.copies_on_shards(),
            verification: step.verification.as_ref(),
            verified: step.verification.as_ref().and_then(Verification::verdict),
            shards: step.shards.as_ref(),
        }
    }
}

impl<'a> FailureSummary<'a> {
    fn of((operation, name, count, message): &'a (String, String, u64, String)) -> Self {
        Self {
            operation,
            name,
            count: *count,
            message,
        }
    }
}

fn operations(step: &BenchStep) -> impl Iterator<Item = OperationSummary<'_>> {
    let operations = step.operations.iter();
    operations.map(move |operation| OperationSummary::of(step, operation))
}

/// Returns whether a step's figures are reliable. Probes of a search are exempt: they are meant to find where
/// figures stop being reliable.
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

fn cpu_us_per_op(steps: &[&BenchStep], cpu_ns: impl Fn(&BenchStep) -> Option<u64>) -> Option<f64> {
    let total: Option<u64> = steps.iter().map(|step| cpu_ns(step)).sum();
    let requests: u64 = steps.iter().map(|step| step.requests).sum();
    total
        .filter(|_| requests > 0)
        .map(|ns| ns as f64 / 1e3 / requests as f64)
}

/// Returns the bytes that the server wrote per byte of data added, over the steps that added any.
fn write_amplification(measurement: &BenchMeasurement) -> Option<f64> {
    let (added, written) = measurement
        .steps
        .iter()
        .filter_map(BenchStep::added_and_written)
        .fold((0, 0), |sum, step| (sum.0 + step.0, sum.1 + step.1));
    (added > 0).then(|| written as f64 / added as f64)
}
