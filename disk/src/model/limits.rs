//! What a depth table says about a device's limits: the depth worth using, and caps that have been
//! put on it.

use seekscope_run::{DepthPoint, TokenBucket};

/// Share of the best IOPS that counts as reached.
const KNEE_SHARE: f64 = 0.9;

/// Best rates of different block sizes that agree to this share are one limit.
const PLATEAU_TOLERANCE: f64 = 0.05;

/// Block sizes must differ by this factor, or agreement proves nothing.
const SIZE_RATIO_MIN: u64 = 4;

/// The knee: the smallest depth with at least 90 % of the best IOPS. `None` without points. The
/// points should have one block size.
pub fn knee(points: &[DepthPoint]) -> Option<u32> {
    let best = points.iter().map(|p| p.iops).fold(0.0, f64::max);
    points
        .iter()
        .filter(|p| p.iops >= KNEE_SHARE * best)
        .map(|p| p.depth)
        .min()
}

/// A cap on requests per second: however large the blocks, no more requests get through.
pub(crate) fn iops_limit(points: &[DepthPoint]) -> Option<TokenBucket> {
    plateau(&best_rates(points, |p| p.iops))
}

/// A cap on bytes per second: however many requests, no more bytes get through.
pub(crate) fn bytes_limit(points: &[DepthPoint]) -> Option<TokenBucket> {
    plateau(&best_rates(points, |p| p.iops * p.block_bytes as f64))
}

/// Block size and best rate, by block size.
fn best_rates(points: &[DepthPoint], rate: impl Fn(&DepthPoint) -> f64) -> Vec<(u64, f64)> {
    let mut best: Vec<(u64, f64)> = points.iter().map(|p| (p.block_bytes, rate(p))).collect();
    // The best of each size first, so that it is the one kept.
    best.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
    best.dedup_by_key(|p| p.0);
    best
}

/// All sizes reach the same best rate. No burst: one that was seen would have spoiled the plateau.
fn plateau(best: &[(u64, f64)]) -> Option<TokenBucket> {
    let (smallest, largest) = (best.first()?.0, best.last()?.0);
    let lowest = best.iter().map(|p| p.1).fold(f64::INFINITY, f64::min);
    let highest = best.iter().map(|p| p.1).fold(0.0, f64::max);
    let agree = lowest > 0.0 && highest - lowest <= PLATEAU_TOLERANCE * highest;
    (largest >= SIZE_RATIO_MIN.saturating_mul(smallest.max(1)) && agree).then_some(TokenBucket {
        per_s: highest,
        burst: 0.0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(rows: &[(u64, u32, f64)]) -> Vec<DepthPoint> {
        rows.iter()
            .map(|&(block_bytes, depth, iops)| DepthPoint {
                block_bytes,
                depth,
                iops,
                p50_ns: 0,
                p99_ns: 0,
            })
            .collect()
    }

    #[test]
    fn knees() {
        let ramp = points(&[
            (4096, 1, 10.0),
            (4096, 4, 35.0),
            (4096, 8, 91.0),
            (4096, 16, 100.0),
        ]);
        assert_eq!(knee(&ramp), Some(8));
        assert_eq!(knee(&ramp[..1]), Some(1));
        assert_eq!(knee(&[]), None);
    }

    #[test]
    fn a_throttle_shows_as_a_plateau_over_sizes() {
        let requests = points(&[
            (4096, 1, 148.0),
            (4096, 32, 150.0),
            (32_768, 1, 149.0),
            (32_768, 32, 152.0),
        ]);
        assert_eq!(iops_limit(&requests).unwrap().per_s, 152.0);
        assert_eq!(bytes_limit(&requests), None);
        let bytes = points(&[(4096, 1, 500.0), (4096, 32, 8000.0), (32_768, 32, 1000.0)]);
        assert_eq!(bytes_limit(&bytes).unwrap().per_s, 32_768_000.0);
        assert_eq!(iops_limit(&bytes), None);
    }

    #[test]
    fn no_limit_without_proof() {
        // A solid disk: fewer of the larger blocks, but more bytes.
        let solid = points(&[
            (4096, 32, 61_000.0),
            (16_384, 32, 30_000.0),
            (32_768, 32, 26_000.0),
        ]);
        assert_eq!((iops_limit(&solid), bytes_limit(&solid)), (None, None));
        // One size, or two that hardly differ, prove nothing.
        assert_eq!(
            iops_limit(&points(&[(4096, 1, 150.0), (4096, 8, 150.0)])),
            None
        );
        assert_eq!(
            iops_limit(&points(&[(4096, 1, 150.0), (8192, 8, 150.0)])),
            None
        );
        assert_eq!(iops_limit(&[]), None);
    }
}
