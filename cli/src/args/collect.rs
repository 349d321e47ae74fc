//! What may be typed after `seekscope collect`.

use std::path::PathBuf;

use clap::Args;
use seekscope_run::units::parse_bytes;

use super::{ExamineArgs, OutputArgs};

/// Put everything that a colleague or vendor needs to diagnose a server into one file
///
/// TARGET is a run, or the connection string of a server, which is then examined as `seekscope doctor`
/// does. A bundle covers one member; of a replica set, that is a secondary on this host if possible. For the other
/// members, it holds what they report about themselves, and the command that makes a bundle of each is shown. A
/// mongos is refused: name a member of a shard. For all members on this host, run `seekscope doctor` on the set or
/// the mongos and collect its run; for members on several hosts, first join their runs with `seekscope compare`.
///
/// The bundle holds counters, counts, offsets and settings, and never a value from a document. `seekscope doctor FILE`
/// opens it; if no server was watched in the run, `seekscope report FILE` does.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  seekscope collect seekscope-runs/doctor-20260901-101500 --out sick-server.tar.zst --hash-names
  seekscope collect mongodb://localhost:27017/ --for 60s --out sick-server.tar.zst")]
pub struct CollectArgs {
    /// A run directory, or the connection string of a server
    #[arg(value_name = "TARGET")]
    pub target: String,
    /// The bundle: a file that does not exist yet, with a name that ends in .tar.zst or .tar.gz
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Replace names of databases, collections, indexes, fields, hosts and folders by salted hashes; within a
    /// bundle, the same name always has the same hash. Of the command line, only the options' names are kept
    #[arg(long)]
    pub hash_names: bool,
    /// Keep the salt in this file, which is created if missing: bundles with the same salt have the same
    /// hashes and can be compared. Keep it secret: with it, names can be guessed [default: a new salt for
    /// each bundle, which is not kept]
    #[arg(long, value_name = "FILE", requires = "hash_names")]
    pub salt_file: Option<PathBuf>,
    /// Maximum size of the bundle; single I/O events are left out first, then the leaves of layouts
    #[arg(long, value_name = "SIZE", default_value = "100MiB", value_parser = parse_bytes)]
    pub max_size: u64,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub examine: ExamineArgs,
}
