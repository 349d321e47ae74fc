//! What may be typed after `seekscope collect`.

use std::path::PathBuf;

use clap::Args;
use seekscope_run::units::parse_bytes;

use super::{ExamineArgs, OutputArgs};

/// Make one file of all that a colleague or vendor needs to judge a sick server
///
/// TARGET is a run, or the connection string of a server, which is then examined as `seekscope doctor`
/// does. A bundle is of one member: of a replica set a secondary on this host if possible; of the others it has
/// what they say of themselves, and the command that makes a bundle of each is shown. A mongos is refused: name a
/// member of a shard. For all members on this host, run `seekscope doctor` on the set or the mongos and collect its
/// run; for those of several hosts, join their runs by `seekscope compare` first.
///
/// The bundle holds counters, counts, offsets and settings; no document's value is ever in it.
/// `seekscope doctor FILE` opens it, and `seekscope report FILE` that of a run in which no server was watched.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  seekscope collect seekscope-runs/doctor-20260901-101500 --out sick-server.tar.zst --hash-names
  seekscope collect mongodb://localhost:27017/ --for 60s --out sick-server.tar.zst")]
pub struct CollectArgs {
    /// A run directory, or the connection string of a server
    #[arg(value_name = "TARGET")]
    pub target: String,
    /// The bundle: a file that does not exist yet, named .tar.zst or .tar.gz
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Replace names of databases, collections, indexes, fields, hosts and folders by salted hashes, the
    /// same name by the same hash in one bundle. Of what was typed, only the options' names stay
    #[arg(long)]
    pub hash_names: bool,
    /// Keep the salt in this file, made where it is missing: bundles with the same salt have the same
    /// hashes and can be compared. Keep it to yourself: names can be tried with it [default: a new salt
    /// for each bundle, kept nowhere]
    #[arg(long, value_name = "FILE", requires = "hash_names")]
    pub salt_file: Option<PathBuf>,
    /// Largest bundle; single I/O events are left out first, then the leaves of layouts
    #[arg(long, value_name = "SIZE", default_value = "100MiB", value_parser = parse_bytes)]
    pub max_size: u64,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub examine: ExamineArgs,
}
