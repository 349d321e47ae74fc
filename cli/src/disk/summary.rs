//! The figures of a disk run as JSON: `summary` of `run.json` and of `--json`. Names are stable;
//! see `docs/schema/disk.schema.json`.

use schemars::JsonSchema;
use seekscope_report::disk::{OrderPrediction, sentences};
use seekscope_run::{
    AccessKind, DeviceModel, DiskMeasurement, DiskStep, EngineKind, JobOutcome, StepGroup,
    Surroundings,
};
use serde::Serialize;

use crate::latency::LatencyUs;

/// What a disk can do: for a survey, all its steps; for a single job, its figures.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum DiskSummary<'a> {
    Survey(SurveySummary<'a>),
    Job(Box<JobSummary<'a>>),
    /// A single job that ended before it measured anything.
    #[schemars(extend("not" = { "anyOf": [{ "required": ["access"] }, { "required": ["steps"] }] }))]
    Unmeasured(CommonSummary<'a>),
}

/// What surveys and single jobs have in common.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CommonSummary<'a> {
    #[schemars(extend("enum" = ["quick", "full", "sustained", "job"]))]
    profile: &'a str,
    /// Whether direct I/O, tried on the file, left nothing in the page cache; for a single job, also whether the job
    /// used it.
    direct: bool,
    /// How that was determined, for people.
    direct_evidence: &'a str,
    /// plain disk, or a text such as: emulated hdd (150 IOPS, 150 MB/s).
    disk: String,
    /// True if reads were throttled by the kernel: the figures are not this disk's.
    emulated: bool,
    file_bytes: u64,
    /// The file that was read; null if it is seekscope's own.
    existing_file: Option<&'a str>,
    /// Bytes that this run wrote to the disk, by the kernel's count.
    written_bytes: u64,
    /// Cost of reading the clock once; each operation needs one or two readings.
    #[schemars(range(min = 0))]
    clock_read_ns: f64,
    surroundings: &'a Surroundings,
}

/// All steps of a survey, and what they show.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SurveySummary<'a> {
    #[serde(flatten)]
    common: CommonSummary<'a>,
    steps: Vec<StepSummary<'a>>,
    /// null if there were too few steps.
    model: Option<&'a DeviceModel>,
    /// The model's predictions for the orders that were measured.
    predictions: &'a [OrderPrediction],
    /// What the figures mean for a database, in sentences.
    meaning: Vec<Meaning>,
}

/// What the steps show about one question.
#[derive(Debug, Serialize, JsonSchema)]
struct Meaning {
    about: &'static str,
    text: String,
}

/// A single job.
#[derive(Debug, Serialize, JsonSchema)]
pub struct JobSummary<'a> {
    #[serde(flatten)]
    common: CommonSummary<'a>,
    #[serde(flatten)]
    figures: Figures<'a>,
}

/// One step of a survey.
#[derive(Debug, Serialize, JsonSchema)]
struct StepSummary<'a> {
    name: &'a str,
    group: StepGroup,
    /// Bytes that the process made the block layer read, by the kernel's count; null if unknown.
    device_read_bytes: Option<u64>,
    /// Share of the time in which some task of the host waited for I/O; null if unknown.
    #[schemars(range(min = 0, max = 1))]
    io_pressure: Option<f64>,
    #[schemars(range(min = 0))]
    load_1m: f64,
    /// Whether the page cache was to be bypassed.
    direct: bool,
    #[serde(flatten)]
    figures: Figures<'a>,
}

/// What a job did, and its results.
#[derive(Debug, Serialize, JsonSchema)]
struct Figures<'a> {
    access: AccessKind,
    engine: EngineKind,
    #[schemars(range(min = 1))]
    block_bytes: u64,
    /// Requests in flight per thread.
    #[schemars(range(min = 1))]
    depth: u32,
    #[schemars(range(min = 1))]
    threads: u32,
    /// Target rate of all threads together; null if the job ran as fast as it could.
    rate_per_s: Option<f64>,
    #[schemars(range(min = 0))]
    elapsed_s: f64,
    operations: u64,
    #[schemars(range(min = 0))]
    iops: f64,
    #[schemars(range(min = 0))]
    bytes_per_s: f64,
    /// Latency of the reads, or of the writes if nothing was read; from the intended start if there is a target rate.
    latency_us: LatencyUs,
    /// The same, from the call; null without a target rate.
    service_us: Option<LatencyUs>,
    /// null if nothing was written.
    write_latency_us: Option<LatencyUs>,
    /// null if nothing was synced.
    sync_latency_us: Option<LatencyUs>,
    #[schemars(range(min = 0))]
    cpu_us_per_io: Option<f64>,
    /// Operations that were due but had not been issued when time was up.
    behind: u64,
    /// What the engine could not use.
    engine_notes: &'a [String],
}

impl<'a> DiskSummary<'a> {
    /// Makes the summary of a record.
    pub fn of(measurement: &'a DiskMeasurement, predictions: &'a [OrderPrediction]) -> Self {
        let common = CommonSummary::of(measurement);
        if measurement.profile != "job" {
            return Self::Survey(SurveySummary::of(common, measurement, predictions));
        }
        match measurement.steps.first().and_then(DiskStep::main) {
            Some(main) => Self::Job(Box::new(JobSummary {
                common,
                figures: Figures::of(main),
            })),
            None => Self::Unmeasured(common),
        }
    }
}

impl<'a> CommonSummary<'a> {
    fn of(measurement: &'a DiskMeasurement) -> Self {
        Self {
            profile: &measurement.profile,
            direct: is_direct(measurement),
            direct_evidence: &measurement.direct.evidence,
            disk: measurement.disk.label(),
            emulated: measurement.disk.is_emulated(),
            file_bytes: measurement.file_bytes,
            existing_file: measurement.existing_file.as_deref(),
            written_bytes: measurement.written_bytes,
            clock_read_ns: measurement.clock_read_ns,
            surroundings: &measurement.surroundings,
        }
    }
}

/// Returns whether direct I/O bypasses the page cache here and, for a single job, was used.
fn is_direct(measurement: &DiskMeasurement) -> bool {
    let asked_for = |step: &DiskStep| step.main().is_some_and(|main| main.job.direct);
    let single =
        (measurement.profile == "job").then(|| measurement.steps.first().is_some_and(asked_for));
    measurement.direct.real && single.unwrap_or(true)
}

impl<'a> SurveySummary<'a> {
    fn of(
        common: CommonSummary<'a>,
        measurement: &'a DiskMeasurement,
        predictions: &'a [OrderPrediction],
    ) -> Self {
        let meaning = |(about, text): (_, _)| Meaning { about, text };
        Self {
            common,
            steps: measurement
                .steps
                .iter()
                .filter_map(StepSummary::of)
                .collect(),
            model: measurement.model.as_ref(),
            predictions,
            meaning: sentences(measurement).into_iter().map(meaning).collect(),
        }
    }
}

impl<'a> StepSummary<'a> {
    /// Returns the figures of the step's main job, which every step has.
    fn of(step: &'a DiskStep) -> Option<Self> {
        let main = step.main()?;
        Some(Self {
            name: &step.name,
            group: step.group,
            device_read_bytes: step.device_read_bytes,
            io_pressure: step.io_pressure,
            load_1m: step.load_1m,
            direct: main.job.direct,
            figures: Figures::of(main),
        })
    }
}

impl<'a> Figures<'a> {
    fn of(outcome: &'a JobOutcome) -> Self {
        let main = match outcome.reads.operations {
            0 => &outcome.writes,
            _ => &outcome.reads,
        };
        let of_any = |operations: u64, latency| (operations > 0).then(|| LatencyUs::from(latency));
        Self {
            access: outcome.job.access,
            engine: outcome.job.engine,
            block_bytes: outcome.job.block_bytes,
            depth: outcome.job.depth,
            threads: outcome.job.threads,
            rate_per_s: outcome.job.rate_per_s,
            elapsed_s: outcome.elapsed_ns as f64 / 1e9,
            operations: outcome.operations(),
            iops: outcome.iops(),
            bytes_per_s: outcome.bytes_per_s(),
            latency_us: LatencyUs::from(main.latency),
            service_us: main.service.map(LatencyUs::from),
            write_latency_us: of_any(outcome.writes.operations, outcome.writes.latency),
            sync_latency_us: of_any(outcome.syncs.operations, outcome.syncs.latency),
            cpu_us_per_io: outcome.cpu_us_per_io(),
            behind: outcome.behind,
            engine_notes: &outcome.engine_notes,
        }
    }
}
