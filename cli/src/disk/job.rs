//! `seekscope disk run`: a single job.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Result;
use seekscope_disk::survey::SurveyObserver;
use seekscope_disk::{Job, Step, step};
use seekscope_run::{AccessKind, DiskMeasurement, EngineKind, JobOutcome, ReadAdvice, StepGroup};

use super::measurement::{self, Ended};
use super::place::Place;
use super::records::Records;
use crate::args::{AdviceName, JobArgs, JobEngine, Rw};
use crate::environment::Environment;
use crate::exit::ThresholdMissed;
use crate::progress::Progress;
use crate::session::Session;

/// Runs the command.
pub async fn run(args: &JobArgs, environment: &Environment, arguments: Vec<String>) -> Result<()> {
    let mut place = Place::check(&args.directory, &args.place)?;
    let mut job = job(args);
    if let Some(most) = place.rate_per_s_max() {
        job.facts.rate_per_s = Some(job.facts.rate_per_s.map_or(most, |rate| rate.min(most)));
    }
    place.check_job(&job)?;
    let progress = Progress::new(args.place.output.quiet);
    let more = if job.facts.access.writes() {
        " and overwrites parts of it"
    } else {
        ""
    };
    progress.say(place.announcement(more));
    let measure = move |session: &mut Session, place: Place, cancel: &AtomicBool| {
        measure(session, place, job, progress, cancel)
    };
    let session =
        measurement::run(&args.place, place, arguments, "job", environment, measure).await?;
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
    place: Place,
    job: Job,
    progress: Progress,
    cancel: &AtomicBool,
) -> Result<Ended> {
    let mut measurement = session.document.disk.take().unwrap_or_default();
    let file = place.file(&mut measurement, None, progress, cancel);
    session.document.disk = Some(measurement);
    let file = file?;
    session.save()?;
    if job.facts.engine == EngineKind::Mmap {
        seekscope_disk::end_process_on_bus_error();
    }
    if !job.facts.direct && job.facts.engine != EngineKind::Null {
        // What a job on the page cache reads must come from the disk at first.
        file.evict()?;
    }
    let name = name(&job);
    let expected = job.warm_up + job.runtime;
    let step = Step {
        group: StepGroup::Job,
        name: name.clone(),
        jobs: vec![(job, &file)],
    };
    let mut records = Records::new(&session.directory, &mut session.document, progress)?;
    records.line_per_second = true;
    records.step_begins(&name, 1, 1, expected);
    let end = step::run(&step, &mut |second| records.second(second), cancel)?;
    records.step_ended(&end.step)?;
    if let Some(measurement) = &mut session.document.disk {
        let outcomes = &end.step.jobs;
        measurement.written_bytes += outcomes.iter().map(|o| o.writes.bytes).sum::<u64>();
    }
    Ok(if end.interrupted {
        Ended::Interrupted
    } else {
        Ended::Complete
    })
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
    match (args.max_p99, p99(outcome)) {
        (Some(most), p99) if p99 > most => Err(ThresholdMissed(format!(
            "the 99th percentile of latency is {p99:?}, longer than --max-p99 {most:?}"
        ))
        .into()),
        _ => Ok(()),
    }
}

/// Of reads or writes, whichever is longer.
fn p99(outcome: &JobOutcome) -> Duration {
    let ns = outcome
        .reads
        .latency
        .p99_ns
        .max(outcome.writes.latency.p99_ns);
    Duration::from_nanos(ns)
}
