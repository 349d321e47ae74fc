//! Generates YCSB's random values: printable bytes 0x20 to 0x7F, six made from each 32-bit number. They carry
//! 6.25 bits a byte, and LZ4 and Snappy save nothing.

use seekscope_stats::SplitMix64;

/// Fills `bytes`, with two groups of six from each 64-bit draw.
pub fn fill(bytes: &mut [u8], random: &mut SplitMix64) {
    let mut chunks = bytes.chunks_exact_mut(12);
    for chunk in &mut chunks {
        let draw = random.next_u64();
        let (low, high) = chunk.split_at_mut(6);
        low.copy_from_slice(&six(low_half(draw)));
        high.copy_from_slice(&six(low_half(draw >> 32)));
    }
    for chunk in chunks.into_remainder().chunks_mut(6) {
        let group = six(low_half(random.next_u64()));
        chunk.copy_from_slice(&group[..chunk.len()]);
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the low half is meant")]
#[inline]
fn low_half(draw: u64) -> u32 {
    draw as u32
}

/// Extracts six bytes from one number as YCSB does (RandomByteIterator.java). The bits do not overlap, but
/// the masks leave some values out.
#[inline]
pub fn six(bits: u32) -> [u8; 6] {
    let byte = |shift: u32, mask: u8| ((bits >> shift).to_le_bytes()[0] & mask) + b' ';
    [
        byte(0, 31),
        byte(5, 63),
        byte(10, 95),
        byte(15, 31),
        byte(20, 63),
        byte(25, 95),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_the_bits_that_ycsb_takes() {
        assert_eq!(&six(0), b"      ");
        assert_eq!(six(u32::MAX), [63, 95, 127, 63, 95, 127]);
        // One bit at a time shows the position of each mask.
        assert_eq!(six(1 << 5)[1], b' ' + 1);
        assert_eq!(six(1 << 5)[0], b' ');
        assert_eq!(six(1 << 31)[5], b' ' + 64);
        assert_eq!(six(1 << 30)[5], b' ');
        assert_eq!(six(1 << 16)[2], b' ' + 64);
    }

    #[test]
    fn carries_the_known_entropy_and_does_not_compress() {
        let mut bytes = vec![0; 2 << 20];
        fill(&mut bytes, &mut SplitMix64::new(5));
        assert!(bytes.iter().all(|byte| (0x20..0x80).contains(byte)));
        let mut counts = [0_f64; 128];
        for &byte in &bytes {
            counts[usize::from(byte)] += 1.0;
        }
        let total = bytes.len() as f64;
        let entropy: f64 = counts
            .iter()
            .filter(|&&count| count > 0.0)
            .map(|count| -(count / total) * (count / total).log2())
            .sum();
        // Two thirds of the bytes are among 32 values, a sixth each among two other 32.
        let thirds = 2.0 / 3.0 * (48_f64).log2() + 1.0 / 3.0 * (192_f64).log2();
        assert!((entropy - thirds).abs() < 0.002, "{entropy}");
        let compressed = lz4_flex::block::compress(&bytes).len() as f64;
        assert!(compressed / total > 0.99, "{compressed}");
    }

    #[test]
    fn fills_every_length() {
        for length in 0..30 {
            let mut bytes = vec![0; length];
            fill(&mut bytes, &mut SplitMix64::new(1));
            assert!(bytes.iter().all(|&byte| byte >= b' '), "{length}");
        }
    }
}
