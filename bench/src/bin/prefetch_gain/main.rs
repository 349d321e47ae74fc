//! What `seekscope prefetch` gains cold scans and cold index builds: of a collection as it was loaded, of one
//! that random updates have aged, and of one that they have shuffled; on the disk as it is and on three that
//! are limited; with page cache for all of its leaves and for parts of them. With and without it, in
//! interleaved pairs. Server and seekscope are slowed down and limited together. Then what point reads of
//! other data notice of it. Ends with 1 where a scan was slower than 1.05 times what it takes without, where
//! what a run said of its gain is further than a quarter from what was measured or a long one said nothing, or
//! where the slowest hundredth of the point reads took more than 1.2 times as long as beside the scan alone.
//!
//! Where only a part of the leaves fits, a trial without a limit finds out how much memory the processes
//! themselves take; this is granted on top.

#![allow(clippy::print_stdout, reason = "a benchmark prints its result")]

mod cell;
mod foreground;
mod trial;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;
use seekscope_bench::Programs;
use seekscope_bench::gains::{Activity, Conditions, DiskLimits, Hosts, aged};
use seekscope_server::{Server, Workspace};

use cell::{Cell, Memory};
use trial::Bed;

/// The smallest cache that the server accepts, so that reads must come from the disk or the page cache.
const CACHE_BYTES: u64 = 32 << 20;
const AGED_SHARE: f64 = 0.1;
/// Updates of all documents, so that hardly a leaf stays beside its neighbour.
const SHUFFLED_SHARE: f64 = 1.0;
const PATTERNS: [&str; 3] = ["ordered", "aged", "shuffled"];

/// What prefetch gains.
#[derive(Debug, Parser)]
struct Arguments {
    /// Pairs of each activity on each disk
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(2..))]
    pairs: u32,
    /// Documents of about 3 KiB
    #[arg(long, default_value_t = 40_000)]
    docs: u64,
    /// On these disks alone; may be repeated
    #[arg(long, value_parser = DiskLimits::ALL.map(DiskLimits::name))]
    disk: Vec<String>,
    /// With page cache for so much of the leaves alone; may be repeated
    #[arg(long, value_parser = Memory::ALL.map(Memory::name))]
    memory: Vec<String>,
    /// In these orders of the leaves alone; may be repeated
    #[arg(long, value_parser = PATTERNS)]
    pattern: Vec<String>,
    /// These activities alone; may be repeated
    #[arg(long, value_parser = Activity::ALL.map(Activity::name))]
    activity: Vec<String>,
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
async fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    if let (Some(only), Some(uri), Some(seconds)) =
        (&arguments.only, &arguments.uri, &arguments.seconds)
    {
        let activity = Activity::from_name(only).context("--only")?;
        let server = Server::connect(uri).await?;
        let database = server.database(aged::namespace()?.database());
        let took = activity.run(&database).await?;
        std::fs::write(seconds, took.to_string())?;
        return Ok(ExitCode::SUCCESS);
    }
    let folder = arguments
        .programs
        .data_dir
        .canonicalize()
        .context("--data-dir")?;
    let workspace = Workspace::create(&folder, &folder.join(".seekscope-leases"))?;
    let place = |name: &str| workspace.path().join(name);
    let places = PATTERNS.map(place);
    let hosts = Hosts {
        binary: arguments.programs.server()?,
        cache_bytes: CACHE_BYTES,
        workspace,
    };
    let mut bed = Bed {
        seekscope: arguments.programs.seekscope.clone(),
        records: arguments.records.clone(),
        data: PathBuf::new(),
        hosts,
    };
    let [ordered, aged, shuffled] = &places;
    let options = |data: &Path| bed.hosts.options(data);
    aged::make(&options(ordered), arguments.docs).await?;
    foreground::load_others(&options(ordered)).await?;
    aged::copy(ordered, aged)?;
    aged::age(&options(aged), arguments.docs, AGED_SHARE, 1).await?;
    if is_wanted(&arguments.pattern, "shuffled") {
        aged::copy(aged, shuffled)?;
        aged::age(&options(shuffled), arguments.docs, SHUFFLED_SHARE, 2).await?;
    }
    let (mut missed, mut silent) = (0, 0);
    for (pattern, data) in PATTERNS.into_iter().zip(&places) {
        if is_wanted(&arguments.pattern, pattern) {
            bed.data.clone_from(data);
            let cells = gains(&mut bed, &arguments, pattern).await?;
            missed += cells.iter().map(Cell::missed).sum::<u32>();
            silent += cells.iter().filter(|cell| cell.says_nothing()).count();
        }
    }
    if !arguments.no_others {
        bed.data.clone_from(aged);
        missed += foreground::compare(&mut bed, arguments.pairs).await?;
    }
    println!("\n{missed} missed; in {silent} cells most runs say nothing of their gain");
    Ok(ExitCode::from(u8::from(missed > 0)))
}

/// Returns whether `name` was chosen; if nothing was, everything is wanted.
fn is_wanted(chosen: &[String], name: &str) -> bool {
    chosen.is_empty() || chosen.iter().any(|one| one == name)
}

/// Measures the gains for one order of the leaves.
async fn gains(bed: &mut Bed, arguments: &Arguments, pattern: &str) -> Result<Vec<Cell>> {
    let walked = aged::walk(&bed.data)?;
    let leaf_bytes = walked.tree.leaves.iter().map(|leaf| u64::from(leaf.length));
    let leaf_bytes = leaf_bytes.sum();
    println!(
        "\n{pattern}: {} leaves, {leaf_bytes} of {} bytes, {:.4} sequential",
        walked.tree.leaves.len(),
        walked.file_bytes,
        aged::sequential_share(&bed.data)?
    );
    println!("{}", Cell::HEADER);
    let mut cells = Vec::new();
    for disk in DiskLimits::ALL {
        for memory in Memory::ALL {
            for activity in Activity::ALL {
                let wanted = is_wanted(&arguments.disk, disk.name())
                    && is_wanted(&arguments.memory, memory.name())
                    && is_wanted(&arguments.activity, activity.name());
                if wanted {
                    let conditions = Conditions {
                        disk,
                        ..Conditions::default()
                    };
                    let cell = Cell::measure(
                        bed,
                        conditions,
                        memory,
                        activity,
                        leaf_bytes,
                        arguments.pairs,
                    )
                    .await?;
                    println!("{cell}");
                    cells.push(cell);
                }
            }
        }
    }
    Ok(cells)
}
