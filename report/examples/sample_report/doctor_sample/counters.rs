//! Counters of server and host.

use seekscope_run::CounterSample;

use super::{CHECKPOINTS, GIB, SECOND_NS};
use crate::trace_sample::{DURATION_NS, START_NS};

/// One of each every second, and an hour of diagnostic files.
pub(super) fn counters() -> Vec<CounterSample> {
    let seconds = DURATION_NS / SECOND_NS;
    let mut sums = [0.0; 12];
    let mut samples = Vec::new();
    for second in 0..=seconds {
        let grown = grown_in(second);
        for (sum, by) in sums.iter_mut().zip(grown) {
            *sum += by;
        }
        let t_ns = START_NS + second * SECOND_NS;
        let counted = COUNTED.into_iter().zip(sums);
        samples
            .extend(counted.map(|((source, name), sum)| sample(t_ns, source, name, sum.floor())));
        samples.extend(gauges(t_ns, second));
    }
    samples.extend(diagnostic_files());
    samples
}

fn sample(t_ns: u64, source: &str, name: &str, value: f64) -> CounterSample {
    CounterSample {
        t_ns,
        source: source.into(),
        name: name.into(),
        value,
    }
}

fn checkpoint_runs(second: u64) -> bool {
    CHECKPOINTS
        .iter()
        .any(|(at, s)| (*at..at + s).contains(&second))
}

const COUNTED: [(&str, &str); 12] = [
    ("serverStatus", "opcounters.query"),
    ("serverStatus", "opcounters.update"),
    ("serverStatus", "opLatencies.reads.latency"),
    ("serverStatus", "opLatencies.reads.ops"),
    ("serverStatus", "opLatencies.writes.latency"),
    ("serverStatus", "opLatencies.writes.ops"),
    ("diskstats", "reads"),
    ("diskstats", "read_bytes"),
    ("diskstats", "read_ms"),
    ("diskstats", "writes"),
    ("diskstats", "write_bytes"),
    ("diskstats", "write_ms"),
];

/// How much each of [`COUNTED`] grows in a second.
fn grown_in(second: u64) -> [f64; 12] {
    let running = checkpoint_runs(second);
    let noise = (second as f64 * 1.7).sin() * 0.08 + 1.0;
    let left = if running { 0.55 } else { 1.0 };
    let (reads, writes) = (1150.0 * noise * left, 420.0 * noise * left);
    let disk_reads = 2100.0 * noise;
    let disk_writes = if running { 2600.0 } else { 160.0 };
    [
        reads,
        writes,
        reads * 1_900.0 / left,
        reads,
        writes * 2_700.0 / (left * left),
        writes,
        disk_reads,
        disk_reads * 32_768.0,
        disk_reads * 0.9 / left,
        disk_writes,
        disk_writes * 26_000.0,
        disk_writes * 1.4,
    ]
}

fn gauges(t_ns: u64, second: u64) -> [CounterSample; 6] {
    let begun = CHECKPOINTS.iter().rev().find(|(at, _)| *at <= second);
    let since_s = begun.map_or(second, |(at, _)| second - at) as f64;
    let dirty = match checkpoint_runs(second) {
        true => 0.14 - 0.02 * since_s,
        false => 0.02 + 0.006 * since_s,
    };
    let seconds = second as f64;
    [
        ("serverStatus", "uptimeMillis", 9e6 + seconds * 1e3),
        ("serverStatus", CACHE_LIMIT, CACHE_BYTES),
        (
            "serverStatus",
            CACHE_FILLED,
            CACHE_BYTES * (0.8 + 0.02 * seconds.sin()),
        ),
        (
            "serverStatus",
            "wiredTiger.cache.tracked dirty bytes in the cache",
            CACHE_BYTES * dirty.max(0.01),
        ),
        ("pressure", "io.some_us", seconds * 310_000.0),
        ("pressure", "cpu.some_us", seconds * 24_000.0),
    ]
    .map(|(source, name, value)| sample(t_ns, source, name, value))
}

const CACHE_BYTES: f64 = 4.0 * GIB as f64;
const CACHE_LIMIT: &str = "wiredTiger.cache.maximum bytes configured";
const CACHE_FILLED: &str = "wiredTiger.cache.bytes currently in the cache";

/// A sample every five seconds.
fn diagnostic_files() -> Vec<CounterSample> {
    const RUNNING: &str = "wiredTiger.transaction.transaction checkpoint currently running";
    let mut queries = 0.0;
    let mut samples = Vec::new();
    for step in 0..720u32 {
        let t_ns = START_NS - (3600 - u64::from(step) * 5) * SECOND_NS;
        queries += 5.0 * (900.0 + 250.0 * (f64::from(step) / 60.0).sin());
        samples.extend([
            sample(t_ns, "ftdc", "opcounters.query", f64::floor(queries)),
            sample(t_ns, "ftdc", CACHE_LIMIT, CACHE_BYTES),
            sample(t_ns, "ftdc", CACHE_FILLED, CACHE_BYTES * 0.8),
            sample(t_ns, "ftdc", RUNNING, f64::from(u8::from(step % 13 < 2))),
        ]);
    }
    samples
}
