//! The figures of a layout run as JSON: `summary` of `run.json` and of `--json`. Names are stable;
//! see `docs/schema/layout.schema.json`.

use schemars::JsonSchema;
use seekscope_run::{
    DataState, DeviceExtents, LayoutFile, LayoutMeasurement, LayoutMember, LayoutMoment,
    NameSource, OrderDecay, ScanOrder,
};
use serde::Serialize;

/// How the leaf pages of the files are laid out, and what that costs a scan.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LayoutSummary<'a> {
    /// The data directory, or the single file.
    path: &'a str,
    state: DataState,
    names: NameSource,
    /// e.g. 11.3.0; null for a single file without its directory.
    wiredtiger_version: Option<&'a str>,
    /// The disk that scans were predicted for.
    predicted_for: &'a str,
    /// False if a typical disk was assumed.
    disk_measured: bool,
    /// What was named within the directory, e.g. shop.orders; if empty, all of it was examined.
    named: &'a [String],
    /// The members of a replica set or sharded cluster whose data was read; `path` is then its connection string.
    /// Absent otherwise.
    #[serde(skip_serializing_if = "<[LayoutMember]>::is_empty")]
    members: &'a [LayoutMember],
    /// Sorted by the time that order would save a scan, largest first.
    files: Vec<FileSummary<'a>>,
    /// The history that `--watch` recorded: one entry per file and checkpoint.
    history: &'a [LayoutMoment],
}

/// One file. Missing figures are null.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FileSummary<'a> {
    /// Also the id of its leaves in `layout.parquet`.
    file_id: u32,
    /// The member that it belongs to; absent where there is one server.
    #[serde(skip_serializing_if = "Option::is_none")]
    member: Option<&'a str>,
    /// Path relative to the data directory.
    file: &'a str,
    /// `database.collection`; without a MongoDB catalogue, the name of the table or the collections in it.
    namespace: Option<&'a str>,
    /// The index's name; null for other files.
    index: Option<&'a str>,
    /// Why there are no figures, or, for an empty file, none of leaves; null if there are.
    not_measured: Option<&'a str>,
    /// Name of the checkpoint that was read; null for a single file without its directory.
    checkpoint: Option<&'a str>,
    /// When that checkpoint was taken, seconds since 1970; null if unknown.
    checkpoint_time_s: Option<u64>,
    /// none, snappy, zlib, zstd, lz4 or what the metadata says.
    compressor: Option<&'a str>,
    file_bytes: Option<u64>,
    /// Number of leaves that a scan reads.
    leaf_pages: Option<u64>,
    leaf_bytes: Option<u64>,
    internal_pages: Option<u64>,
    internal_bytes: Option<u64>,
    /// Number of levels, leaves included: 1 for a tree that is a single leaf.
    depth: Option<u32>,
    /// Number of leaves removed by a truncation; scans skip them.
    deleted_leaf_pages: Option<u64>,
    /// Size of large keys and values outside the leaves; null if unknown.
    overflow_bytes: Option<u64>,
    /// Bytes free for reuse inside the file.
    free_bytes: Option<u64>,
    /// Number of free ranges inside the file.
    holes: Option<u64>,
    largest_hole_bytes: Option<u64>,
    /// Bytes held by older checkpoints; null if unknown.
    pinned_bytes: Option<u64>,
    /// Bytes read from the file to determine these figures.
    bytes_read: Option<u64>,
    /// Number of reads for that.
    reads: Option<u64>,
    /// Number of walks that had to be started again because the server moved on.
    restarts: Option<u32>,
    /// Share of the steps from leaf to leaf, in key order, without a gap; null with fewer than two leaves.
    #[schemars(range(min = 0, max = 1))]
    contiguous_share: Option<f64>,
    /// Share of these steps that continue at most 128 KiB further; null with fewer than two leaves.
    #[schemars(range(min = 0, max = 1))]
    sequential_share: Option<f64>,
    /// Share of these steps that lead to a leaf at a lower offset: 0.5 is random; null with fewer than two leaves.
    #[schemars(range(min = 0, max = 1))]
    backward_share: Option<f64>,
    /// Seeks of a scan: 1 + the number of steps that are not sequential; null with fewer than two leaves.
    seeks: Option<u64>,
    /// Seeks for the same leaves in the order of their offsets.
    seeks_best: Option<u64>,
    /// Bytes of leaves per seek.
    bytes_per_seek: Option<f64>,
    /// Share of avoidable seeks that are avoided: 1 in order, 0 random.
    #[schemars(range(min = 0, max = 1))]
    score: Option<f64>,
    /// All figures on the order, with the distributions `run_lengths` (from bytes, runs) and `gaps` (from bytes,
    /// forward, backward); null with fewer than two leaves.
    order: Option<&'a ScanOrder>,
    predicted_scan_s: Option<PredictedScanS>,
    /// Number of documents by MongoDB's count, approximate after a crash.
    documents: Option<u64>,
    /// Total size of these documents.
    document_bytes: Option<u64>,
    /// Where the file lies on the device; null if that could not be determined.
    extents: Option<&'a DeviceExtents>,
    decay: Option<&'a OrderDecay>,
}

/// Predicted time of a cold scan in key order by one reader, s.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PredictedScanS {
    #[schemars(range(min = 0))]
    pub now: f64,
    /// Lower end of the range that the true value of `now` should lie in.
    #[schemars(range(min = 0))]
    pub now_low: f64,
    /// Upper end of that range.
    #[schemars(range(min = 0))]
    pub now_high: f64,
    /// The time if the same leaves were rewritten in key order, without holes.
    #[schemars(range(min = 0))]
    pub ordered: f64,
    /// The time after `compact`, which removes holes but hardly changes the order.
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
            members: &layout.members,
            files: layout.files.iter().map(FileSummary::of).collect(),
            history: &layout.history,
        }
    }
}

impl<'a> FileSummary<'a> {
    /// Makes the summary of a record.
    pub fn of(file: &'a LayoutFile) -> Self {
        let order = file.order.as_ref();
        let walked = file.was_walked();
        let named = |name: &'a String| (!name.is_empty()).then_some(name.as_str());
        Self {
            file_id: file.file_id,
            member: file.member.as_deref(),
            file: &file.file,
            namespace: file.namespace.as_deref(),
            index: file.index.as_deref(),
            not_measured: file.not_measured.as_deref(),
            checkpoint: named(&file.checkpoint),
            checkpoint_time_s: (file.checkpoint_time_s > 0).then_some(file.checkpoint_time_s),
            compressor: named(&file.compressor),
            file_bytes: (walked || file.file_bytes > 0).then_some(file.file_bytes),
            leaf_pages: walked.then_some(file.leaf_pages),
            leaf_bytes: walked.then_some(file.leaf_bytes),
            internal_pages: walked.then_some(file.internal_pages),
            internal_bytes: walked.then_some(file.internal_bytes),
            depth: walked.then_some(file.depth),
            deleted_leaf_pages: walked.then_some(file.deleted_leaf_pages),
            overflow_bytes: file.overflow_bytes,
            free_bytes: walked.then_some(file.free_bytes),
            holes: walked.then_some(file.holes),
            largest_hole_bytes: walked.then_some(file.largest_hole_bytes),
            pinned_bytes: file.pinned_bytes,
            bytes_read: walked.then_some(file.bytes_read),
            reads: walked.then_some(file.reads),
            restarts: walked.then_some(file.restarts),
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
