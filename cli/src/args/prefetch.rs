//! What may be typed after `seekscope prefetch`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use seekscope_run::units::{parse_bytes, parse_duration, parse_stretch};
use seekscope_server::DEFAULT_PORT;

use super::OutputArgs;
use super::layout::TypicalDiskName;

/// Speed up a scan that is running or about to run, by reading ahead of it in disk order
///
/// A cold scan of a collection or index that has drifted from disk order reads one page after the other.
/// Prefetch follows the scan and reads the pages that it will need next into the page cache, by rising offset and
/// several at a time. Nothing is written, locked or changed in the server.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  seekscope prefetch mongodb://localhost:27017/ shop.orders
  seekscope prefetch mongodb://localhost:27017/ shop.orders --command 'mongodump -d shop -c orders -o /backup'
  seekscope prefetch /var/lib/mongodb 'shop.orders/client_1' --window 2G --disk-run seekscope-runs/disk-20260901-103000
  seekscope prefetch mongodb://localhost:27017/ --for-sync db3.example.com:27017")]
pub struct PrefetchArgs {
    /// Connection string of a server on this host, or its data directory
    #[arg(value_name = "WHERE")]
    pub place: String,
    /// What will be scanned: DB.COLL, DB.COLL/INDEX, a file name or an ident
    #[arg(value_name = "NAME", required_unless_present = "for_sync")]
    pub name: Option<String>,
    /// Read ahead of the initial sync of this member (host:port as in the set's configuration), which copies from the
    /// server in WHERE: one collection after the other, until the member is a secondary. MongoDB 4.4 and later
    #[arg(long, value_name = "HOST", value_parser = parse_member, conflicts_with_all = ["name", "command"])]
    pub for_sync: Option<String>,
    /// Run this shell command, e.g. an index build, a dump or a resync, with prefetch meanwhile. Its exit code becomes
    /// that of seekscope
    #[arg(long, value_name = "COMMAND")]
    pub command: Option<String>,
    /// The server's process ID, if it cannot be found by its port (containers)
    #[arg(long, value_name = "PID")]
    pub pid: Option<u32>,
    #[command(flatten)]
    pub pace: PaceArgs,
    #[command(flatten)]
    pub disk: PrefetchDiskArgs,
    /// Folder for the run [default: ./seekscope-runs/prefetch-DATE-TIME]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Adds the default port where none is named.
fn parse_member(text: &str) -> Result<String, String> {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !host.ends_with(':') && !port.ends_with(']') => (host, port.parse()),
        _ => (text, Ok(DEFAULT_PORT)),
    };
    match port {
        Ok(port) if !host.is_empty() && !host.contains(['/', ' ']) => Ok(format!("{host}:{port}")),
        _ => Err("a member's host and port are expected, such as db3.example.com:27017".into()),
    }
}

/// How far ahead, and until when.
#[derive(Debug, Args)]
#[command(next_help_heading = "How far ahead, and until when")]
pub struct PaceArgs {
    /// Memory to fill with pages that the scan has not reached yet [default: half of what the host and
    /// seekscope's control group can spare]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub window: Option<u64>,
    /// End after this time without a read of the file; only without --command. With --for-sync: without an
    /// initial sync of that member
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_duration, conflicts_with = "command")]
    pub idle: Duration,
    /// End after this time in any case; a --command then continues without prefetch
    #[arg(long = "for", value_name = "TIME", value_parser = parse_stretch)]
    pub duration: Option<Duration>,
    /// Do not trace the server's reads; follow the scan by how much the server has read
    #[arg(long)]
    pub no_trace: bool,
    /// Do not give way to the server's other reads
    #[arg(long)]
    pub no_guard: bool,
    /// Do not pause to see how fast the scan is alone: the gain is then not measured, and prefetch goes on even if
    /// there is none
    #[arg(long)]
    pub no_gain: bool,
}

/// What the disk likes.
#[derive(Debug, Args)]
#[command(next_help_heading = "The disk [default: it is probed with a few dozen reads]")]
pub struct PrefetchDiskArgs {
    /// A run of `seekscope disk` on the data's disk
    #[arg(long, value_name = "RUN", conflicts_with = "typical")]
    pub disk_run: Option<PathBuf>,
    /// Assume a typical disk of this type
    #[arg(long = "disk", value_name = "DISK", value_enum)]
    pub typical: Option<TypicalDiskName>,
    /// Maximum reads in flight
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub depth: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_have_their_port() {
        for (typed, member) in [
            ("db3.example.com:27018", "db3.example.com:27018"),
            ("DB3", "DB3:27017"),
            ("[::1]:1", "[::1]:1"),
            ("[::1]", "[::1]:27017"),
        ] {
            assert_eq!(parse_member(typed).as_deref(), Ok(member));
        }
        for bad in ["", ":27017", "db3:port", "db3:70000", "mongodb://db3:27017"] {
            assert!(parse_member(bad).is_err(), "{bad}");
        }
    }
}
