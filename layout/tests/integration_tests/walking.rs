//! Walks as the tests of real engines want them, and what must be true of every one.

use std::path::Path;

use seekscope_layout::{DataDirectory, WalkedFile};

use crate::real_directory::{GO_ON, options};

const DESCRIPTION_BYTES: u64 = 4096;

pub fn open(directory: &Path) -> DataDirectory {
    DataDirectory::open(directory, &GO_ON).unwrap()
}

pub fn walk(directory: &DataDirectory, file: &str) -> WalkedFile {
    let table = directory.find(file).unwrap();
    directory.walk(table, &options(4)).unwrap()
}

/// Leaves and free extents are in the file, each at its own place.
pub fn assert_apart(name: &str, walked: &WalkedFile) {
    let leaves = walked.tree.leaves.iter();
    let leaves = leaves.map(|leaf| (leaf.offset, u64::from(leaf.length)));
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
