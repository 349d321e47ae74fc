//! How far key order and disk order of leaves agree.
//!
//! Leaves in key order lie at offsets oᵢ with ends eᵢ; the gap between two neighbours is
//! gᵢ = oᵢ₊₁ − eᵢ. All metrics but the last two are local, for local runs decide what a scan costs:
//! a table loaded as eight parallel key ranges has almost no global order and is still read in
//! long stretches.

pub(crate) mod ranks;

use std::borrow::Cow;
use std::collections::BTreeMap;

use seekscope_run::ScanOrder;
use seekscope_wiredtiger::tree::{Leaf, LeafKind};

use ranks::{by_offset, inversions, squared_displacements};

/// The read-ahead window by which order is judged, Linux's default: a gap up to it is no seek. It
/// is the same everywhere, so that figures of different hosts can be compared; predictions use the
/// disk's own.
pub const WINDOW_BYTES: u64 = 128 * 1024;

/// Returns the metrics of leaves in key order; `window_bytes` is the distance that read-ahead
/// bridges.
///
/// Deleted leaves are left out, as scans skip them. `None` with fewer than two others, or with 2³²
/// or more. Takes O(N log N) time and about 12 bytes of memory per leaf.
pub fn scan_order(leaves: &[Leaf], window_bytes: u64) -> Option<ScanOrder> {
    let leaves = &*read_by_scans(leaves);
    if leaves.len() < 2 {
        return None;
    }
    let leaf_bytes: u64 = leaves.iter().map(|leaf| u64::from(leaf.length)).sum();
    let steps = Steps::of(leaves, window_bytes);
    let (mean_distance, median_distance) = seek_distances(leaves, window_bytes);
    let (seeks_best, kendall_tau, spearman_rho) = against_disk_order(leaves, window_bytes)?;

    let (count, pairs) = (leaves.len() as f64, (leaves.len() - 1) as f64);
    let avoidable = count - seeks_best as f64;
    let avoided_not = steps.seeks.saturating_sub(seeks_best) as f64;
    Some(ScanOrder {
        window_bytes,
        contiguous_share: steps.contiguous as f64 / pairs,
        sequential_share: steps.sequential as f64 / pairs,
        backward_share: steps.backward as f64 / pairs,
        runs: steps.runs,
        mean_run_bytes: leaf_bytes as f64 / steps.runs as f64,
        seeks: steps.seeks,
        seeks_best,
        bytes_per_seek: leaf_bytes as f64 / steps.seeks as f64,
        score: if avoidable > 0.0 {
            (1.0 - avoided_not / avoidable).max(0.0)
        } else {
            1.0
        },
        mean_seek_distance_bytes: mean_distance,
        median_seek_distance_bytes: median_distance,
        kendall_tau,
        spearman_rho,
        run_lengths: steps.run_lengths.into_iter().collect(),
        gaps: steps
            .gaps
            .into_iter()
            .map(|(from, (forward, backward))| (from, forward, backward))
            .collect(),
    })
}

/// Returns the leaves that a scan reads, which skips deleted ones.
pub fn scanned(leaves: &[Leaf]) -> impl Iterator<Item = &Leaf> {
    leaves.iter().filter(|leaf| leaf.kind != LeafKind::Deleted)
}

/// Returns the same as a list, copied only if there are deleted leaves.
pub(crate) fn read_by_scans(leaves: &[Leaf]) -> Cow<'_, [Leaf]> {
    if scanned(leaves).count() == leaves.len() {
        Cow::Borrowed(leaves)
    } else {
        Cow::Owned(scanned(leaves).copied().collect())
    }
}

/// The gap from the end of one leaf to the start of the next, bytes; negative if that lies before.
fn gap(from: &Leaf, to: &Leaf) -> i128 {
    i128::from(to.offset) - i128::from(from.offset) - i128::from(from.length)
}

fn is_seek(gap: i128, window_bytes: u64) -> bool {
    gap < 0 || gap > i128::from(window_bytes)
}

fn distance(gap: i128) -> u64 {
    u64::try_from(gap.unsigned_abs()).unwrap_or(u64::MAX)
}

/// Returns 0, or the largest power of two that is at most `bytes`.
fn power_of_two_below(bytes: u64) -> u64 {
    bytes.checked_ilog2().map_or(0, |log| 1 << log)
}

/// Counts over the steps from one leaf to the next.
#[derive(Debug, Default)]
struct Steps {
    contiguous: u64,
    sequential: u64,
    backward: u64,
    runs: u64,
    seeks: u64,
    run_lengths: BTreeMap<u64, u64>,
    gaps: BTreeMap<u64, (u64, u64)>,
}

impl Steps {
    fn of(leaves: &[Leaf], window_bytes: u64) -> Self {
        let mut steps = Self {
            seeks: 1,
            ..Self::default()
        };
        let mut run_bytes = leaves.first().map_or(0, |leaf| u64::from(leaf.length));
        for pair in leaves.windows(2) {
            let [from, to] = pair else { continue };
            let gap = gap(from, to);
            steps.backward += u64::from(to.offset < from.offset);
            if is_seek(gap, window_bytes) {
                steps.seeks += 1;
            } else {
                steps.sequential += 1;
            }
            if gap == 0 {
                steps.contiguous += 1;
            } else {
                steps.run_ends(run_bytes);
                run_bytes = 0;
            }
            run_bytes = run_bytes.saturating_add(u64::from(to.length));
            let pairs = steps
                .gaps
                .entry(power_of_two_below(distance(gap)))
                .or_default();
            if gap < 0 {
                pairs.1 += 1;
            } else {
                pairs.0 += 1;
            }
        }
        steps.run_ends(run_bytes);
        steps
    }

    fn run_ends(&mut self, bytes: u64) {
        self.runs += 1;
        *self
            .run_lengths
            .entry(power_of_two_below(bytes))
            .or_default() += 1;
    }
}

/// Returns the mean and median of |g| over the pairs that are seeks; of two middle values the
/// smaller counts. 0 without seeks.
fn seek_distances(leaves: &[Leaf], window_bytes: u64) -> (f64, u64) {
    let mut distances: Vec<u64> = leaves
        .windows(2)
        .filter_map(|pair| {
            let [from, to] = pair else { return None };
            let gap = gap(from, to);
            is_seek(gap, window_bytes).then(|| distance(gap))
        })
        .collect();
    if distances.is_empty() {
        return (0.0, 0);
    }
    let sum: f64 = distances.iter().map(|&bytes| bytes as f64).sum();
    let mean = sum / distances.len() as f64;
    let middle = (distances.len() - 1) / 2;
    (mean, *distances.select_nth_unstable(middle).1)
}

/// Returns the seeks of the same leaves in the order of their offsets, Kendall's τ and Spearman's
/// ρ.
fn against_disk_order(leaves: &[Leaf], window_bytes: u64) -> Option<(u64, f64, f64)> {
    let order = by_offset(leaves)?;
    let at = |ordinal: u32| &leaves[ordinal as usize];
    let seeks = order
        .windows(2)
        .filter(|pair| is_seek(gap(at(pair[0]), at(pair[1])), window_bytes))
        .count();
    let count = leaves.len() as f64;
    let rho = 1.0 - 6.0 * squared_displacements(&order) / (count * (count * count - 1.0));
    let tau = 1.0 - 4.0 * inversions(order) as f64 / (count * (count - 1.0));
    Some((1 + seeks as u64, tau, rho))
}

#[cfg(test)]
mod tests;
