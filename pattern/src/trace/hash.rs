//! Cheap hashing of small numbers. Tables keyed by it are bounded, so the cost per event stays
//! bounded even for a trace made to collide.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map keyed by one number.
pub(crate) type NumberMap<K, V> = HashMap<K, V, BuildHasherDefault<NumberHasher>>;

/// SplitMix64's finaliser: every bit of the number reaches every bit of the hash.
#[inline]
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Hashes a page of a file.
#[inline]
pub(crate) fn page_hash(file_id: u32, page: u64) -> u64 {
    mix(page ^ u64::from(file_id).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// A hasher for keys that are one number.
#[derive(Default)]
pub(crate) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_i64(&mut self, number: i64) {
        self.write_u64(number.cast_unsigned());
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = mix(self.0.rotate_left(5) ^ number);
    }
}
