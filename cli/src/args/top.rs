//! What may be typed after `seekscope top`.

use std::time::Duration;

use clap::{Args, ValueEnum};
use seekscope_report::live::top::Order;
use seekscope_run::units::parse_duration;

/// Watch who uses the disk, refreshed every second
///
/// Shows the files of a server with their collections and indexes, sorted by the time that its threads wait for
/// them, with how each is read, how long calls take and what the page cache held; above them, operations,
/// WiredTiger's cache, checkpoints and the disk. It only reads, and leaves nothing behind. Without the right to
/// trace, it shows the counters of the server and of /proc, and says what is missing. Without a terminal, it prints
/// text. For a replica set or a cluster (mongos), it shows all members on this host at once.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  seekscope top mongodb://localhost:27017/
  seekscope top --pid $(pgrep -x mongod) --sort bytes
  seekscope top mongodb://localhost:27017/ --json --count 60 > top.jsonl
  seekscope top mongodb://mongos1/")]
pub struct TopArgs {
    /// Connection string of the server, of a replica set or of a cluster
    #[arg(value_name = "URI", required_unless_present = "pid")]
    pub uri: Option<String>,
    /// The server's process ID, if you have no login, or if it cannot be found by its port
    /// (containers)
    #[arg(long, short, value_name = "PID")]
    pub pid: Option<u32>,
    /// How often the view is refreshed
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = period)]
    pub every: Duration,
    /// How files are sorted
    #[arg(long, value_name = "ORDER", value_enum, default_value_t = SortName::Wait)]
    pub sort: SortName,
    /// Show only the counters: no kernel program is loaded
    #[arg(long)]
    pub no_trace: bool,
    /// Trace the server even if it is a primary that others replicate from; otherwise only its counters are
    /// shown
    #[arg(long)]
    pub trace_primary: bool,
    /// Print the view once as text, and exit
    #[arg(long, conflicts_with = "count")]
    pub once: bool,
    /// Print the view this many times as text, and exit
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Number of files to print each time
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=128))]
    pub files: u16,
    /// Print one JSON object per line each time instead of text
    #[arg(long)]
    pub json: bool,
    /// Print no hints on stderr, only errors
    #[arg(long, short)]
    pub quiet: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SortName {
    /// By the time that threads spend in calls
    Wait,
    /// By bytes read and written
    Bytes,
    /// By number of calls
    Calls,
}

impl SortName {
    pub fn order(self) -> Order {
        match self {
            Self::Wait => Order::Waited,
            Self::Bytes => Order::Bytes,
            Self::Calls => Order::Calls,
        }
    }
}

/// Counting is done in halves of a second.
fn period(text: &str) -> Result<Duration, String> {
    let period = parse_duration(text).map_err(|error| error.to_string())?;
    if (Duration::from_millis(500)..=Duration::from_secs(3600)).contains(&period) {
        Ok(period)
    } else {
        Err("from half a second to an hour is expected, such as 1s".into())
    }
}
