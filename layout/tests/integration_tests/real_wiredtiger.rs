//! Leaves, free space and the account of a file's bytes, compared with what the engine that wrote the
//! file says itself.

use std::collections::BTreeMap;
use std::path::Path;

use seekscope_layout::{WalkedFile, walk_lone};
use seekscope_run::layout::{DataState, NameSource};
use seekscope_wiredtiger::{Extent, Leaf, LeafKind};

use crate::engines::{Engine, data_files, folder};
use crate::real_directory::options;
use crate::verify_output::Verified;
use crate::walking::{assert_apart, open, walk};

/// The values that `overflow_values` puts outside the leaves: 20,000 bytes and a header each.
const OVERFLOW_BYTES: u64 = 300 * 20_480;

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
    let found = open(&directory);
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
        let walked = found.walk(table, &options(4)).unwrap();
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
        alone(&directory, name, &walked);
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
    let mut ours: Vec<_> = walked
        .tree
        .internal
        .iter()
        .map(|page| (page.offset, page.length))
        .collect();
    let mut theirs: Vec<_> = verified
        .internal
        .iter()
        .map(|block| (block.offset, block.length))
        .collect();
    ours.sort_unstable();
    theirs.sort_unstable();
    assert_eq!(ours, theirs, "{name}: the internal pages are others");
    let theirs = verified.free.unwrap_or_default();
    if theirs != entries_and_bytes(&walked.free) {
        // They count before they take the list's own block out of the list.
        let all = with_list_itself(walked);
        assert_eq!(theirs, entries_and_bytes(&all), "{name}: free space");
    }
}

fn entries_and_bytes(extents: &[Extent]) -> (u64, u64) {
    let bytes = extents.iter().map(|extent| extent.bytes).sum();
    (extents.len() as u64, bytes)
}

/// The free extents and the block of their list, touching ones joined.
fn with_list_itself(walked: &WalkedFile) -> Vec<Extent> {
    let cookie = walked
        .checkpoint
        .as_ref()
        .and_then(|checkpoint| checkpoint.cookie);
    let list = cookie.and_then(|cookie| cookie.avail).map(|block| Extent {
        offset: block.offset,
        bytes: block.length.into(),
    });
    let mut all: Vec<_> = walked.free.iter().copied().chain(list).collect();
    all.sort_unstable();
    all.dedup_by(|next, extent| {
        let touches = next.offset == extent.offset + extent.bytes;
        extent.bytes += if touches { next.bytes } else { 0 };
        touches
    });
    all
}

/// Every byte of the file is explained, and no two explanations are of the same bytes.
fn accounts(name: &str, walked: &WalkedFile) {
    let expected = if name == "overflow_values.wt" {
        OVERFLOW_BYTES
    } else {
        0
    };
    if name != "overflow_keys.wt" {
        assert_eq!(walked.overflow_bytes, Some(expected), "{name}");
    }
    if walked.checkpoint.is_some() {
        assert_eq!(walked.pinned_bytes, Some(0), "{name}");
    }
    assert_apart(name, walked);
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

/// The same file without its directory.
fn alone(directory: &Path, name: &str, within: &WalkedFile) {
    let elsewhere = folder();
    let copy = elsewhere.path().join(name);
    std::fs::copy(directory.join(name), &copy).unwrap();
    if within.tree.leaves.is_empty() {
        // Nothing to be found.
        return;
    }
    let alone = walk_lone(&copy, &options(4)).unwrap();
    assert_eq!(alone.tree, within.tree, "{name}");
    assert_eq!(alone.free, within.free, "{name}");
    assert_eq!(alone.compressor, within.compressor, "{name}");
}

/// Reading a stopped database leaves it as it was.
#[test]
fn nothing_is_changed() {
    let folder = folder();
    let directory = folder.path().join("data");
    Engine::V11_2.make(&directory, 2, &["append", "zlib_index", "truncated"]);
    let before = inventory(&directory);
    let found = open(&directory);
    for table in found.tables() {
        walk(&found, &table.file);
        walk_lone(&directory.join(&table.file), &options(4)).unwrap();
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
