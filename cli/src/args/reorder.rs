//! What may be typed after `seekscope reorder`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use seekscope_run::units::{parse_bytes, parse_duration};

use super::{OutputArgs, ScanDiskArgs};

/// Rewrite a collection so that scan order is disk order again; without --apply, only plan it
///
/// Without --apply, nothing is changed: it shows what order would gain, how long the order would last, how long
/// the rewrite takes, and what it blocks. With --apply, the documents are copied in order into a second
/// collection, checked, given the same indexes, and put in place of the original by a rename. Until then, the
/// original is not touched. Ctrl-C undoes what was begun; after a kill, --resume carries on and --rollback undoes
/// it.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("doing").args(["apply", "resume"]))]
#[command(after_help = "\
Examples:
  seekscope reorder mongodb://localhost:27017/ shop.orders
  seekscope reorder mongodb://localhost:27017/ shop.orders --by '{\"customer\": 1}' --apply --quiesced")]
pub struct ReorderArgs {
    /// Connection string of the server
    #[arg(value_name = "URI")]
    pub uri: String,
    /// The collection, DB.COLL; with --resume and --rollback it may be omitted, which means all pending
    /// collections
    #[arg(value_name = "DB.COLL", required_unless_present_any = ["resume", "rollback"])]
    pub collection: Option<String>,
    /// The order: natural (the order of a scan), or that of an index given as JSON, e.g. '{"customer": 1, "date": 1}',
    /// whose range queries then read adjacent documents
    #[arg(long, value_name = "ORDER", default_value = "natural")]
    pub by: String,
    /// Carry out the rewrite
    #[arg(long, conflicts_with_all = ["resume", "rollback"])]
    pub apply: bool,
    /// Continue an interrupted rewrite; an unfinished copy is started again
    #[arg(long, conflicts_with_all = ["rollback", "by"])]
    pub resume: bool,
    /// Undo an interrupted rewrite: removes the unfinished copy, never the original
    #[arg(long, conflicts_with = "by")]
    pub rollback: bool,
    /// Rewrite even if the predicted gain is small or unknown, and let the copy replace the collection even if it
    /// is in no better order; --resume remembers this
    #[arg(long, requires = "doing")]
    pub force: bool,
    #[command(flatten)]
    pub writers: WritersArgs,
    /// Copy at most this many bytes of documents per second, e.g. 50M [default: as fast as the server and the guard
    /// allow]
    #[arg(long, value_name = "SIZE", value_parser = max_rate)]
    pub max_rate: Option<u64>,
    /// Do not slow the copy down when the server answers slowly or its disk is overloaded
    #[arg(long)]
    pub no_guard: bool,
    /// How long to watch the writes, to estimate how long the order would last; 0s: not at all
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse_duration)]
    pub watch: Duration,
    /// The data directory, if the server does not report it
    #[arg(long, value_name = "DIR")]
    pub dbpath: Option<PathBuf>,
    /// The server's process ID, if it cannot be found by its port (containers)
    #[arg(long, value_name = "PID", conflicts_with = "dbpath")]
    pub pid: Option<u32>,
    #[command(flatten)]
    pub disk: ScanDiskArgs,
    /// Folder for the run: records and plan [default: ./seekscope-runs/reorder-DATE-TIME]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// How writers are kept out of the collection for the last moment.
#[derive(Debug, Args)]
#[command(next_help_heading = "How writers are kept out during the swap")]
pub struct WritersArgs {
    /// You guarantee that nobody writes to the collection: during the final swap on a replica set, the whole time on
    /// a standalone server. If a write is seen nevertheless, the swap is stopped
    #[arg(long, conflicts_with_all = ["pause_writers", "continue_writers"])]
    pub quiesced: bool,
    /// A shell command that stops the writers; it is run immediately before the swap
    #[arg(long, value_name = "CMD", requires = "continue_writers")]
    pub pause_writers: Option<String>,
    /// A shell command that lets the writers continue; it is run after the swap, even if that failed, and after
    /// --resume and --rollback. It must do no harm if they were not stopped
    #[arg(long, value_name = "CMD")]
    pub continue_writers: Option<String>,
}

/// A server closes a cursor that is not read for half an hour; below this rate that could happen.
const RATE_MIN: u64 = 1_000_000;

fn max_rate(text: &str) -> Result<u64, String> {
    match parse_bytes(text) {
        Ok(bytes) if bytes < RATE_MIN => Err("at least 1M is needed".into()),
        Ok(bytes) => Ok(bytes),
        Err(error) => Err(error.to_string()),
    }
}
