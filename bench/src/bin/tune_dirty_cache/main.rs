//! Does `seekscope tune` find what an expert would have set? A mixed load on a small cache and a slow disk,
//! as in docs/examples/tune-dirty-cache: by default clients evict changed pages themselves all the time, and
//! wait for a disk of 300 writes per second; where half of the cache may be dirty, hardly ever.
//!
//! The server's files are read and written past the page cache (`direct_io`), since control groups of version
//! 1 do not limit what the kernel writes back by itself. Its memory group has no room for a larger cache.
//!
//! For each seed there are two sessions. In the first `tune` searches with its default knobs and without the
//! catalogue's presets, which know what the expert set. In the second what it found, the expert's setting and
//! what the server came with meet in a duel, whose figures make the verdict. Everything after `--` goes to the
//! first.

#![allow(clippy::print_stdout, reason = "a benchmark prints its result")]

mod verdict;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Parser;
use seekscope_bench::Programs;
use seekscope_bench::gains::{Conditions, Confinement, DiskLimits};
use seekscope_server::{LocalServer, LocalServerOptions, Workspace};

use verdict::{Duel, Found};

const WORKLOAD: &str =
    include_str!("../../../../docs/examples/tune-dirty-cache/reader-and-updater.toml");
const DURATION: &str = "duration = \"130s\"";
const EXPERT: &str = "expert 2018";
const CACHE_BYTES: u64 = 512 << 20;
const CONDITIONS: Conditions = Conditions {
    disk: DiskLimits {
        read_iops: Some(1_000),
        read_bytes_per_s: Some(40_000_000),
        write_iops: Some(300),
        write_bytes_per_s: Some(40_000_000),
    },
    memory_bytes: Some(1 << 30),
    engine: "direct_io=[data]",
};

/// `seekscope tune` on a server whose cache may hold too few changed pages.
#[derive(Debug, Parser)]
struct Arguments {
    /// Seeds of the search, one session for each
    #[arg(long, value_delimiter = ',', default_value = "1,2,3")]
    seeds: Vec<u64>,
    /// Seconds of a run: more than two checkpoints, as the server comes
    #[arg(long, default_value_t = 130)]
    run_for_s: u64,
    /// Runs of the search at most. With the checkpoint before and after, each takes about 150 s; with four of
    /// the baseline and two in between they are to be over in an hour
    #[arg(long, default_value_t = 16)]
    trials: u32,
    /// Blocks of the duel at most
    #[arg(long, default_value_t = 8)]
    pairs: u32,
    /// Folder for the runs, which are kept
    #[arg(long, default_value = "seekscope-runs")]
    out: PathBuf,
    #[command(flatten)]
    programs: Programs,
    /// Options of `seekscope tune`
    #[arg(last = true)]
    tune: Vec<String>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let folder = arguments.programs.data_dir.canonicalize()?;
    let mut workspace = Workspace::create(&folder, &folder.join(".seekscope-leases"))?;
    let workload = workspace.path().join("reader-and-updater.toml");
    let duration = format!("duration = \"{}s\"", arguments.run_for_s);
    std::fs::write(&workload, WORKLOAD.replace(DURATION, &duration))?;
    for seed in &arguments.seeds {
        let data = workspace.path().join(format!("data-{seed}"));
        let mut options =
            LocalServerOptions::new(arguments.programs.server()?, data.clone(), CACHE_BYTES);
        options.add_engine_entry(CONDITIONS.engine);
        let server = LocalServer::start(&options).await?;
        let confined = Confinement::begin(&mut workspace, server.pid(), &data, &CONDITIONS)?;
        let judged = arguments.judge(&server.uri(), &workload, *seed);
        confined.end(&mut workspace)?;
        drop(server);
        std::fs::remove_dir_all(&data)?;
        judged?;
    }
    Ok(())
}

impl Arguments {
    /// Searches, fights, and says what came of it.
    fn judge(&self, uri: &str, workload: &Path, seed: u64) -> Result<()> {
        println!("seed {seed}");
        let run = |what: &str| self.out.join(format!("tune-dirty-cache-{seed}-{what}"));
        let (searching, fighting) = (run("search"), run("duel"));
        let (trials, pairs) = (self.trials.to_string(), self.pairs.to_string());
        let mut search = self.tune(uri, workload, seed, &searching);
        search.args(["--trials", &trials, "--baseline-pairs", "2", "--pairs", "4"]);
        finish(search.args(&self.tune))?;
        let found = Found::read(&searching)?;
        println!("{found}");
        let mut duel = self.tune(uri, workload, seed, &fighting);
        duel.args(["--trials", "2", "--baseline-pairs", "1", "--pairs", &pairs]);
        duel.args(["--also", EXPERT]);
        if !found.changes.is_empty() {
            duel.args(["--also", &found.changes]);
        }
        finish(&mut duel)?;
        println!("{}", Duel::read(&fighting, EXPERT, &found)?);
        Ok(())
    }

    fn tune(&self, uri: &str, workload: &Path, seed: u64, out: &Path) -> Command {
        let mut command = Command::new(&self.programs.seekscope);
        command.args(["tune", uri, "--metric", "throughput:read"]);
        command.args(["--allow-durability", "--no-presets"]);
        command.arg("--workload").arg(workload);
        command.arg("--out").arg(out);
        command.args(["--seed", &seed.to_string()]);
        command
    }
}

fn finish(command: &mut Command) -> Result<()> {
    let status = command.status().context("seekscope")?;
    if !status.success() {
        bail!("seekscope tune ended with {status}");
    }
    Ok(())
}
