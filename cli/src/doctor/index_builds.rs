//! The two kinds of run that build indexes and compare: the demonstration on a private server, and an
//! index build that somebody permitted on theirs.

use anyhow::Result;
use seekscope_run::{HostFacts, Outcome};

use super::results::Results;
use super::{demo, permitted_build};
use crate::args::DoctorArgs;
use crate::environment::Environment;
use crate::exit::{Interrupted, message_of};
use crate::progress::Progress;
use crate::session::{self, Session};
use crate::signals::Signals;

/// Runs the command to its end, interrupted or not; the run directory is complete either way.
pub async fn run(
    args: &DoctorArgs,
    environment: &Environment,
    arguments: Vec<String>,
) -> Result<()> {
    let mut signals = Signals::catch();
    let progress = Progress::new(args.output.quiet);
    let uri = args.target.as_deref();
    let request = uri
        .map(|uri| permitted_build::Request::new(uri, &args.examine))
        .transpose()?;
    let mut session = Session::begin("doctor", arguments, args.out.as_deref())?;
    session.document.host = Some(HostFacts::read(std::path::Path::new("/")));
    session.save()?;

    let mut to_remove = None;
    let measured = tokio::select! {
        biased;
        signal = signals.first() => Err(Interrupted(signal).into()),
        result = async {
            match &request {
                Some(request) => permitted_build::run(&mut session, request, progress, &mut to_remove).await,
                None => demo::run(&mut session, &args.demo, environment, progress).await,
            }
        } => result,
    };
    if let Some(index) = to_remove {
        permitted_build::note_removal(&mut session, index.remove().await);
    }
    let (outcome, reason) = match &measured {
        Ok(()) => outcome_of(&session),
        Err(error) if error.is::<Interrupted>() => (Outcome::Partial, Some(error.to_string())),
        Err(error) => (Outcome::Failed, Some(message_of(error))),
    };
    match (session.end(outcome, reason.clone()), &measured) {
        (Err(end), Err(_)) => {
            // The first error is the one that matters; this one is likely its consequence.
            progress.say(format!(
                "the run could not be completed on disk: {}",
                message_of(&end)
            ));
            return measured;
        }
        (ended, Ok(())) => ended?,
        (Ok(()), Err(_)) => {}
    }
    if session.document.phases.is_empty() {
        // Nothing was measured: there is nothing to show but the error.
        return measured;
    }
    let results = Results::derive(&mut session)?;
    results.show(&session, &args.output, progress)?;
    measured?;
    match outcome {
        Outcome::Invalid => Err(crate::exit::Inconsistent(reason.unwrap_or_default()).into()),
        Outcome::Partial => Err(anyhow::anyhow!(reason.unwrap_or_default())),
        _ => Ok(()),
    }
}

/// A trace must account for every event it saw, must not end early, and nothing of ours may stay
/// on the server.
fn outcome_of(session: &Session) -> (Outcome, Option<String>) {
    let unaccounted = session.document.phases.iter().find_map(|phase| {
        let trace = phase.trace.as_ref()?;
        (!trace.adds_up()).then(|| {
            format!(
                "the trace of \"{}\" does not add up: {} events seen, {} written, {} lost",
                phase.name, trace.seen, trace.written, trace.lost
            )
        })
    });
    if unaccounted.is_some() {
        return (Outcome::Invalid, unaccounted);
    }
    let grave = session.document.limitations.iter().find(|l| {
        l.what == permitted_build::INDEX_STAYED || l.what.starts_with(session::TRACE_BROKE_OFF)
    });
    match grave {
        Some(limitation) => {
            let text = format!(
                "{}: {}. {}",
                limitation.what, limitation.why, limitation.remedy
            );
            (Outcome::Partial, Some(text))
        }
        None => (Outcome::Ok, None),
    }
}
