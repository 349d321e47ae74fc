//! Damage to files, chosen by a seed; some of it under a checksum that is right.

use seekscope_stats::SplitMix64;
use seekscope_wiredtiger::block::{BlockHeader, checksum};

const UNIT: usize = 4096;
const PAGE_TYPE_LEAF: u8 = 7;
/// A block's header, whose lengths a parent knows, and its checksum.
const HEADER: usize = 40;

/// What was done to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage {
    BitsFlipped,
    Noise,
    Zeros,
    CutShort,
    /// One block where another should be.
    Misplaced,
    /// Bytes changed so that the block's checksum still holds.
    UnderItsChecksum,
}

const KINDS: [Damage; 6] = [
    Damage::BitsFlipped,
    Damage::Noise,
    Damage::Zeros,
    Damage::CutShort,
    Damage::Misplaced,
    Damage::UnderItsChecksum,
];

/// A file as it was, and where its blocks are that a walk reads.
pub struct Original {
    pub name: String,
    pub bytes: Vec<u8>,
    blocks: Vec<(usize, usize)>,
}

impl Original {
    /// `leaves_too`: those of the metadata are read.
    pub fn new(name: &str, bytes: Vec<u8>, leaves_too: bool) -> Self {
        let blocks = (UNIT..bytes.len()).step_by(UNIT);
        let blocks = blocks.filter_map(|at| {
            let header = BlockHeader::read(&bytes[at..]).ok()?;
            let block = bytes.get(at..at + header.disk_bytes as usize)?;
            let whole = block.len() >= UNIT
                && header.checksum == checksum(block, header.is_checked_whole());
            let read = leaves_too || header.page_type != PAGE_TYPE_LEAF;
            (whole && read).then_some((at, block.len()))
        });
        Self {
            name: name.to_owned(),
            blocks: blocks.collect(),
            bytes,
        }
    }

    pub fn damaged(&self, random: &mut SplitMix64) -> (Damage, Vec<u8>) {
        let mut bytes = self.bytes.clone();
        let mut kind = KINDS[below(random, KINDS.len())];
        if self.blocks.is_empty() && matches!(kind, Damage::Misplaced | Damage::UnderItsChecksum) {
            kind = Damage::BitsFlipped;
        }
        let (start, length) = self.place(random);
        match kind {
            Damage::BitsFlipped => {
                for _ in 0..=below(random, 16) {
                    bytes[start + below(random, length)] ^= 1 << below(random, 8);
                }
            }
            Damage::Noise => {
                let end = start + 1 + below(random, length);
                bytes[start..end].fill_with(|| below(random, 256).to_le_bytes()[0]);
            }
            Damage::Zeros => bytes[start..].fill(0),
            Damage::CutShort => bytes.truncate(start),
            Damage::Misplaced => {
                let (from, bytes_from) = self.blocks[below(random, self.blocks.len())];
                let end = bytes.len().min(start + bytes_from);
                bytes.copy_within(from..from + end - start, start);
            }
            Damage::UnderItsChecksum => {
                let (start, length) = self.blocks[below(random, self.blocks.len())];
                forge(&mut bytes[start..start + length], random);
            }
        }
        (kind, bytes)
    }

    /// A block that is read, or anything.
    fn place(&self, random: &mut SplitMix64) -> (usize, usize) {
        if self.blocks.is_empty() || below(random, 4) == 0 {
            let start = below(random, self.bytes.len());
            return (start, (self.bytes.len() - start).min(2 * UNIT));
        }
        self.blocks[below(random, self.blocks.len())]
    }
}

fn below(random: &mut SplitMix64, limit: usize) -> usize {
    usize::try_from(random.below(limit as u64)).unwrap()
}

/// Changes some bytes of a block, and then four more so that its checksum is what it was.
fn forge(block: &mut [u8], random: &mut SplitMix64) {
    let whole = BlockHeader::read(block).unwrap().is_checked_whole();
    let wanted = checksum(block, whole);
    // Most of a block of free extents, and the end of many pages, is padding.
    let used = if below(random, 2) == 0 {
        block.len().min(HEADER + 200)
    } else {
        block.len()
    };
    for _ in 0..=below(random, 4) {
        let at = match below(random, 3) {
            // Page type, flags, number of cells.
            0 => 16 + below(random, 12),
            _ => HEADER + below(random, used - HEADER),
        };
        block[at] = below(random, 256).to_le_bytes()[0];
    }
    let at = block.len() - 4;
    block[at..].fill(0);
    let base = checksum(block, whole);
    // The checksum is linear: each of the 32 bits turns over a fixed set of the sum's bits.
    let mut basis: Vec<(u32, u32)> = Vec::new();
    for bit in 0..32 {
        let value = 1u32 << bit;
        block[at..].copy_from_slice(&value.to_le_bytes());
        let reduced = reduce(&basis, (checksum(block, whole) ^ base, value));
        assert_ne!(reduced.0, 0, "four bytes reach every sum");
        basis.push(reduced);
    }
    let (rest, value) = reduce(&basis, (wanted ^ base, 0));
    assert_eq!(rest, 0);
    block[at..].copy_from_slice(&value.to_le_bytes());
    assert_eq!(checksum(block, whole), wanted);
}

/// Takes out of a sum every basis vector whose highest bit it has.
fn reduce(basis: &[(u32, u32)], (mut sum, mut value): (u32, u32)) -> (u32, u32) {
    let mut ordered: Vec<_> = basis.to_vec();
    ordered.sort_unstable_by_key(|(vector, _)| vector.leading_zeros());
    for (vector, bits) in ordered {
        if sum & (1 << (31 - vector.leading_zeros())) != 0 {
            sum ^= vector;
            value ^= bits;
        }
    }
    (sum, value)
}
