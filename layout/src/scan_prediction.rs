//! Predicts what a cold scan in key order takes on a disk, by simulating the leaves' reads with the
//! kernel's read-ahead and page cache.
//!
//! There is one reader that makes one pread of exactly the size of each page, buffered unless told
//! otherwise, the next when the last is done. This is what WiredTiger's cursors do, and index builds with them.
//! Internal pages are read when a scan comes to them. Overflow pages are left out: they are read in
//! addition, one seek each.

mod arrangement;
mod page_reads;
mod sample;

use std::collections::HashMap;
use std::ops::Range;

use seekscope_disk::model::{Access, Operation, Piece, PredictOptions, Prediction, predict};
use seekscope_run::{DeviceModel, PredictedScan};
use seekscope_wiredtiger::tree::Leaf;
use seekscope_wiredtiger::{Compressor, InternalPage};

use crate::device_map::DeviceExtent;
use arrangement::{FIRST_OFFSET, compacted_offsets, ordered_offsets};
use page_reads::{PageRead, page_reads};
use sample::sampled_ordinals;

/// Options of a prediction.
#[derive(Clone, Copy)]
pub struct ScanOptions<'a> {
    /// Memory for the page cache, bytes.
    pub cache_bytes: u64,
    /// Time of the reader per byte of leaves, besides the read itself, ns, e.g.
    /// [`engine_ns_per_byte`].
    pub reader_ns_per_byte: f64,
    /// The most pages to simulate; if there are more, a sample represents them.
    pub simulated_pages_max: usize,
    /// Seed for choosing the sample.
    pub seed: u64,
    /// What a scan reads on the way to the leaves ([`seekscope_wiredtiger::Tree::internal`]).
    pub internal: &'a [InternalPage],
    /// How the file lies on its device, ascending, e.g. [`crate::DeviceMap::extents`]: a request
    /// then covers only one piece. Empty if that is unknown or the file is in one piece. A
    /// rewritten file is assumed to be in one piece.
    pub extents: &'a [DeviceExtent],
    /// The host pages out idle memory ([`seekscope_run::HostFacts::pages_out_idle_memory`]).
    pub idle_is_paged_out: bool,
    /// The reader opens the file with O_DIRECT: each page is a request, and nothing is read ahead.
    pub direct: bool,
}

impl ScanOptions<'_> {
    /// Returns options with three quarters of the host's memory as page cache, a file in one piece,
    /// no internal pages, and a reader that takes no time.
    pub fn with_memory(memory_bytes: u64) -> Self {
        Self {
            cache_bytes: memory_bytes / 4 * 3,
            reader_ns_per_byte: 0.0,
            simulated_pages_max: 400_000,
            seed: 1,
            internal: &[],
            extents: &[],
            idle_is_paged_out: false,
            direct: false,
        }
    }
}

/// Bytes of documents per byte of compressed leaves where that is not known: half compresses away.
const EXPANSION_UNKNOWN: f64 = 2.0;
/// Up to here hardly any block was made smaller by compression. Leaves that hold nothing but documents
/// as they are have a little less of them than their own size.
const EXPANSION_OF_NONE_MAX: f64 = 1.05;
/// The most that was measured, of a collection of one text repeated. More is taken to be an error.
const EXPANSION_MAX: f64 = 28.0;

const UNCOMPRESSED_NS_PER_BYTE: f64 = 0.5;

/// Returns the time that WiredTiger spends per byte of a leaf as stored on disk, besides reading
/// it, ns: checksum, decompression, a page in its cache, and a cursor step per row.
/// `document_bytes` is the size of the documents in the file as BSON, if known, and `leaf_bytes`
/// that of the leaves that hold them. A block that compression does not make smaller is stored as it
/// is, and costs no decompression.
///
/// Measured on `MongoDB` 4.4.6 (processor time of a scan that finds its pages in the page cache, less that of
/// one that finds them in the server's; rows of 400 and 4,000 bytes of random bytes, hexadecimal digits, words,
/// fields, and repeated text), per byte of the leaves:
///
/// | compressor | documents per leaf byte | ns |
/// |---|---|---|
/// | none, or nothing made smaller | 1.0 | 0.4 to 0.7 |
/// | snappy | 1.2 / 2.5 / 3.5 to 4.1 / 9 to 14 | 0.8 to 1.0 / 1.5 to 1.9 / 1.6 to 2.1 / 2.3 to 7 |
/// | zstd | 1.9 / 4.7 / 14 / 28 | 0.5 / 0.3 to 1.2 / 3 to 7 / 1 to 4 |
/// | zlib | 1.7 to 2.1 / 4.0 to 4.7 / 9 to 14 / 28 | 4 to 9 / 6 to 11 / 16 to 30 / 18 to 65 |
///
/// A cursor's steps take 0.2 µs per row on top of that. lz4 was not measured and is taken to be like snappy.
pub fn engine_ns_per_byte(
    compressor: Compressor,
    document_bytes: Option<u64>,
    leaf_bytes: u64,
) -> f64 {
    let document_bytes = document_bytes.filter(|bytes| *bytes > 0);
    let expansion = document_bytes.map(|bytes| bytes as f64 / leaf_bytes.max(1) as f64);
    let is_stored_as_it_is = expansion.is_some_and(|times| times <= EXPANSION_OF_NONE_MAX);
    if is_stored_as_it_is {
        return UNCOMPRESSED_NS_PER_BYTE;
    }
    let expansion = expansion.map_or(EXPANSION_UNKNOWN, |times| times.min(EXPANSION_MAX));
    match compressor {
        Compressor::Snappy | Compressor::Lz4 => 0.8 * expansion,
        Compressor::Zstd => 0.5 * expansion,
        // It decodes each bit of the leaf, and copies each byte of the documents.
        Compressor::Zlib => 5.0 + 1.3 * expansion,
        _ => UNCOMPRESSED_NS_PER_BYTE,
    }
}

/// Predicts a cold scan of leaves, given in key order, in a file of `file_bytes`: as they lie, in
/// order, and after `compact`. Deleted leaves are left out. Any model gives some answer; a
/// nonsensical model gives a nonsensical one.
///
/// The CPU cost of a stream in memory pages that nobody used before
/// ([`DeviceModel::stream_ns_per_byte`]) is only in the upper end of the range: a host that has
/// been up for a while has used its memory, and a virtual machine that gave it back pays for some
/// of it again. Measured in such a machine, the same scan took 0.3 s or 2 s, and 2 s or 3.8 s on a
/// disk of 150 MB/s.
pub fn predict_scan(
    model: &DeviceModel,
    leaves: &[Leaf],
    file_bytes: u64,
    options: &ScanOptions<'_>,
) -> PredictedScan {
    let reads = page_reads(leaves, options.internal);
    let used_memory = DeviceModel {
        stream_ns_per_byte: 0.0,
        ..model.clone()
    };
    let sample = sampled_ordinals(reads.len(), options.simulated_pages_max, options.seed);
    let simulated: usize = sample.iter().map(ExactSizeIterator::len).sum();
    let present: Vec<u64> = reads.iter().map(|read| read.offset).collect();
    let as_it_is = FileLayout {
        file_bytes,
        offsets: &present,
        extents: options.extents,
    };
    let scan = |model: &DeviceModel, file: &FileLayout<'_>, sample: &[Range<usize>]| {
        simulate(model, &reads, file, sample, options)
    };
    let now = scan(&used_memory, &as_it_is, &sample);
    let slowest_s = if model.stream_ns_per_byte > 0.0 {
        scan(model, &as_it_is, &sample).high_s.max(now.high_s)
    } else {
        now.high_s
    };
    let read_bytes: u64 = reads.iter().map(|read| read.length).sum();
    let rewritten = |offsets: &[u64], sample: &[Range<usize>]| {
        let file = FileLayout {
            file_bytes: FIRST_OFFSET.saturating_add(read_bytes),
            offsets,
            extents: &[],
        };
        scan(&used_memory, &file, sample)
    };
    // The beginning of a file in order is like the rest of it.
    let beginning = 0..simulated;
    let ordered = rewritten(&ordered_offsets(&reads), std::slice::from_ref(&beginning));
    let after_compact = rewritten(&compacted_offsets(&reads), &sample);
    let read_leaves = reads.iter().filter(|read| read.is_leaf).count();
    let requests_per_leaf = now.device_requests as f64 / read_leaves.max(1) as f64;
    let factor = error_factor(requests_per_leaf, model.fit_error);
    let is_simulated = |read: &&PageRead| read.is_leaf;
    let simulated_leaves = sample.iter().flat_map(|stretch| &reads[stretch.clone()]);
    PredictedScan {
        now_s: now.elapsed_s,
        // The file's order is one of those it can have: where two runs of the simulation differ by
        // a request or a rounding, the better one counts.
        ordered_s: ordered.elapsed_s.min(now.elapsed_s),
        after_compact_s: after_compact.elapsed_s,
        now_low_s: now.low_s / factor,
        now_high_s: slowest_s * factor,
        device_requests: now.device_requests,
        device_bytes: now.device_bytes,
        simulated_leaf_pages: simulated_leaves.filter(is_simulated).count() as u64,
    }
}

/// Where pages lie, indexed by their places among the reads.
struct FileLayout<'a> {
    file_bytes: u64,
    offsets: &'a [u64],
    extents: &'a [DeviceExtent],
}

/// The error allowed for files in order and shuffled ones, and for those in between, for which it
/// matters when the kernel begins to read ahead. These are aims rather than bounds: on a throttled
/// disk of a busy host, predicted / measured was 0.73 to 0.92 at the ends, and 0.64 to 1.36 in
/// between.
const ERROR_AT_THE_ENDS: f64 = 0.25;
const ERROR_IN_BETWEEN: f64 = 0.40;

/// Returns by how much a prediction may be off, as a factor. `requests_per_leaf` says how far
/// between ordered and shuffled the file is, `fit_error` how well the device's model fits its own
/// measurements.
fn error_factor(requests_per_leaf: f64, fit_error: f64) -> f64 {
    let random = requests_per_leaf.clamp(0.0, 1.0);
    let in_between = 4.0 * random * (1.0 - random);
    let error = ERROR_AT_THE_ENDS + (ERROR_IN_BETWEEN - ERROR_AT_THE_ENDS) * in_between;
    1.0 + error.max(fit_error)
}

/// A scan's cost, over all pages.
struct ScanCost {
    elapsed_s: f64,
    /// Time if what is read ahead stays in memory, and if it does not.
    low_s: f64,
    high_s: f64,
    device_requests: u64,
    device_bytes: u64,
}

fn simulate(
    model: &DeviceModel,
    reads: &[PageRead],
    file: &FileLayout<'_>,
    sample: &[Range<usize>],
    options: &ScanOptions<'_>,
) -> ScanCost {
    let access = |place: usize| {
        let read = &reads[place];
        Access {
            file: 0,
            stream: 0,
            offset: file.offsets[place],
            length: read.length,
            operation: Operation::Read,
            direct: options.direct,
            think_ns: match read.is_leaf {
                true => think_ns(read.length, options.reader_ns_per_byte),
                false => 0,
            },
        }
    };
    let accesses: Vec<Access> = sample.iter().cloned().flatten().map(access).collect();
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
            idle_is_paged_out: options.idle_is_paged_out,
        },
    );
    whole(
        &prediction,
        reads.len() as f64 / accesses.len().max(1) as f64,
    )
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "saturates: non-negative, or of a nonsensical figure"
)]
fn think_ns(length: u64, ns_per_byte: f64) -> u64 {
    (length as f64 * ns_per_byte).round() as u64
}

/// Returns the cost of all pages, of which the sample is one in `scale`.
#[expect(
    clippy::cast_possible_truncation,
    reason = "saturates: counts of requests and bytes, scaled up"
)]
fn whole(prediction: &Prediction, scale: f64) -> ScanCost {
    ScanCost {
        elapsed_s: prediction.elapsed_ns as f64 / 1e9 * scale,
        low_s: prediction.elapsed_low_ns as f64 / 1e9 * scale,
        high_s: prediction.elapsed_high_ns as f64 / 1e9 * scale,
        device_requests: (prediction.device_requests as f64 * scale).round() as u64,
        device_bytes: (prediction.device_bytes as f64 * scale).round() as u64,
    }
}

#[cfg(test)]
mod tests;
