//! `seekscope report`: a run shown again, from its directory alone.

use anyhow::Result;
use seekscope_run::RunDirectory;

use crate::args::ReportArgs;
use crate::doctor::Results;
use crate::exit::Usage;
use crate::progress::Progress;
use crate::session::Session;

/// Runs the command.
pub fn run(args: &ReportArgs) -> Result<()> {
    let (directory, document) = RunDirectory::open(&args.run)?;
    if document.phases.is_empty() {
        let why = document.outcome_reason.unwrap_or_default();
        return Err(Usage(format!("{} measured nothing: {why}", args.run.display())).into());
    }
    let mut session = Session::reopen(directory, document);
    let results = Results::derive(&mut session)?;
    results.show(&session, &args.output, Progress::new(args.output.quiet))
}
