#![no_main]
//! Cookies of checkpoints and blocks.

use libfuzzer_sys::fuzz_target;
use seekscope_fuzz::UNIT;
use seekscope_wiredtiger::{BlockAddress, CheckpointCookie};

fuzz_target!(|input: &[u8]| {
    let _ = CheckpointCookie::parse(input, UNIT);
    let _ = BlockAddress::from_cookie(input, UNIT);
    if let Ok(hex) = str::from_utf8(input) {
        let _ = CheckpointCookie::parse_hex(hex, UNIT);
    }
});
