#![no_main]
//! Searching a file whose directory is gone.

use libfuzzer_sys::fuzz_target;
use seekscope_fuzz::{UNIT, forged};
use seekscope_wiredtiger::lone::LoneScan;

fuzz_target!(|input: &[u8]| {
    // The descriptor of an empty file, checksum and all.
    let mut file = vec![0; UNIT as usize];
    file[..8].copy_from_slice(&[0x41, 0xd8, 0x01, 0x00, 0x01, 0x00, 0x00, 0x00]);
    file[8..12].copy_from_slice(&DESCRIPTOR_CHECKSUM.to_le_bytes());
    file.extend(input);
    let mut scan = LoneScan::new(file.len() as u64);
    for chunk in file.chunks(1000) {
        if scan.feed(chunk).is_err() {
            return;
        }
    }
    let Ok(mut search) = scan.finish() else {
        return;
    };
    while let Some(address) = search.wanted().first().copied() {
        search.supply(&address, &forged(&file, &address));
    }
    let _ = search.finish();
});

/// The checksum of the 4 KiB above.
const DESCRIPTOR_CHECKSUM: u32 = 0xB723_08D8;
