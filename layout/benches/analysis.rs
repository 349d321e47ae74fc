//! How fast leaf lists are analysed, and in how much memory: `cargo bench -p seekscope-layout
//! [-- LEAVES]`, 5 million unless said otherwise, as a collection of 160 GB has. Each order and each
//! analysis has a process of its own, so that the peak of resident memory is its own too, the list
//! included. Times are CPU time, the least of five.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a program of its own, on numbers of its own"
)]

use std::process::Command;

use seekscope_layout::order::{WINDOW_BYTES, scan_order};
use seekscope_layout::scan_prediction::{ScanOptions, predict_scan};
use seekscope_layout::strip::Strip;
use seekscope_layout::typical_disks;
use seekscope_stats::SplitMix64;
use seekscope_wiredtiger::tree::{Leaf, LeafKind};

const LEAF_BYTES: u64 = 32_768;

/// Swaps this share of the leaves with others.
const ORDERS: [(&str, f64); 3] = [("ordered", 0.0), ("a tenth moved", 0.1), ("shuffled", 1.0)];
const ANALYSES: [&str; 3] = ["order", "strip", "prediction"];

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| a != "--bench")
        .collect();
    if let [count, order, analysis] = &arguments[..] {
        measure(count.parse().unwrap(), order.parse().unwrap(), analysis);
        return;
    }
    let count = arguments.first().map_or("5000000", |count| count);
    println!("{count} leaves  analysis    CPU s  peak MB");
    for (name, _) in ORDERS {
        for analysis in ANALYSES {
            let at = ORDERS.iter().position(|order| order.0 == name).unwrap();
            let me = std::env::current_exe().unwrap();
            let status = Command::new(me)
                .args([count, &at.to_string(), analysis])
                .status();
            assert!(status.unwrap().success());
        }
    }
}

fn measure(count: u64, order: usize, analysis: &str) {
    let (name, moved) = ORDERS[order];
    let leaves = leaves(count, moved);
    let file_bytes = 4096 + count * LEAF_BYTES;
    let times = (0..5).map(|_| {
        let before = cpu_s();
        match analysis {
            "order" => drop(std::hint::black_box(scan_order(&leaves, WINDOW_BYTES))),
            "strip" => drop(std::hint::black_box(Strip::of(
                &leaves, file_bytes, 120, 40,
            ))),
            _ => {
                let model = typical_disks::hdd().model;
                let options = ScanOptions::with_memory(16 << 30);
                let scan = predict_scan(&model, &leaves, file_bytes, &options);
                std::hint::black_box(scan);
            }
        }
        cpu_s() - before
    });
    let least = times.fold(f64::INFINITY, f64::min);
    println!("{name:14}  {analysis:10} {least:6.3}  {:7.0}", peak_mb());
}

fn leaves(count: u64, moved: f64) -> Vec<Leaf> {
    let mut random = SplitMix64::new(1);
    let leaf = |place| Leaf {
        offset: 4096 + place * LEAF_BYTES,
        length: LEAF_BYTES as u32,
        kind: LeafKind::Plain,
    };
    let mut leaves: Vec<Leaf> = (0..count).map(leaf).collect();
    for at in 0..leaves.len() {
        if random.unit_f64() < moved {
            leaves.swap(at, random.below(count) as usize);
        }
    }
    leaves
}

fn cpu_s() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn peak_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM"))
        .unwrap();
    let kib: f64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib * 1024.0 / 1e6
}
