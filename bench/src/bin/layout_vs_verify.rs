//! The layout of a table against what WiredTiger itself offers to see it, `verify` with
//! `dump_layout`, on the same file, round by round in turn, with a warm and with an empty page cache.
//! Both are whole processes. Ratios are verify / seekscope with a 95 % bootstrap interval.
//!
//! The files are made by the engines: 2 GiB in leaves of 32 KiB, by WiredTiger 11.2 through Python and
//! by 3.2.1 through C.

#![allow(clippy::print_stdout, reason = "a benchmark prints its result")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;
use seekscope_layout::order::{WINDOW_BYTES, scan_order};
use seekscope_layout::{DataDirectory, WalkOptions};
use seekscope_server::page_cache;
use seekscope_stats::{SplitMix64, median, paired_ratio};
use serde::{Deserialize, Serialize};

const TABLE: &str = "large";
const FILE: &str = "large.wt";
const PARALLEL_READS: usize = 32;

/// seekscope's layout against WiredTiger's verify.
#[derive(Debug, Parser)]
struct Arguments {
    /// Rounds of each, warm and cold
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(5..))]
    rounds: u32,
    /// Folder for the files, 2 GiB for each engine; what is there already is used again
    #[arg(long, default_value = ".")]
    data_dir: PathBuf,
    /// Python with the module `wiredtiger`
    #[arg(long, default_value = "python3")]
    python: PathBuf,
    /// Folder of the programs that make tables
    #[arg(long, default_value = "layout/tests/makers")]
    makers: PathBuf,
    /// Also times `seekscope layout DIRECTORY FILE` by this binary
    #[arg(long)]
    seekscope: Option<PathBuf>,
    /// Only analyses this directory, and says so in JSON
    #[arg(long, hide = true)]
    analyse: Option<PathBuf>,
}

/// What one analysis did.
#[derive(Debug, Serialize, Deserialize)]
struct Analysis {
    /// The time of the analysis, without the start of the process.
    seconds: f64,
    leaves: u64,
    file_bytes: u64,
    bytes_read: u64,
    reads: u64,
    sequential_share: f64,
    peak_memory_bytes: u64,
}

#[derive(Debug, Clone, Copy)]
enum Engine {
    V3_2,
    V11_2,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    if let Some(directory) = &arguments.analyse {
        println!("{}", serde_json::to_string(&analyse(directory)?)?);
        return Ok(());
    }
    for engine in [Engine::V11_2, Engine::V3_2] {
        let directory = engine.made(&arguments)?;
        println!("{engine:?}:");
        for cold in [false, true] {
            compare(&arguments, engine, &directory, cold)?;
        }
    }
    Ok(())
}

/// Everything `seekscope layout` has to do for the order of one table.
fn analyse(directory: &Path) -> Result<Analysis> {
    let go_on = AtomicBool::new(false);
    let options = WalkOptions {
        parallel_reads: PARALLEL_READS,
        reads_per_s: None,
        stop: &go_on,
        keep_pages: false,
    };
    let start = Instant::now();
    let found = DataDirectory::open(directory, &go_on)?;
    let walked = found.walk(found.find(FILE)?, &options)?;
    let order = scan_order(&walked.tree.leaves, WINDOW_BYTES).context("too few leaves")?;
    let seconds = start.elapsed().as_secs_f64();
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.and_then(|line| line.trim().strip_suffix(" kB"));
    Ok(Analysis {
        seconds,
        leaves: walked.tree.leaves.len() as u64,
        file_bytes: walked.file_bytes,
        bytes_read: walked.bytes_read,
        reads: walked.reads,
        sequential_share: order.sequential_share,
        peak_memory_bytes: peak.context("no VmHWM")?.parse::<u64>()? << 10,
    })
}

fn compare(arguments: &Arguments, engine: Engine, directory: &Path, cold: bool) -> Result<()> {
    let cache = if cold { "cold" } else { "warm" };
    let mut random = SplitMix64::new(1);
    let (mut pairs, mut analyses, mut commands) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..arguments.rounds {
        let mut pair = [0.0; 2];
        // Which goes first is drawn, so that drift within a pair cancels.
        let first = usize::from(random.below(2) == 1);
        for side in [first, 1 - first] {
            prepare(directory, cold)?;
            let start = Instant::now();
            if side == 0 {
                let said = run(Command::new(std::env::current_exe()?)
                    .arg("--analyse")
                    .arg(directory))?;
                pair[side] = start.elapsed().as_secs_f64();
                analyses.push(serde_json::from_str::<Analysis>(&said)?);
            } else {
                let said = run(&mut engine.verify(arguments, directory))?;
                pair[side] = start.elapsed().as_secs_f64();
                ensure!(said.contains("Leaf page tree-depth"), "verify said: {said}");
            }
        }
        if let Some(seekscope) = &arguments.seekscope {
            prepare(directory, cold)?;
            let start = Instant::now();
            run(Command::new(seekscope)
                .arg("layout")
                .arg(directory)
                .arg(FILE))?;
            commands.push(start.elapsed().as_secs_f64());
        }
        pairs.push((pair[0], pair[1]));
    }
    show(cache, &pairs, &analyses)?;
    if let Some(seconds) = median(&commands) {
        println!("  {cache}: `seekscope layout` {seconds:.3} s");
    }
    Ok(())
}

fn show(cache: &str, pairs: &[(f64, f64)], analyses: &[Analysis]) -> Result<()> {
    let ratio = paired_ratio(pairs, 1).context("a process took no time")?;
    let middle = |of: fn(&(f64, f64)) -> f64| median(&pairs.iter().map(of).collect::<Vec<_>>());
    let seconds: Vec<_> = analyses.iter().map(|analysis| analysis.seconds).collect();
    let peak = analyses.iter().map(|analysis| analysis.peak_memory_bytes);
    let last = analyses.last().context("no rounds")?;
    println!(
        "  {cache}: seekscope {:.3} s (analysis alone {:.3} s), verify {:.3} s, \
         ratio {:.1} ({:.1} to {:.1}, {} rounds)",
        middle(|pair| pair.0).unwrap_or(0.0),
        median(&seconds).unwrap_or(0.0),
        middle(|pair| pair.1).unwrap_or(0.0),
        ratio.median,
        ratio.low,
        ratio.high,
        ratio.pairs,
    );
    println!(
        "        {} leaves in {} bytes, {:.3} sequential; {} bytes read in {} reads ({:.4} %), \
         at most {:.1} MB of memory",
        last.leaves,
        last.file_bytes,
        last.sequential_share,
        last.bytes_read,
        last.reads,
        last.bytes_read as f64 / last.file_bytes as f64 * 100.0,
        peak.max().unwrap_or(0) as f64 / 1e6,
    );
    Ok(())
}

/// The whole directory in the page cache, or nothing of it.
fn prepare(directory: &Path, cold: bool) -> Result<()> {
    if cold {
        let left = page_cache::evict(directory)?;
        ensure!(left.resident_bytes == 0, "still in the cache: {left:?}");
        return Ok(());
    }
    for file in page_cache::files_below(directory)? {
        std::io::copy(&mut std::fs::File::open(file)?, &mut std::io::sink())?;
    }
    Ok(())
}

impl Engine {
    /// A directory with the large table.
    fn made(self, arguments: &Arguments) -> Result<PathBuf> {
        let directory = arguments.data_dir.join(format!("layout-{self:?}"));
        if directory.join("made").exists() {
            return Ok(directory);
        }
        println!(
            "{self:?}: making a table of 2 GiB in {}",
            directory.display()
        );
        std::fs::create_dir_all(&directory)?;
        let mut maker = match self {
            Self::V3_2 => {
                let program = directory.with_extension("maker");
                run(Command::new("cc")
                    .args(["-O2", "-o"])
                    .arg(&program)
                    .arg(arguments.makers.join("tables.c"))
                    .args(["-lwiredtiger", "-lpthread"]))?;
                let mut maker = Command::new(program);
                maker.arg(&directory).args(["1", "libwiredtiger_snappy.so"]);
                maker
            }
            Self::V11_2 => {
                let mut maker = Command::new(&arguments.python);
                maker
                    .arg(arguments.makers.join("tables.py"))
                    .arg(&directory)
                    .arg("1");
                maker
            }
        };
        run(maker.arg(TABLE))?;
        std::fs::write(directory.join("made"), "")?;
        Ok(directory)
    }

    fn verify(self, arguments: &Arguments, directory: &Path) -> Command {
        match self {
            Self::V3_2 => {
                let mut wt = Command::new("wt");
                wt.arg("-h")
                    .arg(directory)
                    .args(["verify", "-d", "dump_layout"]);
                wt.arg(format!("table:{TABLE}"));
                wt
            }
            Self::V11_2 => {
                let mut python = Command::new(&arguments.python);
                python
                    .arg(arguments.makers.join("verify.py"))
                    .arg(directory);
                python.args(["dump_layout", FILE]);
                python
            }
        }
    }
}

fn run(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("{command:?}; `./x setup` installs it"))?;
    if !output.status.success() {
        bail!(
            "{command:?} failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(String::from_utf8(output.stdout)?)
}
