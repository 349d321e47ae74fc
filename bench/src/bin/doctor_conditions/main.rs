//! Does `seekscope doctor` name what is wrong? Five conditions prepared on the real local server, each
//! examined while it lasts: prints what a terminal shows, the findings, and whether the first of them is
//! one that was to be expected. Needs root: disks are throttled and memory is limited by control groups.

#![allow(clippy::print_stdout, reason = "a benchmark prints its result")]

mod cases;
mod work;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use clap::Parser;
use seekscope_bench::Programs;
use seekscope_bench::examined::{Examined, examine, first_screen};
use seekscope_bench::gains::{Activity, Hosts, aged};
use seekscope_server::Workspace;
use tokio::task::block_in_place;

use cases::{Case, Work, cases};

/// Cache of the servers that data is made with.
const CACHE_TO_FILL_BYTES: u64 = 128 << 20;
const AGED_SHARE: f64 = 0.1;

/// Five illnesses, and whether the doctor finds each.
#[derive(Debug, Parser)]
struct Arguments {
    /// What `doctor --for` is given, s; more where a checkpoint must fall into it
    #[arg(long = "for", default_value_t = 30)]
    watched_s: u64,
    /// These conditions alone; may be repeated
    #[arg(long, value_parser = cases::NAMES)]
    only: Vec<String>,
    /// Documents of about 3 KiB in the collection that is scanned
    #[arg(long, default_value_t = 60_000)]
    docs: u64,
    /// Rows of about 1.1 KiB in the collection that YCSB works on
    #[arg(long, default_value_t = 200_000)]
    rows: u64,
    /// Keep the run directories here
    #[arg(long)]
    keep: Option<PathBuf>,
    #[command(flatten)]
    programs: Programs,
}

/// Where conditions are prepared.
struct Ward {
    hosts: Hosts,
    /// Where run directories go.
    runs: PathBuf,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let cases: Vec<Case> = cases(arguments.rows)
        .into_iter()
        .filter(|case| {
            arguments.only.is_empty() || arguments.only.iter().any(|one| one == case.name)
        })
        .collect();
    let mut ward = prepare(&arguments, &cases).await?;
    let mut right = 0;
    for case in &cases {
        let run = ward.runs.join(case.name);
        let examined = ward.examine(case, &arguments, &run).await?;
        right += u32::from(show(case, &examined, &arguments.programs.seekscope, &run)?);
    }
    println!("\n{right} of {} conditions were named right", cases.len());
    Ok(())
}

/// Makes the data that the cases need.
async fn prepare(arguments: &Arguments, cases: &[Case]) -> Result<Ward> {
    let folder = arguments.programs.data_dir.canonicalize()?;
    let workspace = Workspace::create(&folder, &folder.join(".seekscope-leases"))?;
    let runs = match &arguments.keep {
        Some(folder) => folder.clone(),
        None => workspace.path().join("runs"),
    };
    std::fs::create_dir_all(&runs)?;
    let mut hosts = Hosts {
        binary: arguments.programs.server_binary.clone(),
        cache_bytes: CACHE_TO_FILL_BYTES,
        workspace,
    };
    for case in cases {
        let data = data_of(case, &hosts);
        match &case.work {
            _ if data.exists() => {}
            Work::ColdScans => {
                let options = hosts.options(&data);
                aged::make(&options, arguments.docs).await?;
                aged::age(&options, arguments.docs, AGED_SHARE, 1).await?;
            }
            Work::Ycsb(task) => {
                let cold = hosts.start(&data, cases::UNHINDERED).await?;
                block_in_place(|| task.fill(&cold.local.uri()))?;
                hosts.end(cold, Activity::Scan).await?;
            }
        }
    }
    Ok(Ward { hosts, runs })
}

/// Cases that work on the same data share it.
fn data_of(case: &Case, hosts: &Hosts) -> PathBuf {
    let name = match &case.work {
        Work::ColdScans => "scanned".into(),
        Work::Ycsb(task) => format!("ycsb-{}", task.rows),
    };
    hosts.workspace.path().join(name)
}

impl Ward {
    /// Brings the condition about, and examines the server while it lasts.
    async fn examine(
        &mut self,
        case: &Case,
        arguments: &Arguments,
        run: &Path,
    ) -> Result<Examined> {
        let data = data_of(case, &self.hosts);
        self.hosts.cache_bytes = case.cache_bytes;
        let cold = self.hosts.start(&data, case.conditions).await?;
        let working = work::begin(case, &cold, &data)?;
        tokio::time::sleep(case.warm_up).await;
        let _without = work::WithoutPageCache::begin(case, &data);
        let watched = Duration::from_secs(arguments.watched_s).max(case.watched_min);
        let uri = cold.local.uri();
        let seekscope = &arguments.programs.seekscope;
        let examined = block_in_place(|| examine(seekscope, &uri, watched, run));
        working.stop().await?;
        self.hosts.end(cold, Activity::Scan).await?;
        examined
    }
}

/// Prints what was found; was the first finding right?
fn show(case: &Case, examined: &Examined, seekscope: &Path, run: &Path) -> Result<bool> {
    let found = examined.finding_ids();
    let is_right = found.first().is_some_and(|id| case.expected.contains(id));
    println!("\n######## {}: {}", case.name, case.what);
    println!("{}", first_screen(seekscope, run)?);
    println!(
        "{}: first finding {}, expected {}: {}",
        case.name,
        found.first().unwrap_or(&"(none)"),
        case.expected.join(" or "),
        if is_right { "RIGHT" } else { "WRONG" },
    );
    println!(
        "all findings: {}; {:.1} s, {:.2} s of CPU, {:.1} MB at most",
        found.join(", "),
        examined.seconds(),
        examined.usage.cpu_ns as f64 / 1e9,
        examined.usage.rss_bytes as f64 / 1e6,
    );
    Ok(is_right)
}
