//! Generates values that are a pure function of (seed, record, field, revision), contain their own revision,
//! and compress as requested.
//!
//! A value begins with a tag, six bits a byte, that contains the revision; so a reader knows what the whole
//! value must be, and a write can depend on what was read. In each chunk of 256 bytes the rest is first
//! random, then a filler that is the same everywhere, which compressors of the LZ77 family (LZ4, Snappy)
//! save. All bytes are printable: 64 symbols from '0' on; entropy coders (zstd, zlib) save another quarter of
//! the random part.

use seekscope_stats::SplitMix64;

use crate::sdu::fill_random;

const CHUNK_BYTES: usize = 256;
/// Cost of a match in LZ4: token, offset, the longer lengths.
const MATCH_BYTES: f64 = 4.0;
/// The most digits of a tag.
const DIGITS_MAX: usize = 8;
const FIRST_SYMBOL: u8 = b'0';

#[derive(Debug, Clone)]
pub struct Compressible {
    share: f64,
    filler: [u8; CHUNK_BYTES],
}

impl Compressible {
    /// `share`, 0 to 1, is what an LZ4-like compressor saves of values. Long runs of values of 100 bytes or
    /// more come within 0.03 of it, as far as tags leave room.
    pub fn new(share: f64) -> Self {
        let mut filler = [0; CHUNK_BYTES];
        fill_random(&mut filler, &mut SplitMix64::new(0));
        Self {
            share: share.clamp(0.0, 1.0),
            filler,
        }
    }

    /// Writes a value; `random` must be the stream of its seed, record, field and revision.
    pub fn fill(&self, bytes: &mut [u8], digits: usize, tag: u64, random: &mut SplitMix64) {
        let head = write_tag(bytes, digits, tag);
        for (index, chunk) in bytes.chunks_mut(CHUNK_BYTES).enumerate() {
            let head = if index == 0 { head } else { 0 };
            let filler = self.filler_bytes(chunk.len()).min(chunk.len() - head);
            let (unique, repeated) = chunk.split_at_mut(chunk.len() - filler);
            fill_random(&mut unique[head..], random);
            repeated.copy_from_slice(&self.filler[..repeated.len()]);
        }
    }

    fn filler_bytes(&self, length: usize) -> usize {
        if self.share == 0.0 {
            return 0;
        }
        let wanted = super::floor_u64((self.share * length as f64 + MATCH_BYTES).round());
        usize::try_from(wanted).unwrap_or(length).min(length)
    }
}

/// Returns how many digits of a tag fit into values of at least this many bytes.
pub fn tag_digits(least_bytes: usize) -> usize {
    least_bytes.min(DIGITS_MAX)
}

/// Returns the greatest tag.
pub fn tag_mask(digits: usize) -> u64 {
    (1 << (6 * digits.min(DIGITS_MAX))) - 1
}

fn write_tag(bytes: &mut [u8], digits: usize, tag: u64) -> usize {
    let digits = digits.min(bytes.len());
    for (index, byte) in bytes[..digits].iter_mut().enumerate() {
        *byte = symbol((tag >> (6 * index)).to_le_bytes()[0]);
    }
    digits
}

/// Returns the tag at the beginning of a value; `None` if this is not one of our values.
pub fn tag_of(bytes: &[u8], digits: usize) -> Option<u64> {
    bytes.get(..digits)?.iter().rev().try_fold(0, |tag, &byte| {
        let digit = byte.checked_sub(FIRST_SYMBOL).filter(|digit| *digit < 64)?;
        Some(tag << 6 | u64::from(digit))
    })
}

fn symbol(bits: u8) -> u8 {
    (bits & 63) + FIRST_SYMBOL
}

#[cfg(test)]
mod tests {
    use super::super::stream_seed;
    use super::*;

    fn values(share: f64, length: usize) -> Vec<u8> {
        let compressible = Compressible::new(share);
        let mut all = Vec::new();
        for number in 0..20_000_000 / 100 / length as u64 {
            let start = all.len();
            all.resize(start + length, 0);
            let mut random = SplitMix64::new(stream_seed(&[1, number]));
            compressible.fill(&mut all[start..], 8, random.clone().next_u64(), &mut random);
        }
        all
    }

    #[test]
    fn saves_what_was_asked_for() {
        for length in [100, 128, 1_000] {
            for share in [0.0, 0.25, 0.5, 0.75] {
                let all = values(share, length);
                let compressed = lz4_flex::block::compress(&all).len() as f64;
                let saved = 1.0 - compressed / all.len() as f64;
                assert!((saved - share).abs() < 0.03, "{length} {share}: {saved}");
            }
        }
        let all = values(1.0, 1_000);
        let compressed = lz4_flex::block::compress(&all).len();
        assert!(compressed * 20 < all.len(), "{compressed}");
    }

    #[test]
    fn tells_its_revision() {
        let compressible = Compressible::new(0.5);
        for (length, revision) in [(100, 0), (100, 0xABCD_EF01_2345), (8, 77), (3, 12_345)] {
            let digits = tag_digits(length);
            let mut bytes = vec![0; length];
            compressible.fill(&mut bytes, digits, revision, &mut SplitMix64::new(1));
            assert_eq!(tag_of(&bytes, digits), Some(revision));
            assert!(revision <= tag_mask(digits));
        }
        assert_eq!(tag_of(b"ab", 3), None);
        assert_eq!(tag_of(b"  ", 2), None);
        assert_eq!((tag_mask(0), tag_of(b"", 0)), (0, Some(0)));
        compressible.fill(&mut [], 0, 0, &mut SplitMix64::new(1));
    }
}
