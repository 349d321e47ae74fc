//! Quantiles of any number of values in bounded space.

use seekscope_stats::Quantiles;

use super::result::{Distribution, Octave};

/// Exact up to a number of values. After that, values are counted in buckets of 2^-`SUB_BITS` of an
/// octave and read at the bucket's middle, so a quantile is within 2^-(`SUB_BITS` + 1) of the exact
/// one (6 bits: 0.8 %; 3 bits: 6.3 %). Count, sum, minimum and maximum are always exact.
#[derive(Debug, Clone)]
pub(crate) struct Sketch<const SUB_BITS: u32 = 6> {
    exact_max: usize,
    /// The values; empty once there are buckets.
    exact: Vec<u64>,
    /// Counts of the buckets from `first_bucket` on; empty while values are kept.
    buckets: Vec<u32>,
    first_bucket: usize,
    /// Number, sum, minimum and maximum of the values in buckets.
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

/// Returns the bucket of a value; values below 2^`bits` have one each.
#[expect(clippy::cast_possible_truncation, reason = "at most 64 octaves")]
pub(crate) fn bucket_of(value: u64, bits: u32) -> usize {
    let shift = (63 - (value | 1).leading_zeros()).saturating_sub(bits);
    ((u64::from(shift) << bits) + (value >> shift)) as usize
}

/// Returns the least value of a bucket and how many it covers.
pub(crate) fn bucket_range(bucket: usize, bits: u32) -> (u64, u64) {
    let bucket = bucket as u64;
    let shift = (bucket >> bits).saturating_sub(1);
    ((bucket - (shift << bits)) << shift, 1 << shift)
}

impl<const SUB_BITS: u32> Sketch<SUB_BITS> {
    /// Returns a sketch without values that keeps up to `exact_max` of them exactly.
    pub(crate) fn new(exact_max: usize) -> Self {
        Self {
            exact_max,
            exact: Vec::new(),
            buckets: Vec::new(),
            first_bucket: 0,
            count: 0,
            sum: 0,
            min: u64::MAX,
            max: 0,
        }
    }

    #[inline]
    pub(crate) fn add(&mut self, value: u64) {
        if self.buckets.is_empty() {
            if self.exact.len() < self.exact_max {
                self.exact.push(value);
                return;
            }
            self.leave_exact();
        }
        self.add_to_buckets(value);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        let both_exact = self.buckets.is_empty() && other.buckets.is_empty();
        if both_exact && self.exact.len() + other.exact.len() <= self.exact_max {
            self.exact.extend(&other.exact);
            return;
        }
        self.leave_exact();
        for &value in &other.exact {
            self.add_to_buckets(value);
        }
        for (i, &count) in other.buckets.iter().enumerate() {
            if count > 0 {
                self.add_to_bucket(other.first_bucket + i, count);
            }
        }
        self.count += other.count;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    fn leave_exact(&mut self) {
        for value in std::mem::take(&mut self.exact) {
            self.add_to_buckets(value);
        }
    }

    fn add_to_buckets(&mut self, value: u64) {
        self.count += 1;
        self.sum += u128::from(value);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.add_to_bucket(bucket_of(value, SUB_BITS), 1);
    }

    fn add_to_bucket(&mut self, bucket: usize, count: u32) {
        if self.buckets.is_empty() {
            self.first_bucket = bucket;
        }
        if bucket < self.first_bucket {
            let missing = self.first_bucket - bucket;
            self.buckets.splice(0..0, std::iter::repeat_n(0, missing));
            self.first_bucket = bucket;
        }
        let index = bucket - self.first_bucket;
        if index >= self.buckets.len() {
            self.buckets.resize(index + 1, 0);
        }
        self.buckets[index] = self.buckets[index].saturating_add(count);
    }

    pub(crate) fn quantiles(&self) -> Quantiles {
        if self.buckets.is_empty() {
            return Quantiles::of(&mut self.exact.clone());
        }
        let [p50, p90, p99, p999] = self.ranks([0.5, 0.9, 0.99, 0.999]);
        let mean = self.sum / u128::from(self.count.max(1));
        Quantiles {
            count: self.count,
            min: self.min,
            p50,
            p90,
            p99,
            p999,
            max: self.max,
            mean: u64::try_from(mean).unwrap_or(u64::MAX),
        }
    }

    /// Returns nearest ranks, like [`Quantiles::of`]; `shares` must ascend.
    fn ranks<const N: usize>(&self, shares: [f64; N]) -> [u64; N] {
        let total: u64 = self.buckets.iter().map(|&c| u64::from(c)).sum();
        let mut below = 0;
        let mut buckets = self.buckets.iter().enumerate();
        let mut here = self.min;
        shares.map(|share| {
            let rank = (share * total as f64).ceil().max(1.0);
            while (below as f64) < rank {
                let Some((i, &count)) = buckets.next() else {
                    break;
                };
                below += u64::from(count);
                let (low, width) = bucket_range(self.first_bucket + i, SUB_BITS);
                here = (low + width / 2).clamp(self.min, self.max);
            }
            here
        })
    }

    pub(crate) fn distribution(&self) -> Distribution {
        let exact = self.exact.iter().map(|&value| (value, 1));
        let bucketed = self.buckets.iter().enumerate().map(|(i, &count)| {
            let (low, _) = bucket_range(self.first_bucket + i, SUB_BITS);
            (low, u64::from(count))
        });
        let mut octaves = [0; 65];
        for (value, count) in exact.chain(bucketed) {
            octaves[64 - value.leading_zeros() as usize] += count;
        }
        let octave = |(bits, &count): (usize, &u64)| Octave {
            low: if bits == 0 { 0 } else { 1 << (bits - 1) },
            high: if bits == 0 {
                0
            } else {
                u64::MAX >> (64 - bits)
            },
            count,
        };
        Distribution {
            quantiles: self.quantiles(),
            octaves: octaves
                .iter()
                .enumerate()
                .map(octave)
                .filter(|o| o.count > 0)
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use seekscope_stats::SplitMix64;

    #[test]
    fn every_value_is_in_its_bucket() {
        let mut rng = SplitMix64::new(3);
        for i in 0..20_000 {
            let value = rng.next_u64() >> (i % 64);
            for bits in [3, 6] {
                let (low, width) = bucket_range(bucket_of(value, bits), bits);
                assert!(value >= low && value - low < width, "{value} {low} {width}");
                assert!(width as f64 <= (value as f64 / f64::from(1 << bits)).max(1.0));
            }
        }
    }

    #[test]
    fn quantiles_are_within_their_error_and_merging_is_adding() {
        let mut rng = SplitMix64::new(4);
        let mut values: Vec<u64> = (0..5000).map(|_| rng.next_u64() >> 30).collect();
        let (mut sketch, mut left, mut right) = (
            Sketch::<6>::new(256),
            Sketch::<6>::new(256),
            Sketch::new(256),
        );
        for (i, &value) in values.iter().enumerate() {
            sketch.add(value);
            if i % 7 == 0 { &mut left } else { &mut right }.add(value);
        }
        left.merge(&right);
        assert_eq!(left.distribution(), sketch.distribution());
        let (exact, got) = (Quantiles::of(&mut values), sketch.quantiles());
        assert_eq!(
            (exact.count, exact.min, exact.max, exact.mean),
            (got.count, got.min, got.max, got.mean)
        );
        for (exact, got) in [
            (exact.p50, got.p50),
            (exact.p99, got.p99),
            (exact.p999, got.p999),
        ] {
            assert!(
                (got as f64 / exact as f64 - 1.0).abs() <= 1.0 / 128.0,
                "{exact} {got}"
            );
        }
        let octaves = sketch.distribution().octaves;
        assert_eq!(octaves.iter().map(|o| o.count).sum::<u64>(), 5000);
    }

    #[test]
    fn few_values_are_exact_and_extremes_fit() {
        let mut sketch = Sketch::<6>::new(2);
        sketch.add(u64::MAX);
        sketch.add(0);
        assert_eq!(sketch.quantiles(), Quantiles::of(&mut [0, u64::MAX]));
        sketch.add(1);
        assert_eq!(
            (sketch.quantiles().p50, sketch.quantiles().max),
            (1, u64::MAX)
        );
        let octaves = sketch.distribution().octaves;
        assert_eq!((octaves[0].low, octaves[0].high), (0, 0));
        assert_eq!((octaves[2].low, octaves[2].high), (1 << 63, u64::MAX));
    }
}
