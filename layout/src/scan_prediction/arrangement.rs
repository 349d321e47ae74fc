//! Where the leaves of a file would lie after it has been rewritten.

use seekscope_wiredtiger::tree::Leaf;

use crate::order::ranks::by_offset;

/// The unit that every file has before its first block.
pub(super) const FIRST_OFFSET: u64 = 4096;

/// Offsets of leaves that follow one another without holes in the order given.
fn end_to_end<'a>(leaves: impl Iterator<Item = &'a Leaf>) -> impl Iterator<Item = u64> {
    leaves.scan(FIRST_OFFSET, |next, leaf| {
        let offset = *next;
        *next = offset.saturating_add(u64::from(leaf.length));
        Some(offset)
    })
}

/// By place in key order: written in key order without holes.
pub(super) fn ordered_offsets(leaves: &[Leaf]) -> Vec<u64> {
    end_to_end(leaves.iter()).collect()
}

/// By place in key order: in the order of their offsets as before, but without holes. Compact fills
/// holes with blocks from the end of the file and leaves the others; measured, the order remains
/// about as it was (0.001 to 0.088 sequential in a shuffled file).
pub(super) fn compacted_offsets(leaves: &[Leaf]) -> Vec<u64> {
    let Some(order) = by_offset(leaves) else {
        return ordered_offsets(leaves);
    };
    let mut offsets = vec![0; leaves.len()];
    let places = end_to_end(order.iter().map(|&ordinal| &leaves[ordinal as usize]));
    for (&ordinal, offset) in order.iter().zip(places) {
        offsets[ordinal as usize] = offset;
    }
    offsets
}
