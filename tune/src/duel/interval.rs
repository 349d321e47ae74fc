//! Computes the interval of a duel that could have ended at any look.
//!
//! The usual interval is too narrow by up to 6 points of coverage, because duels end when the mean happens to
//! be extreme. This one asks for which true gains an outcome as extreme as the observed one has a probability
//! of 2.5 %, where ending earlier is more extreme than ending later (stagewise ordering: Tsiatis, Rosner and
//! Mehta, "Exact confidence intervals following a group sequential test", Biometrics 1984). The probability
//! is counted over simulated duels, always the same ones; their noise is drawn from what the pairs say about
//! it (inverse chi-square), which for a single look gives Student's interval exactly.

use std::sync::LazyLock;

use seekscope_stats::{Estimate, SplitMix64};

use super::{Bounds, GAIN_MIN, LOOKS};

const PATHS: usize = 2000;
const TAIL: f64 = 0.025;
const HALVINGS: usize = 22;

static BOUNDS: LazyLock<[Bounds; LOOKS.len()]> =
    LazyLock::new(|| std::array::from_fn(|nth| Bounds::of(&LOOKS[nth])));
static PATHS_OF_UNIT_NOISE: LazyLock<Vec<Path>> = LazyLock::new(|| {
    let mut rng = SplitMix64::new(0x6475_656c);
    (0..PATHS).map(|_| Path::draw(&mut rng)).collect()
});

/// One simulated duel without gain and with unit noise.
struct Path {
    /// Mean and standard error at each look.
    looks: [(f64, f64); LOOKS.len()],
    /// Draws from chi-square distributions with the degrees of freedom of each look.
    chi_square: [f64; LOOKS.len()],
}

impl Path {
    fn draw(rng: &mut SplitMix64) -> Self {
        let (mut sum, mut squares, mut chi, mut pairs) = (0.0, 0.0, 0.0, 0);
        let mut chi_square = [0.0; LOOKS.len()];
        let looks = std::array::from_fn(|nth| {
            while pairs < LOOKS[nth].pairs {
                let value = rng.normal();
                (sum, squares, pairs) = (sum + value, squares + value * value, pairs + 1);
                if pairs > 1 {
                    chi += rng.normal().powi(2);
                }
            }
            chi_square[nth] = chi;
            let n = pairs as f64;
            (sum / n, ((squares - sum * sum / n) / (n - 1.0) / n).sqrt())
        });
        Self { looks, chi_square }
    }
}

pub(super) fn bounds(nth: usize) -> Bounds {
    BOUNDS[nth]
}

/// Returns the 95 % interval of the gain (a logarithm) of a duel that ended at a look.
pub(super) fn stagewise(nth: usize, estimate: &Estimate) -> (f64, f64) {
    let (low, high) = estimate.interval(0.001);
    if estimate.standard_error <= 0.0 || !(high - low).is_finite() {
        return (low, high);
    }
    // Towards a greater true gain, outcomes at least as high become more probable.
    let bound = |share: f64| {
        let reach = 2.0 * (high - low);
        let (mut below, mut above) = (estimate.value - reach, estimate.value + reach);
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(below, above);
            if share_as_high(middle, nth, estimate) < share {
                below = middle;
            } else {
                above = middle;
            }
        }
        f64::midpoint(below, above)
    };
    (bound(TAIL), bound(1.0 - TAIL))
}

/// Returns the share of simulated duels with this true gain whose outcome is at least as high.
fn share_as_high(gain: f64, nth: usize, estimate: &Estimate) -> f64 {
    let n = LOOKS[nth].pairs as f64;
    let squares = (n - 1.0) * n * estimate.standard_error.powi(2);
    let as_high = |path: &&Path| {
        let noise = (squares / path.chi_square[nth]).sqrt();
        for (look, &(mean, error)) in path.looks.iter().enumerate() {
            let (mean, error) = (gain + noise * mean, noise * error);
            if look == nth {
                return mean >= estimate.value;
            }
            if mean > BOUNDS[look].better * error {
                return true;
            }
            if mean + BOUNDS[look].futile * error < GAIN_MIN.ln_1p() {
                return false;
            }
        }
        false
    };
    let count = PATHS_OF_UNIT_NOISE.iter().filter(as_high).count();
    count as f64 / PATHS as f64
}
