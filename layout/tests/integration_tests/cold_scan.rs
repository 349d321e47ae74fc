//! The predicted order of reads against the reads of a process that really scans, seen by strace.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::process::Command;

use seekscope_layout::WalkedFile;
use seekscope_wiredtiger::LeafKind;

use crate::engines::{Engine, copy_of, data_files, folder, run};
use crate::walking::{open, walk};

/// Offset and bytes of a pread.
pub type Read = (u64, u64);

/// Ordered, shuffled, with holes, with leaves marked as deleted, compressed, with large internal pages.
const TABLES: [&str; 6] = [
    "append_8_threads",
    "hashed",
    "updated_4_percent",
    "zlib_append",
    "zlib_index",
    "truncated",
];

#[test]
fn scans_read_the_leaves_in_the_predicted_order() {
    for engine in [Engine::V3_2, Engine::V11_2, Engine::V11_3] {
        let folder = folder();
        let directory = folder.path().join("data");
        engine.make(&directory, 3, &TABLES);
        let found = open(&directory);
        let (mut leaves, mut emptied) = (0, 0);
        for file in data_files(&directory) {
            let walked = walk(&found, &file);
            // Whoever scans also opens, and so writes.
            let copy = copy_of(&directory);
            let reads = traced_reads(engine.scan(copy.path(), &file), &copy.path().join(&file));
            let name = format!("{engine:?} {file}");
            emptied += of_kind(&walked, LeafKind::Emptied);
            let preloads = engine.preloads(&walked.tree);
            leaves += assert_predicted(&name, &walked, &reads, engine, preloads);
        }
        println!(
            "{engine:?}: {leaves} reads of leaves as predicted in {} scans",
            TABLES.len()
        );
        assert!(leaves > 1500, "{leaves}");
        // Only of a table that has timestamps.
        assert_eq!(emptied > 0, engine != Engine::V3_2, "{engine:?}: {emptied}");
    }
}

fn of_kind(walked: &WalkedFile, kind: LeafKind) -> usize {
    let leaves = walked.tree.leaves.iter();
    leaves.filter(|leaf| leaf.kind == kind).count()
}

/// Checks that the reads of leaves are the predicted ones, repeated where the engine preloads them; returns how
/// many there are.
pub fn assert_predicted(
    name: &str,
    walked: &WalkedFile,
    reads: &[Read],
    engine: Engine,
    preloads: bool,
) -> usize {
    let leaf = |leaf: &seekscope_wiredtiger::Leaf| (leaf.offset, u64::from(leaf.length));
    let leaves: HashSet<Read> = walked.tree.leaves.iter().map(leaf).collect();
    let of_leaves = reads.iter().filter(|read| leaves.contains(read)).copied();
    let but_deleted = walked.tree.leaves.iter();
    let but_deleted = but_deleted.filter(|leaf| leaf.kind != LeafKind::Deleted);
    let preloaded = but_deleted.clone();
    let preloaded = preloaded.filter(|_| preloads);
    let scanned = but_deleted.filter(|leaf| !engine.skips(leaf.kind));
    let of_leaves: Vec<Read> = of_leaves.collect();
    let predicted: Vec<Read> = preloaded.chain(scanned).map(leaf).collect();
    let same = of_leaves
        .iter()
        .zip(&predicted)
        .take_while(|(a, b)| a == b)
        .count();
    assert!(
        of_leaves == predicted,
        "{name}: {} reads of leaves, {} predicted, the first {same} the same",
        of_leaves.len(),
        predicted.len()
    );
    predicted.len()
}

/// The preads of `file` by `command`, in the order of time.
fn traced_reads(command: Command, file: &Path) -> Vec<Read> {
    let folder = folder();
    let trace = folder.path().join("trace");
    let mut strace = Command::new("strace");
    strace
        .args(["-f", "-y", "-s", "0", "-e", "trace=pread64", "-o"])
        .arg(&trace);
    strace.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        strace.env(name, value.unwrap());
    }
    run(&mut strace);
    reads_in(&std::fs::read_to_string(trace).unwrap(), file)
}

/// Returns the reads of `file` in strace's lines, such as `12 pread64(5</data/a.wt>, ""..., 4096, 8192) = 4096`,
/// or two halves of one where threads interleave.
pub fn reads_in(trace: &str, file: &Path) -> Vec<Read> {
    let file = format!("<{}>", file.canonicalize().unwrap().display());
    let mut unfinished: HashMap<&str, bool> = HashMap::new();
    let mut reads = Vec::new();
    for line in trace.lines() {
        let (thread, call) = line.split_once(' ').unwrap();
        let resumed = call.contains("pread64 resumed>");
        let ours = if resumed {
            unfinished.remove(thread) == Some(true)
        } else {
            call.contains(&file)
        };
        if call.contains("<unfinished ...>") {
            unfinished.insert(thread, ours);
        } else if ours && call.contains("pread64") {
            reads.push(offset_and_bytes(call));
        }
    }
    reads
}

fn offset_and_bytes(call: &str) -> Read {
    let (arguments, _) = call.rsplit_once(')').unwrap();
    let mut last = arguments.rsplit(", ").map(|number| number.parse().unwrap());
    let (offset, bytes) = (last.next().unwrap(), last.next().unwrap());
    (offset, bytes)
}
