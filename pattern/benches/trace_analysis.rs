//! How fast a trace of ten million events is analysed, and in how much memory:
//! `cargo bench -p seekscope-pattern [-- EVENTS]`. Each workload has a process of its own, so that
//! the peak of resident memory is its own too. Events are made up on the fly and not kept; making
//! them is measured apart and taken off. Times are CPU time, which other programs do not change
//! much.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a program of its own, on numbers of its own"
)]

use std::process::Command;

use seekscope_pattern::{AnalysisOptions, TraceAnalyser};
use seekscope_run::{BlockRequest, IoEvent, IoFlags, IoOp};
use seekscope_stats::SplitMix64;

/// Makes event number i.
type Make = fn(u64, &mut SplitMix64) -> IoEvent;

const WORKLOADS: [(&str, Make); 6] = [
    ("scan of one file", |i, rng| {
        read(i, 1, i * 32_768, 32_768, rng)
    }),
    ("random in 100 GB", |i, rng| {
        let offset = rng.below(25_000_000) * 4096;
        read(i, 1, offset, 4096, rng)
    }),
    ("hot megabyte", |i, rng| {
        let offset = rng.below(32) * 32_768;
        read(i, 1, offset, 32_768, rng)
    }),
    ("server, 200 files", server),
    ("10,000 files", |i, rng| {
        let (file, offset) = (rng.below(10_000) as u32, rng.below(2_000_000) * 4096);
        read(i, file, offset, 16_384, rng)
    }),
    ("1 MiB reads of 1 TB", |i, rng| {
        let offset = rng.below(1_000_000) << 20;
        read(i, 1, offset, 1 << 20, rng)
    }),
];

fn read(i: u64, file_id: u32, offset: u64, bytes: u32, rng: &mut SplitMix64) -> IoEvent {
    // A cached read takes about a microsecond, one in eight goes to the disk; ends, not starts,
    // are in order.
    let missed = rng.below(8) == 0;
    let latency_ns = if missed {
        80_000 + rng.below(400_000)
    } else {
        600 + rng.below(2000)
    };
    let flags = if missed {
        IoFlags::WAITED | IoFlags::DEVICE_READ
    } else {
        0
    };
    IoEvent {
        t_ns: 1_000_000_000 + i * 3000 - latency_ns,
        pid: 1,
        tid: 100 + rng.below(16) as u32,
        file_id,
        op: IoOp::Pread,
        flags: IoFlags(flags),
        offset: Some(offset),
        length: bytes,
        latency_ns,
        result: bytes.cast_signed(),
        device_read_bytes: if missed { bytes } else { 0 },
        request: None,
    }
}

/// Skewed reads and scans, log appends, checkpoint writes, syncs, and the disk's requests.
fn server(i: u64, rng: &mut SplitMix64) -> IoEvent {
    let file = rng.below(1 + rng.clone().below(200)) as u32;
    let place = rng.below(1 + rng.clone().below(1_000_000)) * 4096;
    let event = match rng.below(20) {
        0..=8 => read(i, file, place, 4096, rng),
        9..=12 => read(i, file, i / 200 * 32_768, 32_768, rng),
        _ => read(i, file, place, 32_768, rng),
    };
    match rng.below(20) {
        0..=3 => IoEvent {
            op: IoOp::Pwrite,
            flags: IoFlags::default(),
            ..event
        },
        4 => IoEvent {
            op: IoOp::Fdatasync,
            offset: None,
            result: 0,
            ..event
        },
        5..=8 => IoEvent {
            op: IoOp::BlockRead,
            request: Some(BlockRequest {
                disk_major: 254,
                disk_minor: 0,
                sector: place / 512 + u64::from(file) * 8_000_000,
            }),
            ..event
        },
        _ => event,
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // Cargo passes `--bench` along.
    let mut numbers = arguments.iter().filter_map(|a| a.parse::<u64>().ok());
    let events = numbers.next().unwrap_or(10_000_000);
    if let Some(workload) = numbers.next() {
        return measure(workload as usize, events);
    }
    for workload in 0..WORKLOADS.len() {
        let mut child = Command::new(std::env::current_exe().unwrap());
        let child = child.args([events.to_string(), workload.to_string()]);
        assert!(child.status().unwrap().success());
    }
}

fn measure(workload: usize, events: u64) {
    let (name, make) = WORKLOADS[workload];
    let mut rng = SplitMix64::new(1);
    let start_s = cpu_s();
    let sum: u64 = (1..=events).map(|i| make(i, &mut rng).t_ns & 1).sum();
    let making_s = cpu_s() - start_s;
    let mut rng = SplitMix64::new(1);
    let mut analyser = TraceAnalyser::new(AnalysisOptions::default());
    let start_s = cpu_s();
    for i in 1..=events {
        analyser.push(&make(i, &mut rng));
    }
    let pushed_s = cpu_s();
    let analysis = analyser.finish(&[], &[]);
    let finishing_s = cpu_s() - pushed_s;
    let all_s = pushed_s - start_s + finishing_s - making_s;
    assert!(analysis.events == events && sum <= events);
    println!(
        "{name:20} {events} events in {all_s:5.2} s (end {finishing_s:.2} s): {:5.2} million/s, peak {} MB",
        events as f64 / all_s / 1e6,
        peak_megabytes()
    );
}

fn peak_megabytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with("VmHWM")).unwrap();
    let kilobytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kilobytes / 1024
}

/// CPU time of this thread so far: the first field of schedstat, ns.
fn cpu_s() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    let ns: u64 = text.split(' ').next().unwrap().parse().unwrap();
    ns as f64 / 1e9
}
