//! Files that are not contiguous on the device: finds where a range of a file lies.

use std::ops::Range;

/// A range of a file that is contiguous on the device, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    pub file_offset: u64,
    pub device_offset: u64,
    pub length: u64,
}

/// The file number used where bytes are identified by their place on the device.
pub(crate) const DEVICE: u32 = u32::MAX;

/// The beginning of a range of a file, as far as it is contiguous.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Placed {
    /// Its end in the file; after its start.
    pub(crate) end: u64,
    /// [`DEVICE`] and the offset there; if no piece covers it, the file and the offset in the file.
    pub(crate) space: u32,
    pub(crate) offset: u64,
}

/// Places the beginning of a non-empty range; the file's pieces must be in ascending order.
pub(crate) fn place(file: u32, pieces: &[Piece], bytes: &Range<u64>) -> Placed {
    let after = pieces.partition_point(|piece| piece.file_offset <= bytes.start);
    let before = after.checked_sub(1).and_then(|at| pieces.get(at));
    let inside = before.map(|piece| (piece, bytes.start.saturating_sub(piece.file_offset)));
    match inside.filter(|(piece, inside)| *inside < piece.length) {
        Some((piece, inside)) => Placed {
            end: bytes
                .end
                .min(bytes.start.saturating_add(piece.length - inside)),
            space: DEVICE,
            offset: piece.device_offset.saturating_add(inside),
        },
        None => {
            let next = pieces
                .get(after)
                .map_or(bytes.end, |piece| piece.file_offset);
            Placed {
                // Pieces in the wrong order must not cause an endless loop.
                end: bytes.end.min(next.max(bytes.start + 1)),
                space: file,
                offset: bytes.start,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(pieces: &[(u64, u64, u64)], mut bytes: Range<u64>) -> Vec<(u64, u32, u64)> {
        let pieces: Vec<Piece> = pieces
            .iter()
            .map(|&(file_offset, device_offset, length)| Piece {
                file_offset,
                device_offset,
                length,
            })
            .collect();
        let mut found = Vec::new();
        while !bytes.is_empty() {
            let placed = place(7, &pieces, &bytes);
            found.push((placed.end, placed.space, placed.offset));
            bytes.start = placed.end;
        }
        found
    }

    #[test]
    fn stretches_are_cut_where_pieces_end() {
        let pieces = [(100, 9000, 50), (150, 3000, 50), (300, 500, 10)];
        assert_eq!(
            all(&pieces, 120..305),
            [
                (150, DEVICE, 9020),
                (200, DEVICE, 3000),
                (300, 7, 200),
                (305, DEVICE, 500)
            ]
        );
        assert_eq!(all(&pieces, 0..99), [(99, 7, 0)]);
        assert_eq!(all(&[], 5..9), [(9, 7, 5)]);
        // Nonsensical input comes to an end.
        let disordered = [(300, 0, 0), (10, 0, u64::MAX), (20, u64::MAX, 5)];
        assert!(all(&disordered, 0..50).len() <= 50);
    }
}
