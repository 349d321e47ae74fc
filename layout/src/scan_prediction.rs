//! What a cold scan in key order takes on a disk: the leaves' reads, simulated with the kernel's
//! read-ahead and page cache.
//!
//! One reader, one buffered pread per leaf of exactly its size, the next when the last is done: what
//! WiredTiger's cursors do, and index builds with them. Overflow pages and internal pages are left
//! out; the former are read in addition, one seek each.

mod arrangement;
mod sample;

use std::collections::HashMap;
use std::ops::Range;

use seekscope_disk::model::{Access, Operation, Piece, PredictOptions, Prediction, predict};
use seekscope_run::{DeviceModel, PredictedScan};
use seekscope_wiredtiger::tree::Leaf;

use crate::device_map::DeviceExtent;
use crate::order::read_by_scans;
use arrangement::{compacted_offsets, ordered_offsets};
use sample::sampled_ordinals;

/// How to predict.
#[derive(Clone, Copy)]
pub struct ScanOptions<'a> {
    /// Memory for the page cache, bytes.
    pub cache_bytes: u64,
    /// CPU time of the reader per byte of leaves beyond the read itself, ns: checksum,
    /// decompression, rows.
    pub cpu_ns_per_byte: f64,
    /// Leaves to simulate at most; of more, a sample stands for all.
    pub simulated_leaves_max: usize,
    /// Chooses the sample.
    pub seed: u64,
    /// How the file lies on its device, ascending, e.g. [`crate::DeviceMap::extents`]: a request then goes to
    /// one piece only. Empty where that is not known, or the file in one piece. What is rewritten is
    /// taken to be in one piece.
    pub extents: &'a [DeviceExtent],
}

impl ScanOptions<'_> {
    /// With three quarters of the host's memory as page cache, and the device alone.
    pub fn with_memory(memory_bytes: u64) -> Self {
        Self {
            cache_bytes: memory_bytes / 4 * 3,
            cpu_ns_per_byte: 0.0,
            simulated_leaves_max: 400_000,
            seed: 1,
            extents: &[],
        }
    }
}

/// Predicts a cold scan of leaves, given in key order, in a file of `file_bytes`: as they lie, in
/// order, and after `compact`. Deleted leaves are left out. Any model gives some answer, nonsense
/// for nonsense.
pub fn predict_scan(
    model: &DeviceModel,
    leaves: &[Leaf],
    file_bytes: u64,
    options: &ScanOptions<'_>,
) -> PredictedScan {
    let leaves = &*read_by_scans(leaves);
    let sample = sampled_ordinals(leaves.len(), options.simulated_leaves_max, options.seed);
    let simulated: usize = sample.iter().map(ExactSizeIterator::len).sum();
    let scan = |file: &FileLayout<'_>, sample: &[Range<usize>]| {
        simulate(model, leaves, file, sample, options)
    };
    let now = FileLayout {
        file_bytes,
        offset_of: &|ordinal| leaves[ordinal].offset,
        extents: options.extents,
    };
    let now = scan(&now, &sample);
    let rewritten = |offsets: &[u64], sample: &[Range<usize>]| {
        let file = FileLayout {
            file_bytes: leaves.iter().map(|leaf| u64::from(leaf.length)).sum(),
            offset_of: &|ordinal| offsets[ordinal],
            extents: &[],
        };
        scan(&file, sample)
    };
    // The beginning of a file in order is like the rest of it.
    let beginning = 0..simulated;
    let ordered = rewritten(&ordered_offsets(leaves), std::slice::from_ref(&beginning));
    let after_compact = rewritten(&compacted_offsets(leaves), &sample);
    let (low, high) = uncertainty();
    PredictedScan {
        now_s: now.elapsed_s,
        ordered_s: ordered.elapsed_s,
        after_compact_s: after_compact.elapsed_s,
        now_low_s: now.elapsed_s * low,
        now_high_s: now.elapsed_s * high,
        device_requests: now.device_requests,
        device_bytes: now.device_bytes,
        simulated_leaf_pages: simulated as u64,
    }
}

/// Where leaves lie, by their places in key order.
struct FileLayout<'a> {
    file_bytes: u64,
    offset_of: &'a dyn Fn(usize) -> u64,
    extents: &'a [DeviceExtent],
}

fn uncertainty() -> (f64, f64) {
    (1.0 / 1.4, 1.4)
}

/// A scan's cost, all leaves counted.
struct ScanCost {
    elapsed_s: f64,
    device_requests: u64,
    device_bytes: u64,
}

fn simulate(
    model: &DeviceModel,
    leaves: &[Leaf],
    file: &FileLayout<'_>,
    sample: &[Range<usize>],
    options: &ScanOptions<'_>,
) -> ScanCost {
    let accesses: Vec<Access> = sample
        .iter()
        .cloned()
        .flatten()
        .map(|ordinal| Access {
            file: 0,
            stream: 0,
            offset: (file.offset_of)(ordinal),
            length: u64::from(leaves[ordinal].length),
            operation: Operation::Read,
            direct: false,
            think_ns: think_ns(leaves[ordinal].length, options.cpu_ns_per_byte),
        })
        .collect();
    let pieces = file.extents.iter().map(|extent| Piece {
        file_offset: extent.file_offset,
        device_offset: extent.device_offset,
        length: extent.bytes,
    });
    let pieces = pieces.collect();
    let prediction = predict(
        model,
        &accesses,
        &PredictOptions {
            cache_bytes: options.cache_bytes,
            file_bytes: HashMap::from([(0, file.file_bytes)]),
            cached: Vec::new(),
            pieces: HashMap::from([(0, pieces)]),
        },
    );
    whole(
        &prediction,
        leaves.len() as f64 / accesses.len().max(1) as f64,
    )
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "saturates: non-negative, or of a nonsensical figure"
)]
fn think_ns(length: u32, ns_per_byte: f64) -> u64 {
    (f64::from(length) * ns_per_byte).round() as u64
}

/// The cost of all leaves, of which the sample is a `share`th part.
#[expect(
    clippy::cast_possible_truncation,
    reason = "saturates: counts of requests and bytes, scaled up"
)]
fn whole(prediction: &Prediction, scale: f64) -> ScanCost {
    ScanCost {
        elapsed_s: prediction.elapsed_ns as f64 / 1e9 * scale,
        device_requests: (prediction.device_requests as f64 * scale).round() as u64,
        device_bytes: (prediction.device_bytes as f64 * scale).round() as u64,
    }
}

#[cfg(test)]
mod tests;
