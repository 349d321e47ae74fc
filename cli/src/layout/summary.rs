//! The figures of a layout run as JSON: `summary` of `run.json` and of `--json`. Names are stable;
//! see `docs/schema/layout.schema.json`.

use schemars::JsonSchema;
use seekscope_run::{
    DataState, DeviceExtents, LayoutFile, LayoutMeasurement, LayoutMoment, NameSource, OrderDecay,
    ScanOrder,
};
use serde::Serialize;

/// How the leaf pages of the files lie, and what that costs a scan.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LayoutSummary<'a> {
    /// The data directory, or the lone file.
    path: &'a str,
    state: DataState,
    names: NameSource,
    /// e.g. 11.3.0; null for a lone file.
    wiredtiger_version: Option<&'a str>,
    /// The disk that scans were predicted for.
    predicted_for: &'a str,
    /// False: a typical disk was assumed.
    disk_measured: bool,
    /// What was named of the directory, e.g. shop.orders; empty: all of it was looked at.
    named: &'a [String],
    /// What order would save a scan most first.
    files: Vec<FileSummary<'a>>,
    /// Of `--watch`: one entry per file and checkpoint.
    history: &'a [LayoutMoment],
}

/// One file. Figures that it lacks are null.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FileSummary<'a> {
    /// Of its leaves in `layout.parquet`.
    file_id: u32,
    /// Relative to the data directory.
    file: &'a str,
    /// `database.collection`; the table's name, or the collections in it, where there is no MongoDB catalogue.
    namespace: Option<&'a str>,
    /// The index's name, for indexes.
    index: Option<&'a str>,
    /// Why it has no figures; null when it has.
    not_measured: Option<&'a str>,
    /// The checkpoint that was read.
    checkpoint: &'a str,
    /// When it was taken: Unix time; 0 when unknown.
    checkpoint_time_s: u64,
    /// none, snappy, zlib, zstd, lz4 or what the metadata says.
    compressor: &'a str,
    file_bytes: u64,
    /// Leaves that a scan reads.
    leaf_pages: u64,
    leaf_bytes: u64,
    internal_pages: u64,
    internal_bytes: u64,
    /// Levels, leaves included: 1 for a tree that is a single leaf.
    depth: u32,
    /// Removed by a truncation; scans skip them.
    deleted_leaf_pages: u64,
    /// Large keys and values outside the leaves.
    overflow_bytes: Option<u64>,
    /// Free for reuse inside the file.
    free_bytes: u64,
    /// Their number.
    holes: u64,
    largest_hole_bytes: u64,
    /// Held by older checkpoints.
    pinned_bytes: Option<u64>,
    /// To find all this out.
    bytes_read: u64,
    /// In so many reads.
    reads: u64,
    /// Walks that had to be begun again because the server moved on.
    restarts: u32,
    /// Of the steps from leaf to leaf in key order, those without a gap.
    #[schemars(range(min = 0, max = 1))]
    contiguous_share: Option<f64>,
    /// Those that go on at most 128 KiB further; null with fewer than two leaves.
    #[schemars(range(min = 0, max = 1))]
    sequential_share: Option<f64>,
    /// Those that lead to a leaf that lies before: 0.5 is random.
    #[schemars(range(min = 0, max = 1))]
    backward_share: Option<f64>,
    /// Of a scan: 1 + the steps that are not sequential.
    seeks: Option<u64>,
    /// Of the same leaves in the order of their offsets.
    seeks_best: Option<u64>,
    bytes_per_seek: Option<f64>,
    /// Share of avoidable seeks that are avoided: 1 in order, 0 random.
    #[schemars(range(min = 0, max = 1))]
    score: Option<f64>,
    /// All figures of the order, with the distributions `run_lengths` (from bytes, runs) and `gaps` (from bytes,
    /// forward, backward).
    order: Option<&'a ScanOrder>,
    predicted_scan_s: Option<PredictedScanS>,
    /// MongoDB's count, approximate after a crash.
    documents: Option<u64>,
    document_bytes: Option<u64>,
    extents: Option<&'a DeviceExtents>,
    decay: Option<&'a OrderDecay>,
}

/// A cold scan in key order by one reader, seconds.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PredictedScanS {
    #[schemars(range(min = 0))]
    pub now: f64,
    /// A range that the truth of `now` should lie in.
    #[schemars(range(min = 0))]
    pub now_low: f64,
    #[schemars(range(min = 0))]
    pub now_high: f64,
    /// The same leaves rewritten in key order, without holes.
    #[schemars(range(min = 0))]
    pub ordered: f64,
    /// After `compact`, which removes holes but hardly changes the order.
    #[schemars(range(min = 0))]
    pub after_compact: f64,
}

impl<'a> LayoutSummary<'a> {
    /// Makes the summary of a record.
    pub fn of(layout: &'a LayoutMeasurement) -> Self {
        Self {
            path: &layout.path,
            state: layout.state,
            names: layout.names,
            wiredtiger_version: layout.wiredtiger_version.as_deref(),
            predicted_for: &layout.predicted_for,
            disk_measured: layout.disk_measured,
            named: &layout.named,
            files: layout.files.iter().map(FileSummary::of).collect(),
            history: &layout.history,
        }
    }
}

impl<'a> FileSummary<'a> {
    /// Makes the summary of a record.
    pub fn of(file: &'a LayoutFile) -> Self {
        let order = file.order.as_ref();
        Self {
            file_id: file.file_id,
            file: &file.file,
            namespace: file.namespace.as_deref(),
            index: file.index.as_deref(),
            not_measured: file.not_measured.as_deref(),
            checkpoint: &file.checkpoint,
            checkpoint_time_s: file.checkpoint_time_s,
            compressor: &file.compressor,
            file_bytes: file.file_bytes,
            leaf_pages: file.leaf_pages,
            leaf_bytes: file.leaf_bytes,
            internal_pages: file.internal_pages,
            internal_bytes: file.internal_bytes,
            depth: file.depth,
            deleted_leaf_pages: file.deleted_leaf_pages,
            overflow_bytes: file.overflow_bytes,
            free_bytes: file.free_bytes,
            holes: file.holes,
            largest_hole_bytes: file.largest_hole_bytes,
            pinned_bytes: file.pinned_bytes,
            bytes_read: file.bytes_read,
            reads: file.reads,
            restarts: file.restarts,
            contiguous_share: order.map(|o| o.contiguous_share),
            sequential_share: order.map(|o| o.sequential_share),
            backward_share: order.map(|o| o.backward_share),
            seeks: order.map(|o| o.seeks),
            seeks_best: order.map(|o| o.seeks_best),
            bytes_per_seek: order.map(|o| o.bytes_per_seek),
            score: order.map(|o| o.score),
            order,
            predicted_scan_s: file.predicted_scan.as_ref().map(|scan| PredictedScanS {
                now: scan.now_s,
                now_low: scan.now_low_s,
                now_high: scan.now_high_s,
                ordered: scan.ordered_s,
                after_compact: scan.after_compact_s,
            }),
            documents: file.documents,
            document_bytes: file.document_bytes,
            extents: file.extents.as_ref(),
            decay: file.decay.as_ref(),
        }
    }
}
