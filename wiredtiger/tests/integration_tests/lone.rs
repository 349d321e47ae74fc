//! Files whose directory is gone: the tree found in them is the one the directory names.

use std::path::Path;

use seekscope_wiredtiger::lone::{LoneError, LoneScan, LoneSource, LoneTree};
use seekscope_wiredtiger::{CheckpointCookie, Visit};
use serde_json::Value;

use crate::directory::{Directory, Files, block, files_below, walk};
use crate::mongod::{self, SKELETONS, leaf_on_disk, on_disk, skeleton, truth};

fn search(file: &[u8], chunk_bytes: usize) -> Result<Vec<LoneTree>, LoneError> {
    let mut scan = LoneScan::new(file.len() as u64);
    for chunk in file.chunks(chunk_bytes) {
        scan.feed(chunk)?;
    }
    let mut search = scan.finish()?;
    while let Some(address) = search.wanted().first().copied() {
        search.supply(&address, block(file, &address));
    }
    search.finish()
}

/// Files whose tree was found; the ones where the newest candidate was it.
fn check(files: &Files, expected: &Value) -> usize {
    let directory = Directory::open(files).unwrap();
    let mut found = 0;
    for (name, truth) in expected["files"].as_object().unwrap() {
        let result = search(&files[name], 7_777);
        let cookie = directory.walk(name).unwrap().cookie;
        let Some(cookie) = cookie.filter(|cookie| cookie.root.is_some()) else {
            assert!(
                !matches!(&result, Ok(trees) if trees[0].root.is_some()),
                "{name}: {result:?}"
            );
            continue;
        };
        let trees = result.unwrap_or_else(|error| panic!("{name}: {error}"));
        let tree = &trees[0];
        let root = tree.root.unwrap();
        assert_eq!(on_disk(&root), mongod::address(&truth["root"]), "{name}");
        if let LoneSource::Checkpoint { cookie: own, .. } = &tree.source {
            assert_eq!(
                *own,
                CheckpointCookie {
                    avail: tree.avail,
                    ..cookie
                },
                "{name}"
            );
            assert_eq!(tree.avail, cookie.avail, "{name}");
        }
        let (walk, _) = walk(
            &files[name],
            root,
            tree.format,
            tree.file_bytes,
            Visit::InternalPages,
        )
        .unwrap();
        let leaves: Vec<_> = walk
            .finish()
            .unwrap()
            .leaves
            .iter()
            .map(leaf_on_disk)
            .collect();
        let true_leaves = truth["leaves"].as_array().unwrap();
        assert_eq!(
            leaves,
            true_leaves.iter().map(mongod::address).collect::<Vec<_>>(),
            "{name}"
        );
        found += 1;
    }
    found
}

#[test]
fn the_tree_is_found_without_the_directory() {
    for (name, _, trees, _) in SKELETONS {
        assert_eq!(check(&skeleton(name), &truth(name)), trees, "{name}");
    }
}

#[test]
#[ignore = "needs the originals in SEEKSCOPE_MONGOD_FILES"]
fn the_trees_of_the_originals_are_found() {
    let folder = std::env::var("SEEKSCOPE_MONGOD_FILES").unwrap();
    for (name, ..) in SKELETONS {
        let found = check(&files_below(&Path::new(&folder).join(name)), &truth(name));
        println!("{name}: {found} trees found without the directory");
    }
}

#[test]
fn a_file_of_something_else_is_refused() {
    assert_eq!(search(&[], 100), Err(LoneError::NotWiredTiger));
    assert_eq!(
        search(&vec![1; 3 << 20], 65_536),
        Err(LoneError::NotWiredTiger)
    );
    let mut file = skeleton("none")["sizeStorer.wt"].clone();
    file.truncate(4096);
    assert_eq!(search(&file, 100), Err(LoneError::NothingFound));
    file[100] = 1;
    assert_eq!(search(&file, 100), Err(LoneError::NotWiredTiger));
}
