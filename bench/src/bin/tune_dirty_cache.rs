//! Does `seekscope tune` find what an expert would have set? A mixed load on a small cache and a slow disk,
//! as in docs/examples/tune-dirty-cache: by default clients evict changed pages themselves all the time, and
//! wait for a disk of 300 writes per second; where half of the cache may be dirty, hardly ever.
//!
//! The server's files are read and written past the page cache (`direct_io`), since control groups of version
//! 1 do not limit what the kernel writes back by itself. Its memory group has no room for a larger cache.
//! Everything after `--` goes to `seekscope tune`.

#![allow(clippy::print_stdout, reason = "a benchmark prints its result")]

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Parser;
use seekscope_bench::Programs;
use seekscope_bench::gains::{Conditions, Confinement, DiskLimits};
use seekscope_server::{LocalServer, LocalServerOptions, Workspace};

const WORKLOAD: &str =
    include_str!("../../../docs/examples/tune-dirty-cache/reader-and-updater.toml");
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
    /// Seconds of a run
    #[arg(long, default_value_t = 130)]
    run_for_s: u64,
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
        let tuned = arguments.tune(&server.uri(), &workload, *seed);
        confined.end(&mut workspace)?;
        drop(server);
        std::fs::remove_dir_all(&data)?;
        tuned?;
    }
    Ok(())
}

impl Arguments {
    fn tune(&self, uri: &str, workload: &Path, seed: u64) -> Result<()> {
        println!("seed {seed}");
        let out = self.out.join(format!("tune-dirty-cache-{seed}"));
        let mut command = Command::new(&self.programs.seekscope);
        command.args(["tune", uri, "--metric", "throughput:read"]);
        command.args(["--also", EXPERT, "--allow-durability"]);
        command.arg("--workload").arg(workload);
        command.arg("--out").arg(out);
        command.args(["--seed", &seed.to_string()]);
        let status = command.args(&self.tune).status().context("seekscope")?;
        if !status.success() {
            bail!("seekscope tune ended with {status}");
        }
        Ok(())
    }
}
