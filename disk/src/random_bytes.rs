//! Data that neither compresses nor repeats, so that no device, filesystem or host can save work.

use seekscope_stats::SplitMix64;

/// Fills `bytes` with the stream of `seed`, at gigabytes per second, which is far faster than a
/// disk.
pub(crate) fn fill(bytes: &mut [u8], seed: u64) {
    let mut random = SplitMix64::new(seed);
    let mut chunks = bytes.chunks_exact_mut(8);
    for chunk in &mut chunks {
        chunk.copy_from_slice(&random.next_u64().to_ne_bytes());
    }
    let rest = chunks.into_remainder();
    let last = random.next_u64().to_ne_bytes();
    rest.copy_from_slice(&last[..rest.len()]);
}

/// The least number of bytes that devices compare to find equal blocks.
pub(crate) const DISTINCT_BYTES: usize = 4096;

/// Makes each block of a buffer different from all that were written before, so that a device that
/// stores equal blocks once does not look fast.
#[inline]
pub(crate) fn make_distinct(buffer: &mut [u8], random: &mut SplitMix64) {
    for block in buffer.chunks_mut(DISTINCT_BYTES) {
        if let Some(word) = block.first_chunk_mut() {
            *word = random.next_u64().to_ne_bytes();
        }
    }
}
