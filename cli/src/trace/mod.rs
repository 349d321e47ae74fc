//! `seekscope trace`.

mod choices;
mod counting;
mod flight_recorder;
mod live;
mod record;
mod results;
mod started_command;
mod summary;
mod whose;

pub use live::restore_terminal;
pub use results::show;

use anyhow::Result;

use crate::args::TraceArgs;

/// Runs the command.
pub async fn run(args: &TraceArgs, arguments: Vec<String>) -> Result<()> {
    record::run(&args.record, arguments).await
}
