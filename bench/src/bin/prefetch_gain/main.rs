//! What `seekscope prefetch` gains a cold scan and a cold index build of a collection that random updates
//! have shuffled: with and without it, in interleaved pairs, on the disk as it is and throttled like a
//! hard disk, with all memory and with page cache for a quarter of the file. Server and seekscope are
//! slowed down and limited together. Then what point reads of other data notice of it.
//!
//! For a quarter, the memory that the processes themselves take is found out by a trial without a limit,
//! and granted on top.

#![allow(clippy::print_stdout, reason = "a benchmark prints its result")]

mod foreground;
mod trial;

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Parser;
use seekscope_bench::Programs;
use seekscope_bench::gains::{Activity, Conditions, DiskLimits, Hosts, Pairs, aged};
use seekscope_server::{Server, Workspace};
use seekscope_stats::{SplitMix64, median};

use trial::{Bed, Trial};

/// As small as it may be: what is read must come from the disk or the page cache.
const CACHE_BYTES: u64 = 32 << 20;
const AGED_SHARE: f64 = 0.1;
/// For a trial that finds out what the processes need.
const NO_LIMIT_BYTES: u64 = 1 << 40;
/// What the limit may be missed by.
const MARGIN_BYTES: u64 = 2 << 20;

/// What prefetch gains.
#[derive(Debug, Parser)]
struct Arguments {
    /// Pairs of each activity on each disk
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(2..))]
    pairs: u32,
    /// Documents of about 3 KiB
    #[arg(long, default_value_t = 40_000)]
    docs: u64,
    /// On this disk alone
    #[arg(long, value_parser = ["plain", "throttled"])]
    disk: Option<String>,
    /// With this much page cache alone
    #[arg(long, value_parser = ["all", "quarter"])]
    memory: Option<String>,
    /// This activity alone
    #[arg(long, value_parser = ["scan", "index build"])]
    activity: Option<String>,
    /// No point reads of others
    #[arg(long)]
    no_others: bool,
    /// Keep what seekscope says of each of its runs, as lines of JSON, in this file
    #[arg(long)]
    records: Option<PathBuf>,
    #[command(flatten)]
    programs: Programs,
    /// Only does this (scan, index build) on the server of `--uri`, and writes its seconds into `--seconds`
    #[arg(long, hide = true, requires_all = ["uri", "seconds"])]
    only: Option<String>,
    #[arg(long, hide = true)]
    uri: Option<String>,
    #[arg(long, hide = true)]
    seconds: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    if let (Some(only), Some(uri), Some(seconds)) =
        (&arguments.only, &arguments.uri, &arguments.seconds)
    {
        let activity = Activity::from_name(only).context("--only")?;
        let server = Server::connect(uri).await?;
        let database = server.database(aged::namespace()?.database());
        let took = activity.run(&database).await?;
        return Ok(std::fs::write(seconds, took.to_string())?);
    }
    let folder = arguments
        .programs
        .data_dir
        .canonicalize()
        .context("--data-dir")?;
    let workspace = Workspace::create(&folder, &folder.join(".seekscope-leases"))?;
    let data = workspace.path().join("aged");
    let hosts = Hosts {
        binary: arguments.programs.server()?,
        cache_bytes: CACHE_BYTES,
        workspace,
    };
    aged::make(&hosts.options(&data), arguments.docs).await?;
    foreground::load_others(&hosts.options(&data)).await?;
    aged::age(&hosts.options(&data), arguments.docs, AGED_SHARE, 1).await?;
    let walked = aged::walk(&data)?;
    let share = aged::sequential_share(&data)?;
    println!(
        "{} leaves in {} bytes, {share:.4} sequential",
        walked.tree.leaves.len(),
        walked.file_bytes
    );
    let mut bed = Bed {
        hosts,
        data,
        seekscope: arguments.programs.seekscope.clone(),
        records: arguments.records.clone(),
    };
    gains(&mut bed, &arguments, walked.file_bytes).await?;
    if arguments.no_others {
        return Ok(());
    }
    foreground::compare(&mut bed, arguments.pairs).await
}

async fn gains(bed: &mut Bed, arguments: &Arguments, file_bytes: u64) -> Result<()> {
    let wanted = |only: &Option<String>, name| only.as_deref().is_none_or(|only| only == name);
    println!(
        "\n{:34}  {:28}  {:28}  times faster (95 %)             CPU share without, with  page cache MB",
        "", "without s", "with s"
    );
    for disk in [DiskLimits::PLAIN, DiskLimits::HARD_DISK] {
        let of_disk = Conditions {
            disk,
            ..Conditions::default()
        };
        for quarter in [false, true] {
            for activity in Activity::ALL {
                let memory_name = if quarter { "quarter" } else { "all" };
                let is_wanted = wanted(&arguments.disk, of_disk.disk_name())
                    && wanted(&arguments.memory, memory_name)
                    && wanted(&arguments.activity, activity.name());
                if !is_wanted {
                    continue;
                }
                let memory = match quarter {
                    true => Some(needs(bed, of_disk, activity, file_bytes).await?),
                    false => None,
                };
                let conditions = |prefetching: bool| Conditions {
                    memory_bytes: memory.map(|bytes| bytes[usize::from(prefetching)]),
                    ..of_disk
                };
                let trials = paired(bed, arguments.pairs, activity, conditions).await?;
                show(of_disk.disk_name(), quarter, activity, &trials);
            }
        }
    }
    Ok(())
}

/// Limits without and with prefetch that leave page cache for a quarter of the file.
async fn needs(
    bed: &mut Bed,
    of_disk: Conditions,
    activity: Activity,
    file_bytes: u64,
) -> Result<[u64; 2]> {
    let conditions = Conditions {
        memory_bytes: Some(NO_LIMIT_BYTES),
        ..of_disk
    };
    let mut limits = [0; 2];
    for (prefetching, limit) in [false, true].into_iter().zip(&mut limits) {
        let trial = bed.trial(conditions, activity, prefetching).await?;
        *limit = file_bytes / 4 + trial.charged.own_bytes + MARGIN_BYTES;
    }
    Ok(limits)
}

/// Trials without and with prefetch; which goes first is drawn, so that drift within a pair cancels.
async fn paired(
    bed: &mut Bed,
    pairs: u32,
    activity: Activity,
    conditions: impl Fn(bool) -> Conditions,
) -> Result<Vec<[Trial; 2]>> {
    let mut random = SplitMix64::new(1);
    let mut trials = Vec::new();
    for _ in 0..pairs {
        let mut pair = [Trial::default(); 2];
        let with_first = random.below(2) == 1;
        for prefetching in [with_first, !with_first] {
            let trial = bed
                .trial(conditions(prefetching), activity, prefetching)
                .await?;
            pair[usize::from(prefetching)] = trial;
        }
        trials.push(pair);
    }
    Ok(trials)
}

fn show(disk: &str, quarter: bool, activity: Activity, trials: &[[Trial; 2]]) {
    let mut pairs = Pairs::default();
    for [without, with] in trials {
        // What a user waits: finding the leaves, and what is read before the scan begins, count.
        pairs.push(without.whole_s, with.whole_s);
    }
    let middle = |which: usize, of: fn(&Trial) -> f64| {
        median(
            &trials
                .iter()
                .map(|pair| of(&pair[which]))
                .collect::<Vec<_>>(),
        )
        .unwrap_or(0.0)
    };
    let cpu_share = |trial: &Trial| trial.cpu_s / trial.whole_s;
    let cache_mb = |trial: &Trial| trial.charged.cache_bytes as f64 / 1e6;
    let memory = if quarter { "a quarter" } else { "all" };
    println!(
        "{disk:9}  {memory:9}  {:11}  {pairs}   {:4.2}, {:4.2}   {:5.1}, {:5.1}  (begins {:.2} s later)",
        activity.name(),
        middle(0, cpu_share),
        middle(1, cpu_share),
        middle(0, cache_mb),
        middle(1, cache_mb),
        middle(1, |trial| trial.whole_s - trial.seconds),
    );
}
