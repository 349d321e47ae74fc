//! What may be typed after `seekscope bench` and `seekscope merge`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::OutputArgs;
use super::bench_common::{BenchTargetArgs, KeepArgs, SendArgs, VersusArgs};
use super::bench_index::IndexArgs;
use super::bench_own::{PrintArgs, RunArgs, SampleArgs};
use super::bench_schema::SchemaArgs;
use super::bench_shard::ShardArgs;
use super::bench_values::parse_setting;

/// Measure what a server can do: YCSB, sysbench-mongodb, index builds, schemas, your own workload
///
/// Writes to a database of its own, and refuses one that holds anybody else's collections. If the client could not
/// keep up with a run, or operations failed in it, the first line and the exit code say so.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  seekscope bench ycsb --workload all
  seekscope bench ycsb mongodb://db1/ --workload a --rate 2000/s --arrivals poisson --for 60s")]
pub struct BenchArgs {
    #[command(subcommand)]
    pub verb: BenchVerb,
}

impl BenchArgs {
    /// How the verb's results are shown.
    pub fn output(&self) -> &OutputArgs {
        match &self.verb {
            BenchVerb::Ycsb(args) => &args.keep.output,
            BenchVerb::Sysbench(args) => &args.keep.output,
            BenchVerb::Index(args) => &args.keep.output,
            BenchVerb::Schema(args) => &args.keep.output,
            BenchVerb::Run(args) => &args.keep.output,
            BenchVerb::Print(args) => &args.output,
            BenchVerb::Sample(args) => &args.output,
        }
    }
}

#[derive(Debug, Subcommand)]
pub enum BenchVerb {
    Ycsb(Box<YcsbArgs>),
    Sysbench(Box<SysbenchArgs>),
    Index(Box<IndexArgs>),
    Schema(Box<SchemaArgs>),
    Run(Box<RunArgs>),
    Print(PrintArgs),
    Sample(SampleArgs),
}

/// YCSB's core workloads A to F, with YCSB's own property files and names
///
/// `all` loads, runs A, B, C, F and D, then drops, loads again and runs E, because D and E insert.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  seekscope bench ycsb --workload all --vs-config block_compressor=none,lz4,zlib
  seekscope bench ycsb mongodb://mongos1/ --workload a --shard hashed --pre-split 64 --drop
  seekscope bench ycsb mongodb://db1/ -P workloads/workloada -p recordcount=1000000 --ycsb-output")]
pub struct YcsbArgs {
    #[command(flatten)]
    pub target: BenchTargetArgs,
    /// Workloads: letters a to f, separated by commas, or all [default: a, or what -P and -p say]
    #[arg(long, short, value_name = "LETTERS", value_delimiter = ',')]
    pub workload: Vec<WorkloadName>,
    /// A YCSB property file; later files override earlier ones
    #[arg(short = 'P', long = "properties", value_name = "FILE")]
    pub property_files: Vec<PathBuf>,
    /// A YCSB property, which overrides those from files
    #[arg(short = 'p', long = "property", value_name = "NAME=VALUE", value_parser = parse_setting)]
    pub properties: Vec<(String, String)>,
    /// What to do: load the records, run the operations
    #[arg(long, value_name = "PHASES", value_enum, value_delimiter = ',', default_values_t = [YcsbPhase::Load, YcsbPhase::Run])]
    pub phase: Vec<YcsbPhase>,
    /// Number of records to load, or already loaded [default: YCSB's property recordcount, else 100000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000_000))]
    pub records: Option<u64>,
    /// Operations in each run [default: operationcount, else as many as 30 s allow]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub operations: Option<u64>,
    /// ycsb: bit for bit as YCSB's Java client; corrected: with a true Zipf distribution, configurable
    /// compressibility, and updates that use what was read
    #[arg(long, value_name = "EDITION", value_enum, default_value_t = EditionName::Ycsb)]
    pub edition: EditionName,
    /// How record numbers become keys: as in Java YCSB or as in go-ycsb; their data differ
    #[arg(long, value_name = "HASH", value_enum, default_value_t = KeyHashName::Java)]
    pub keyhash: KeyHashName,
    #[command(flatten)]
    pub send: SendArgs,
    #[command(flatten)]
    pub versus: VersusArgs,
    /// Print YCSB's summary lines on stdout instead of tables
    #[arg(long, conflicts_with = "json")]
    pub ycsb_output: bool,
    #[command(flatten)]
    pub keep: KeepArgs,
    #[command(flatten)]
    pub sharding: ShardArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WorkloadName {
    A,
    B,
    C,
    D,
    E,
    F,
    All,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum YcsbPhase {
    Load,
    Run,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EditionName {
    Ycsb,
    Corrected,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum KeyHashName {
    Java,
    Go,
}

/// sysbench-mongodb: its data and its transaction of 18 commands
///
/// The defaults have changed over the years; a result names the era whose defaults it used.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  seekscope bench sysbench --documents 100000 --for 60s
  seekscope bench sysbench mongodb://db1/ --era 2013-2015 --collections 16")]
pub struct SysbenchArgs {
    #[command(flatten)]
    pub target: BenchTargetArgs,
    /// Which defaults to use: those of the papers, of 2021 to 2024, or since September 2024
    #[arg(long, value_name = "ERA", value_enum, default_value_t = EraName::Since2024)]
    pub era: EraName,
    /// Number of collections [default: the era's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub collections: Option<u32>,
    /// Documents in each collection [default: the era's; 100000 on a local server]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=2_147_483_647))]
    pub documents: Option<u64>,
    /// Connections for loading [default: the era's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub loaders: Option<u32>,
    /// Leave out what the original leaves out: the documents of the last batch, which is not full
    #[arg(long)]
    pub exact_original: bool,
    /// Leave out the steps that write
    #[arg(long)]
    pub read_only: bool,
    /// Put the 18 commands into a real transaction (only replica sets and sharded clusters)
    #[arg(long)]
    pub transaction: bool,
    /// What to do: load the documents, run the transactions
    #[arg(long, value_name = "PHASES", value_enum, value_delimiter = ',', default_values_t = [YcsbPhase::Load, YcsbPhase::Run])]
    pub phase: Vec<YcsbPhase>,
    /// Number of transactions to run [default: as many as the time allows]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub transactions: Option<u64>,
    #[command(flatten)]
    pub send: SendArgs,
    #[command(flatten)]
    pub versus: VersusArgs,
    #[command(flatten)]
    pub keep: KeepArgs,
    #[command(flatten)]
    pub sharding: ShardArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EraName {
    #[value(name = "2013-2015")]
    Papers,
    #[value(name = "2021-2024")]
    Until2024,
    #[value(name = "2024-09")]
    Since2024,
}

/// Add up the runs of several clients that did one job together
///
/// Histograms, seconds and counts are added exactly. Runs with different settings are refused. No server is asked:
/// whether the documents of all clients are there is not checked.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  seekscope merge run1 run2 run3 --out all
  seekscope merge clients/* --out all --json")]
pub struct MergeArgs {
    /// The run directories of all clients
    #[arg(value_name = "RUN", required = true, num_args = 2..)]
    pub runs: Vec<PathBuf>,
    /// Folder for the merged run
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    #[command(flatten)]
    pub output: OutputArgs,
}
