//! Events per second that reach the disk without loss.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::load;
use crate::role::Role;
use crate::tracer::{self, Backend, Outcome};

const PEAK_BYTES: u64 = 150_000_000;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Calls per second
    #[arg(long, default_value_t = 300_000)]
    rate: u64,
    /// Seconds
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// Threads that read
    #[arg(long, default_value_t = 4)]
    threads: u64,
    /// Folder for the run directory
    #[arg(long, default_value = ".")]
    data_dir: std::path::PathBuf,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let folder = tempfile::tempdir_in(&options.data_dir)?;
    let file = folder.path().join("read.dat");
    load::make_file(&file)?;
    let run = folder.path().join("run");
    let mut load = Role::start(&[
        "paced-load".into(),
        file.display().to_string(),
        options.rate.to_string(),
        options.seconds.to_string(),
        options.threads.to_string(),
    ])?;
    let tracer = tracer::start(load.pid(), Backend::Auto, &run)?;
    let said = load.go()?;
    let outcome = tracer::finish(tracer)?;
    let (calls, seconds) = said.split_once(' ').context("no figures")?;
    let (calls, seconds) = (calls.parse::<u64>()?, seconds.parse::<f64>()?);
    ensure!(outcome.seen == calls, "{outcome:?} of {calls} calls");
    show(options, &run, &outcome, seconds)
}

fn show(options: &Options, run: &Path, outcome: &Outcome, seconds: f64) -> Result<()> {
    let Outcome {
        backend,
        seen,
        written,
        lost,
        drain_cpu_ns,
        drains,
        tracing_peak_bytes,
        peak_bytes,
    } = outcome;
    let rate = *seen as f64 / seconds;
    let per_event = |total: u64| total as f64 / (*written).max(1) as f64;
    let parquet = std::fs::metadata(run.join("io.parquet"))?.len();
    let mb = |bytes: u64| bytes as f64 / 1e6;
    println!(
        "backend {backend}: {seen} calls in {seconds:.1} s, {rate:.0} per second; {written} written, {lost} lost"
    );
    println!(
        "reader: {:.0} ns of CPU time per event, {drains} drains",
        per_event(*drain_cpu_ns)
    );
    println!(
        "largest memory: {:.0} MB while tracing, {:.0} MB with the end's compression",
        mb(*tracing_peak_bytes),
        mb(*peak_bytes)
    );
    println!("io.parquet: {:.2} bytes per event", per_event(parquet));
    let goal = |what: &str, met: bool| println!("{} {what}", if met { "met   " } else { "missed" });
    // The rate is the load's affair; without it there is no result.
    ensure!(
        rate > options.rate as f64 * 0.9,
        "this machine reads only {rate:.0} times per second"
    );
    goal("no loss", *lost == 0);
    goal("at most 150 MB of memory", *peak_bytes <= PEAK_BYTES);
    Ok(())
}
