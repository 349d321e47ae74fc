//! YCSB by seekscope, by YCSB's own client and by go-ycsb, against one local server: what each costs the
//! client, what the server then does, and how the load of a large table compares.
//!
//! Rounds are interleaved, and who begins changes with each round, so that a busy minute of the host
//! falls on all. Nothing of the peers is here: name what is built already. All use their own data (keys
//! and values of go-ycsb differ), of the same size, on the same server.
//!
//! Throughput and latency depend on what else the host does; CPU time per operation hardly does. Of
//! YCSB the second half of a run is shown too, when its virtual machine has compiled what it runs.
//! Processors are kept awake (see `awake`).

#![allow(clippy::print_stdout, reason = "a benchmark prints its result")]

mod awake;
mod child;
mod report;
mod tool;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use seekscope_server::{LocalServer, LocalServerOptions, ProcFs, Server, ServerBinary, Workspace};

use child::Ran;
use report::{Cell, Measured};
use tool::{Phase, Tool, Tools, Work};

/// YCSB against its peers.
#[derive(Debug, Parser)]
struct Arguments {
    /// seekscope's binary
    #[arg(long, value_name = "FILE")]
    seekscope: PathBuf,
    /// YCSB's core and MongoDB binding with all they need, as `java -cp` takes it: 'folder/*'
    #[arg(long, value_name = "CLASSPATH")]
    ycsb: String,
    /// go-ycsb's binary, with MongoDB's binding
    #[arg(long, value_name = "FILE")]
    go_ycsb: PathBuf,
    /// Rounds of the runs
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Rows that the runs work on
    #[arg(long, default_value_t = 200_000)]
    records: u64,
    /// Operations of each run; below 100000 it is YCSB's start that is measured
    #[arg(long, default_value_t = 100_000)]
    operations: u64,
    /// Operations in flight
    #[arg(long, value_delimiter = ',', default_values_t = [1, 8, 32])]
    in_flight: Vec<u32>,
    /// Core workloads
    #[arg(long, value_delimiter = ',', default_values_t = ['a', 'c'])]
    workloads: Vec<char>,
    /// Rows of the timed load, by 8 connections that insert one at a time; 0: no such load
    #[arg(long, default_value_t = 1_000_000)]
    load: u64,
    /// Documents of one insert while loading, by YCSB and seekscope; go-ycsb inserts one by one
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    batch: u32,
    /// Loads by each tool, every one into an empty server
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    load_rounds: u32,
    /// Let processors sleep when they have nothing to do
    #[arg(long)]
    sleepy: bool,
    /// WiredTiger's cache, bytes
    #[arg(long, default_value_t = 1 << 30)]
    cache: u64,
    /// Folder below which the data lies
    #[arg(long, default_value = ".")]
    data_dir: PathBuf,
}

/// Operations in flight while loading.
const LOADERS: u32 = 8;

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let tools = Tools::check(&arguments.seekscope, &arguments.ycsb, &arguments.go_ycsb)?;
    let folder = arguments.data_dir.canonicalize().context("--data-dir")?;
    let _awake = if arguments.sleepy {
        None
    } else {
        Some(awake::Awake::keep()?)
    };
    let mut cells = Vec::new();
    runs(&arguments, &tools, &folder, &mut cells).await?;
    let mut loads = Cell::load(arguments.load, LOADERS);
    for round in 0..arguments.load_rounds {
        if arguments.load == 0 {
            break;
        }
        for tool in Tool::in_order(round) {
            let bench = Bench::start(&arguments, &folder).await?;
            let load = Work {
                batch: arguments.batch,
                ..Work::load(arguments.load, LOADERS)
            };
            loads.add(tool, bench.work(&tools, tool, &load).await?);
            bench.verify(tool, arguments.load).await?;
            bench.stop().await;
        }
        report::progress(&loads);
    }
    if arguments.load > 0 {
        cells.push(loads);
    }
    report::print(&cells);
    Ok(())
}

/// Every workload at every number in flight, in rounds, on one server.
async fn runs(
    arguments: &Arguments,
    tools: &Tools,
    folder: &Path,
    cells: &mut Vec<Cell>,
) -> Result<()> {
    let bench = Bench::start(arguments, folder).await?;
    for tool in Tool::in_order(0) {
        let load = Work::load(arguments.records, LOADERS);
        bench.work(tools, tool, &load).await?;
        bench.verify(tool, arguments.records).await?;
    }
    for &workload in &arguments.workloads {
        for &in_flight in &arguments.in_flight {
            cells.push(Cell::run(workload, in_flight, arguments.records));
        }
    }
    for round in 0..arguments.rounds {
        for cell in cells.iter_mut() {
            for tool in Tool::in_order(round) {
                let work = Work {
                    phase: Phase::Run,
                    workload: cell.workload,
                    records: arguments.records,
                    operations: arguments.operations,
                    in_flight: cell.in_flight,
                    batch: 1,
                };
                cell.add(tool, bench.work(tools, tool, &work).await?);
            }
            report::progress(cell);
        }
    }
    bench.stop().await;
    Ok(())
}

/// A server with data of its own.
struct Bench {
    local: LocalServer,
    server: Server,
    folder: tempfile::TempDir,
    _workspace: Workspace,
}

impl Bench {
    async fn start(arguments: &Arguments, folder: &Path) -> Result<Self> {
        let workspace = Workspace::create(folder, &folder.join(".seekscope-leases"))?;
        let tools = std::env::var_os("SEEKSCOPE_TOOLS").map(|t| PathBuf::from(t).join("bin"));
        let path = std::env::var_os("PATH");
        let tools: Vec<PathBuf> = tools.into_iter().collect();
        let local = LocalServer::start(&LocalServerOptions::new(
            ServerBinary::find(None, path.as_deref(), &tools)?,
            workspace.data_directory(),
            arguments.cache,
        ))
        .await?;
        Ok(Self {
            server: Server::connect(&local.uri()).await?,
            local,
            folder: tempfile::tempdir_in(folder)?,
            _workspace: workspace,
        })
    }

    /// Lets a tool do some work, and measures it and the server.
    async fn work(&self, tools: &Tools, tool: Tool, work: &Work) -> Result<Measured> {
        let proc_fs = ProcFs::host();
        let before = proc_fs.io(self.local.pid())?.cpu_ns;
        let folder = self.folder.path().to_path_buf();
        let command = tools.command(tool, work, &self.local.uri(), &folder)?;
        let half = work.operations / 2;
        let ran: Ran =
            tokio::task::spawn_blocking(move || child::run(command, tool, half, &folder)).await??;
        let server_cpu_ns = proc_fs.io(self.local.pid())?.cpu_ns.saturating_sub(before);
        let said = tool::parse(tool, work, &ran).with_context(|| {
            format!(
                "{}, which said:\n{}\n{}",
                tool.name(),
                ran.stdout,
                ran.stderr
            )
        })?;
        Ok(Measured::new(work, &ran, said, server_cpu_ns))
    }

    /// Every row is there, by a count of the server's.
    async fn verify(&self, tool: Tool, records: u64) -> Result<()> {
        let all = bson::doc! { "_id": { "$gt": bson::Bson::MinKey } };
        let table = self
            .server
            .database(tool.database())
            .collection::<bson::Document>(tool::TABLE);
        let counted = table.count_documents(all).await?;
        ensure!(
            counted == records,
            "{} loaded {counted} rows of {records}",
            tool.name()
        );
        Ok(())
    }

    async fn stop(self) {
        self.local.stop(Duration::from_secs(300)).await;
    }
}
