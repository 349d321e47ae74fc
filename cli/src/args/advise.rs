//! What may be typed after `seekscope advise`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use seekscope_advice::{ToldQuery, told_or_left_out};
use seekscope_run::units::{parse_duration, parse_stretch};

use super::{OutputArgs, ScanDiskArgs};

/// Advise how to store the documents of a collection, after trying it with a sample on a private server
///
/// Watches the queries on the collection, copies its newest documents to a private server, stores them there in the
/// ways that suit those queries (another index, another order, several documents joined in one), and measures how many
/// blocks a query reads in each. On your server, nothing is written and no setting is changed.
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
    /// A query shape: its filter as JSON, with anything for values, or '{"filter": {…}, "sort": {…}, "projection": {…},
    /// "per_s": 20, "returns": 100, "limit": 100}'. per_s: queries per second; returns: documents that each returns on
    /// average; limit: documents after which each stops. In a list ("$in"), the number of values matters. May be
    /// repeated; the server's queries are then not watched
    #[arg(long, value_name = "JSON", value_parser = told_or_left_out)]
    pub query: Vec<ToldQuery>,
    /// How long to watch the queries
    #[arg(long = "for", value_name = "TIME", default_value = "60s", value_parser = parse_stretch, conflicts_with = "query")]
    pub duration: Duration,
    /// A run of `seekscope trace` or `doctor` on this server, which shows how much the queries make the disk read
    #[arg(long, value_name = "RUN")]
    pub trace: Option<PathBuf>,
    /// An earlier run whose advice has been followed: shows whether its predictions came true. Nothing is tried
    /// then
    #[arg(long, value_name = "RUN", conflicts_with_all = ["query", "trace"])]
    pub since: Option<PathBuf>,
    /// Maximum number of documents to copy, the newest first; also at most 64 MiB
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1_000..=10_000_000))]
    pub sample: u64,
    /// Maximum time for the trials; ways that it does not suffice for are named
    #[arg(long, value_name = "TIME", default_value = "15m", value_parser = parse_duration)]
    pub budget: Duration,
    /// The mongod program to try on, preferably of the server's release [default: the server's own program if it
    /// runs on this host, or mongod on PATH]
    #[arg(long, value_name = "FILE")]
    pub server_binary: Option<PathBuf>,
    /// Folder for the private server's data [default: beside the run]
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
