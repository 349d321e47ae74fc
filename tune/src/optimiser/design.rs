//! Chooses what is tried before there is anything to learn from.

use seekscope_stats::SplitMix64;

use crate::space::Space;

/// Points of a Latin hypercube: each knob takes a value in every eighth of its range.
const POINTS: usize = 8;
const ATTEMPTS: usize = 20;

/// Returns the levels of the default, then presets, then the hypercube's.
pub(crate) fn opening(space: &Space, presets: &[Vec<f64>], seed: u64) -> Vec<Vec<f64>> {
    let mut rng = SplitMix64::new(seed ^ 0x6465_7369_676e);
    let mut opening = vec![space.defaults().to_vec()];
    opening.extend_from_slice(presets);
    let columns: Vec<Vec<f64>> = (space.knobs().iter())
        .map(|_| {
            let order =
                seekscope_stats::shuffled::distinct(POINTS as u64, POINTS as u64, rng.next_u64());
            let place = |slot: u64| (slot as f64 + rng.unit_f64()) / POINTS as f64;
            order.into_iter().map(place).collect()
        })
        .collect();
    for nth in 0..POINTS {
        let mut point: Vec<f64> = columns.iter().map(|column| column[nth]).collect();
        for _ in 0..ATTEMPTS {
            let levels = space.levels_at(&point);
            if space.within_limits(&levels) {
                opening.push(levels);
                break;
            }
            point = point.iter().map(|_| rng.unit_f64()).collect();
        }
    }
    opening
}
