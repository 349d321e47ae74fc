//! Data directories of mongod 3.4 and 4.2, against what WiredTiger's own `verify` and the server
//! said of them.
//!
//! The directories in `tests/data/` are skeletons: of the data files' leaves only the headers are
//! left. SEEKSCOPE_MONGOD_FILES names a folder with the originals, which `--ignored` checks.

use std::path::{Path, PathBuf};
use std::process::Command;

use seekscope_wiredtiger::{Accounting, BlockAddress, Leaf};
use serde_json::Value;

use crate::directory::{Directory, Files, files_below};

/// The skeletons: name, files, files with a tree, leaves.
pub(crate) const SKELETONS: [(&str, usize, usize, usize); 4] = [
    ("none", 24, 22, 711),
    ("snappy", 24, 22, 1877),
    ("zlib_dirs", 24, 22, 275),
    ("snappy42", 26, 21, 246),
];

pub(crate) fn data_folder() -> PathBuf {
    PathBuf::from("tests/data")
}

pub(crate) fn address(value: &Value) -> (u64, u64) {
    (value[0].as_u64().unwrap(), value[1].as_u64().unwrap())
}

pub(crate) fn on_disk(block: &BlockAddress) -> (u64, u64) {
    (block.offset, block.length.into())
}

pub(crate) fn leaf_on_disk(leaf: &Leaf) -> (u64, u64) {
    (leaf.offset, leaf.length.into())
}

/// Everything that is known about a directory; files, trees and leaves that agree.
fn check(files: &Files, expected: &Value) -> (usize, usize, usize) {
    let directory = Directory::open(files).unwrap();
    let version = expected["wiredtiger"].as_str().unwrap();
    assert_eq!(directory.turtle.version.as_deref(), Some(version));
    let (mut checked, mut trees, mut leaves) = (0, 0, 0);
    for (name, truth) in expected["files"].as_object().unwrap() {
        let walked = directory.walk(name).unwrap();
        let root = walked.cookie.and_then(|cookie| cookie.root);
        let true_root = Some(&truth["root"]).filter(|root| !root.is_null());
        assert_eq!(
            root.as_ref().map(on_disk),
            true_root.map(address),
            "root of {name}"
        );
        let true_leaves: Vec<_> = truth["leaves"]
            .as_array()
            .unwrap()
            .iter()
            .map(address)
            .collect();
        let found: Vec<_> = walked.tree.leaves.iter().map(leaf_on_disk).collect();
        assert_eq!(found, true_leaves, "leaves of {name}");
        let (namespace, index) = directory.names(name).unwrap();
        assert_eq!(
            Some(namespace),
            truth["namespace"].as_str(),
            "namespace of {name}"
        );
        assert_eq!(index, truth["index"].as_str(), "index of {name}");
        if let (Some(identity), Some(index)) = (&walked.config.index, index) {
            assert_eq!(
                (identity.namespace.as_str(), identity.index.as_str()),
                (namespace, index)
            );
        }
        checked += 1;
        trees += usize::from(root.is_some());
        leaves += found.len();
    }
    for (namespace, stats) in expected["collections"].as_object().unwrap() {
        let ident = stats["uri"]
            .as_str()
            .unwrap()
            .strip_prefix("statistics:table:")
            .unwrap();
        let Some(size) = directory.sizes.get(ident) else {
            assert_eq!(
                stats["count"], 0,
                "documents of {namespace}, never written to"
            );
            continue;
        };
        assert_eq!(
            Some(size.documents),
            stats["count"].as_u64(),
            "documents of {namespace}"
        );
        assert_eq!(
            Some(size.document_bytes),
            stats["dataSize"].as_u64(),
            "{namespace}"
        );
    }
    (checked, trees, leaves)
}

/// The directory `name` as its skeleton has it.
pub(crate) fn skeleton(name: &str) -> Files {
    let folder = tempfile::tempdir().unwrap();
    let archive = data_folder().join(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    let unpacked = tar
        .arg("-xzf")
        .arg(archive)
        .arg("-C")
        .arg(folder.path())
        .status()
        .unwrap();
    assert!(unpacked.success());
    files_below(&folder.path().join(name))
}

pub(crate) fn truth(name: &str) -> Value {
    let truth = std::fs::read(data_folder().join(format!("{name}.expected.json"))).unwrap();
    serde_json::from_slice(&truth).unwrap()
}

#[test]
fn every_leaf_of_every_file_without_its_leaves() {
    for (name, files, trees, leaves) in SKELETONS {
        assert_eq!(
            check(&skeleton(name), &truth(name)),
            (files, trees, leaves),
            "{name}"
        );
    }
}

#[test]
fn every_byte_is_accounted_for() {
    for (name, ..) in SKELETONS {
        let files = skeleton(name);
        let directory = Directory::open(&files).unwrap();
        for (file, _) in directory.metadata.files() {
            let walked = directory.walk(file).unwrap();
            let Some(cookie) = walked.cookie else {
                continue;
            };
            let unit = walked.config.allocation_bytes;
            let sums = Accounting::of(&cookie, unit, &walked.tree, &walked.avail);
            assert_eq!(
                sums.pinned_bytes,
                Some(0),
                "{name}/{file}: {cookie:?} {sums:?}"
            );
            assert_eq!(cookie.file_bytes, files[file].len() as u64, "{name}/{file}");
        }
    }
}

#[test]
#[ignore = "needs the originals in SEEKSCOPE_MONGOD_FILES"]
fn every_leaf_of_the_originals() {
    let folder = std::env::var("SEEKSCOPE_MONGOD_FILES").unwrap();
    for (name, ..) in SKELETONS {
        let counts = check(&files_below(&Path::new(&folder).join(name)), &truth(name));
        println!("{name}: (files, trees, leaves) that agree: {counts:?}");
    }
}
