//! `seekscope merge`: merges the runs of clients that did one job together into one run.
//!
//! Clocks are aligned by wall-clock time; counts and distributions are added exactly.

mod clients;
mod clocks;
mod seconds;
mod steps;

use std::path::Path;

use anyhow::Result;
use seekscope_run::{BenchMeasurement, BenchStep, Limitation, Outcome, RunDirectory, RunDocument};

use self::clients::Client;
use crate::args::MergeArgs;
use crate::exit::{BrokenOff, Inconsistent, Usage};
use crate::progress::Progress;
use crate::session::Session;
use crate::{bench, ending};

/// Runs the command.
pub fn run(args: &MergeArgs, arguments: Vec<String>) -> Result<()> {
    let progress = Progress::new(args.output.quiet);
    let clients = clients::open(&args.runs)?;
    clients::check_same_job(&clients)?;
    let mut session = begin(&clients, arguments, &args.out)?;
    for limitation in clocks::limitations(&clients)? {
        session.limit(limitation);
    }
    seconds::merge(&clients, &session.directory, session.document.started)?;
    seconds::merge_counters(&clients, &session.directory, session.document.started)?;
    let measurement = measurement(&clients, session.document.started)?;
    if let Some(limitation) = uncounted(&measurement) {
        session.limit(limitation);
    }
    session.document.bench = Some(measurement);
    let merged = worst(&clients).and_then(|()| match clocks::apart(&clients) {
        Some(why) => Err(Inconsistent(why).into()),
        None => Ok(()),
    });
    ending::end(&mut session, merged, progress, |session| {
        bench::show(session, &args.output, progress)
    })
}

/// Begins the merged run, which starts when the first client did, by its clocks.
fn begin(clients: &[Client], arguments: Vec<String>, out: &Path) -> Result<Session> {
    let Some(first) = clients
        .iter()
        .min_by_key(|c| c.document.started.realtime_ns)
    else {
        return Err(Usage("there are no runs to merge".into()).into());
    };
    let mut document = RunDocument::begin("merge", arguments);
    document.started = first.document.started;
    document.seed = first.document.seed;
    document.host.clone_from(&first.document.host);
    document.device.clone_from(&first.document.device);
    document.target.clone_from(&first.document.target);
    for client in clients {
        for limitation in &client.document.limitations {
            crate::session::limit(&mut document, limitation.clone());
        }
    }
    let missing = clients::missing_numbers(clients);
    if !missing.is_empty() {
        let numbers: Vec<String> = missing.iter().map(u32::to_string).collect();
        let limitation = Limitation {
            what: match &numbers[..] {
                [one] => format!("the run of client {one} is missing"),
                several => format!("the runs of clients {} are missing", several.join(", ")),
            },
            why: "it was not named".into(),
            remedy: "name the runs of all clients".into(),
        };
        crate::session::limit(&mut document, limitation);
    }
    let directory = RunDirectory::create(out, &document)?;
    Ok(Session::reopen(directory, document))
}

fn measurement(
    clients: &[Client],
    started: seekscope_run::ClockOffset,
) -> Result<BenchMeasurement> {
    let first = &clients[0].bench;
    Ok(BenchMeasurement {
        client_number: None,
        merged_from: clients
            .iter()
            .map(|c| c.directory.path().display().to_string())
            .collect(),
        steps: steps::merge(clients, started)?,
        ..first.clone()
    })
}

/// Each client reads back samples of what it wrote and knows nothing of the others: a document that is missing
/// outside of the samples goes unnoticed.
fn uncounted(measurement: &BenchMeasurement) -> Option<Limitation> {
    let is_counted = |step: &BenchStep| {
        let verification = step.verification.as_ref();
        verification.is_some_and(|v| v.counted.is_some())
    };
    let mut steps = measurement.steps.iter();
    let first = steps.find(|step| !is_counted(step))?;
    Some(Limitation {
        what: format!(
            "after \"{}\", the documents of all clients together were not counted",
            first.name
        ),
        why: "each client knows only what it wrote itself, and merge works on the recorded runs, \
              without a server"
            .into(),
        remedy: format!(
            "count the documents in the database {} yourself, and compare them with what was loaded and inserted",
            measurement.database
        ),
    })
}

/// Returns the worst of all results; a missing client makes the whole run partial.
fn worst(clients: &[Client]) -> Result<()> {
    let rank = |outcome: Outcome| match outcome {
        Outcome::Ok => 0,
        Outcome::Partial => 1,
        Outcome::Failed => 2,
        Outcome::Invalid => 3,
    };
    let worst = clients
        .iter()
        .max_by_key(|client| rank(client.document.outcome));
    let why = worst.map_or_else(String::new, |client| {
        let why = client.document.outcome_reason.as_deref();
        format!("client {}: {}", client.number, why.unwrap_or_default())
    });
    match worst.map(|client| client.document.outcome) {
        Some(Outcome::Invalid) => Err(Inconsistent(why).into()),
        Some(Outcome::Failed) => Err(anyhow::anyhow!(why)),
        Some(Outcome::Partial) => Err(BrokenOff(why).into()),
        _ if !clients::missing_numbers(clients).is_empty() => {
            Err(BrokenOff("the runs of some clients are missing".into()).into())
        }
        _ => Ok(()),
    }
}
