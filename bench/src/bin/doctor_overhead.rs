//! What `seekscope doctor` costs a server at work: YCSB with and without it beside, in interleaved
//! stretches of the same length on one server, as fast as the server goes. A stretch lasts as long as the
//! doctor's process, its conclusions included. Ratios are with / without, with a 95 % bootstrap interval; an
//! interval that holds 1 means that no difference was found.

#![allow(clippy::print_stdout, reason = "a benchmark prints its result")]

use std::time::Duration;

use anyhow::{Context, Result};
use clap::Parser;
use seekscope_bench::Programs;
use seekscope_bench::examined::{Examined, YcsbTask, examine, rate_between};
use seekscope_bench::gains::{Activity, Conditions, Hosts};
use seekscope_run::monotonic_ns;
use seekscope_server::Workspace;
use seekscope_stats::{PairedRatio, SplitMix64, median, paired_ratio};
use tokio::task::block_in_place;

/// Between two stretches, and for the load to warm up before the first.
const PAUSE: Duration = Duration::from_secs(2);
/// A stretch without the doctor lasts as long as one with it is allowed to.
const AFTER: Duration = Duration::from_secs(20);

/// The doctor's overhead on a server under YCSB.
#[derive(Debug, Parser)]
struct Arguments {
    /// Pairs of stretches
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(7..))]
    pairs: u32,
    /// What `doctor --for` is given, s
    #[arg(long = "for", default_value_t = 60)]
    watched_s: u64,
    /// YCSB's workload
    #[arg(long, default_value_t = 'a')]
    workload: char,
    /// Operations per second [default: as fast as the server goes]
    #[arg(long)]
    rate: Option<f64>,
    /// Rows of about 1.1 KiB
    #[arg(long, default_value_t = 100_000)]
    rows: u64,
    /// WiredTiger's cache, MiB; what it lacks is read from files, and traced
    #[arg(long, default_value_t = 64)]
    cache_mib: u64,
    #[command(flatten)]
    programs: Programs,
}

/// Operations per second in stretches beside one another, and the examination.
struct Pair {
    without_per_s: f64,
    with_per_s: f64,
    examined: Examined,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let folder = arguments.programs.data_dir.canonicalize()?;
    let workspace = Workspace::create(&folder, &folder.join(".seekscope-leases"))?;
    let data = workspace.path().join("ycsb");
    let mut hosts = Hosts {
        binary: arguments.programs.server_binary.clone(),
        cache_bytes: arguments.cache_mib << 20,
        workspace,
    };
    let task = YcsbTask {
        letter: arguments.workload,
        rows: arguments.rows,
        properties: Vec::new(),
        in_flight: 8,
        per_s: arguments.rate,
    };
    let cold = hosts.start(&data, Conditions::default()).await?;
    let uri = cold.local.uri();
    block_in_place(|| task.fill(&uri))?;
    println!("pair  without ops/s  with ops/s  doctor CPU s  peak MB  total - for s  top finding");
    let (mut random, mut pairs) = (SplitMix64::new(1), Vec::new());
    for number in 1..=arguments.pairs {
        let run = hosts.workspace.path().join(format!("doctor-{number}"));
        let with_first = random.below(2) == 1;
        let pair = block_in_place(|| measure(&arguments, &task, &uri, with_first, &run))?;
        println!(
            "{number:4}  {:13.0}  {:10.0}  {:12.2}  {:7.1}  {:13.2}  {}",
            pair.without_per_s,
            pair.with_per_s,
            pair.examined.usage.cpu_ns as f64 / 1e9,
            pair.examined.usage.rss_bytes as f64 / 1e6,
            pair.examined.seconds() - arguments.watched_s as f64,
            pair.examined.finding_ids().first().unwrap_or(&"(none)"),
        );
        pairs.push(pair);
        std::fs::remove_dir_all(&run)?;
    }
    hosts.end(cold, Activity::Scan).await?;
    show(&pairs)
}

/// A stretch with and one without, under one load; which comes first was drawn, so that drift cancels.
fn measure(
    arguments: &Arguments,
    task: &YcsbTask,
    uri: &str,
    with_first: bool,
    run: &std::path::Path,
) -> Result<Pair> {
    let watched = Duration::from_secs(arguments.watched_s);
    let load = task.start(uri)?;
    let (mut without, mut examined) = ((0, 0), None);
    for with in [with_first, !with_first] {
        std::thread::sleep(PAUSE);
        if with {
            let seekscope = &arguments.programs.seekscope;
            examined = Some(examine(seekscope, uri, watched, run)?);
        } else {
            let from_ns = monotonic_ns();
            let whole_s = examined.as_ref().map(Examined::seconds);
            std::thread::sleep(whole_s.map_or(watched + AFTER, Duration::from_secs_f64));
            without = (from_ns, monotonic_ns());
        }
    }
    let examined = examined.context("one of two is with the doctor")?;
    // The last second is handed over when it is full.
    std::thread::sleep(Duration::from_secs(1));
    let seconds = load.stop()?;
    let rate = |from_ns, to_ns| {
        rate_between(&seconds, from_ns, to_ns).context("the load did nothing in a stretch")
    };
    Ok(Pair {
        without_per_s: rate(without.0, without.1)?,
        with_per_s: rate(examined.started_ns, examined.ended_ns)?,
        examined,
    })
}

fn show(pairs: &[Pair]) -> Result<()> {
    let rates: Vec<(f64, f64)> = pairs
        .iter()
        .map(|pair| (pair.without_per_s, pair.with_per_s))
        .collect();
    let PairedRatio {
        median: middle,
        low,
        high,
        pairs: count,
    } = paired_ratio(&rates, 1).context("a stretch without operations")?;
    println!("throughput: with / without = {middle:.4} ({low:.4} to {high:.4}, {count} pairs)");
    let of = |value: fn(&Examined) -> f64| {
        median(
            &pairs
                .iter()
                .map(|pair| value(&pair.examined))
                .collect::<Vec<_>>(),
        )
        .unwrap_or(0.0)
    };
    println!(
        "doctor, medians: {:.2} s of CPU in {:.1} s, {:.1} MB at most",
        of(|one| one.usage.cpu_ns as f64 / 1e9),
        of(Examined::seconds),
        of(|one| one.usage.rss_bytes as f64 / 1e6),
    );
    Ok(())
}
