#![no_main]
//! Whole files: every block gets the checksum that its parent wants.

use libfuzzer_sys::fuzz_target;
use seekscope_fuzz::{UNIT, forged, formats};
use seekscope_wiredtiger::block::BlockHeader;
use seekscope_wiredtiger::{BlockAddress, TreeWalk, Visit};

fuzz_target!(|input: (u8, bool, u8, &[u8])| {
    let (root_unit, rows, compressor, file) = input;
    let offset = (u64::from(root_unit) + 1) * u64::from(UNIT);
    let start = usize::try_from(offset)
        .unwrap_or(usize::MAX)
        .min(file.len());
    let Ok(header) = BlockHeader::read(&file[start..]) else {
        return;
    };
    let root = BlockAddress {
        offset,
        length: header.disk_bytes,
        checksum: header.checksum,
    };
    let Some(format) = formats().nth(usize::from(compressor) % 5) else {
        return;
    };
    let visit = if rows {
        Visit::Rows
    } else {
        Visit::InternalPages
    };
    let Ok(mut walk) = TreeWalk::new(root, format, file.len() as u64, visit) else {
        return;
    };
    while let Some(address) = walk.wanted().last().copied() {
        if walk.supply(&address, &forged(file, &address)).is_err() {
            return;
        }
    }
    let _ = walk.finish();
});
