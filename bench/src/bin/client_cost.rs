//! What an operation costs on the client's side: CPU time (user and system) per operation of YCSB's
//! workloads A and C with our own client and with the official driver, at several numbers in flight,
//! and this process's memory with our own. Rounds are interleaved and medians shown, as the machine may
//! be busy; CPU time per operation is what such a machine disturbs least.

#![allow(clippy::print_stdout, reason = "a benchmark prints its result")]

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use seekscope_client::{
    ClientSpec, DriverTarget, Job, RawTarget, Retries, ScheduleKind, Workload, run,
};
use seekscope_run::{ClientKind, latency_histogram};
use seekscope_server::{LocalServer, LocalServerOptions, ServerBinary, Workspace};
use seekscope_workload::ycsb::{self, ClientSlice, Edition, YcsbLoad, YcsbRun, YcsbSettings};

const DATABASE: &str = "seekscope_bench";

#[derive(Debug, Parser)]
struct Arguments {
    /// Server program, secantusd-rs or mongod
    #[arg(long, value_name = "FILE")]
    server: PathBuf,
    /// Rows to load
    #[arg(long, value_name = "N", default_value_t = 50_000)]
    rows: u64,
    /// Operations of each measurement
    #[arg(long, value_name = "N", default_value_t = 60_000)]
    operations: u64,
    /// Rounds, whose median is shown
    #[arg(long, value_name = "N", default_value_t = 3)]
    rounds: usize,
    /// Threads of our own client
    #[arg(long, value_name = "N", default_value_t = 1)]
    threads: usize,
    /// Measure the official driver too
    #[arg(long)]
    driver: bool,
    /// Folder to work in; a folder is made in it and removed
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Runtime::new()?;
    let root = tempfile::tempdir_in(&arguments.dir)?;
    let workspace = Workspace::create(root.path(), &root.path().join("leases"))?;
    let server = runtime.block_on(LocalServer::start(&LocalServerOptions::new(
        ServerBinary::find(Some(&arguments.server), None, &[])?,
        workspace.data_directory(),
        1 << 30,
    )))?;
    let raw = RawTarget::parse(&server.uri(), DATABASE).map_err(anyhow::Error::msg)?;
    let mut clients = vec![ClientSpec::Raw(Box::new(raw))];
    let own = clients[0].clone();
    let own = &own;
    let load = YcsbLoad::new(&settings('c', &arguments)?);
    let loaded = measure(own, &load, 8, arguments.threads, None)?;
    println!("load: {loaded}");
    let count = Some(arguments.operations);
    let mut rows = Vec::new();
    for letter in ['c', 'a'] {
        for in_flight in [1, 8, 32] {
            rows.push((letter, in_flight));
        }
    }
    // Before anything of the driver is in memory.
    for &(letter, in_flight) in &rows {
        let workload = workload(letter, &arguments)?;
        measure(own, &workload, in_flight, arguments.threads, count)?;
    }
    println!(
        "memory with our own client at most: {} KiB",
        peak_memory_kib()?
    );
    for in_flight in [1, 8] {
        let workload = workload('c', &arguments)?;
        println!("{}", lateness(own, &workload, in_flight)?);
    }
    if arguments.driver {
        let driver = DriverTarget::new(&server.uri(), DATABASE);
        clients.push(ClientSpec::Async(Arc::new(driver)));
    }
    let mut figures = vec![vec![Vec::new(); clients.len()]; rows.len()];
    for _ in 0..arguments.rounds {
        for (row, &(letter, in_flight)) in rows.iter().enumerate() {
            for (column, client) in clients.iter().enumerate() {
                let threads = if client.kind() == ClientKind::Raw {
                    arguments.threads
                } else {
                    2
                };
                let workload = workload(letter, &arguments)?;
                figures[row][column].push(measure(client, &workload, in_flight, threads, count)?);
            }
        }
    }
    for ((letter, in_flight), clients_figures) in rows.iter().zip(figures) {
        for (client, mut figures) in clients.iter().zip(clients_figures) {
            figures.sort_by(|a, b| a.cpu_us.total_cmp(&b.cpu_us));
            let median = &figures[figures.len() / 2];
            println!(
                "{letter}, {in_flight} in flight, {:?}: {median}",
                client.kind()
            );
        }
    }
    Ok(())
}

fn settings(letter: char, arguments: &Arguments) -> Result<YcsbSettings> {
    let mut properties = ycsb::workload(letter)?;
    properties.set("recordcount", arguments.rows.to_string());
    properties.set("operationcount", arguments.operations.to_string());
    Ok(YcsbSettings::new(&properties, Edition::Ycsb, None)?)
}

fn workload(letter: char, arguments: &Arguments) -> Result<YcsbRun> {
    let alone = ClientSlice::new(0, 1).context("one client of one")?;
    Ok(YcsbRun::new(settings(letter, arguments)?, alone)?)
}

#[derive(Clone)]
struct Figures {
    cpu_us: f64,
    per_s: f64,
    p50_us: f64,
    p99_us: f64,
}

impl std::fmt::Display for Figures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{:.1} us of CPU per operation, {:.0} operations/s, p50 {:.0} us, p99 {:.0} us",
            self.cpu_us, self.per_s, self.p50_us, self.p99_us
        )
    }
}

fn measure(
    client: &ClientSpec,
    workload: &dyn Workload,
    in_flight: usize,
    threads: usize,
    transactions: Option<u64>,
) -> Result<Figures> {
    let job = Job {
        transactions,
        ..job(ScheduleKind::Closed, in_flight, threads)
    };
    let (mut cpu_ns, mut done, mut service) = (0, 0, latency_histogram());
    let never = AtomicBool::new(false);
    let ended = run(client, workload, &job, &never, &mut |second| {
        cpu_ns += second.client_cpu_ns;
        for operation in &second.operations {
            done += operation.done;
            // All have the same bounds.
            let _ = service.add(&operation.service);
        }
    })?;
    ensure!(ended.failures.is_empty(), "failures: {:?}", ended.failures);
    let elapsed_s = (ended.ended_ns - ended.started_ns) as f64 / 1e9;
    Ok(Figures {
        cpu_us: cpu_ns as f64 / 1e3 / done as f64,
        per_s: done as f64 / elapsed_s,
        p50_us: service.value_at_quantile(0.5) as f64 / 1e3,
        p99_us: service.value_at_quantile(0.99) as f64 / 1e3,
    })
}

fn job(schedule: ScheduleKind, in_flight: usize, threads: usize) -> Job {
    Job {
        schedule,
        in_flight,
        threads,
        transactions: None,
        duration: None,
        timeout: Duration::from_secs(30),
        start_at_ns: None,
        retries: Retries::default(),
        failures_in_a_row_max: Some(100),
    }
}

/// How late the generator itself is at a rate that leaves it mostly asleep.
fn lateness(client: &ClientSpec, workload: &dyn Workload, in_flight: usize) -> Result<String> {
    const PER_S: f64 = 500.0;
    let job = Job {
        duration: Some(Duration::from_secs(5)),
        ..job(ScheduleKind::Constant { per_s: PER_S }, in_flight, 1)
    };
    let mut lag = latency_histogram();
    let never = AtomicBool::new(false);
    run(client, workload, &job, &never, &mut |second| {
        // All have the same bounds.
        let _ = lag.add(&second.lag);
    })?;
    let us = |quantile| lag.value_at_quantile(quantile) as f64 / 1e3;
    let (p50, p90, p99) = (us(0.5), us(0.9), us(0.99));
    Ok(format!(
        "{PER_S} operations/s, {in_flight} in flight: late by p50 {p50:.0} us, p90 {p90:.0} us, \
         p99 {p99:.0} us"
    ))
}

fn peak_memory_kib() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .context("no VmHWM in /proc/self/status")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}
