#![no_main]
//! The turtle file, and `WiredTiger.backup`, which has the same form.

use libfuzzer_sys::fuzz_target;
use seekscope_wiredtiger::{FileConfig, Metadata, Turtle};

fuzz_target!(|input: &[u8]| {
    let _ = Turtle::parse(input);
    if let Ok(metadata) = Metadata::from_backup(input) {
        for (_, text) in metadata.files() {
            let _ = FileConfig::parse(text);
        }
    }
});
