//! The disk room's loops against fio on the same file: 4 KiB direct random reads by io_uring with
//! fixed buffers and registered files on both sides, interleaved round by round. Ratios are
//! seekscope / fio with a 95 % bootstrap interval; an interval that holds 1 means that no
//! difference was found. Then the generator alone against fio's null engine, and peak memory.

#![allow(clippy::print_stdout, reason = "a benchmark prints its result")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;
use seekscope_disk::{Contents, FillOptions, TestFile};
use seekscope_stats::{SplitMix64, median, paired_ratio};
use serde_json::Value;

const DEPTHS: [u32; 4] = [1, 8, 32, 128];

/// seekscope's disk engines against fio's.
#[derive(Debug, Parser)]
struct Arguments {
    /// Rounds; each measures every depth with both
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(5..))]
    rounds: u32,
    /// Seconds per measurement
    #[arg(long, default_value_t = 4)]
    seconds: u32,
    /// Size of the file, MiB
    #[arg(long, default_value_t = 4096)]
    file_mib: u64,
    /// The seekscope binary
    #[arg(long, default_value = "seekscope")]
    seekscope: PathBuf,
    /// Folder on the disk to be measured
    #[arg(long, default_value = ".")]
    data_dir: PathBuf,
}

/// One measurement of one program.
#[derive(Debug, Clone, Copy)]
struct Sample {
    iops: f64,
    cpu_us_per_io: f64,
    p50_us: f64,
    p99_us: f64,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let fio_version =
        run(Command::new("fio").arg("--version")).context("fio is needed as a peer")?;
    println!("peer: {}", fio_version.trim());
    let file = TemporaryFile::create(&arguments)?;
    let mut random = SplitMix64::new(1);
    let mut pairs: Vec<Vec<(Sample, Sample)>> = vec![Vec::new(); DEPTHS.len()];
    for round in 1..=arguments.rounds {
        for (depth, pairs) in DEPTHS.iter().zip(&mut pairs) {
            // Which goes first is drawn, so that drift within a pair cancels.
            let ours_first = random.below(2) == 1;
            let first = measure(&arguments, &file.0, *depth, ours_first, round)?;
            let second = measure(&arguments, &file.0, *depth, !ours_first, round)?;
            let (ours, fios) = if ours_first {
                (first, second)
            } else {
                (second, first)
            };
            pairs.push((fios, ours));
        }
    }
    println!("depth  what           fio     seekscope   ratio (95 % interval)");
    for (depth, pairs) in DEPTHS.iter().zip(&pairs) {
        show(*depth, "IOPS", pairs, |s| s.iops)?;
        show(*depth, "CPU us/IO", pairs, |s| s.cpu_us_per_io)?;
        show(*depth, "p50 us", pairs, |s| s.p50_us)?;
        show(*depth, "p99 us", pairs, |s| s.p99_us)?;
    }
    generator(&arguments)?;
    memory(&arguments, &file.0)
}

fn measure(
    arguments: &Arguments,
    file: &Path,
    depth: u32,
    ours: bool,
    round: u32,
) -> Result<Sample> {
    match ours {
        true => seekscope(arguments, file, depth, round),
        false => fio(arguments, file, depth, round),
    }
}

fn show(depth: u32, what: &str, pairs: &[(Sample, Sample)], of: fn(&Sample) -> f64) -> Result<()> {
    let values: Vec<(f64, f64)> = pairs.iter().map(|(f, o)| (of(f), of(o))).collect();
    let ratio = paired_ratio(&values, 1).context("a measurement came to nothing")?;
    let middle = |side: fn(&(f64, f64)) -> f64| {
        median(&values.iter().map(side).collect::<Vec<_>>()).unwrap_or(0.0)
    };
    println!(
        "{depth:5}  {what:10} {:12.2} {:12.2}   {:.3} ({:.3} to {:.3}, {} rounds)",
        middle(|v| v.0),
        middle(|v| v.1),
        ratio.median,
        ratio.low,
        ratio.high,
        ratio.pairs
    );
    Ok(())
}

fn run(command: &mut Command) -> Result<String> {
    let output = command.stderr(Stdio::piped()).output()?;
    if !output.status.success() {
        bail!(
            "{command:?} failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(String::from_utf8(output.stdout)?)
}

fn number(value: &Value, path: &str) -> Result<f64> {
    let found = value.pointer(path).and_then(Value::as_f64);
    found.with_context(|| format!("the result has no number at {path}"))
}

fn job(arguments: &Arguments) -> Result<(Command, tempfile::TempDir)> {
    let folder = tempfile::tempdir()?;
    let mut command = Command::new(&arguments.seekscope);
    command.args([
        "disk", "run", "--json", "--quiet", "--rw", "randread", "--bs", "4k",
    ]);
    command.arg("--out").arg(folder.path().join("run"));
    Ok((command, folder))
}

fn seekscope(arguments: &Arguments, file: &Path, depth: u32, round: u32) -> Result<Sample> {
    let (mut command, _folder) = job(arguments)?;
    command.arg("--read-existing").arg(file);
    command.args(["--engine", "uring", "--warm-up", "300ms"]);
    command.arg(format!("--depth={depth}"));
    command.arg(format!("--runtime={}s", arguments.seconds));
    command.arg(format!("--seed={round}"));
    let result: Value = serde_json::from_str(&run(&mut command)?)?;
    Ok(Sample {
        iops: number(&result, "/summary/iops")?,
        cpu_us_per_io: number(&result, "/summary/cpu_us_per_io")?,
        p50_us: number(&result, "/summary/latency_us/p50")?,
        p99_us: number(&result, "/summary/latency_us/p99")?,
    })
}

/// Latencies are fio's total ones, from submission to completion, as ours are. CPU time is that of
/// the job's thread by fio's own account: fio's start is not in it, nor is ours in ours.
fn fio(arguments: &Arguments, file: &Path, depth: u32, round: u32) -> Result<Sample> {
    let result = run(Command::new("fio")
        .arg(format!("--filename={}", file.display()))
        .arg(format!("--iodepth={depth}"))
        .arg(format!("--runtime={}", arguments.seconds))
        .arg(format!("--randseed={round}"))
        .args([
            "--name=peer",
            "--readonly",
            "--rw=randread",
            "--bs=4k",
            "--direct=1",
        ])
        .args([
            "--ioengine=io_uring",
            "--fixedbufs=1",
            "--registerfiles=1",
            "--thread",
        ])
        .args([
            "--time_based",
            "--ramp_time=300ms",
            "--norandommap",
            "--randrepeat=0",
        ])
        .args([
            "--lat_percentiles=1",
            "--clat_percentiles=0",
            "--output-format=json",
        ]))?;
    let result: Value = serde_json::from_str(&result)?;
    let operations = number(&result, "/jobs/0/read/total_ios")?;
    let cpu_share =
        (number(&result, "/jobs/0/usr_cpu")? + number(&result, "/jobs/0/sys_cpu")?) / 100.0;
    let elapsed_ms = number(&result, "/jobs/0/read/runtime")?;
    let percentile = |name: &str| -> Result<f64> {
        let path = format!("/jobs/0/read/lat_ns/percentile/{name}");
        Ok(number(&result, &path)? / 1000.0)
    };
    Ok(Sample {
        iops: number(&result, "/jobs/0/read/iops")?,
        cpu_us_per_io: cpu_share * elapsed_ms * 1000.0 / operations,
        p50_us: percentile("50.000000")?,
        p99_us: percentile("99.000000")?,
    })
}

/// The generator alone, one core each.
fn generator(arguments: &Arguments) -> Result<()> {
    let (mut ours, mut fios) = (Vec::new(), Vec::new());
    for _ in 0..arguments.rounds {
        let (mut command, _folder) = job(arguments)?;
        command.args(["--engine", "null", "--runtime", "2s", "--size", "64M"]);
        command.current_dir(&arguments.data_dir);
        let result: Value = serde_json::from_str(&run(&mut command)?)?;
        ours.push(number(&result, "/summary/iops")?);
        let result = run(Command::new("fio")
            .args([
                "--name=null",
                "--ioengine=null",
                "--rw=randread",
                "--bs=4k",
                "--size=1g",
            ])
            .args(["--time_based", "--runtime=2", "--norandommap", "--thread"])
            .arg("--output-format=json"))?;
        fios.push(number(
            &serde_json::from_str(&result)?,
            "/jobs/0/read/iops",
        )?);
    }
    let middle = |values: &[f64]| median(values).unwrap_or(0.0);
    println!(
        "generator alone, depth 1: {:.2} M/s per core, fio's null {:.2} M/s (medians)",
        middle(&ours) / 1e6,
        middle(&fios) / 1e6
    );
    Ok(())
}

/// Peak memory at depth 128 with 32 threads, buffers of 16 MiB included.
fn memory(arguments: &Arguments, file: &Path) -> Result<()> {
    let (mut command, _folder) = job(arguments)?;
    command.arg("--read-existing").arg(file);
    command.args(["--engine", "uring", "--depth", "128", "--threads", "32"]);
    command.args(["--runtime", "3s"]);
    let mut child = command.stdout(Stdio::null()).spawn()?;
    let status = format!("/proc/{}/status", child.id());
    let mut peak_kib = 0;
    while child.try_wait()?.is_none() {
        // The last reading before the end is the peak; after it there is none.
        if let Ok(text) = std::fs::read_to_string(&status) {
            let line = text.lines().find_map(|l| l.strip_prefix("VmHWM:"));
            let kib = line.and_then(|l| l.trim().trim_end_matches(" kB").parse().ok());
            peak_kib = kib.unwrap_or(0).max(peak_kib);
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    ensure!(peak_kib > 0, "the peak of memory could not be read");
    println!(
        "peak memory, depth 128 x 32 threads: {:.1} MiB, of which 16 MiB are buffers",
        f64::from(peak_kib) / 1024.0
    );
    Ok(())
}

/// A named file of incompressible data; fio needs a name.
struct TemporaryFile(PathBuf);

impl TemporaryFile {
    fn create(arguments: &Arguments) -> Result<Self> {
        let name = format!("disk_vs_fio.{}.tmp", std::process::id());
        let path = arguments.data_dir.canonicalize()?.join(name);
        let mut file = TestFile::create_named(&path)?;
        let own = Self(path);
        let fill = FillOptions::new(Contents::Random { seed: 1 });
        let never = AtomicBool::new(false);
        file.fill(arguments.file_mib << 20, fill, &mut |_| {}, &never)?;
        Ok(own)
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
