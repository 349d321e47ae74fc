//! `seekscope trace`: records traces, and imports and exports those of other tools.

mod choices;
mod counting;
pub mod export;
mod flight_recorder;
pub mod import;
mod live;
mod record;
mod results;
mod started_command;
mod summary;
mod traced;

pub use live::{SharedWindow, Tee, lock};
pub use record::disk_is_full;
pub use results::{analyse, close_abandoned_phase, show};
pub use started_command::StartedCommand;
pub use summary::TraceSummary;

use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};

use crate::args::{TraceArgs, TraceVerb};
use crate::exit::Interrupted;
use crate::interruption::Interruption;

/// Runs the command.
pub async fn run(args: TraceArgs, arguments: Vec<String>) -> Result<()> {
    match args.verb {
        None => record::run(&args.record, arguments).await,
        Some(TraceVerb::Import(args)) => {
            until_signal(move |stop| import::run(&args, arguments, stop)).await
        }
        // There is nothing to clean up, and a slow reader must not delay a signal.
        Some(TraceVerb::Export(args)) if args.to_stdout() => {
            export::run(&args, &AtomicBool::new(false))
        }
        Some(TraceVerb::Export(args)) => until_signal(move |stop| export::run(&args, stop)).await,
    }
}

/// Runs work that periodically checks whether to stop. After a signal it is waited for, so that it can clean
/// up; a second signal ends the process.
async fn until_signal(work: impl FnOnce(&AtomicBool) -> Result<()> + Send + 'static) -> Result<()> {
    let (done, signal) = Interruption::listen().cancelling(work).await;
    done.context("the work broke off")??;
    match signal {
        Some(signal) => Err(Interrupted(signal).into()),
        None => Ok(()),
    }
}
