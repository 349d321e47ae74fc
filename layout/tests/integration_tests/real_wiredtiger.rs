//! Leaves, free space and the account of a file's bytes, compared with what the engine that wrote the
//! file says itself.

use std::collections::BTreeMap;
use std::path::Path;

use seekscope_layout::{DataDirectory, WalkedFile};
use seekscope_run::layout::{DataState, NameSource};
use seekscope_wiredtiger::{Leaf, LeafKind};

use crate::engines::{Engine, data_files, folder};
use crate::verify_output::Verified;
use crate::walking::{RUNNING, options, walk};

/// The values that `overflow_values` puts outside the leaves: 20,000 bytes and a header each.
const OVERFLOW_BYTES: u64 = 300 * 20_480;
const DESCRIPTION_BYTES: u64 = 4096;

#[test]
fn wiredtiger_3_2() {
    let counts = agrees(Engine::V3_2);
    assert!(counts.files >= 23 && counts.leaves > 6000, "{counts:?}");
}

#[test]
fn wiredtiger_11_2() {
    let counts = agrees(Engine::V11_2);
    assert!(counts.files >= 28 && counts.leaves > 7000, "{counts:?}");
}

#[test]
fn wiredtiger_11_3() {
    let counts = agrees(Engine::V11_3);
    assert!(counts.files >= 34 && counts.leaves > 8000, "{counts:?}");
}

/// What was compared, so that nobody takes silence for agreement.
#[derive(Debug, Default)]
struct Counts {
    files: usize,
    leaves: usize,
    deleted_leaves: usize,
    free_extents: usize,
    largest_share_read: f64,
}

/// Every table that the engine can make.
fn agrees(engine: Engine) -> Counts {
    let folder = folder();
    let directory = folder.path().join("data");
    let said = engine.make(&directory, 1, &[]);
    let truth = engine.verify(&directory);
    let found = DataDirectory::open(&directory, &RUNNING).unwrap();
    assert_eq!(found.state, DataState::Stopped);
    assert_eq!(found.names, NameSource::TableNames);
    assert_eq!(found.wiredtiger_version.as_deref(), Some(engine.version()));
    let listed: Vec<_> = found
        .tables()
        .iter()
        .map(|table| table.file.clone())
        .collect();
    assert_eq!(listed, data_files(&directory));

    let mut counts = Counts::default();
    let nothing = Verified::default();
    for table in found.tables() {
        let walked = found.walk(table, &options()).unwrap();
        let name = table.file.as_str();
        // Of a file without a checkpoint `verify` says nothing.
        let verified = truth.get(name).unwrap_or(&nothing);
        compare(name, &walked, verified);
        accounts(name, &walked);
        let deleted = deleted(&walked);
        if name == "truncated.wt" {
            assert_eq!(deleted, marked(&said), "{said}");
        }
        counts.files += 1;
        counts.leaves += verified.leaves.len();
        counts.deleted_leaves += deleted;
        counts.free_extents += walked.free.len();
        counts.largest_share_read = counts.largest_share_read.max(share_read(name, &walked));
    }
    assert_eq!(
        truth.keys().filter(|name| !listed.contains(name)).count(),
        0
    );
    println!("{engine:?}: {counts:?}");
    counts
}

fn compare(name: &str, walked: &WalkedFile, verified: &Verified) {
    let ours = walked
        .tree
        .leaves
        .iter()
        .map(|leaf| (leaf.offset, leaf.length));
    let theirs = verified
        .leaves
        .iter()
        .map(|leaf| (leaf.offset, leaf.length));
    assert!(ours.eq(theirs), "{name}: the leaves are others");
    let internal = verified.internal.iter();
    let internal_bytes: u64 = internal.map(|block| u64::from(block.length)).sum();
    assert_eq!(
        walked.tree.internal_pages,
        verified.internal.len() as u64,
        "{name}"
    );
    assert_eq!(walked.tree.internal_bytes, internal_bytes, "{name}");
    let free: u64 = walked.free.iter().map(|extent| extent.bytes).sum();
    let (entries, bytes) = verified.free.unwrap_or_default();
    assert_eq!(
        (walked.free.len() as u64, free),
        (entries, bytes),
        "{name}: free space"
    );
}

/// Every byte of the file is explained, and no two explanations are of the same bytes.
fn accounts(name: &str, walked: &WalkedFile) {
    let expected = if name == "overflow_values.wt" {
        OVERFLOW_BYTES
    } else {
        0
    };
    if name != "overflow_keys.wt" {
        assert_eq!(walked.overflow_bytes, expected, "{name}");
    }
    if walked.checkpoint.is_some() {
        assert_eq!(walked.pinned_bytes, 0, "{name}");
    }
    let leaves = walked
        .tree
        .leaves
        .iter()
        .map(|leaf| (leaf.offset, u64::from(leaf.length)));
    let free = walked
        .free
        .iter()
        .map(|extent| (extent.offset, extent.bytes));
    let mut used: Vec<_> = leaves.chain(free).collect();
    used.sort_unstable();
    let mut end = DESCRIPTION_BYTES;
    for (offset, bytes) in used {
        assert!(offset >= end, "{name}: two things at {offset}");
        end = offset + bytes;
    }
    assert!(
        end <= walked.file_bytes,
        "{name}: {end} is outside the file"
    );
}

fn deleted(walked: &WalkedFile) -> usize {
    let deleted = |leaf: &&Leaf| leaf.kind == LeafKind::Deleted;
    walked.tree.leaves.iter().filter(deleted).count()
}

/// The maker's line `truncated: 168 leaves marked as deleted`.
fn marked(said: &str) -> usize {
    let line = said
        .lines()
        .find_map(|line| line.strip_prefix("truncated: "));
    line.unwrap().split(' ').next().unwrap().parse().unwrap()
}

fn share_read(name: &str, walked: &WalkedFile) -> f64 {
    if walked.file_bytes < 10_000_000 {
        return 0.0;
    }
    let share = walked.bytes_read as f64 / walked.file_bytes as f64;
    println!(
        "{name}: {} of {} bytes read, {:.3} %",
        walked.bytes_read,
        walked.file_bytes,
        share * 100.0
    );
    assert!(share <= 0.003, "{name}: {share}");
    share
}

/// Reading a stopped database leaves it as it was.
#[test]
fn nothing_is_changed() {
    let folder = folder();
    let directory = folder.path().join("data");
    Engine::V11_2.make(&directory, 2, &["append", "zlib_index", "truncated"]);
    let before = inventory(&directory);
    let found = DataDirectory::open(&directory, &RUNNING).unwrap();
    for table in found.tables() {
        walk(&found, &table.file);
    }
    assert_eq!(inventory(&directory), before);
}

/// Names, contents, times of change and access.
fn inventory(directory: &Path) -> BTreeMap<String, impl PartialEq + std::fmt::Debug> {
    use std::os::unix::fs::MetadataExt;
    let entries = std::fs::read_dir(directory).unwrap().map(Result::unwrap);
    entries
        .map(|entry| {
            let m = entry.metadata().unwrap();
            let times = (m.mtime(), m.mtime_nsec(), m.ctime(), m.ctime_nsec());
            let contents = crc32c::crc32c(&std::fs::read(entry.path()).unwrap());
            let name = entry.file_name().into_string().unwrap();
            (name, (m.ino(), m.len(), m.mode(), times, contents))
        })
        .collect()
}
