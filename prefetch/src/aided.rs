//! How long the disk would be busy for a scan that is read ahead of, predicted before much is read.
//!
//! In a window that holds a small part of the leaves, those that the scan needs soon lie so far apart that each takes a
//! request of its own, as it would without us; gaps that are read through come on top. On a disk whose requests are
//! limited, nothing is gained then.

use seekscope_run::units::{format_bytes, format_ns, whole};
use seekscope_wiredtiger::Leaf;

use crate::costs::DiskCosts;
use crate::sweep::{Next, Sweep};

/// Rounds that are simulated: each goes over the whole file.
const ROUNDS: u64 = 4;
/// The scan must be this many times as fast at least. The prediction leaves out that the server's own reads are
/// held up.
const WORTH_MIN: f64 = 1.1;

/// Returns the time for which the disk is busy, ns; `None` where everything fits, and for trees without leaves.
pub(crate) fn disk_ns(
    leaves: &[Leaf],
    window_bytes: u64,
    costs: &DiskCosts,
    request_bytes: usize,
) -> Option<f64> {
    let mut sweep = Sweep::new(leaves, window_bytes)?;
    if sweep.fits() {
        return None;
    }
    let call_bytes = costs.call_bytes(request_bytes).max(1) as u64;
    let joining = costs.joining(call_bytes);
    let (mut requests, mut bytes, mut leaf_bytes) = (0, 0, 0);
    while sweep.rounds <= ROUNDS && sweep.position() < sweep.leaves().len() {
        match sweep.next(joining) {
            Next::Read(stretch) => {
                let range = stretch.range();
                requests += (range.end - range.start).div_ceil(call_bytes);
                bytes += range.end - range.start;
                leaf_bytes += stretch.leaf_bytes();
                sweep.done(&stretch, &stretch.leaves);
            }
            // The scan passes what was read.
            Next::Full | Next::Nothing => {
                let behind = sweep.bytes_before(sweep.position()) + window_bytes;
                let passed = sweep.ordinal_after(behind).max(sweep.position() + 1);
                sweep.advance(passed);
            }
        }
    }
    let of_read_ns =
        requests as f64 * costs.request_ns + bytes as f64 * 1e9 / costs.bytes_per_s.max(1.0);
    let share = leaf_bytes as f64 / sweep.leaf_bytes().max(1) as f64;
    (share > 0.0).then(|| of_read_ns / share)
}

/// Says why reading ahead in this window is in vain, if it is: without it the scan is predicted to take `alone_ns`.
pub(crate) fn why_in_vain(alone_ns: u64, disk_ns: f64, window_bytes: u64) -> Option<String> {
    (disk_ns * WORTH_MIN > alone_ns as f64).then(|| {
        format!(
            "with memory for {} the scan would be no faster: it should take {} without, and the disk would be busy for \
             {} with it; a larger --window, or more memory, can help",
            format_bytes(window_bytes),
            format_ns(alone_ns),
            format_ns(whole(disk_ns))
        )
    })
}

#[cfg(test)]
mod tests {
    use seekscope_stats::shuffled::distinct;
    use seekscope_wiredtiger::LeafKind;

    use super::*;
    use crate::costs::Source;

    const LEAF: u32 = 28 << 10;

    /// Leaves in no order in a file of twice their length.
    fn leaves(count: u64) -> Vec<Leaf> {
        let places = distinct(count, 2 * count, 7);
        let leaf = |place: u64| Leaf {
            offset: 4096 + place * u64::from(LEAF),
            length: LEAF,
            kind: LeafKind::Plain,
        };
        places.into_iter().map(leaf).collect()
    }

    /// 1,000 requests and 100 MB a second.
    fn costs() -> DiskCosts {
        DiskCosts {
            request_ns: 713_000.0,
            bytes_per_s: 1e8,
            depth: 4,
            request_from: Source::Measured,
            rate_from: Source::Measured,
        }
    }

    #[test]
    fn a_small_window_gains_nothing_and_a_large_one_does() {
        let leaves = leaves(8_000);
        let all = 8_000 * u64::from(LEAF);
        let busy = |window: u64| disk_ns(&leaves, window, &costs(), 1 << 20).unwrap() / 1e9;
        let (small, half) = (busy(all / 14), busy(all / 2));
        assert!((7.0..9.0).contains(&small), "{small}");
        assert!(half < 0.7 * small, "{half} {small}");
        assert_eq!(disk_ns(&leaves, all, &costs(), 1 << 20), None, "all of it");
        assert_eq!(disk_ns(&[], 0, &costs(), 1 << 20), None);
        let alone_ns = 7_100_000_000;
        let why = why_in_vain(alone_ns, small * 1e9, all / 14).unwrap();
        assert!(why.contains("7.10 s without"), "{why}");
        assert_eq!(why_in_vain(alone_ns, half * 1e9, all / 2), None);
    }
}
