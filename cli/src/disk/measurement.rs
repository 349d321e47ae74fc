//! One measurement from its beginning to its end, whichever way it ends: the part that the survey
//! and the single job share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use seekscope_disk::DiskError;
use seekscope_run::Outcome;

use super::place::{Emulation, Place};
use super::results::Results;
use crate::args::PlaceArgs;
use crate::environment::Environment;
use crate::exit::Interrupted;
use crate::progress::Progress;
use crate::session::Session;
use crate::signals;

/// How the measuring itself ended, when it did not fail.
#[derive(Debug, PartialEq, Eq)]
pub enum Ended {
    Complete,
    Interrupted,
    /// It ended itself; says why.
    HeldBack(String),
}

/// Runs `measure` on a thread of its own until it ends or a signal stops it, writes everything to
/// the run directory, and shows it. The session is given back.
pub async fn run(
    args: &PlaceArgs,
    place: Place,
    arguments: Vec<String>,
    profile: &str,
    environment: &Environment,
    measure: impl FnOnce(&mut Session, Place, &AtomicBool) -> Result<Ended> + Send + 'static,
) -> Result<Session> {
    let progress = Progress::new(args.output.quiet);
    let mut session = Session::begin("disk", arguments, args.out.as_deref())?;
    place.describe(&mut session);
    if let Some(measurement) = &mut session.document.disk {
        measurement.profile = profile.into();
    }
    session.document.seed = Some(args.seed);
    let emulation = Emulation::begin(args, &place, &mut session, environment);
    if let Ok(Some(emulation)) = &emulation {
        progress.say(format!(
            "Reads are throttled: {}.",
            emulation.disk().label()
        ));
    }
    session.save()?;
    let cancel = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&cancel);
    let mut signal = None;
    let measured = match &emulation {
        Err(_) => None,
        Ok(_) => {
            let mut work = tokio::task::spawn_blocking(move || {
                let measured = measure(&mut session, place, &flag);
                (session, measured)
            });
            let ended = tokio::select! {
                biased;
                name = signals::first() => {
                    cancel.store(true, Ordering::Relaxed);
                    signal = Some(name);
                    work.await
                }
                ended = &mut work => ended,
            };
            let (returned, measured) = ended.context("the measuring thread ended unexpectedly")?;
            session = returned;
            Some(measured)
        }
    };
    let measured = match (emulation, measured) {
        (Err(error), _) => Err(error),
        (Ok(emulation), measured) => {
            drop(emulation);
            measured.unwrap_or(Ok(Ended::Complete))
        }
    };
    finish(session, args, progress, measured, signal)
}

fn finish(
    mut session: Session,
    args: &PlaceArgs,
    progress: Progress,
    measured: Result<Ended>,
    signal: Option<&'static str>,
) -> Result<Session> {
    let interrupted = || Interrupted(signal.unwrap_or("a signal"));
    let measured = match measured {
        Err(error) if is_interruption(&error) => Ok(Ended::Interrupted),
        other => other,
    };
    let (outcome, reason) = match &measured {
        Ok(Ended::Complete) => (Outcome::Ok, None),
        Ok(Ended::Interrupted) => (Outcome::Partial, Some(interrupted().to_string())),
        Ok(Ended::HeldBack(why)) => (Outcome::Partial, Some(why.clone())),
        Err(error) => (Outcome::Failed, Some(format!("{error:#}"))),
    };
    let ended = session.end(outcome, reason);
    let steps = session.document.disk.as_ref().map_or(0, |d| d.steps.len());
    if steps > 0 {
        let results = Results::derive(&mut session)?;
        results.show(&session, &args.output, progress)?;
    }
    match measured? {
        Ended::Interrupted => Err(interrupted().into()),
        Ended::Complete | Ended::HeldBack(_) => ended.map(|()| session),
    }
}

fn is_interruption(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(DiskError::Interrupted))
}
