//! What `seekscope exporter` and Percona's mongodb_exporter cost a server with thousands of collections, some of them
//! in use: CPU time of the server and of the exporter, the exporter's memory, and its scrapes. Stretches without an
//! exporter, with ours and with the other alternate on one server under one load.
//!
//! The other one is built by whoever runs this (`go build` in its repository), and asked for what comes closest to
//! ours: statistics of each collection and index.

#![allow(clippy::print_stdout, reason = "a benchmark prints its result")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use bson::doc;
use clap::Parser;
use seekscope_bench::Programs;
use seekscope_bench::gains::{Activity, Conditions, Hosts};
use seekscope_server::{ProcFs, Server, Workspace};
use seekscope_stats::{SplitMix64, median};
use tokio::task::block_in_place;

/// The time that an exporter has to find its servers and their files, which is not measured.
const START: Duration = Duration::from_secs(12);
const DATABASES: u64 = 20;
const CACHE_BYTES: u64 = 512 << 20;

/// Exporters beside a server with many collections.
#[derive(Debug, Parser)]
struct Arguments {
    /// Collections of one document each; each takes two files, of which a process may have a limited number open
    #[arg(long, default_value_t = 9_000)]
    collections: u64,
    /// Collections that are read and written
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..))]
    active: u64,
    /// Operations per second on them
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    rate: u64,
    /// Stretches of each
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Length of a stretch, s
    #[arg(long = "for", default_value_t = 105)]
    stretch_s: u64,
    /// Between two scrapes, s
    #[arg(long, default_value_t = 15)]
    every_s: u64,
    /// Percona's mongodb_exporter [default: it is left out]
    #[arg(long)]
    mongodb_exporter: Option<PathBuf>,
    #[command(flatten)]
    programs: Programs,
}

/// What is beside the server in a stretch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Beside {
    Nothing,
    Seekscope,
    MongodbExporter,
}

/// What a stretch showed; of the exporter, zero where there was none.
#[derive(Debug, Default)]
struct Stretch {
    /// Shares of one core.
    server_cpus: f64,
    exporter_cpus: f64,
    rss_bytes: u64,
    scrapes_ms: Vec<f64>,
    bytes: usize,
    series: usize,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let folder = arguments.programs.data_dir.canonicalize()?;
    let workspace = Workspace::create(&folder, &folder.join(".seekscope-leases"))?;
    let data = workspace.path().join("many");
    let mut hosts = Hosts {
        binary: arguments.programs.server()?,
        cache_bytes: CACHE_BYTES,
        workspace,
    };
    let cold = hosts.start(&data, Conditions::default()).await?;
    let (uri, pid) = (cold.local.uri(), cold.local.pid()?);
    let server = Server::connect(&uri).await?;
    for number in 0..arguments.collections {
        let (database, collection) = place(number);
        let insert = doc! { "insert": collection, "documents": [{ "x": 1 }] };
        server.command(&database, insert).await?;
    }
    let load = tokio::spawn(load(
        server,
        arguments.collections,
        arguments.active,
        arguments.rate,
    ));
    println!(
        "                    server CPU  exporter CPU  memory MB  scrape ms: median, most  kB of a scrape  series"
    );
    for _ in 0..arguments.rounds {
        for beside in [Beside::Nothing, Beside::Seekscope, Beside::MongodbExporter] {
            if beside == Beside::MongodbExporter && arguments.mongodb_exporter.is_none() {
                continue;
            }
            let stretch = block_in_place(|| measure(&arguments, beside, &uri, pid))?;
            show(beside, &stretch);
        }
    }
    load.abort();
    hosts.end(cold, Activity::Scan).await?;
    Ok(())
}

/// The database and collection of a number.
fn place(number: u64) -> (String, String) {
    let database = format!("app{:02}", number % DATABASES);
    (database, format!("collection{number:05}"))
}

/// Reads and inserts, half and half, until it is aborted or the server is gone.
async fn load(server: Server, collections: u64, active: u64, rate: u64) -> Result<()> {
    let mut random = SplitMix64::new(1);
    let mut ticks = tokio::time::interval(Duration::from_secs(1) / u32::try_from(rate)?);
    loop {
        ticks.tick().await;
        let chosen = random.below(active) * (collections / active).max(1);
        let (database, collection) = place(chosen % collections.max(1));
        let command = match random.below(2) {
            0 => doc! { "find": collection, "limit": 1 },
            _ => doc! { "insert": collection, "documents": [{ "text": "y".repeat(200) }] },
        };
        server.command(&database, command).await?;
    }
}

fn measure(arguments: &Arguments, beside: Beside, uri: &str, server: u32) -> Result<Stretch> {
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let exporter = start(arguments, beside, uri, port)?;
    if exporter.is_some() {
        std::thread::sleep(START);
    }
    let cpu_ns = |pid: u32| ProcFs::host().cpu_ns(pid);
    let of_exporter = exporter.as_ref().map(|exporter| exporter.0.id());
    let (begun, server_before) = (Instant::now(), cpu_ns(server)?);
    let exporter_before = of_exporter.map(cpu_ns).transpose()?.unwrap_or(0);
    let mut stretch = Stretch::default();
    while begun.elapsed() < Duration::from_secs(arguments.stretch_s) {
        let scraped = Instant::now();
        if let Some(pid) = of_exporter {
            let text = scrape(port)?;
            stretch
                .scrapes_ms
                .push(scraped.elapsed().as_secs_f64() * 1e3);
            stretch.bytes = text.len();
            let lines = text.lines().filter(|line| !line.is_empty());
            stretch.series = lines.filter(|line| !line.starts_with('#')).count();
            stretch.rss_bytes = stretch.rss_bytes.max(ProcFs::host().rss_bytes(pid)?);
        }
        std::thread::sleep(
            Duration::from_secs(arguments.every_s).saturating_sub(scraped.elapsed()),
        );
    }
    let cpus = |now: u64, before: u64| (now - before) as f64 / 1e9 / begun.elapsed().as_secs_f64();
    stretch.server_cpus = cpus(cpu_ns(server)?, server_before);
    stretch.exporter_cpus = match of_exporter {
        Some(pid) => cpus(cpu_ns(pid)?, exporter_before),
        None => 0.0,
    };
    Ok(stretch)
}

/// A process that ends when this is dropped.
struct Exporter(Child);

impl Drop for Exporter {
    fn drop(&mut self) {
        // It keeps nothing, and the kernel takes its programs back.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(arguments: &Arguments, beside: Beside, uri: &str, port: u16) -> Result<Option<Exporter>> {
    let address = format!("127.0.0.1:{port}");
    let mut command = match (beside, &arguments.mongodb_exporter) {
        (Beside::Seekscope, _) => {
            let mut command = Command::new(&arguments.programs.seekscope);
            command.args(["exporter", uri, "--quiet", "--listen", &address]);
            command
        }
        (Beside::MongodbExporter, Some(program)) => {
            let mut command = Command::new(program);
            command
                .arg(format!("--mongodb.uri={uri}"))
                .arg(format!("--web.listen-address={address}"))
                .args(
                    [
                        "diagnosticdata",
                        "dbstats",
                        "topmetrics",
                        "collstats",
                        "indexstats",
                    ]
                    .map(|collector| format!("--collector.{collector}")),
                )
                .arg("--discovering-mode");
            command
        }
        _ => return Ok(None),
    };
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let child = child.with_context(|| format!("cannot start {command:?}"))?;
    Ok(Some(Exporter(child)))
}

/// Returns what is told on `/metrics`, with its head.
fn scrape(port: u16) -> Result<String> {
    let mut stream =
        TcpStream::connect(("127.0.0.1", port)).context("the exporter does not answer")?;
    stream.write_all(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}

fn show(beside: Beside, stretch: &Stretch) {
    let name = match beside {
        Beside::Nothing => "none",
        Beside::Seekscope => "seekscope exporter",
        Beside::MongodbExporter => "mongodb_exporter",
    };
    let most = stretch.scrapes_ms.iter().copied().fold(0.0, f64::max);
    println!(
        "{name:18}  {:9.2} %  {:11.2} %  {:9.1}  {:13.1} {:9.1}  {:14.1}  {:6}",
        stretch.server_cpus * 100.0,
        stretch.exporter_cpus * 100.0,
        stretch.rss_bytes as f64 / 1e6,
        median(&stretch.scrapes_ms).unwrap_or(0.0),
        most,
        stretch.bytes as f64 / 1e3,
        stretch.series,
    );
}
