//! Runs one measurement from beginning to end, however it ends: the part shared by the survey and the single
//! job.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use seekscope_disk::DiskError;
use seekscope_run::{DiskMeasurement, EngineKind, ProcessDeviceIo, RunDirectory};

use super::results::Results;
use super::target::{DiskTarget, Emulation};
use crate::args::{DiskTargetArgs, OutputArgs};
use crate::ending;
use crate::environment::Environment;
use crate::exit::{BrokenOff, Interrupted};
use crate::interruption::Interruption;
use crate::progress::Progress;
use crate::session::Session;

/// How a measurement that did not fail ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Ended {
    Complete,
    Interrupted,
    /// It stopped itself to spare others: some task of the host waited for I/O for this share of the time.
    HeldBack(f64),
}

/// Runs `measure` on a separate thread until it ends or a signal stops it, writes everything to the run
/// directory, and shows it. Returns the session.
pub async fn run(
    args: &DiskTargetArgs,
    target: DiskTarget,
    arguments: Vec<String>,
    profile: &str,
    environment: &Environment,
    measure: impl FnOnce(&mut Session, DiskTarget, &AtomicBool) -> Result<Ended> + Send + 'static,
) -> Result<Session> {
    let interruption = Interruption::listen();
    let progress = Progress::new(args.output.quiet);
    let mut session = Session::begin("disk", arguments, args.out.as_deref())?;
    target.describe(&mut session);
    if let Some(measurement) = &mut session.document.disk {
        measurement.profile = profile.into();
    }
    session.document.seed = Some(args.seed);
    let emulation = Emulation::begin(args, &target, &mut session, environment);
    if let Ok(Some(emulation)) = &emulation {
        progress.say(format!(
            "Reads are throttled: {}.",
            emulation.disk().label()
        ));
    }
    session.save()?;
    let before = ProcessDeviceIo::read(Path::new("/"));
    let mut signal = None;
    let measured = match &emulation {
        Err(_) => None,
        Ok(_) => {
            let run = session.directory.path().to_path_buf();
            let work = move |cancel: &AtomicBool| {
                let measured = measure(&mut session, target, cancel);
                (session, measured)
            };
            let (ended, by_signal) = interruption.cancelling(work).await;
            signal = by_signal;
            match ended {
                Ok((returned, measured)) => {
                    session = returned;
                    Some(measured)
                }
                Err(panic) => {
                    session = reopened(&run)?;
                    Some(Err(anyhow::anyhow!(
                        "the measuring thread ended unexpectedly ({panic}); please report this"
                    )))
                }
            }
        }
    };
    let measured = match (emulation, measured) {
        (Err(error), _) => Err(error),
        (Ok(emulation), measured) => {
            drop(emulation);
            measured.unwrap_or(Ok(Ended::Complete))
        }
    };
    // As part of another command, which goes on handling signals.
    if signal.is_none() && args.shown {
        interruption.end_at_once();
    }
    finish(session, args, progress, measured, signal, before)
}

fn finish(
    mut session: Session,
    args: &DiskTargetArgs,
    progress: Progress,
    measured: Result<Ended>,
    signal: Option<&'static str>,
    before: Option<ProcessDeviceIo>,
) -> Result<Session> {
    let interrupted = || anyhow::Error::from(Interrupted(signal.unwrap_or("a signal")));
    let worked = match measured {
        Ok(Ended::Complete) => Ok(()),
        Ok(Ended::Interrupted) => Err(interrupted()),
        Ok(Ended::HeldBack(pressure)) => Err(BrokenOff(held_back(pressure)).into()),
        Err(error) if is_interruption(&error) => Err(interrupted()),
        Err(error) => Err(error),
    };
    note_written(&mut session, before);
    ending::end(&mut session, worked, progress, |session| match args.shown {
        true => show(session, &args.output, progress),
        false => Results::derive(session)?.save(session),
    })?;
    Ok(session)
}

/// Reopens the run: the session was lost with its thread, but its directory has what was measured.
fn reopened(run: &Path) -> Result<Session> {
    let (directory, document) = RunDirectory::open(run)?;
    Ok(Session::reopen(directory, document))
}

/// Prints tables or JSON of a run, and writes its page.
pub fn show(session: &mut Session, args: &OutputArgs, progress: Progress) -> Result<()> {
    Results::derive(session)?.show(session, args, progress)
}

/// Explains why a measurement stopped itself.
pub fn held_back(pressure: f64) -> String {
    format!(
        "ended early for the sake of others: tasks on this host waited for I/O for {:.0} % of the last seconds",
        pressure * 100.0
    )
}

/// An existing file is only read, and the null engine does no I/O.
fn writes_nothing(measurement: &DiskMeasurement) -> bool {
    let mut jobs = measurement.steps.iter().flat_map(|step| &step.jobs);
    let mut null_only = || jobs.all(|outcome| outcome.job.engine == EngineKind::Null);
    measurement.existing_file.is_some() || (!measurement.steps.is_empty() && null_only())
}

/// Records what the process had the disk write, by the kernel's own count: all of it in files of ours,
/// including the run's own records (some 100 KiB).
fn note_written(session: &mut Session, before: Option<ProcessDeviceIo>) {
    let now = ProcessDeviceIo::read(Path::new("/"));
    if let (Some(measurement), Some(before), Some(now)) = (&mut session.document.disk, before, now)
    {
        measurement.written_bytes = if writes_nothing(measurement) {
            0
        } else {
            now.since(&before).write_bytes
        };
    }
}

fn is_interruption(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(DiskError::Interrupted))
}
