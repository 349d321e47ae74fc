#![no_main]
//! Block headers and decompression.

use libfuzzer_sys::fuzz_target;
use seekscope_fuzz::{formats, sound_block};
use seekscope_wiredtiger::block::CheckedBlock;

fuzz_target!(|input: &[u8]| {
    let (address, bytes) = sound_block(input, &[1, 5, 6, 7]);
    let _ = CheckedBlock::check(&address, input);
    if let Ok(block) = CheckedBlock::check(&address, &bytes) {
        for format in formats() {
            if let Ok(image) = block.image(format.compressor) {
                assert_eq!(image.len(), block.header.image_bytes as usize);
            }
        }
    }
});
