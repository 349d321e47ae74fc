//! How long calls took, as the kernel programs count it, and the two histograms that are made of that.
//!
//! A classic histogram has a series for each of its bounds. They are some of the kernel's, so that no count has to be
//! divided: what it says is exact, but coarse.
//!
//! A native histogram is one series with all buckets, whose bounds follow from a schema: in schema 0 they are the
//! powers of two of a second, where the kernel's are those of a nanosecond. As 2^30 ns are 1.074 s, each bucket of the
//! kernel is told as the native one whose bounds are 6.9 % lower: no count is divided, the number and the sum of all are
//! exact, and a quantile is at most 7 % lower than the kernel's buckets would have it. A finer schema has bounds that
//! lie nearer (1.6 % in schema 3), but eight buckets for one of the kernel's, and among these the counts would have to
//! be made up.

/// Buckets of the kernel programs: bucket i holds latencies from 2^i to 2^(i+1) - 1 ns, the first also 0, the last all
/// above.
pub const KERNEL_BUCKETS: usize = 40;

/// Exponents of the classic bounds, 2^14 ns (16 µs) to 2^34 ns (17 s): each second one of the kernel's.
const FIRST_BOUND: usize = 14;
const BOUNDS: usize = 11;
const BOUND_STEP: usize = 2;

/// Series of a classic histogram: its buckets, that of all calls among them, their number and their sum.
pub(crate) const CLASSIC_SERIES: usize = BOUNDS + 3;

/// The schema of native histograms: each bound is twice the one before.
pub(crate) const NATIVE_SCHEMA: i32 = 0;
/// The index of the native bucket that stands for the kernel's first. Bucket n ends at 2^n s, and 2^(-29) s is about
/// the 2^1 ns at which the kernel's first ends.
const FIRST_NATIVE: i32 = -29;

/// Calls by their latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Latencies {
    buckets: [u64; KERNEL_BUCKETS],
    sum_ns: u64,
}

impl Default for Latencies {
    fn default() -> Self {
        Self::new([0; KERNEL_BUCKETS], 0)
    }
}

impl Latencies {
    /// Takes the kernel's buckets, and the sum of all latencies (ns).
    pub fn new(buckets: [u64; KERNEL_BUCKETS], sum_ns: u64) -> Self {
        Self { buckets, sum_ns }
    }

    pub(crate) fn calls(&self) -> u64 {
        self.buckets.iter().sum()
    }

    pub(crate) fn sum_ns(&self) -> u64 {
        self.sum_ns
    }

    pub(crate) fn sum_s(&self) -> f64 {
        self.sum_ns as f64 / 1e9
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.sum_ns += other.sum_ns;
        for (count, more) in self.buckets.iter_mut().zip(other.buckets) {
            *count += more;
        }
    }

    /// Returns the bounds of the classic histogram in seconds, each with the number of calls that took less. The bucket
    /// of all calls is not among them.
    pub(crate) fn classic(&self) -> impl Iterator<Item = (f64, u64)> {
        let exponents = (FIRST_BOUND..).step_by(BOUND_STEP).take(BOUNDS);
        exponents.scan((0, 0), |(counted, calls), exponent| {
            let more = self.buckets.get(*counted..exponent).unwrap_or_default();
            *calls += more.iter().sum::<u64>();
            *counted = exponent;
            Some(((1u64 << exponent) as f64 / 1e9, *calls))
        })
    }

    /// Returns the index of the first native bucket that has calls, and the calls of this and the following ones up to
    /// the last that has some; of no calls, no bucket. Calls from 18 minutes on are in the last bucket that there is,
    /// which ends there.
    pub(crate) fn native(&self) -> (i32, &[u64]) {
        let is_used = |count: &u64| *count > 0;
        let end = self.buckets.iter().rposition(is_used).map_or(0, |i| i + 1);
        let begin = self.buckets.iter().position(is_used).unwrap_or(end);
        let first = (FIRST_NATIVE..).nth(begin).unwrap_or(FIRST_NATIVE);
        (first, self.buckets.get(begin..end).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The share by which a native bucket's bounds may be lower than those of the kernel's bucket that it stands for.
    const NATIVE_ERROR: f64 = 0.07;

    /// The upper bound of a native bucket of schema 0, seconds.
    fn native_bound_s(index: i32) -> f64 {
        2f64.powi(index)
    }

    /// The calls that took less than a bound of the kernel's, and those in native buckets up to the one that stands for
    /// the kernel's below that bound.
    fn up_to(latencies: &Latencies, exponent: i32) -> (u64, u64) {
        let (first, counts) = latencies.native();
        let native = (first..)
            .zip(counts)
            .filter(|(index, _)| native_bound_s(*index) < 2f64.powi(exponent) / 1e9)
            .map(|(_, count)| count)
            .sum();
        let buckets = latencies.buckets.iter();
        (buckets.take(exponent.unsigned_abs() as usize).sum(), native)
    }

    #[test]
    fn classic_bounds_are_those_of_the_kernel_taken_together() {
        let one_each = Latencies::new([1; KERNEL_BUCKETS], 7);
        let calls: Vec<u64> = one_each.classic().map(|(_, calls)| calls).collect();
        assert_eq!(calls, [14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34]);
        assert_eq!(one_each.calls(), 40);
        let bounds: Vec<f64> = one_each.classic().map(|(bound_s, _)| bound_s).collect();
        assert_eq!((bounds[0], bounds[10]), (0.000_016_384, 17.179_869_184));
        assert_eq!(bounds.len() + 3, CLASSIC_SERIES);
    }

    #[test]
    fn each_native_bucket_lies_within_its_error_below_the_kernel_s() {
        for i in 0..KERNEL_BUCKETS {
            let mut buckets = [0; KERNEL_BUCKETS];
            buckets[i] = 3;
            let latencies = Latencies::new(buckets, 0);
            let (index, counts) = latencies.native();
            assert_eq!(counts, [3]);
            for (native_s, exponent) in [
                (native_bound_s(index - 1), i),
                (native_bound_s(index), i + 1),
            ] {
                let kernel_s = (1u64 << exponent) as f64 / 1e9;
                let error = 1.0 - native_s / kernel_s;
                assert!((0.0..NATIVE_ERROR).contains(&error), "{i}: {error}");
            }
        }
    }

    #[test]
    fn no_calls_have_no_native_bucket() {
        assert_eq!(Latencies::default().native().1, [0u64; 0]);
    }

    proptest! {
        /// No call is in one histogram and not in the other, at any bound, and no bucket goes back.
        #[test]
        fn both_histograms_count_the_same_and_only_rise(
            readings in prop::collection::vec(
                (prop::array::uniform32(0u64..1 << 40), prop::array::uniform8(0u64..3), 0u64..1 << 50),
                1..10,
            ),
        ) {
            let mut latencies = Latencies::default();
            for (low, high, sum_ns) in readings {
                let before = latencies;
                let mut buckets = [0; KERNEL_BUCKETS];
                buckets[..32].copy_from_slice(&low);
                buckets[32..].copy_from_slice(&high);
                latencies.add(&Latencies::new(buckets, sum_ns));
                prop_assert_eq!(latencies.native().1.iter().sum::<u64>(), latencies.calls());
                prop_assert_eq!(latencies.sum_ns, before.sum_ns + sum_ns);
                for exponent in 0..40 {
                    let (kernel, native) = up_to(&latencies, exponent);
                    prop_assert_eq!(kernel, native);
                    prop_assert!(native >= up_to(&before, exponent).1);
                }
                let mut calls = 0;
                for (classic, earlier) in latencies.classic().zip(before.classic()) {
                    prop_assert!(classic.1 >= calls && classic.1 >= earlier.1);
                    calls = classic.1;
                }
                prop_assert!(latencies.calls() >= calls);
            }
        }
    }
}
