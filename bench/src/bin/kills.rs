//! What commands of seekscope leave when they, or their servers, are killed at random moments while others write:
//! every acknowledged write must be there once, nothing else of the user's may have changed, and nothing of the
//! command's may stay after what its message or the documentation says was done.
//!
//! For comparison, the primary is also killed while no seekscope runs.

#![allow(clippy::print_stdout, reason = "a benchmark prints its result")]

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use seekscope_bench::Programs;
use seekscope_bench::deployment::MongoPrograms;
use seekscope_bench::kills::combination::mismatch;
use seekscope_bench::kills::table::{NOT_KILLED, Trial};
use seekscope_bench::kills::{During, Setting, Table, Victim, run_control, run_trials};

/// Kills of seekscope and its servers while it works.
#[derive(Debug, Parser)]
struct Arguments {
    /// Commands at work, separated by commas
    #[arg(long, value_enum, value_delimiter = ',', default_value = "reorder")]
    during: Vec<During>,
    /// What to kill, separated by commas
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "seekscope,primary"
    )]
    victim: Vec<Victim>,
    /// Kills per combination
    #[arg(long, default_value_t = 50)]
    kills: u64,
    /// Kills of the primary without seekscope
    #[arg(long, default_value_t = 20)]
    control: u64,
    /// Documents of about 1 KB
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(i64).range(1..))]
    documents: i64,
    /// Members of the replica set
    #[arg(long, default_value_t = 1, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=7))]
    members: usize,
    /// Shards of a cluster in place of the replica set, each of one member, behind one mongos
    #[arg(long, default_value_t = 0, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(0..=4))]
    shards: usize,
    /// Concurrent writers
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(i64).range(1..=64))]
    writers: i64,
    /// Seed for the random moments
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The mongos of a cluster [default: the one beside the mongod]
    #[arg(long)]
    mongos: Option<PathBuf>,
    #[command(flatten)]
    programs: Programs,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let mut tables = Vec::new();
    if arguments.control > 0 {
        let folder = arguments.folder()?;
        let setting = arguments.setting(&folder)?;
        tables.push(run_control(&setting, arguments.control, &mut tell).await?);
    }
    for during in &arguments.during {
        for victim in &arguments.victim {
            tables.extend(arguments.kill(*during, *victim).await?);
        }
    }
    for table in &tables {
        println!("\n{table}");
    }
    println!("{}", Table::heading());
    for table in &tables {
        println!("{}", table.in_a_line());
    }
    ensure!(
        tables.iter().all(Table::sound),
        "not everything was in its place"
    );
    Ok(())
}

impl Arguments {
    async fn kill(&self, during: During, victim: Victim) -> Result<Option<Table>> {
        let folder = self.folder()?;
        let setting = self.setting(&folder)?;
        if let Some(why) = mismatch(during, victim, setting.shape()) {
            println!("{} during {}: {why}", victim.name(), during.name());
            return Ok(None);
        }
        if self.kills == 0 {
            return Ok(None);
        }
        let table = run_trials(&setting, (during, victim), self.kills, &mut tell).await;
        if !table.as_ref().is_ok_and(Table::sound) {
            // What seekscope and the servers said, and the data, are worth more than the space.
            println!("kept: {}", folder.keep().display());
        }
        table.map(Some)
    }

    fn folder(&self) -> Result<tempfile::TempDir> {
        tempfile::tempdir_in(&self.programs.data_dir).context("--data-dir")
    }

    fn setting(&self, folder: &tempfile::TempDir) -> Result<Setting> {
        Ok(Setting {
            seekscope: self.programs.seekscope.clone(),
            programs: MongoPrograms::of(self.programs.server()?, self.mongos.clone())?,
            folder: folder.path().to_owned(),
            members: self.members,
            shards: self.shards,
            documents: self.documents,
            writers: self.writers,
            seed: self.seed,
        })
    }
}

fn tell(trial: &Trial) {
    println!(
        "{:18} {:?}, {:.0} s: {} documents, {} acknowledged, {} in doubt{}",
        trial.phase,
        trial.ending,
        trial.seconds,
        trial.documents.present,
        trial.done,
        trial.in_doubt,
        if trial.sound() { "" } else { "  WRONG" }
    );
    if trial.phase != NOT_KILLED {
        let code = trial.code.map_or("killed".into(), |code| code.to_string());
        println!("    {code}: {}", trial.message);
    }
    for complaint in trial.complaints() {
        println!("    WRONG: {complaint}");
    }
}
