//! `seekscope report`: shows a run again, from its directory or a bundle alone.

use anyhow::Result;

use crate::args::ReportArgs;
use crate::progress::Progress;
use crate::{collect, ending};

/// Runs the command.
pub async fn run(args: &ReportArgs) -> Result<()> {
    let mut session = collect::open(&args.run, "report", args.out.as_deref()).await?;
    ending::show(&mut session, &args.output, Progress::new(args.output.quiet))
}
