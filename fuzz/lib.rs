//! What the fuzz targets share: blocks whose checksums are made right, since nothing that a fuzzer
//! comes up with would get past them.

use seekscope_wiredtiger::{BlockAddress, BlockFormat, Compressor, TreeWalk, Visit, block};

#[path = "../wiredtiger/tests/integration_tests/forgery.rs"]
mod forgery;

/// The allocation unit of all files here, bytes.
pub const UNIT: u32 = 4096;

/// Every way of reading a block that is flagged as compressed.
pub fn formats() -> impl Iterator<Item = BlockFormat> {
    use Compressor::{Lz4, None, Snappy, Zlib, Zstd};
    [None, Snappy, Zlib, Zstd, Lz4]
        .into_iter()
        .map(|compressor| BlockFormat {
            allocation_bytes: UNIT,
            compressor,
        })
}

/// The input as a block of whole units: length and checksum set right, and that over all of it. The
/// block and an address for it.
pub fn sound_block(input: &[u8], page_types: &[u8]) -> (BlockAddress, Vec<u8>) {
    let mut bytes = input.to_vec();
    let length = input.len().max(64).next_multiple_of(UNIT as usize);
    bytes.resize(length, 0);
    if !page_types.contains(&bytes[24]) {
        bytes[24] = page_types[usize::from(bytes[24]) % page_types.len()];
    }
    let length = u32::try_from(length).unwrap_or(u32::MAX);
    bytes[28..32].copy_from_slice(&length.to_le_bytes());
    bytes[36] |= 1;
    let checksum = block::checksum(&bytes, true);
    bytes[32..36].copy_from_slice(&checksum.to_le_bytes());
    (
        BlockAddress {
            offset: UNIT.into(),
            length,
            checksum,
        },
        bytes,
    )
}

/// Walks from `root`, being handed `bytes` for every block, as far as that goes.
pub fn walk(
    root: BlockAddress,
    bytes: &[u8],
    format: BlockFormat,
    visit: Visit,
) -> Option<TreeWalk> {
    let mut walk = TreeWalk::new(root, format, 1 << 30, visit).ok()?;
    walk.supply(&root, bytes).ok()?;
    Some(walk)
}

/// The bytes at `address`, or as many as there are, with the checksum that is wanted: four bytes of
/// the block are altered for it.
pub fn forged(file: &[u8], address: &BlockAddress) -> Vec<u8> {
    let at = |offset: u64| {
        usize::try_from(offset)
            .unwrap_or(usize::MAX)
            .min(file.len())
    };
    let end = address.offset.saturating_add(address.length.into());
    let mut bytes = file[at(address.offset)..at(end)].to_vec();
    if bytes.len() as u64 == u64::from(address.length) && bytes.len() >= 64 {
        bytes[28..32].copy_from_slice(&address.length.to_le_bytes());
        forgery::forge_checksum(&mut bytes, address.checksum);
    }
    bytes
}
