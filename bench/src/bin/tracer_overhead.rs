//! What tracing costs an index build: the same cold build with and without the tracer, in
//! interleaved pairs on one server's data. Ratios are traced / untraced with a 95 % bootstrap
//! interval; an interval that holds 1 means that no difference was found.

#![allow(clippy::print_stdout, reason = "a benchmark prints its result")]

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use seekscope_run::{RunDirectory, RunDocument, TraceFacts};
use seekscope_server::process::io_between;
use seekscope_server::{
    LocalServer, LocalServerOptions, Namespace, ProcFs, Server, ServerBinary, Workspace, page_cache,
};
use seekscope_stats::{PairedRatio, SplitMix64, median, paired_ratio};
use seekscope_trace::{LiveSource, Recording, TraceOptions};
use seekscope_workload::{
    IndexKeys, IndexPlan, LoadOptions, Sdu, SduOptions, UpdateOptions, drop_index, load, update,
};

const KEYS: &str = r#"{"i":1}"#;

/// The tracer's overhead on an index build.
#[derive(Debug, Parser)]
struct Arguments {
    /// Pairs of builds
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(5..))]
    pairs: u32,
    /// Documents of about 3 KiB, 10 % of them updated at random
    #[arg(long, default_value_t = 60_000)]
    docs: u64,
    /// Leave the page cache warm: more reads per second, so the worst case for the tracer
    #[arg(long)]
    warm: bool,
    /// Folder below which the data lies
    #[arg(long, default_value = ".")]
    data_dir: PathBuf,
}

/// One build.
struct Sample {
    wall_s: f64,
    server_cpu_s: f64,
    trace: Option<TraceFacts>,
}

struct Bench {
    options: LocalServerOptions,
    warm: bool,
    plan: IndexPlan,
    /// Traced runs write their events as `doctor` does.
    run: RunDirectory,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let folder = arguments.data_dir.canonicalize().context("--data-dir")?;
    let workspace = Workspace::create(&folder, &folder.join(".seekscope-leases"))?;
    let bench = prepare(&arguments, &workspace).await?;
    let mut rng = SplitMix64::new(1);
    let (mut pairs, mut traces) = (Vec::new(), Vec::new());
    println!("pair  untraced s  traced s  untraced server CPU s  traced server CPU s  events");
    for pair in 1..=arguments.pairs {
        // Which goes first is drawn, so that drift within a pair cancels.
        let traced_first = rng.below(2) == 1;
        let first = bench.build(traced_first).await?;
        let second = bench.build(!traced_first).await?;
        let (traced, untraced) = if traced_first {
            (first, second)
        } else {
            (second, first)
        };
        let trace = traced.trace.clone().context("a traced build has a trace")?;
        ensure!(trace.lost == 0, "events were lost: {trace:?}");
        println!(
            "{pair:4}  {:10.3}  {:8.3}  {:21.3}  {:19.3}  {:6}",
            untraced.wall_s,
            traced.wall_s,
            untraced.server_cpu_s,
            traced.server_cpu_s,
            trace.written
        );
        pairs.push((untraced, traced));
        traces.push(trace);
    }
    show("build time", &pairs, |s| s.wall_s)?;
    show("server CPU time", &pairs, |s| s.server_cpu_s)?;
    let costs = traces.iter().filter_map(|t| t.cost.known_ns_per_event());
    let costs: Vec<f64> = costs.collect();
    let programs: Vec<f64> = traces
        .iter()
        .map(|t| t.cost.program_ns as f64 / 1e6)
        .collect();
    let drains: Vec<f64> = traces
        .iter()
        .map(|t| t.cost.drain_cpu_ns as f64 / 1e6)
        .collect();
    println!(
        "tracer: {:.0} ns per event (programs {:.2} ms, reader {:.2} ms per build, medians), backend {}",
        median(&costs).unwrap_or(0.0),
        median(&programs).unwrap_or(0.0),
        median(&drains).unwrap_or(0.0),
        traces.first().map_or("", |t| &t.backend),
    );
    Ok(())
}

fn show(what: &str, pairs: &[(Sample, Sample)], of: fn(&Sample) -> f64) -> Result<()> {
    let values: Vec<(f64, f64)> = pairs.iter().map(|(u, t)| (of(u), of(t))).collect();
    let PairedRatio {
        median,
        low,
        high,
        pairs,
    } = paired_ratio(&values, 1).context("a build took no time")?;
    println!("{what}: traced / untraced = {median:.4} ({low:.4} to {high:.4}, {pairs} pairs)");
    Ok(())
}

async fn prepare(arguments: &Arguments, workspace: &Workspace) -> Result<Bench> {
    let tools = std::env::var_os("SEEKSCOPE_TOOLS").map(|t| PathBuf::from(t).join("bin"));
    let binary = ServerBinary::find(
        None,
        std::env::var_os("PATH").as_deref(),
        &tools.into_iter().collect::<Vec<_>>(),
    )?;
    let options = LocalServerOptions::new(
        binary,
        workspace.data_directory(),
        (arguments.docs * 3072 / 5).max(16 << 20),
    );
    let namespace = Namespace::new("sdu", "aged")?;
    let local = LocalServer::start(&options).await?;
    let server = Server::connect(&local.uri()).await?;
    let sdu = Sdu::new(SduOptions::default());
    load(
        &server,
        &namespace,
        &sdu,
        &LoadOptions::new(arguments.docs),
        &|_| {},
    )
    .await?;
    let updates = UpdateOptions::new(arguments.docs, 0.1, 1);
    update(&server, &namespace, &sdu, &updates, &|_| {}).await?;
    let keys = IndexKeys::parse(KEYS)?;
    let plan = IndexPlan::check(&server, &namespace, &keys, &keys.default_name()).await?;
    local.stop(Duration::from_secs(300)).await;
    let document = RunDocument::begin("bench", Vec::new());
    let run = RunDirectory::create(&workspace.path().join("run"), &document)?;
    Ok(Bench {
        options,
        warm: arguments.warm,
        plan,
        run,
    })
}

impl Bench {
    async fn build(&self, traced: bool) -> Result<Sample> {
        let data = &self.options.data_directory;
        if self.warm {
            for file in page_cache::files_below(data)? {
                std::io::copy(&mut std::fs::File::open(file)?, &mut std::io::sink())?;
            }
        } else {
            page_cache::evict(data)?;
        }
        let local = LocalServer::start(&self.options).await?;
        let server = Server::connect(&local.uri()).await?;
        let recording = if traced {
            Some(self.record(local.pid())?)
        } else {
            None
        };
        let proc_fs = ProcFs::host();
        let before = proc_fs.io(local.pid())?;
        let built = self.plan.build(&server).await?;
        let io = io_between(&before, &proc_fs.io(local.pid())?);
        let trace = recording
            .map(Recording::stop)
            .transpose()?
            .map(|(facts, _)| facts);
        drop_index(&server, &self.plan.namespace, &self.plan.name).await?;
        local.stop(Duration::from_secs(300)).await;
        Ok(Sample {
            wall_s: built.elapsed_ns as f64 / 1e9,
            server_cpu_s: io.cpu_ns as f64 / 1e9,
            trace,
        })
    }

    fn record(&self, pid: u32) -> Result<Recording> {
        let source = LiveSource::attach(&TraceOptions::new(pid))?;
        Ok(Recording::start(
            Box::new(source),
            Box::new(self.run.io_writer()?),
        ))
    }
}
