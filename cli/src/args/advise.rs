//! What may be typed after `seekscope advise`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use seekscope_advice::told;
use seekscope_run::QueryShape;
use seekscope_run::units::{parse_duration, parse_stretch};

use super::{OutputArgs, ScanDiskArgs};

/// Say how the documents of a collection should be stored, by trying it with a sample on a server of its own
///
/// Watches the queries on the collection, copies its newest documents to a private server, stores them there in the
/// ways that fit those queries (another index, another order, several documents joined in one), and measures how many
/// blocks a query reads of each. On the server that is asked nothing is written and no setting is changed.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  seekscope advise mongodb://localhost:27017/ shop.orders
  seekscope advise mongodb://localhost:27017/ iot.samples --query '{\"device\": \"?\", \"ts\": {\"$gte\": \"?\"}}'
  seekscope advise mongodb://localhost:27017/ shop.orders --since seekscope-runs/advise-20261101-101500")]
pub struct AdviseArgs {
    /// Connection string of the server
    #[arg(value_name = "URI")]
    pub uri: String,
    /// The collection
    #[arg(value_name = "DB.COLL")]
    pub collection: String,
    /// A kind of query: its filter as JSON, with anything for values, or '{"filter": {…}, "sort": {…}, "projection": {…},
    /// "per_s": 20, "returns": 100, "limit": 100}': queries per second, documents that one returns on average, and those after
    /// which it stops. Of a list ("$in") the number of values counts. May be repeated; queries are then not watched for
    #[arg(long, value_name = "JSON", value_parser = told)]
    pub query: Vec<QueryShape>,
    /// How long to watch the queries
    #[arg(long = "for", value_name = "TIME", default_value = "60s", value_parser = parse_stretch, conflicts_with = "query")]
    pub duration: Duration,
    /// A run of `seekscope trace` or `doctor` on this server, which tells how much the queries make the disk read
    #[arg(long, value_name = "RUN")]
    pub trace: Option<PathBuf>,
    /// An earlier run, the advice of which has been followed: says whether what it predicted came true. Nothing is tried
    /// then
    #[arg(long, value_name = "RUN", conflicts_with_all = ["query", "trace"])]
    pub since: Option<PathBuf>,
    /// The most documents that are copied, the newest; also at most 64 MiB
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1_000..=10_000_000))]
    pub sample: u64,
    /// The most time for trying; ways that it does not suffice for are named
    #[arg(long, value_name = "TIME", default_value = "15m", value_parser = parse_duration)]
    pub budget: Duration,
    /// The mongod to try on, of the release of the server if possible [default: the program of
    /// the server itself if it runs on this host, or mongod on PATH]
    #[arg(long, value_name = "FILE")]
    pub server_binary: Option<PathBuf>,
    /// Folder below which the private server's data lie [default: beside the run]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    #[command(flatten)]
    pub disk: ScanDiskArgs,
    /// Folder for the run [default: ./seekscope-runs/advise-DATE-TIME]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub output: OutputArgs,
}
