//! What may be typed after `seekscope exporter`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use seekscope_run::units::parse_duration;

/// Continuously serve what `top` and `layout` show to Prometheus
///
/// Shows which collection or index causes the device's busy time, whether the cache held it, what checkpoints and the
/// journal cost, how far the largest files have drifted from disk order, and what `doctor` would find in the counters,
/// in seconds per hour. Counting is done in the kernel; a scrape is answered from memory and asks the server nothing.
/// There are never more series than --series: the files waited for longest have their own, and all others are summed.
/// It keeps running while a server is restarted or away. docs/monitoring.md shows the dashboards and alerts that belong
/// to it.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("servers").args(["uris", "uri_file", "pid"]).required(true).multiple(true))]
#[command(after_help = "\
Examples:
  seekscope exporter mongodb://localhost:27017/
  seekscope exporter mongodb://localhost:27017/ --listen 0.0.0.0:9216 --web-config /etc/seekscope/web.yml
  seekscope exporter --uri-file /etc/seekscope/exporter.uris --textfile /var/lib/prometheus/node-exporter")]
pub struct ExporterArgs {
    /// Connection strings of servers, replica sets or clusters; their members on this host are exported
    #[arg(value_name = "URI")]
    pub uris: Vec<String>,
    /// Read connection strings from a file, one per line, so that no password is on a command line
    #[arg(long, value_name = "FILE")]
    pub uri_file: Option<PathBuf>,
    /// A server's process ID, if you have no login: only what the kernel counts is exported
    #[arg(long, short, value_name = "PID", conflicts_with_all = ["uris", "uri_file"])]
    pub pid: Option<u32>,
    /// Address and port for scrapes (127.0.0.1:9216 unless --textfile is given)
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<SocketAddr>,
    /// Require TLS and passwords from scrapers: a web.yml as Prometheus' own exporters take, read again when it changes
    #[arg(long, alias = "web.config.file", value_name = "FILE")]
    pub web_config: Option<PathBuf>,
    /// Write seekscope.prom into this folder, for node_exporter's textfile collector, after each reading
    #[arg(long, value_name = "DIR")]
    pub textfile: Option<PathBuf>,
    /// How often counters are read
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = period)]
    pub every: Duration,
    /// Maximum number of time series, at least 300: each server itself needs about 70, and files get the rest; with too
    /// many servers, some of the servers' are left out
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(300..=1_000_000))]
    pub series: u32,
    /// How often the order of the files is read, at a gentle pace
    #[arg(long, value_name = "TIME", default_value = "6h", value_parser = walk_period)]
    pub layout_every: Duration,
    /// Do not read the order of the files
    #[arg(long, conflicts_with = "layout_every")]
    pub no_layout: bool,
    /// How far back the findings look (they are those of `doctor` without a trace); at least ten readings
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = findings_period)]
    pub findings_over: Duration,
    /// A run of `seekscope disk` on the data's disk, from which scans are predicted [default: the typical disk that it
    /// looks most like]
    #[arg(long, value_name = "RUN")]
    pub disk_run: Option<PathBuf>,
    /// Load no kernel program: nothing is then known about single files
    #[arg(long)]
    pub no_trace: bool,
    /// Print no hints on stderr, only errors
    #[arg(long, short)]
    pub quiet: bool,
}

fn period(text: &str) -> Result<Duration, String> {
    within(text, Duration::from_secs(1), Duration::from_secs(3600))
        .ok_or_else(|| "from a second to an hour is expected, such as 10s".into())
}

fn walk_period(text: &str) -> Result<Duration, String> {
    within(
        text,
        Duration::from_secs(60),
        Duration::from_secs(30 * 86_400),
    )
    .ok_or_else(|| "from a minute to 30 days is expected, such as 6h".into())
}

fn findings_period(text: &str) -> Result<Duration, String> {
    within(text, Duration::from_secs(10), Duration::from_secs(86_400))
        .ok_or_else(|| "from 10 seconds to a day is expected, such as 10m".into())
}

fn within(text: &str, least: Duration, most: Duration) -> Option<Duration> {
    let period = parse_duration(text).ok()?;
    (least..=most).contains(&period).then_some(period)
}
