//! Checksums that damage does not upset.

use seekscope_wiredtiger::block;

const CASTAGNOLI: u32 = 0x82F6_3B78;

/// Alters the last four bytes that a block's checksum covers so that it comes out as `wanted`: then
/// whoever points at the block still believes it. The block has 64 bytes at least.
pub fn forge_checksum(bytes: &mut [u8], wanted: u32) {
    bytes[32..36].copy_from_slice(&wanted.to_le_bytes());
    let end = if bytes[36] & 1 == 1 { bytes.len() } else { 64 };
    bytes[end - 4..end].fill(0);
    // The state before the four bytes, and the state it ought to be before four zeros.
    let before = undo_four_zeros(!block::checksum(&bytes[..end], true));
    let ought = undo_four_zeros(!wanted);
    bytes[end - 4..end].copy_from_slice(&(before ^ ought).to_le_bytes());
    debug_assert_eq!(block::checksum(&bytes[..end], true), wanted);
}

fn undo_four_zeros(state: u32) -> u32 {
    (0..32).fold(state, |state, _| match state >> 31 {
        0 => state << 1,
        _ => (state ^ CASTAGNOLI) << 1 | 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_checksum_can_be_had() {
        for (flags, wanted) in [(0, 0), (1, 0x1234_5678), (1, u32::MAX)] {
            let mut block: Vec<u8> = (0..=255).cycle().take(4096).collect();
            block[36] = flags;
            forge_checksum(&mut block, wanted);
            assert_eq!(block::checksum(&block, flags == 1), wanted);
        }
    }
}
