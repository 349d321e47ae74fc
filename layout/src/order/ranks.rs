//! The permutation from disk order to key order, and measures of how far the two are apart.

use seekscope_wiredtiger::tree::Leaf;

/// Returns places in key order by ascending offset; leaves at the same offset stay in key order.
/// `None` for 2³² leaves or more.
pub(crate) fn by_offset(leaves: &[Leaf]) -> Option<Vec<u32>> {
    let count = u32::try_from(leaves.len()).ok()?;
    if let Some(order) = by_packed_offset(leaves) {
        return Some(order);
    }
    let mut order: Vec<u32> = (0..count).collect();
    order.sort_unstable_by_key(|&ordinal| (leaves[ordinal as usize].offset, ordinal));
    Some(order)
}

/// Does the same by sorting offsets with their places in the lower bits, several times faster than
/// looking each offset up. `None` if both do not fit in 64 bits, which happens only with offsets
/// that are not multiples of an allocation unit, or lie beyond any file.
fn by_packed_offset(leaves: &[Leaf]) -> Option<Vec<u32>> {
    let all_bits = leaves.iter().fold(0, |bits, leaf| bits | leaf.offset);
    let unit_bits = all_bits.trailing_zeros().min(63);
    let place_bits = leaves.len().checked_ilog2()? + 1;
    if (all_bits >> unit_bits).leading_zeros() < place_bits {
        return None;
    }
    let pack = |(leaf, ordinal): (&Leaf, u64)| leaf.offset >> unit_bits << place_bits | ordinal;
    let mut packed: Vec<u64> = leaves.iter().zip(0u64..).map(pack).collect();
    packed.sort_unstable();
    #[expect(clippy::cast_possible_truncation, reason = "places fit in 32 bits")]
    let place = |packed: u64| (packed & ((1 << place_bits) - 1)) as u32;
    Some(packed.into_iter().map(place).collect())
}

/// Returns Σd² of the ranks, for Spearman's ρ.
pub(super) fn squared_displacements(order: &[u32]) -> f64 {
    let squares = order.iter().zip(0u32..).map(|(&ordinal, rank)| {
        let distance = f64::from(ordinal.abs_diff(rank));
        distance * distance
    });
    squares.sum()
}

/// Counts the inverted pairs in a permutation of `0..N`, for Kendall's τ.
///
/// A pair out of order agrees in some high bits and then has a 1 before a 0. So the numbers are
/// dealt out bit by bit from the highest, as in a radix sort, and at each bit the ones that each
/// zero finds before it are counted. As no number is missing, those with the same higher bits fill
/// exactly the places that these bits number. No step depends on a comparison that a processor
/// could mispredict, which makes it several times faster than merging or a Fenwick tree.
pub(super) fn inversions(mut permutation: Vec<u32>) -> u64 {
    let mut dealt = vec![0; permutation.len()];
    let bits = permutation.len().saturating_sub(1).checked_ilog2();
    let mut inversions = 0;
    for bit in (0..=bits.unwrap_or(0)).rev() {
        let zeros_max = 1usize << bit;
        let groups = permutation.chunks(2 * zeros_max);
        for (from, to) in groups.zip(dealt.chunks_mut(2 * zeros_max)) {
            let (mut zeros, mut ones) = (0, 0);
            for &number in from {
                let is_one = number >> bit & 1 == 1;
                let place = if is_one { zeros_max + ones } else { zeros };
                to[place] = number;
                inversions += if is_one { 0 } else { ones as u64 };
                ones += usize::from(is_one);
                zeros += usize::from(!is_one);
            }
        }
        std::mem::swap(&mut permutation, &mut dealt);
    }
    inversions
}
