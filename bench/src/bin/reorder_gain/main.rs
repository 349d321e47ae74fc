//! What `seekscope reorder` gains: cold scans and index builds of a collection that random updates have
//! aged, against those of the same collection after `reorder --apply`, on the disk as it is and throttled
//! like a hard disk, in interleaved pairs. Then how fast the copy is against the official driver's
//! ([`copy_rate`]), how much memory it takes, and how fast the order decays under updates.

#![allow(clippy::print_stdout, reason = "a benchmark prints its result")]

mod copy_rate;
mod rewriting;

use anyhow::{Context, Result};
use clap::Parser;
use seekscope_bench::Programs;
use seekscope_bench::gains::{Activity, Conditions, DiskLimits, Hosts, Pairs, aged};
use seekscope_server::Workspace;
use seekscope_stats::SplitMix64;

/// The documents' size divided by that of the cache: large enough that neither reading nor writing fits into it.
const CACHE_SHARE: u64 = 4;
const CACHE_MIN_BYTES: u64 = 32 << 20;
const DOCUMENT_BYTES: u64 = 3072;
const AGED_SHARE: f64 = 0.1;
const DECAY_SHARES: [f64; 2] = [0.004, 0.04];

/// What reorder gains.
#[derive(Debug, Parser)]
struct Arguments {
    /// Pairs of each activity on each disk
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(2..))]
    pairs: u32,
    /// Documents of about 3 KiB
    #[arg(long, default_value_t = 40_000)]
    docs: u64,
    /// Copies by seekscope and by the driver
    #[arg(long, default_value_t = 5)]
    copies: u32,
    #[command(flatten)]
    programs: Programs,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let folder = arguments
        .programs
        .data_dir
        .canonicalize()
        .context("--data-dir")?;
    let workspace = Workspace::create(&folder, &folder.join(".seekscope-leases"))?;
    let mut hosts = Hosts {
        binary: arguments.programs.server()?,
        cache_bytes: (arguments.docs * DOCUMENT_BYTES / CACHE_SHARE).max(CACHE_MIN_BYTES),
        workspace,
    };
    let place = |name: &str| hosts.workspace.path().join(name);
    let (shuffled, ordered) = (place("aged"), place("ordered"));
    aged::make(&hosts.options(&shuffled), arguments.docs).await?;
    say_order("loaded", &shuffled)?;
    aged::age(&hosts.options(&shuffled), arguments.docs, AGED_SHARE, 1).await?;
    say_order("10 % updated", &shuffled)?;
    aged::copy(&shuffled, &ordered)?;
    let done = rewriting::rewrite(&hosts.options(&ordered), &arguments.programs.seekscope).await?;
    println!("reorder --apply: {done}");
    say_order("reordered", &ordered)?;

    println!(
        "\n{:22}  {:28}  {:28}  times faster (95 %)",
        "", "aged s", "reordered s"
    );
    for disk in [DiskLimits::PLAIN, DiskLimits::HARD_DISK] {
        let conditions = Conditions {
            disk,
            ..Conditions::default()
        };
        for activity in Activity::ALL {
            let mut pairs = Pairs::default();
            let mut random = SplitMix64::new(1);
            for _ in 0..arguments.pairs {
                let mut pair = [0.0; 2];
                // Which goes first is drawn, so that drift within a pair cancels.
                let first = usize::from(random.below(2) == 1);
                for side in [first, 1 - first] {
                    let data = [&shuffled, &ordered][side];
                    pair[side] = hosts.measure(data, conditions, activity).await?.seconds;
                }
                pairs.push(pair[0], pair[1]);
            }
            println!(
                "{:9}  {:11}  {pairs}",
                conditions.disk.name(),
                activity.name()
            );
        }
    }
    decay(&hosts, &arguments, &ordered).await?;
    let (options, seekscope) = (hosts.options(&shuffled), &arguments.programs.seekscope);
    copy_rate::compare(&options, seekscope, arguments.copies).await
}

fn say_order(what: &str, data: &std::path::Path) -> Result<()> {
    println!(
        "{what}: {:.4} of the steps in key order are sequential",
        aged::sequential_share(data)?
    );
    Ok(())
}

/// How much order is left after updates, each share from the reordered collection on.
async fn decay(hosts: &Hosts, arguments: &Arguments, ordered: &std::path::Path) -> Result<()> {
    println!();
    for (number, share) in DECAY_SHARES.into_iter().enumerate() {
        let data = hosts.workspace.path().join("decaying");
        aged::copy(ordered, &data)?;
        aged::age(
            &hosts.options(&data),
            arguments.docs,
            share,
            2 + number as u64,
        )
        .await?;
        say_order(
            &format!("reordered, then {:.1} % updated", share * 100.0),
            &data,
        )?;
        std::fs::remove_dir_all(&data)?;
    }
    Ok(())
}
