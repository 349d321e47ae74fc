#![no_main]
//! Internal pages.

use libfuzzer_sys::fuzz_target;
use seekscope_fuzz::{formats, sound_block, walk};
use seekscope_wiredtiger::Visit;

fuzz_target!(|input: &[u8]| {
    let (root, bytes) = sound_block(input, &[6]);
    for format in formats() {
        if let Some(walk) = walk(root, &bytes, format, Visit::InternalPages) {
            assert!(walk.wanted().is_sorted_by(|a, b| a.offset < b.offset));
            let _ = walk.finish();
        }
    }
});
