//! Turns a walked file into its record: order, prediction, positions on the device, decay.

use std::path::Path;

use seekscope_layout::decay::{LeafChanges, from_snapshots, from_update_rate};
use seekscope_layout::order::{WINDOW_BYTES, scan_order, scanned};
use seekscope_layout::scan_prediction::{ScanOptions, engine_ns_per_byte, predict_scan};
use seekscope_layout::{DeviceMap, WalkedFile};
use seekscope_run::{HostFacts, LayoutFile, OrderDecay};
use seekscope_wiredtiger::{Extent, Leaf};

use super::scan_disk::ScanDisks;
use super::since::Since;

/// The share of broken pairs below which positions on the device make no difference.
const BROKEN_PAIRS_MIN: f64 = 0.02;

/// What figures are made with.
pub struct Recorder {
    pub disks: ScanDisks,
    /// Memory of the host, which caches pages.
    pub memory_bytes: u64,
    pub updates_per_hour: Option<f64>,
    pub since: Option<Since>,
}

impl Recorder {
    /// Fills in the results of a walk over the file at `path`. `file` already has its names.
    pub fn fill(&self, file: &mut LayoutFile, walked: &WalkedFile, path: &Path) {
        count(file, walked);
        let leaves = &walked.tree.leaves;
        file.order = scan_order(leaves, WINDOW_BYTES);
        if file.leaf_pages == 0 {
            return;
        }
        let map = DeviceMap::read(path).ok();
        let disk = self.disks.of(file.member.as_deref());
        let mut options = ScanOptions {
            reader_ns_per_byte: engine_ns_per_byte(
                walked.compressor,
                file.document_bytes,
                file.leaf_bytes,
            ),
            internal: &walked.tree.internal,
            idle_is_paged_out: HostFacts::pages_out_idle_memory(Path::new("/")),
            direct: disk.read_directly,
            ..ScanOptions::with_memory(self.memory_bytes)
        };
        // A file that was just written may have no position on the device yet.
        if let Some(map) = map.as_ref().filter(|map| !map.extents().is_empty()) {
            let mut extents = map.summary(leaves, WINDOW_BYTES);
            if extents.broken_pairs_share > BROKEN_PAIRS_MIN {
                extents.used_for_prediction = true;
                options.extents = map.extents();
            }
            file.extents = Some(extents);
        }
        let predicted = predict_scan(&disk.model, leaves, file.file_bytes, &options);
        file.predicted_scan = Some(predicted);
        file.decay = self.decay(file, leaves);
    }

    fn decay(&self, file: &LayoutFile, leaves: &[Leaf]) -> Option<OrderDecay> {
        let order = file.order.as_ref()?;
        if let Some(updates) = self.updates_per_hour {
            // Updates of documents touch an index only if they change its keys.
            return file.index.is_none().then(|| {
                let basis = format!("--updates-per-hour {updates}");
                from_update_rate(order.contiguous_share, file.leaf_pages, updates, basis)
            });
        }
        let former = self.since.as_ref()?.file(file)?;
        let elapsed_s = file.checkpoint_time_s.saturating_sub(former.time_s) as f64;
        let changes = LeafChanges::between(former.leaves, leaves);
        from_snapshots(order.contiguous_share, &changes, elapsed_s)
    }
}

/// Records where in the file its free space is.
fn place_free_space(file: &mut LayoutFile, free: &[Extent]) {
    let tenth = file.file_bytes / 10;
    let before = |end: u64| {
        let holes = free.iter().filter(|hole| hole.offset < end);
        holes.map(|hole| hole.bytes).sum()
    };
    file.free_in_first_80_percent_bytes = Some(before(file.file_bytes - 2 * tenth));
    file.free_in_first_90_percent_bytes = Some(before(file.file_bytes - tenth));
    let last = free
        .last()
        .filter(|hole| hole.offset.saturating_add(hole.bytes) >= file.file_bytes);
    file.free_at_end_bytes = Some(last.map_or(0, |hole| hole.bytes));
}

/// Counts the pages by kind.
fn count(file: &mut LayoutFile, walked: &WalkedFile) {
    let tree = &walked.tree;
    let read = || scanned(&tree.leaves);
    if let Some(checkpoint) = &walked.checkpoint {
        file.checkpoint.clone_from(&checkpoint.name);
        file.checkpoint_time_s = checkpoint.time_s;
    }
    file.compressor = walked.compressor.name().into();
    file.file_bytes = walked.file_bytes;
    file.leaf_pages = read().count() as u64;
    file.leaf_bytes = read().map(|leaf| u64::from(leaf.length)).sum();
    file.deleted_leaf_pages = tree.leaves.len() as u64 - file.leaf_pages;
    file.internal_pages = tree.internal.len() as u64;
    file.internal_bytes = tree.internal_bytes();
    file.depth = tree.depth;
    file.overflow_bytes = walked.overflow_bytes;
    file.pinned_bytes = walked.pinned_bytes;
    file.free_bytes = walked.free.iter().map(|extent| extent.bytes).sum();
    file.holes = walked.free.len() as u64;
    file.largest_hole_bytes = walked.free.iter().map(|e| e.bytes).max().unwrap_or(0);
    place_free_space(file, &walked.free);
    file.bytes_read = walked.bytes_read;
    file.reads = walked.reads;
    file.restarts = walked.restarts;
    if file.leaf_pages == 0 {
        file.not_measured = Some("empty: it has no rows as of its newest checkpoint".into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_space_has_a_place() {
        let mut file = LayoutFile {
            file_bytes: 100_000,
            ..LayoutFile::default()
        };
        let hole = |offset, bytes| Extent { offset, bytes };
        place_free_space(
            &mut file,
            &[
                hole(4_096, 10_000),
                hole(85_000, 2_000),
                hole(99_000, 1_000),
            ],
        );
        assert_eq!(file.free_in_first_80_percent_bytes, Some(10_000));
        assert_eq!(file.free_in_first_90_percent_bytes, Some(12_000));
        assert_eq!(file.free_at_end_bytes, Some(1_000));
        place_free_space(&mut file, &[]);
        assert_eq!(file.free_at_end_bytes, Some(0));
    }
}
