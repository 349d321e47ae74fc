//! Proof that nothing was left and nothing was changed: a directory before and after.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::hash::{DefaultHasher, Hasher};
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

#[derive(Debug, PartialEq, Eq)]
struct Entry {
    inode: u64,
    mode: u32,
    owner: (u32, u32),
    bytes: u64,
    modified_ns: i128,
    content_hash: u64,
    link_target: Option<PathBuf>,
}

/// Everything below a directory, and the directory itself.
#[derive(Debug, PartialEq, Eq)]
struct Snapshot(BTreeMap<PathBuf, Entry>);

impl Snapshot {
    fn of(directory: &Path) -> Self {
        let mut entries = BTreeMap::new();
        let mut open = vec![directory.to_path_buf()];
        while let Some(path) = open.pop() {
            let metadata = path.symlink_metadata().unwrap();
            if metadata.is_dir() {
                open.extend(path.read_dir().unwrap().map(|e| e.unwrap().path()));
            }
            let entry = Entry {
                inode: metadata.ino(),
                mode: metadata.mode(),
                owner: (metadata.uid(), metadata.gid()),
                bytes: metadata.len(),
                modified_ns: i128::from(metadata.mtime()) * 1_000_000_000
                    + i128::from(metadata.mtime_nsec()),
                content_hash: if metadata.is_file() || metadata.file_type().is_block_device() {
                    content_hash(&path)
                } else {
                    0
                },
                link_target: path.read_link().ok(),
            };
            entries.insert(path, entry);
        }
        Self(entries)
    }
}

/// Returns a hash of the content of a file or block device, as a reader sees it.
pub fn content_hash(path: &Path) -> u64 {
    let mut file = File::open(path).unwrap();
    let mut hasher = DefaultHasher::new();
    let mut block = vec![0; 1 << 20];
    loop {
        match file.read(&mut block).unwrap() {
            0 => return hasher.finish(),
            length => hasher.write(&block[..length]),
        }
    }
}

/// Does `work` and asserts that `directory` is afterwards what it was before.
pub fn unchanged_by<T>(directory: &Path, work: impl FnOnce() -> T) -> T {
    let Snapshot(before) = Snapshot::of(directory);
    let result = work();
    let Snapshot(after) = Snapshot::of(directory);
    let paths = before.keys().chain(after.keys());
    let changed: BTreeSet<String> = paths
        .filter(|path| before.get(*path) != after.get(*path))
        .map(|path| {
            let (old, new) = (before.get(path), after.get(path));
            format!("{}: {old:?} became {new:?}", path.display())
        })
        .collect();
    assert!(changed.is_empty(), "{changed:#?}");
    result
}
