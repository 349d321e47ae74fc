#![no_main]
//! Leaf pages: rows, and what the metadata, the catalogue and the stored sizes make of them.

use libfuzzer_sys::fuzz_target;
use seekscope_fuzz::{formats, sound_block, walk};
use seekscope_wiredtiger::{Catalogue, Metadata, Visit, size_storer};

fuzz_target!(|input: &[u8]| {
    let (root, bytes) = sound_block(input, &[7]);
    for format in formats() {
        let Some(Ok(rows)) = walk(root, &bytes, format, Visit::Rows).map(|walk| walk.rows()) else {
            continue;
        };
        let _ = Catalogue::from_rows(&rows);
        let _ = size_storer::parse(&rows);
        let _ = Metadata::from_rows(&rows);
    }
});
