//! Draws the lengths of values.

use seekscope_stats::SplitMix64;

use super::ZipfianGray;
use super::zipfian_gray::YCSB_THETA;

/// Lengths in bytes; bounds are inclusive, and a `min` above `max` counts as `max`.
#[derive(Debug, Clone)]
pub enum LengthDistribution {
    Constant(usize),
    Uniform {
        min: usize,
        max: usize,
    },
    /// Favours short lengths, with YCSB's exponent.
    Zipfian {
        min: usize,
        ranks: ZipfianGray,
    },
    Histogram(LengthHistogram),
}

impl LengthDistribution {
    pub fn zipfian(min: usize, max: usize) -> Self {
        let min = min.min(max);
        Self::Zipfian {
            min,
            ranks: ZipfianGray::new((max - min) as u64 + 1, YCSB_THETA),
        }
    }

    #[inline]
    pub fn draw(&self, random: &mut SplitMix64) -> usize {
        match self {
            Self::Constant(length) => *length,
            Self::Uniform { min, max } => {
                let min = min.min(max);
                min + usize::try_from(random.below((max - min) as u64 + 1)).unwrap_or(0)
            }
            Self::Zipfian { min, ranks } => min + usize::try_from(ranks.draw(random)).unwrap_or(0),
            Self::Histogram(histogram) => histogram.draw(random),
        }
    }

    /// Returns the smallest and largest length that can be drawn.
    pub fn bounds(&self) -> (usize, usize) {
        match self {
            Self::Constant(length) => (*length, *length),
            Self::Uniform { min, max } => (*min.min(max), *max),
            Self::Zipfian { min, ranks } => {
                (*min, min + usize::try_from(ranks.items() - 1).unwrap_or(0))
            }
            Self::Histogram(histogram) => histogram.bounds(),
        }
    }
}

/// Why a histogram of lengths is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "line {line} of the histogram: {why}; expected `BlockSize n`, then `bucket count`, tab-separated"
)]
pub struct HistogramError {
    pub line: usize,
    pub why: &'static str,
}

/// YCSB's `fieldlengthdistribution=histogram`: counts of buckets of equal width.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LengthHistogram {
    block_bytes: usize,
    /// Counts, cumulated up to and including each bucket.
    below: Vec<u64>,
    /// Set to follow YCSB, which gives the last bucket the length of the one before it, and each bucket one
    /// draw of its successor.
    as_ycsb: bool,
}

/// The most buckets of a histogram, so that a hostile file cannot exhaust memory.
const BUCKETS_MAX: usize = 1 << 20;

impl LengthHistogram {
    /// Parses YCSB's text format. `as_ycsb`: with YCSB's defects (HistogramGenerator.java).
    pub fn parse(text: &str, as_ycsb: bool) -> Result<Self, HistogramError> {
        let error = |line, why| HistogramError { line, why };
        let mut lines = text.lines().enumerate();
        let (_, first) = lines.next().ok_or(error(1, "the file is empty"))?;
        let block_bytes: usize = first
            .split_once('\t')
            .filter(|(name, _)| *name == "BlockSize")
            .and_then(|(_, width)| width.trim().parse().ok())
            .filter(|width| (1..=1 << 24).contains(width))
            .ok_or(error(1, "there is no block size between 1 and 16777216"))?;
        let (mut below, mut total) = (Vec::new(), 0_u64);
        for (index, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
            let (bucket, count) = line
                .split_once('\t')
                .ok_or(error(index + 1, "it has no tab"))?;
            if bucket.trim().parse() != Ok(below.len()) {
                return Err(error(index + 1, "buckets must be counted from 0"));
            }
            let count: u32 = count
                .trim()
                .parse()
                .map_err(|_| error(index + 1, "the count is not a 32-bit number"))?;
            total += u64::from(count);
            below.push(total);
            if below.len() > BUCKETS_MAX {
                return Err(error(index + 1, "there are more than 1048576 buckets"));
            }
        }
        if total == 0 {
            return Err(error(2, "no counts"));
        }
        Ok(Self {
            block_bytes,
            below,
            as_ycsb,
        })
    }

    fn draw(&self, random: &mut SplitMix64) -> usize {
        let total = self.below.last().copied().unwrap_or(0);
        let drawn = random.below(total);
        // YCSB compares after subtracting, so a bucket also gets the draw that equals its sum.
        let bucket = self.below.partition_point(|&sum| {
            if self.as_ycsb {
                sum < drawn
            } else {
                sum <= drawn
            }
        });
        self.length(bucket)
    }

    fn length(&self, bucket: usize) -> usize {
        let last = self.below.len() - 1;
        if self.as_ycsb && bucket >= last {
            last * self.block_bytes
        } else {
            (bucket + 1) * self.block_bytes
        }
    }

    fn bounds(&self) -> (usize, usize) {
        let lengths = (0..self.below.len()).map(|bucket| self.length(bucket));
        let least = lengths.clone().min().unwrap_or(0);
        (least, lengths.max().unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(distribution: &LengthDistribution, draws: u32) -> Vec<u32> {
        let mut random = SplitMix64::new(8);
        let mut counts = vec![0; distribution.bounds().1 + 1];
        for _ in 0..draws {
            counts[distribution.draw(&mut random)] += 1;
        }
        counts
    }

    #[test]
    fn lengths_stay_within_their_bounds() {
        let uniform = counts(&LengthDistribution::Uniform { min: 3, max: 6 }, 40_000);
        assert_eq!(uniform[..3], [0, 0, 0]);
        // Five standard deviations of a binomial(40000, 1/4) are 434.
        assert!(uniform[3..].iter().all(|n| n.abs_diff(10_000) < 434));
        let zipfian = LengthDistribution::zipfian(5, 100);
        assert_eq!(zipfian.bounds(), (5, 100));
        let zipfian = counts(&zipfian, 40_000);
        assert!(zipfian[..5].iter().all(|&n| n == 0));
        assert!(zipfian[5] > zipfian[6] && zipfian[6] > zipfian[50]);
        assert_eq!(LengthDistribution::Constant(7).bounds(), (7, 7));
        let upside_down = LengthDistribution::Uniform { min: 9, max: 4 };
        assert_eq!(upside_down.draw(&mut SplitMix64::new(1)), 4);
    }

    #[test]
    fn the_last_bucket_is_ycsbs_only_in_its_edition() {
        let text = "BlockSize\t10\n0\t100\n1\t0\n2\t300\n";
        let ours = LengthHistogram::parse(text, false).unwrap();
        let ours = counts(&LengthDistribution::Histogram(ours), 40_000);
        assert!(ours[10].abs_diff(10_000) < 434 && ours[10] + ours[30] == 40_000);
        let theirs = LengthHistogram::parse(text, true).unwrap();
        let theirs = counts(&LengthDistribution::Histogram(theirs), 40_000);
        assert_eq!(theirs.len(), 21);
        // 101 of 400 draws: the bucket's own, and its successor's first.
        assert!(theirs[10].abs_diff(10_100) < 434 && theirs[10] + theirs[20] == 40_000);
    }

    #[test]
    fn bad_histograms_are_refused() {
        for (text, line) in [
            ("", 1),
            ("BlockSize 10", 1),
            ("BlockSize\t0", 1),
            ("BlockSize\t10", 2),
            ("BlockSize\t10\n1\t5", 2),
            ("BlockSize\t10\n0\t5\n1 6", 3),
            ("BlockSize\t10\n0\t-5", 2),
            ("BlockSize\t10\n0\t0", 2),
        ] {
            assert_eq!(LengthHistogram::parse(text, true).unwrap_err().line, line);
        }
    }
}
