#![no_main]
//! Lists of extents, and the checkpoints they describe.

use libfuzzer_sys::fuzz_target;
use seekscope_fuzz::sound_block;
use seekscope_wiredtiger::ExtentList;

fuzz_target!(|input: &[u8]| {
    let (address, bytes) = sound_block(input, &[1]);
    if let Ok(list) = ExtentList::parse(&address, &bytes, 1 << 30) {
        let apart = |extents: &[seekscope_wiredtiger::Extent]| {
            extents[0].offset + extents[0].bytes < extents[1].offset
        };
        // Cutting the own block out leaves two that do not touch either.
        assert!(list.extents.windows(2).all(apart));
    }
});
