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
use seekscope_wiredtiger::Compressor;
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
    /// Time of the reader per byte of leaves beyond the read itself, ns, e.g.
    /// [`engine_ns_per_byte`].
    pub reader_ns_per_byte: f64,
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
    /// With three quarters of the host's memory as page cache, a file in one piece, and a reader that
    /// takes no time.
    pub fn with_memory(memory_bytes: u64) -> Self {
        Self {
            cache_bytes: memory_bytes / 4 * 3,
            reader_ns_per_byte: 0.0,
            simulated_leaves_max: 400_000,
            seed: 1,
            extents: &[],
        }
    }
}

/// What WiredTiger spends on a byte of a leaf, as it stands on disk, beyond reading it, ns: checksum,
/// decompression, a page in its cache, and a step of a cursor per row.
///
/// Measured on WiredTiger 3.2.1 (one core of a Xeon, warm scans of 200 MB in leaves of 32 KiB, rows of
/// 200 to 25,000 bytes of which half compress away, copying from the page cache taken off): 0.2 to 0.8
/// uncompressed, 1.2 to 2.1 with snappy, 5 to 16 with zlib. lz4 and zstd were not measured and are
/// taken to be like snappy.
pub fn engine_ns_per_byte(compressor: Compressor) -> f64 {
    match compressor {
        Compressor::None => 0.5,
        Compressor::Snappy | Compressor::Lz4 | Compressor::Zstd => 1.6,
        Compressor::Zlib => 7.0,
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
    let requests_per_leaf = now.device_requests as f64 / leaves.len().max(1) as f64;
    let factor = error_factor(requests_per_leaf, model.fit_error);
    PredictedScan {
        now_s: now.elapsed_s,
        ordered_s: ordered.elapsed_s,
        after_compact_s: after_compact.elapsed_s,
        now_low_s: now.elapsed_s / factor,
        now_high_s: now.elapsed_s * factor,
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

/// How far predictions were from real scans on throttled and plain disks, at most: files in order and
/// shuffled ones, and those in between, for which it matters when the kernel begins to read ahead.
const ERROR_AT_THE_ENDS: f64 = 0.25;
const ERROR_IN_BETWEEN: f64 = 0.40;

/// By how much a prediction may be off, as a factor. `requests_per_leaf` tells where between in order
/// and shuffled the file is, `fit_error` how well the device's model fits its own measurements.
fn error_factor(requests_per_leaf: f64, fit_error: f64) -> f64 {
    let random = requests_per_leaf.clamp(0.0, 1.0);
    let in_between = 4.0 * random * (1.0 - random);
    let error = ERROR_AT_THE_ENDS + (ERROR_IN_BETWEEN - ERROR_AT_THE_ENDS) * in_between;
    1.0 + error.max(fit_error)
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
            think_ns: think_ns(leaves[ordinal].length, options.reader_ns_per_byte),
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
