//! Predicted scans against real ones: tables that real WiredTiger wrote in order, by eight threads,
//! with updates of single rows, and shuffled, scanned cold by a WiredTiger cursor, on the disk as it is
//! and throttled like a hard disk. Rounds are interleaved; shown are medians. The model of each disk
//! comes from a survey before the scans; the reader's own time from warm scans in the same rounds.

#![allow(clippy::print_stdout, reason = "a benchmark prints its result")]

mod scan;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use seekscope_bench::survey_disk;
use seekscope_layout::order::{WINDOW_BYTES, scan_order};
use seekscope_layout::scan_prediction::{ScanOptions, predict_scan};
use seekscope_layout::{DataDirectory, DeviceMap, WalkOptions, WalkedFile};
use seekscope_run::{DeviceModel, HostFacts, PredictedScan, ScanOrder};
use seekscope_server::Workspace;
use seekscope_stats::median;

use scan::{Disk, Scanner};

const TABLES: [&str; 6] = [
    "ordered",
    "append8",
    "updated_0.4pc",
    "append8_updated_0.4pc",
    "updated_1.6pc",
    "shuffled",
];
const TABLE_MAKER: &str = include_str!("tables.py");

/// Predicted cold scans against real ones.
#[derive(Debug, Parser)]
struct Arguments {
    /// Scans of each table on each disk
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Rows of each table
    #[arg(long, default_value_t = 250)]
    megabytes: u32,
    /// Budget of each survey
    #[arg(long, default_value = "60s")]
    budget: String,
    /// The seekscope binary
    #[arg(long, default_value = "seekscope")]
    seekscope: PathBuf,
    /// A Python with the module `wiredtiger`
    #[arg(long, default_value = "python3")]
    python: PathBuf,
    /// Folder on the disk to be measured
    #[arg(long, default_value = ".")]
    data_dir: PathBuf,
}

/// A table and how it lies.
struct Table {
    name: &'static str,
    walked: WalkedFile,
    extents: DeviceMap,
    order: ScanOrder,
}

/// Seconds of one table's scans.
#[derive(Default)]
struct Scans {
    cold: BTreeMap<Disk, Vec<f64>>,
    warm: Vec<f64>,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let folder = arguments.data_dir.canonicalize().context("--data-dir")?;
    let workspace = Workspace::create(&folder, &folder.join(".seekscope-leases"))?;
    let data = workspace.data_directory();
    std::fs::create_dir_all(&data)?;
    make_tables(&arguments, &data)?;
    let mut scanner = Scanner::new(&arguments.python, &data, workspace);
    let tables = tables(&data)?;
    let models = [Disk::AsItIs, Disk::Throttled].map(|disk| Ok((disk, survey(&arguments, disk)?)));
    let models: Vec<(Disk, DeviceModel)> = models.into_iter().collect::<Result<_>>()?;

    let mut measured: BTreeMap<&str, Scans> = BTreeMap::new();
    for _ in 0..arguments.rounds {
        for table in &tables {
            let scans = measured.entry(table.name).or_default();
            for &(disk, _) in &models {
                let cold_s = scanner.cold(table.name, disk)?;
                scans.cold.entry(disk).or_default().push(cold_s);
            }
            scans.warm.push(scanner.warm(table.name)?);
        }
    }
    println!(
        "disk       table                  seeks R  sequential  score  predicted s (range)     \
         in order s  requests  measured s (range)      predicted / measured"
    );
    for (disk, model) in &models {
        for table in &tables {
            let scans = &measured[table.name];
            let warm_s = median(&scans.warm).unwrap_or(0.0);
            let predicted = predict(model, table, warm_s);
            show(*disk, table, &predicted, &scans.cold[disk]);
        }
    }
    Ok(())
}

fn make_tables(arguments: &Arguments, data: &Path) -> Result<()> {
    let status = Command::new(&arguments.python)
        .args(["-c", TABLE_MAKER])
        .arg(data)
        .arg(arguments.megabytes.to_string())
        .stdout(Stdio::null())
        .status()
        .with_context(|| format!("{} cannot be started", arguments.python.display()))?;
    ensure!(
        status.success(),
        "making the tables ended with {status}; --python needs the module `wiredtiger`"
    );
    Ok(())
}

fn tables(data: &Path) -> Result<Vec<Table>> {
    let stop = AtomicBool::new(false);
    let directory = DataDirectory::open(data, &stop)?;
    let options = WalkOptions {
        parallel_reads: 16,
        reads_per_s: None,
        stop: &stop,
        keep_pages: false,
    };
    let table = |name: &'static str| {
        let walked = directory.walk(directory.find(&format!("{name}.wt"))?, &options)?;
        let order = scan_order(&walked.tree.leaves, WINDOW_BYTES);
        Ok(Table {
            name,
            order: order.with_context(|| format!("{name} has too few leaves"))?,
            extents: DeviceMap::read(&data.join(format!("{name}.wt")))?,
            walked,
        })
    };
    TABLES.into_iter().map(table).collect()
}

fn survey(arguments: &Arguments, disk: Disk) -> Result<DeviceModel> {
    let (seekscope, directory) = (&arguments.seekscope, &arguments.data_dir);
    let no_more: [&str; 0] = [];
    let result = survey_disk(
        seekscope,
        directory,
        &arguments.budget,
        disk.emulated(),
        &no_more,
    )?;
    let model = result.pointer("/summary/model");
    let model = model.context("the survey made no model")?;
    Ok(serde_json::from_value(model.clone())?)
}

fn predict(model: &DeviceModel, table: &Table, warm_s: f64) -> PredictedScan {
    let leaves = &table.walked.tree.leaves;
    let leaf_bytes: f64 = leaves.iter().map(|leaf| f64::from(leaf.length)).sum();
    // The warm scan copies from the page cache, as the cold one does.
    let own_ns_per_byte = warm_s * 1e9 / leaf_bytes - model.cached_ns_per_byte;
    let memory_bytes = rustix::system::sysinfo().totalram;
    let options = ScanOptions {
        reader_ns_per_byte: own_ns_per_byte.max(0.0),
        internal: &table.walked.tree.internal,
        idle_is_paged_out: HostFacts::pages_out_idle_memory(Path::new("/")),
        extents: table.extents.extents(),
        ..ScanOptions::with_memory(memory_bytes)
    };
    predict_scan(model, leaves, table.walked.file_bytes, &options)
}

fn show(disk: Disk, table: &Table, predicted: &PredictedScan, measured: &[f64]) {
    let middle = median(measured).unwrap_or(0.0);
    let lowest = measured.iter().copied().fold(f64::INFINITY, f64::min);
    let highest = measured.iter().copied().fold(0.0, f64::max);
    println!(
        "{:9}  {:21} {:8}  {:10.3}  {:5.3}  {:6.2} ({:6.2} to {:6.2})  {:10.2}  {:8}  \
         {middle:6.2} ({lowest:6.2} to {highest:6.2})  {:.2}",
        disk.name(),
        table.name,
        table.order.seeks,
        table.order.sequential_share,
        table.order.score,
        predicted.now_s,
        predicted.now_low_s,
        predicted.now_high_s,
        predicted.ordered_s,
        predicted.device_requests,
        predicted.now_s / middle,
    );
}
