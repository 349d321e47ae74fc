//! How long the parser takes for a large tree, and how much memory: a made-up collection of five
//! million leaves (about 150 GB) whose internal pages are handed over from memory.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::print_stdout,
    reason = "a benchmark, made of test code"
)]

use std::time::Instant;

use seekscope_wiredtiger::{TreeWalk, Visit};

#[path = "../tests/integration_tests/memory.rs"]
mod memory;
#[allow(dead_code, reason = "the tests use the rest")]
#[path = "../tests/integration_tests/synthetic.rs"]
mod synthetic;

#[global_allocator]
static MEMORY: memory::Counting = memory::Counting::new();

const LEAVES: u64 = 5_000_000;
const CHILDREN_PER_PAGE: usize = 210;

/// What this thread has computed for, whatever else the machine does.
fn cpu_seconds() -> f64 {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    statistics
        .split(' ')
        .next()
        .unwrap()
        .parse::<f64>()
        .unwrap()
        / 1e9
}

fn main() {
    let mut blocks = synthetic::Blocks::default();
    let root = blocks.tree(LEAVES, CHILDREN_PER_PAGE);
    let file_bytes = blocks.file_bytes();
    for _ in 0..3 {
        let before = MEMORY.restart();
        let (start, cpu_start) = (Instant::now(), cpu_seconds());
        let mut walk =
            TreeWalk::new(root, synthetic::FORMAT, file_bytes, Visit::InternalPages).unwrap();
        while !walk.wanted().is_empty() {
            for address in walk.wanted().to_vec() {
                walk.supply(&address, blocks.read(&address)).unwrap();
            }
        }
        let tree = walk.finish().unwrap();
        let seconds = start.elapsed().as_secs_f64();
        let cpu_seconds = cpu_seconds() - cpu_start;
        let peak_mb = (MEMORY.peak() - before) / 1_000_000;
        assert_eq!(tree.leaves.len() as u64, LEAVES);
        println!(
            "{} leaves, {} internal pages of {} bytes, depth {}: \
             {seconds:.3} s, {cpu_seconds:.3} s of a processor ({:.1} million leaves/s), {peak_mb} MB at the most",
            tree.leaves.len(),
            tree.internal.len(),
            tree.internal_bytes() / tree.internal.len() as u64,
            tree.depth,
            LEAVES as f64 / cpu_seconds / 1e6,
        );
    }
}
