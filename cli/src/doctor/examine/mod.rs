//! `doctor URI`: a server watched at its own work, read-only. Leaves records; `conclusion` says what they
//! mean.
//!
//! `subject` finds whom to examine and what may be done, `contract` says so; `gathering` watches, with
//! its parts side by side: `counters`, the trace, `leaf_order` of the data files, under the eye of
//! `guard`. `disk_ability` says what the disk can do, `history` what was before, `cost` what all this
//! took.

mod contract;
mod cost;
mod counters;
mod disk_ability;
mod gathering;
mod guard;
mod history;
mod leaf_order;
mod subject;

use std::path::Path;

use anyhow::Result;
use seekscope_run::{HostFacts, Limitation, Outcome};
use seekscope_server::{Namespace, NamespaceError};
use seekscope_workload::IndexKeys;

use super::conclusion::Conclusion;
use super::judgement::Judgement;
use crate::args::{DoctorArgs, ExamineArgs};
use crate::environment::Environment;
use crate::exit::{Interrupted, NotPermitted, Usage, message_of};
use crate::interruption::Interruption;
use crate::progress::Progress;
use crate::session::{self, Session};
use crate::signals::Signals;
use gathering::Gathering;
use subject::Subject;

/// What was asked for, checked before anything is touched.
#[derive(Debug)]
pub struct Asked<'a> {
    pub uri: &'a str,
    pub args: &'a ExamineArgs,
    pub namespaces: Vec<Namespace>,
    pub out: Option<&'a Path>,
}

impl<'a> Asked<'a> {
    /// Checks names.
    pub fn new(uri: &'a str, args: &'a ExamineArgs, out: Option<&'a Path>) -> Result<Self, Usage> {
        if let Some(index) = &args.index {
            IndexKeys::parse(index).map_err(|e| Usage(e.to_string()))?;
        }
        let names = args.collection.iter().map(|name| name.parse());
        let namespaces = names.collect::<Result<_, NamespaceError>>();
        Ok(Self {
            uri,
            args,
            namespaces: namespaces.map_err(|e| Usage(e.to_string()))?,
            out,
        })
    }
}

/// Runs the command.
pub async fn run(
    args: &DoctorArgs,
    uri: &str,
    environment: &Environment,
    arguments: Vec<String>,
) -> Result<()> {
    let asked = Asked::new(uri, &args.examine, args.out.as_deref())?;
    let judgement = Judgement::new(&args.judge)?;
    let progress = Progress::new(args.output.quiet);
    if args.examine.index.is_some() {
        progress.say("--index alone builds nothing: add --allow-index-build to permit building and dropping it.");
    }
    let (mut session, measured) = examine(&asked, environment, arguments, progress).await?;
    if session.document.phases.is_empty() {
        // Nothing was measured: there is nothing to show but the error.
        return measured;
    }
    let conclusion = Conclusion::derive(&mut session, judgement.since())?;
    conclusion.show(&session, &args.output, progress)?;
    measured?;
    if conclusion.is_blind(&session.document) {
        let text = "nothing of the server may be read, neither through it nor on its host; the least role and \
                    rights are printed by: seekscope doctor --print-role";
        return Err(NotPermitted(text.into()).into());
    }
    judgement.judge(conclusion.diagnosis())
}

/// Examines the server; whichever way that goes, the run directory is complete. The session and how it
/// went, or an error before there was one.
pub async fn examine(
    asked: &Asked<'_>,
    environment: &Environment,
    arguments: Vec<String>,
    progress: Progress,
) -> Result<(Session, Result<()>)> {
    let signals = Signals::catch();
    let interruption = Interruption::listen(signals);
    let mut session = Session::begin("doctor", arguments, asked.out)?;
    session.document.host = Some(HostFacts::read(Path::new("/")));
    session.document.examination = Some(seekscope_run::ExaminationRecord {
        asked_ns: u64::try_from(asked.args.duration.as_nanos()).unwrap_or(u64::MAX),
        ..Default::default()
    });
    session.save()?;
    let measured = measure(&mut session, asked, environment, progress, &interruption).await;
    let (outcome, reason) = match &measured {
        Ok(()) => outcome_of(&session),
        Err(error) if error.is::<Interrupted>() => (Outcome::Partial, Some(error.to_string())),
        Err(error) => (Outcome::Failed, Some(message_of(error))),
    };
    let ended = session.end(outcome, reason.clone());
    let measured = match (measured, outcome) {
        (Err(error), _) => Err(error),
        (Ok(()), Outcome::Invalid) => {
            Err(crate::exit::Inconsistent(reason.unwrap_or_default()).into())
        }
        (Ok(()), Outcome::Partial) => Err(anyhow::anyhow!(reason.unwrap_or_default())),
        (Ok(()), _) => Ok(()),
    };
    if measured.is_ok() {
        ended?;
    }
    Ok((session, measured))
}

async fn measure(
    session: &mut Session,
    asked: &Asked<'_>,
    environment: &Environment,
    progress: Progress,
    interruption: &Interruption,
) -> Result<()> {
    let subject = interruption
        .or(Subject::find(session, asked, progress))
        .await?;
    disk_ability::note(session, asked.args, &subject)?;
    progress.say(contract::contract(session, asked, &subject));
    // Not inside the future that a signal drops: a probe ends itself, and must be waited for.
    if asked.args.probe_disk {
        disk_ability::probe(session, &subject, environment, progress).await?;
    }
    let mut gathering = Gathering::new(session);
    let watched = interruption
        .or(gathering.watch(session, asked, &subject, progress))
        .await;
    gathering.end(session, &subject).await?;
    watched
}

/// A trace must account for every event it saw, and must not end early by a fault of ours.
fn outcome_of(session: &Session) -> (Outcome, Option<String>) {
    let document = &session.document;
    let unaccounted = document.phases.iter().find_map(|phase| {
        let trace = phase.trace.as_ref()?;
        (!trace.adds_up()).then(|| {
            format!(
                "the trace does not add up: {} events seen, {} written, {} lost",
                trace.seen, trace.written, trace.lost
            )
        })
    });
    if unaccounted.is_some() {
        return (Outcome::Invalid, unaccounted);
    }
    let is_grave = |l: &&Limitation| {
        l.what == gathering::SERVER_GONE || l.what.starts_with(session::TRACE_BROKE_OFF)
    };
    match document.limitations.iter().find(is_grave) {
        Some(broken) => (
            Outcome::Partial,
            Some(format!(
                "{}: {}. {}",
                broken.what, broken.why, broken.remedy
            )),
        ),
        None => (Outcome::Ok, None),
    }
}
