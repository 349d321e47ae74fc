//! How long the scan would take without us, predicted from what the disk costs.
//!
//! Pauses show it too (`crate::gain`), but late, and too long where the kernel reads ahead of a scan:
//! around the leaves of a pause lie others that are in memory, and divide what it would read in one go.

use std::path::Path;
use std::time::Duration;

use seekscope_layout::scan_prediction::{ScanOptions, predict_scan};
use seekscope_layout::typical_disks;
use seekscope_run::units::nanoseconds;
use seekscope_run::{DeviceFacts, DeviceModel};
use seekscope_wiredtiger::Leaf;

use crate::costs::{DiskCosts, Source};
use crate::gain::{Progress, WORTH_MIN};
use crate::pace::io_counter;

/// Pages that are simulated; takes some hundredths of a second.
const SIMULATED_PAGES_MAX: usize = 50_000;

/// The scan, in as far as it does not depend on the disk.
#[derive(Debug, Clone)]
pub(crate) struct ScanAlone {
    /// The leaves in key order.
    pub(crate) leaves: Vec<Leaf>,
    pub(crate) file_bytes: u64,
    /// Time of the engine per byte of leaves, besides reading it, ns.
    pub(crate) reader_ns_per_byte: f64,
    /// Memory for what the kernel reads ahead.
    pub(crate) memory_bytes: u64,
    /// How far the kernel reads ahead; `None` where it does not say, and nothing is predicted.
    pub(crate) read_ahead_bytes: Option<u64>,
    /// The disk as `seekscope disk` measured it, if that is known.
    pub(crate) measured: Option<DeviceModel>,
    /// The server, if it runs on this host.
    pub(crate) server: Option<u32>,
}

/// A scan is not judged by its prediction before this time, and this share of the predicted time:
/// the first round is read from nothing.
const JUDGED_AFTER_NS: f64 = 3e9;
const JUDGED_AFTER_SHARE: f64 = 0.2;

/// Returns whether a scan of `leaf_bytes`, predicted to take `alone_ns` without us, comes less than
/// [`WORTH_MIN`] times as far with us, as `since` and `now` show.
pub(crate) fn is_no_faster(
    since: &Progress,
    now: &Progress,
    alone_ns: u64,
    leaf_bytes: u64,
) -> bool {
    let elapsed_ns = now.elapsed_ns.saturating_sub(since.elapsed_ns);
    let alone_ns = alone_ns as f64;
    let judged_after_ns = (alone_ns * JUDGED_AFTER_SHARE).max(JUDGED_AFTER_NS);
    let come_bytes =
        |progress: &Progress| progress.passed_bytes.saturating_add(progress.held_bytes);
    let come_bytes = come_bytes(now).saturating_sub(come_bytes(since)) as f64;
    let alone_bytes = leaf_bytes as f64 * elapsed_ns as f64 / alone_ns.max(1.0);
    elapsed_ns as f64 >= judged_after_ns && come_bytes < alone_bytes * WORTH_MIN
}

impl ScanAlone {
    /// Returns how far the kernel reads ahead on the disk of a file.
    pub(crate) fn read_ahead_bytes(path: &Path) -> Option<u64> {
        let facts = DeviceFacts::of_path(Path::new("/"), path).ok()?;
        facts.read_ahead_kib?.checked_mul(1 << 10)
    }

    /// Returns what the server's process has read from disks, bytes; `None` if nobody tells.
    pub(crate) fn server_read_bytes(&self) -> Option<u64> {
        let counters = format!("/proc/{}/io", self.server?);
        io_counter(Path::new(&counters), "read_bytes")
    }

    /// Returns what `read` returns, and what the server read from disks meanwhile, bytes; 0 if nobody tells.
    pub(crate) fn beside_server<T>(&self, read: impl FnOnce() -> T) -> (T, u64) {
        let before = self.server_read_bytes();
        let done = read();
        let after = self.server_read_bytes();
        let by_server = after.zip(before);
        let by_server = by_server.map_or(0, |(after, before)| after.saturating_sub(before));
        (done, by_server)
    }

    /// Predicts its time, ns; `None` unless the costs were measured.
    pub(crate) fn predict_ns(&self, costs: &DiskCosts) -> Option<u64> {
        if [costs.request_from, costs.rate_from] != [Source::Measured; 2] {
            return None;
        }
        let model = match &self.measured {
            Some(model) => model.clone(),
            None => {
                let read_ahead_bytes = self.read_ahead_bytes?;
                typical_disks::of_costs(costs.request_ns, costs.bytes_per_s, read_ahead_bytes)
            }
        };
        let options = ScanOptions {
            reader_ns_per_byte: self.reader_ns_per_byte,
            simulated_pages_max: SIMULATED_PAGES_MAX,
            // Walking the tree has brought its internal pages into memory.
            internal: &[],
            ..ScanOptions::with_memory(self.memory_bytes)
        };
        let scan = predict_scan(&model, &self.leaves, self.file_bytes, &options);
        Duration::try_from_secs_f64(scan.now_s)
            .ok()
            .map(nanoseconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scan_that_is_no_faster_than_alone_is_seen_after_a_while() {
        let at = |elapsed_ns, passed_bytes| Progress {
            elapsed_ns,
            passed_bytes,
            ..Progress::default()
        };
        const S: u64 = 1_000_000_000;
        // Alone 10 bytes a second.
        let begun = at(0, 0);
        let judge = |progress| is_no_faster(&begun, &progress, 100 * S, 1_000);
        assert!(!judge(at(19 * S, 0)), "too early");
        assert!(judge(at(30 * S, 300)) && judge(at(30 * S, 310)));
        assert!(!judge(at(30 * S, 320)));
        let held = Progress {
            held_bytes: 200,
            ..at(30 * S, 120)
        };
        assert!(!judge(held));
        assert!(!is_no_faster(&begun, &at(S / 2, 0), S, 1_000), "too short");
        // What trying the disk took is not held against it.
        let tried = |now| is_no_faster(&at(20 * S, 100), &now, 100 * S, 1_000);
        assert!(!tried(at(50 * S, 420)) && tried(at(50 * S, 410)));
    }
}
