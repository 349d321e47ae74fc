//! `seekscope disk run`: a single job.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Result;
use seekscope_disk::survey::SurveyObserver;
use seekscope_disk::{DiskError, Job, Step, step};
use seekscope_run::{
    AccessKind, DiskMeasurement, EngineKind, JobOutcome, LatencySummary, ReadAdvice, StepGroup,
};

use super::measurement::{self, Ended};
use super::records::Records;
use super::target::DiskTarget;
use crate::args::{AdviceName, JobArgs, JobEngine, Rw};
use crate::environment::Environment;
use crate::exit::ThresholdMissed;
use crate::progress::Progress;
use crate::session::Session;

/// Runs the command.
pub async fn run(args: &JobArgs, environment: &Environment, arguments: Vec<String>) -> Result<()> {
    let mut target = DiskTarget::check(&args.directory, &args.place, 0)?;
    let mut job = job(args);
    let limits = target.limits();
    if let Some(limits) = &limits {
        job.hold_to(limits, 1);
    }
    target.check_job(&job)?;
    let progress = Progress::new(args.place.output.quiet);
    let more = if job.facts.access.writes() {
        " and overwrites parts of it"
    } else {
        ""
    };
    progress.say(target.announcement(more));
    let pressure_max = limits.map(|limits| limits.pressure_max);
    let measure = move |session: &mut Session, target: DiskTarget, cancel: &AtomicBool| {
        measure(session, target, job, pressure_max, progress, cancel)
    };
    let session =
        measurement::run(&args.place, target, arguments, "job", environment, measure).await?;
    check_thresholds(args, session.document.disk.as_ref())
}

fn job(args: &JobArgs) -> Job {
    let access = match args.rw {
        Rw::Read => AccessKind::Read,
        Rw::Write => AccessKind::Write,
        Rw::Rw => AccessKind::Rw,
        Rw::Randread => AccessKind::RandRead,
        Rw::Randwrite => AccessKind::RandWrite,
        Rw::Randrw => AccessKind::RandRw,
    };
    let engine = match args.engine {
        JobEngine::Uring => EngineKind::Uring,
        JobEngine::Sync => EngineKind::Sync,
        JobEngine::Mmap => EngineKind::Mmap,
        JobEngine::Null => EngineKind::Null,
    };
    let mut job = Job::new(access, engine);
    let facts = &mut job.facts;
    facts.block_bytes = args.bs;
    facts.direct &= !args.buffered;
    facts.depth = args.depth;
    facts.threads = args.threads;
    facts.rate_per_s = args.rate;
    facts.poisson = args.poisson;
    facts.sync_each_write = args.sync;
    facts.advice = match args.advice {
        AdviceName::Normal => ReadAdvice::Normal,
        AdviceName::Random => ReadAdvice::Random,
        AdviceName::Sequential => ReadAdvice::Sequential,
    };
    if matches!(access, AccessKind::Rw | AccessKind::RandRw) {
        facts.read_share = args.read_share;
    }
    job.runtime = args.runtime;
    job.warm_up = args.warm_up;
    job.seed = args.place.seed;
    job
}

fn measure(
    session: &mut Session,
    target: DiskTarget,
    job: Job,
    pressure_max: Option<f64>,
    progress: Progress,
    cancel: &AtomicBool,
) -> Result<Ended> {
    let file = target.file(session, None, job.facts.direct, progress, cancel)?;
    check_alignment(&job, session)?;
    if job.facts.engine == EngineKind::Mmap {
        seekscope_disk::end_process_on_bus_error();
    }
    if !job.facts.direct && job.facts.engine != EngineKind::Null {
        // The first reads of a job that uses the page cache must come from the disk.
        file.evict()?;
    }
    let name = name(&job);
    let expected = job.warm_up + job.runtime;
    let step = Step {
        group: StepGroup::Job,
        name: name.clone(),
        jobs: vec![(job, &file)],
        pressure_max,
    };
    let mut records = Records::new(&session.directory, &mut session.document, progress)?;
    records.line_per_second = true;
    records.step_begins(&name, 1, 1, expected);
    let end = step::run(&step, &mut |second| records.second(second), cancel)?;
    records.step_ended(&end.step)?;
    Ok(match (end.interrupted, end.held_back) {
        (true, _) => Ended::Interrupted,
        (false, Some(pressure)) => Ended::HeldBack(pressure),
        (false, None) => Ended::Complete,
    })
}

/// Refuses blocks that are too small, such as on a disk of 4 KiB blocks; the kernel would only say "invalid
/// argument".
fn check_alignment(job: &Job, session: &Session) -> Result<()> {
    let measurement = session.document.disk.as_ref();
    let alignment_bytes = measurement.map_or(0, |m| m.direct.alignment_bytes);
    let block_bytes = job.facts.block_bytes;
    if job.facts.direct && alignment_bytes > 0 && !block_bytes.is_multiple_of(alignment_bytes) {
        return Err(DiskError::InvalidJob(format!(
            "direct I/O on this file needs a block size that is a multiple of {alignment_bytes}, not {block_bytes}"
        ))
        .into());
    }
    Ok(())
}

fn name(job: &Job) -> String {
    let facts = &job.facts;
    format!(
        "{} {} {}, {} x {} in flight",
        facts.engine.name(),
        facts.access.name(),
        seekscope_run::units::format_bytes(facts.block_bytes),
        facts.threads,
        facts.depth
    )
}

fn check_thresholds(args: &JobArgs, measurement: Option<&DiskMeasurement>) -> Result<()> {
    let main = measurement
        .and_then(|m| m.steps.first())
        .and_then(|step| step.main());
    let Some(outcome) = main else {
        return Ok(());
    };
    if let Some(least) = args.min_iops
        && outcome.iops() < least
    {
        let reached = outcome.iops();
        return Err(ThresholdMissed(format!(
            "{reached:.0} operations/s are fewer than --min-iops {least}"
        ))
        .into());
    }
    match (args.max_p99, slowest(outcome)) {
        (Some(most), None) => Err(ThresholdMissed(format!(
            "nothing completed, so --max-p99 {most:?} was not met"
        ))
        .into()),
        (Some(most), Some(p99)) if p99 > most => Err(ThresholdMissed(format!(
            "the 99th percentile of latency is {p99:?}, longer than --max-p99 {most:?}"
        ))
        .into()),
        _ => Ok(()),
    }
}

/// Returns the 99th percentile of reads or writes, whichever is longer, or the longest latency if there are too
/// few for percentiles. `None` if there are none.
fn slowest(outcome: &JobOutcome) -> Option<Duration> {
    let of = |latency: &LatencySummary| match latency.count {
        0 => None,
        1..100 => Some(latency.max_ns),
        _ => Some(latency.p99_ns),
    };
    let ns = of(&outcome.reads.latency).max(of(&outcome.writes.latency))?;
    Some(Duration::from_nanos(ns))
}
