//! What a depth table says about a device's limits: the depth worth using, and caps placed on the
//! device.

use std::collections::BTreeMap;

use seekscope_run::{DepthPoint, TokenBucket};

/// Share of the best IOPS that counts as reached.
const KNEE_SHARE: f64 = 0.9;

/// Rates of different block sizes that agree within this share are one limit.
const PLATEAU_TOLERANCE: f64 = 0.05;

/// Block sizes must differ by this factor, otherwise agreement proves nothing.
const SIZE_RATIO_MIN: u64 = 4;

/// Returns the knee: the smallest depth with at least 90 % of the best IOPS. `None` without points.
/// The points should all have the same block size.
pub fn knee(points: &[DepthPoint]) -> Option<u32> {
    let best = points.iter().map(|p| p.iops).fold(0.0, f64::max);
    points
        .iter()
        .filter(|p| p.iops >= KNEE_SHARE * best)
        .map(|p| p.depth)
        .min()
}

/// Returns a cap on requests per second, if there is one: however large the blocks, no more
/// requests get through.
pub(crate) fn iops_limit(points: &[DepthPoint]) -> Option<TokenBucket> {
    plateau(&reached_rates(points, |p| p.iops))
}

/// Returns a cap on bytes per second, if there is one: however many requests, no more bytes get
/// through.
pub(crate) fn bytes_limit(points: &[DepthPoint]) -> Option<TokenBucket> {
    plateau(&reached_rates(points, |p| p.iops * p.block_bytes as f64))
}

/// Returns block sizes and the rates that they reach, by block size.
fn reached_rates(points: &[DepthPoint], rate: impl Fn(&DepthPoint) -> f64) -> Vec<(u64, f64)> {
    let mut rates: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for point in points {
        rates
            .entry(point.block_bytes)
            .or_default()
            .push(rate(point));
    }
    let reached = rates.into_iter();
    reached
        .map(|(size, rates)| (size, reached_rate(rates)))
        .collect()
}

/// Returns the rate at which most depths stop, otherwise the best. A step of half a second that
/// begins with saved-up credit, or that contains one more slice of a throttle's time than usual,
/// shows up to half as much again as the limit lets through.
fn reached_rate(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    let best = rates.last().copied().unwrap_or(0.0);
    let middle = rates.get(rates.len() / 2).copied().unwrap_or(0.0);
    let near = |rate: &&f64| (**rate - middle).abs() <= PLATEAU_TOLERANCE * middle;
    if rates.iter().filter(near).count() * 2 >= rates.len() {
        middle
    } else {
        best
    }
}

/// Returns the rate that all sizes reach, if there is one. No burst is given: how much credit had
/// been saved up is unknown.
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

    /// Two surveys of a disk held to 150 requests a second, in short steps on a busy host.
    #[test]
    fn credit_and_uneven_slices_do_not_hide_a_throttle() {
        let depths = [1, 2, 4, 8, 16, 32, 64, 128];
        let table = |rows: [(u64, [f64; 8]); 3]| {
            let rows = rows.into_iter().flat_map(|(block, rates)| {
                depths
                    .into_iter()
                    .zip(rates)
                    .map(move |(depth, rate)| (block, depth, rate))
            });
            points(&rows.collect::<Vec<_>>())
        };
        let first = table([
            (
                4096,
                [150.0, 150.0, 150.0, 150.0, 188.0, 150.0, 150.0, 150.0],
            ),
            (
                16_384,
                [150.0, 150.0, 150.0, 112.0, 150.0, 220.0, 150.0, 150.0],
            ),
            (
                32_768,
                [150.0, 150.0, 205.0, 168.0, 150.0, 150.0, 150.0, 150.0],
            ),
        ]);
        let second = table([
            (
                4096,
                [150.0, 150.0, 150.0, 150.0, 150.0, 150.0, 129.0, 69.0],
            ),
            (
                16_384,
                [150.0, 150.0, 154.0, 150.0, 150.0, 150.0, 150.0, 150.0],
            ),
            (
                32_768,
                [150.0, 150.0, 150.0, 150.0, 150.0, 129.0, 150.0, 150.0],
            ),
        ]);
        for survey in [first, second] {
            assert_eq!(iops_limit(&survey).unwrap().per_s, 150.0);
            assert_eq!(bytes_limit(&survey), None);
        }
    }

    /// Every size takes as long as the others, so rates agree while they rise with the depth: the
    /// limit, if there is one, is where they end.
    #[test]
    fn rates_that_still_rise_are_no_plateau() {
        let rising = |block| {
            [
                (1, 1000.0),
                (2, 2000.0),
                (4, 4000.0),
                (8, 8000.0),
                (16, 9000.0),
            ]
            .map(|(depth, rate)| (block, depth, rate))
        };
        let table = points(&[rising(4096), rising(32_768)].concat());
        assert_eq!(iops_limit(&table).unwrap().per_s, 9000.0);
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
