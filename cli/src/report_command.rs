//! `seekscope report`: shows a run again, from its directory alone.

use anyhow::Result;
use seekscope_run::RunDirectory;

use crate::args::ReportArgs;
use crate::ending;
use crate::progress::Progress;
use crate::session::Session;

/// Runs the command.
pub fn run(args: &ReportArgs) -> Result<()> {
    let (directory, document) = RunDirectory::open(&args.run)?;
    let mut session = Session::reopen(directory, document);
    ending::show(&mut session, &args.output, Progress::new(args.output.quiet))
}
