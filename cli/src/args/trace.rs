//! What may be typed after `seekscope trace`.

use clap::{Args, Subcommand};

use super::{ExportArgs, ImportArgs};

/// Exchange traces with other tools
#[derive(Debug, Args)]
pub struct TraceArgs {
    #[command(subcommand)]
    pub verb: TraceVerb,
}

#[derive(Debug, Subcommand)]
pub enum TraceVerb {
    Import(ImportArgs),
    Export(ExportArgs),
}
