//! What `seekscope reorder` leaves when it, or its server, is killed at random moments while others write:
//! the phase that was hit, and what is there after `--resume` or `--rollback`. Every acknowledged write
//! must be there once, and nothing else.
//!
//! For comparison the server is killed without seekscope too.

#![allow(clippy::print_stdout, reason = "a benchmark prints its result")]

use anyhow::{Context, Result, ensure};
use clap::Parser;
use seekscope_bench::Programs;
use seekscope_bench::kills::table::Trial;
use seekscope_bench::kills::{Setting, Table, Victim, run_control, run_trials};

/// Kills of seekscope and its server during `reorder`.
#[derive(Debug, Parser)]
struct Arguments {
    /// Kills of each
    #[arg(long, default_value_t = 50)]
    kills: u64,
    /// Kills of the server without seekscope
    #[arg(long, default_value_t = 20)]
    control: u64,
    /// Documents of about 1 KB
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(i64).range(1..))]
    documents: i64,
    /// Members of the replica set; with several, it is the primary that is killed
    #[arg(long, default_value_t = 1, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=7))]
    members: usize,
    /// Concurrent writers
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(i64).range(1..=64))]
    writers: i64,
    /// Of the moments
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    programs: Programs,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let mut tables = Vec::new();
    if arguments.control > 0 {
        let folder = tempfile::tempdir_in(&arguments.programs.data_dir).context("--data-dir")?;
        let setting = arguments.setting(&folder)?;
        tables.push(run_control(&setting, arguments.control, &mut tell).await?);
    }
    for victim in [Victim::Seekscope, Victim::Server] {
        if arguments.kills > 0 {
            let folder =
                tempfile::tempdir_in(&arguments.programs.data_dir).context("--data-dir")?;
            let setting = arguments.setting(&folder)?;
            let table = run_trials(&setting, victim, arguments.kills, &mut tell).await;
            if !table.as_ref().is_ok_and(Table::sound) {
                // What seekscope and the server said, and the data, are worth more than the space.
                println!("kept: {}", folder.keep().display());
            }
            let table = table?;
            tables.push(table);
        }
    }
    for table in &tables {
        println!("\n{table}");
    }
    ensure!(
        tables.iter().all(Table::sound),
        "not everything was in its place"
    );
    Ok(())
}

impl Arguments {
    fn setting(&self, folder: &tempfile::TempDir) -> Result<Setting> {
        Ok(Setting {
            seekscope: self.programs.seekscope.clone(),
            server: self.programs.server()?,
            folder: folder.path().to_owned(),
            members: self.members,
            documents: self.documents,
            writers: self.writers,
            seed: self.seed,
        })
    }
}

fn tell(trial: &Trial) {
    println!(
        "{:18} {:?}: {} documents, {} acknowledged, {} in doubt{}",
        trial.phase,
        trial.ending,
        trial.documents.present,
        trial.done,
        trial.in_doubt,
        if trial.sound() { "" } else { "  WRONG" }
    );
    for complaint in trial.complaints() {
        println!("    {complaint}");
    }
}
