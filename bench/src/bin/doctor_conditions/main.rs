//! Does `seekscope doctor` name what is wrong? Conditions prepared on a real server, each examined while it
//! lasts: prints what a terminal shows, and whether the first finding is the true cause, no other is false,
//! and its seconds are those that were measured. Needs root: disks are throttled and memory is limited by
//! control groups. Ends with 1 where anything was missed.

#![allow(clippy::print_stdout, reason = "a benchmark prints its result")]

mod cases;
mod judgement;
mod own_words;
mod work;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use bson::doc;
use clap::Parser;
use seekscope_bench::Programs;
use seekscope_bench::examined::{Examined, YcsbTask, examine, first_screen};
use seekscope_bench::gains::{Activity, Conditions, Hosts, aged};
use seekscope_server::Workspace;
use tokio::task::block_in_place;

use cases::{Case, Data, Rows, cases};
use judgement::Check;
use own_words::Listening;

/// Cache of the servers that data is made with.
const CACHE_TO_FILL_BYTES: u64 = 128 << 20;
const AGED_SHARE: f64 = 0.1;

/// Prepared illnesses, and whether the doctor finds each.
#[derive(Debug, Parser)]
struct Arguments {
    /// What `doctor --for` is given, s; more where a checkpoint must fall into it
    #[arg(long = "for", default_value_t = 30)]
    watched_s: u64,
    /// These conditions alone; may be repeated
    #[arg(long, value_parser = cases::names())]
    only: Vec<String>,
    /// Documents of about 3 KiB in the collection that is scanned
    #[arg(long, default_value_t = 60_000)]
    docs: u64,
    /// Rows of about 1.1 KiB in the collection that YCSB works on
    #[arg(long, default_value_t = 200_000)]
    rows: u64,
    /// The same where they are to be more than fits into memory
    #[arg(long, default_value_t = 1_500_000)]
    many_rows: u64,
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
async fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let rows = Rows {
        beside_aged: arguments.rows,
        large: arguments.many_rows,
    };
    let mut cases = cases(rows);
    cases.retain(|case| {
        arguments.only.is_empty() || arguments.only.iter().any(|one| one == case.name)
    });
    let mut ward = prepare(&arguments, rows, &cases).await?;
    let mut right = 0;
    for case in &cases {
        let run = ward.runs.join(case.name);
        let (examined, checks) = ward.examine(case, &arguments, &run).await?;
        show(
            case,
            &examined,
            &checks,
            &arguments.programs.seekscope,
            &run,
        )?;
        right += usize::from(checks.iter().all(Check::is_met));
    }
    println!(
        "\nin {right} of {} conditions everything was met",
        cases.len()
    );
    Ok(if right == cases.len() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Makes the data that the cases need.
async fn prepare(arguments: &Arguments, rows: Rows, cases: &[Case]) -> Result<Ward> {
    let folder = arguments.programs.data_dir.canonicalize()?;
    let workspace = Workspace::create(&folder, &folder.join(".seekscope-leases"))?;
    let runs = match &arguments.keep {
        Some(folder) => folder.clone(),
        None => workspace.path().join("runs"),
    };
    std::fs::create_dir_all(&runs)?;
    let mut hosts = Hosts {
        binary: arguments.programs.server()?,
        cache_bytes: CACHE_TO_FILL_BYTES,
        workspace,
    };
    for (data, rows) in [(Data::Aged, rows.beside_aged), (Data::Large, rows.large)] {
        if !cases.iter().any(|case| case.data == data) {
            continue;
        }
        let folder = folder_of(data, &hosts);
        if data == Data::Aged {
            let options = hosts.options(&folder);
            aged::make(&options, arguments.docs).await?;
            aged::age(&options, arguments.docs, AGED_SHARE, 1).await?;
        }
        let cold = hosts.start(&folder, Conditions::default()).await?;
        block_in_place(|| YcsbTask::rows(rows).fill(&cold.local.uri()))?;
        hosts.end(cold, Activity::Scan).await?;
    }
    Ok(Ward { hosts, runs })
}

fn folder_of(data: Data, hosts: &Hosts) -> PathBuf {
    hosts.workspace.path().join(match data {
        Data::Aged => "aged",
        Data::Large => "large",
    })
}

impl Ward {
    /// Brings the condition about, examines the server while it lasts, and judges what was found.
    async fn examine(
        &mut self,
        case: &Case,
        arguments: &Arguments,
        run: &Path,
    ) -> Result<(Examined, Vec<Check>)> {
        let data = folder_of(case.data, &self.hosts);
        self.hosts.cache_bytes = case.cache_bytes;
        let cold = self.hosts.start(&data, case.conditions).await?;
        if let Some(seconds) = case.checkpoint_every_s {
            let every = doc! { "setParameter": 1, "syncdelay": seconds };
            cold.server.command("admin", every).await?;
        }
        if case.fills_memory {
            work::read_all_rows(&cold).await?;
        }
        let working = work::begin(case, &cold, &data)?;
        tokio::time::sleep(case.warm_up).await;
        let _without = work::WithoutPageCache::begin(case, &data);
        let watched = Duration::from_secs(arguments.watched_s).max(case.watched_min);
        let uri = cold.local.uri();
        let listening = Listening::begin(uri.clone());
        let seekscope = &arguments.programs.seekscope;
        let examined = block_in_place(|| examine(seekscope, &uri, watched, run));
        let own = listening.end().await?;
        let repeated_s = working.stop().await?;
        self.hosts.end(cold, Activity::Scan).await?;
        let examined = examined?;
        let checks = judgement::judge(case, &examined, &own, &repeated_s);
        Ok((examined, checks))
    }
}

/// Prints what was found, and how right it was.
fn show(
    case: &Case,
    examined: &Examined,
    checks: &[Check],
    seekscope: &Path,
    run: &Path,
) -> Result<()> {
    println!("\n######## {}: {}", case.name, case.what);
    println!("{}", first_screen(seekscope, run)?);
    for check in checks {
        println!("{}: {check}", case.name);
    }
    println!(
        "{}: {:.1} s, {:.2} s of CPU, {:.1} MB at most",
        case.name,
        examined.seconds(),
        examined.usage.cpu_ns as f64 / 1e9,
        examined.usage.rss_bytes as f64 / 1e6,
    );
    Ok(())
}
