//! Implements what data sets of Java programs are made with: `java.util.Random`, `String.hashCode` and the
//! order in which a `HashMap` returns its keys, as the API documentation of Java SE defines them.

const MULTIPLIER: u64 = 0x5_DEEC_E66D;
const INCREMENT: u64 = 0xB;
const MASK: u64 = (1 << 48) - 1;

/// `java.util.Random`: a linear congruential generator with 48 bits of state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JavaRandom {
    state: u64,
}

impl JavaRandom {
    pub fn new(seed: i64) -> Self {
        Self {
            state: (seed.cast_unsigned() ^ MULTIPLIER) & MASK,
        }
    }

    /// Returns the upper `bits` (1 to 32) of the next state.
    #[inline]
    fn next(&mut self, bits: u32) -> u32 {
        self.state = self.state.wrapping_mul(MULTIPLIER).wrapping_add(INCREMENT) & MASK;
        #[expect(clippy::cast_possible_truncation, reason = "at most 32 bits are left")]
        let value = (self.state >> (48 - bits)) as u32;
        value
    }

    pub fn next_int(&mut self) -> i32 {
        self.next(32).cast_signed()
    }

    /// Returns `nextInt(bound)`: uniform in `0..bound`. Java rejects a bound below 1; here it gives 0.
    #[inline]
    pub fn next_int_below(&mut self, bound: i32) -> i32 {
        let Ok(bound) = u32::try_from(bound) else {
            return 0;
        };
        if bound.is_power_of_two() {
            #[expect(clippy::cast_possible_truncation, reason = "below the bound")]
            let value = ((u64::from(bound) * u64::from(self.next(31))) >> 31) as u32;
            return value.cast_signed();
        }
        if bound == 0 {
            return 0;
        }
        loop {
            let bits = self.next(31);
            let value = bits % bound;
            // Rejects the last, incomplete stretch of the 31-bit numbers; Java detects it by overflow.
            if (bits - value) + (bound - 1) < 1 << 31 {
                return value.cast_signed();
            }
        }
    }

    pub fn next_long(&mut self) -> i64 {
        let high = i64::from(self.next_int()) << 32;
        high.wrapping_add(i64::from(self.next_int()))
    }

    /// Returns a number uniform in `[0, 1)`, with 53 random bits.
    pub fn next_double(&mut self) -> f64 {
        let high = u64::from(self.next(26)) << 27;
        (high + u64::from(self.next(27))) as f64 / (1_u64 << 53) as f64
    }
}

/// Computes `String.hashCode` while a text of ASCII bytes grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StringHash(i32);

impl StringHash {
    #[inline]
    pub fn push(&mut self, ascii: &[u8]) {
        for &byte in ascii {
            self.0 = self.0.wrapping_mul(31).wrapping_add(i32::from(byte));
        }
    }

    pub fn value(self) -> i32 {
        self.0
    }
}

/// Returns the indexes of `names` in the order in which a `HashMap` returns them after inserting them one by
/// one. Buckets that Java would turn into trees (eight names in one bucket) are not supported.
pub fn hash_map_order(names: &[String]) -> Vec<usize> {
    let mut capacity = 16;
    while names.len() > capacity / 4 * 3 {
        capacity *= 2;
    }
    let bucket = |name: &String| {
        let hash = name.encode_utf16().fold(0_u32, |hash, unit| {
            hash.wrapping_mul(31).wrapping_add(u32::from(unit))
        });
        // `capacity` is a power of two; on 64-bit machines no bit of the hash is lost.
        usize::try_from(hash ^ (hash >> 16)).unwrap_or(0) & (capacity - 1)
    };
    let mut order: Vec<usize> = (0..names.len()).collect();
    order.sort_by_key(|&index| bucket(&names[index]));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    /// First values of `new Random(42)` and of bounded draws, as every Java prints them.
    #[test]
    fn draws_as_java_does() {
        let mut random = JavaRandom::new(42);
        assert_eq!(random.next_int(), -1_170_105_035);
        assert_eq!(random.next_int(), 234_785_527);
        let mut random = JavaRandom::new(42);
        assert_eq!(random.next_long(), -5_025_562_857_975_149_833);
        let mut random = JavaRandom::new(42);
        assert_eq!(random.next_double(), 0.727_563_680_032_868_1);
        let mut random = JavaRandom::new(42);
        let small: [i32; 5] = std::array::from_fn(|_| random.next_int_below(10));
        assert_eq!(small, [0, 3, 8, 4, 0]);
        assert_eq!(JavaRandom::new(1).next_int_below(0), 0);
        assert_eq!(JavaRandom::new(1).next_int_below(-5), 0);
    }

    #[test]
    fn bounded_draws_are_uniform_for_bounds_of_both_kinds() {
        for bound in [8, 6, (1 << 30) + 1] {
            let mut random = JavaRandom::new(7);
            let mean = (0..100_000)
                .map(|_| f64::from(random.next_int_below(bound)))
                .sum::<f64>()
                / 100_000.0;
            let expected = f64::from(bound - 1) / 2.0;
            // Five standard deviations of the mean of a uniform distribution.
            let tolerance = 5.0 * f64::from(bound) / 12_f64.sqrt() / 100_000_f64.sqrt();
            assert!((mean - expected).abs() < tolerance, "{bound}: {mean}");
        }
    }

    #[test]
    fn hashes_strings_as_java_does() {
        let mut hash = StringHash::default();
        hash.push(b"hello ");
        hash.push(b"world");
        assert_eq!(hash.value(), 1_794_106_052);
    }

    #[test]
    fn gives_ycsb_its_field_order() {
        let names: Vec<String> = (0..10).map(|n| format!("field{n}")).collect();
        assert_eq!(hash_map_order(&names), [1, 0, 7, 6, 9, 8, 3, 2, 5, 4]);
    }
}
