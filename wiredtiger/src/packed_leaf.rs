//! Leaves packed into eight bytes during a walk, as there are millions of them.

use crate::tree::{Leaf, LeafKind};

/// Offset in units (29 bits, see [`crate::block_map::BlockMap::MAX_UNITS`]), length in units (32 bits), kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PackedLeaf(u64);

impl PackedLeaf {
    pub(crate) fn pack(leaf: &Leaf, allocation_bytes: u32) -> PackedLeaf {
        let unit = u64::from(allocation_bytes);
        let kind = match leaf.kind {
            LeafKind::Plain => 0,
            LeafKind::WithoutOverflow => 1,
            LeafKind::Emptied => 2,
            LeafKind::Deleted => 3,
        };
        PackedLeaf((leaf.offset / unit) << 34 | (u64::from(leaf.length) / unit) << 2 | kind)
    }

    pub(crate) fn unpack(self, allocation_bytes: u32) -> Leaf {
        let unit = u64::from(allocation_bytes);
        #[expect(
            clippy::cast_possible_truncation,
            reason = "it was packed from 32 bits"
        )]
        let length_units = (self.0 >> 2) as u32;
        Leaf {
            offset: (self.0 >> 34) * unit,
            length: length_units.wrapping_mul(allocation_bytes),
            kind: match self.0 & 3 {
                0 => LeafKind::Plain,
                1 => LeafKind::WithoutOverflow,
                2 => LeafKind::Emptied,
                _ => LeafKind::Deleted,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block_map::BlockMap;

    #[test]
    fn the_largest_and_the_smallest_come_back() {
        for (unit, kind) in [
            (512, LeafKind::Deleted),
            (4096, LeafKind::Plain),
            (4096, LeafKind::Emptied),
            (1 << 27, LeafKind::WithoutOverflow),
        ] {
            for units in [1, BlockMap::MAX_UNITS - 1] {
                let longest = u32::MAX / unit * unit;
                for length in [unit, longest] {
                    let leaf = Leaf {
                        offset: units * u64::from(unit),
                        length,
                        kind,
                    };
                    assert_eq!(PackedLeaf::pack(&leaf, unit).unpack(unit), leaf);
                }
            }
        }
    }
}
