//! Walks as the tests want them.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use seekscope_layout::{DataDirectory, WalkOptions, WalkedFile};

/// Nobody asks these walks to stop.
pub static RUNNING: AtomicBool = AtomicBool::new(false);

pub fn options() -> WalkOptions<'static> {
    WalkOptions {
        parallel_reads: 4,
        reads_per_s: None,
        stop: &RUNNING,
        keep_pages: false,
    }
}

pub fn walk(directory: &DataDirectory, file: &str) -> WalkedFile {
    let table = directory.find(file).unwrap();
    directory.walk(table, &options()).unwrap()
}

/// Opens, and walks one file.
pub fn walked(directory: &Path, file: &str) -> WalkedFile {
    walk(&DataDirectory::open(directory, &RUNNING).unwrap(), file)
}
