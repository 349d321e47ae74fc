//! How the leaf pages of a database's files are laid out: what `layout` finds out, for later commands.
//!
//! A leaf page is a block of rows. Key order is the order in which a scan visits leaves, disk order
//! is ascending file offset. All sizes are bytes, shares are 0 to 1, times seconds where named so.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One leaf page: a row of `layout.parquet`. Leaves deleted by a truncation are left out, as scans leave them
/// out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeafRecord {
    pub file_id: u32,
    /// Position in key order, from 0.
    pub ordinal: u64,
    /// Byte offset in the file.
    pub offset: u64,
    /// Bytes of the block on disk: compressed, with padding.
    pub length: u32,
}

/// State in which the data directory was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "snake_case")]
pub enum DataState {
    /// No process had it open.
    #[default]
    Stopped,
    /// A server was running on it; the figures of each file are for one checkpoint.
    Live,
    /// A copy made through a backup cursor: it contains `WiredTiger.backup`.
    Backup,
    /// A single file without its directory.
    LoneFile,
}

/// The source of the names of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "snake_case")]
pub enum NameSource {
    /// MongoDB's catalogue (`_mdb_catalog.wt`).
    Catalogue,
    /// The catalogue could not be read; MongoDB up to 4.2 also notes indexes in the metadata.
    IndexMetadata,
    /// No MongoDB: tables are shown by their own names.
    #[default]
    TableNames,
}

/// What `layout` found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct LayoutMeasurement {
    /// The data directory, or the lone file.
    pub path: String,
    pub state: DataState,
    pub names: NameSource,
    /// e.g. "11.3.0"; `None` for a lone file.
    pub wiredtiger_version: Option<String>,
    /// The disk that scans were predicted for: "ext4 on vda, measured …" or "typical SSD …"; where members have
    /// different ones, all of them.
    pub predicted_for: String,
    /// False if the disk is a typical one, not measured.
    pub disk_measured: bool,
    /// What was named within the directory, e.g. "shop.orders"; if empty, all of it was examined.
    pub named: Vec<String>,
    /// The members of a replica set or sharded cluster whose data was read; `path` is then its connection string.
    /// Otherwise empty.
    pub members: Vec<LayoutMember>,
    /// Sorted by what order would save, largest first.
    pub files: Vec<LayoutFile>,
    /// The history that `--watch` recorded: one entry per file and checkpoint, in time order.
    pub history: Vec<LayoutMoment>,
}

impl LayoutMeasurement {
    /// Returns whether scans were predicted for a disk of a common kind, that is, for none that was measured or seen at
    /// work, nor for one with limits that were found.
    pub fn is_for_typical_disk(&self) -> bool {
        self.is_of_guessed_disk() && !self.is_limited()
    }

    /// The same, with limits that were found or without.
    pub fn is_of_guessed_disk(&self) -> bool {
        !self.disk_measured && self.predicted_for.starts_with("typical ")
    }

    /// Returns whether scans were predicted with limits on the server's I/O that were found.
    pub fn is_limited(&self) -> bool {
        self.predicted_for.contains(", limited to ")
    }
}

/// A member whose data was read, where there may be several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct LayoutMember {
    /// What stands in front of its files' names: the name of its shard, `host:port`, or `shard@host:port`.
    pub member: String,
    /// The shard it belongs to; null for members of a replica set that is no shard.
    pub shard: Option<String>,
    /// Its data directory.
    pub path: String,
    /// The disk that scans of its files were predicted for; empty in older runs, which predicted for the first
    /// member's disk alone.
    pub predicted_for: String,
}

/// One file of the database.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct LayoutFile {
    /// Also the id of its leaves in `layout.parquet`.
    pub file_id: u32,
    /// The member that it belongs to, where there may be several; see [`LayoutMember`].
    pub member: Option<String>,
    /// Relative to the data directory, e.g. "shop/collection-7-12.wt".
    pub file: String,
    /// `database.collection` if known; the table's name if there is no catalogue.
    pub namespace: Option<String>,
    /// The index's name, for indexes.
    pub index: Option<String>,
    /// Why it has no figures: never checkpointed, encrypted, damaged. `None` if it has them.
    pub not_measured: Option<String>,
    /// The checkpoint that was read, e.g. "WiredTigerCheckpoint.12", and when it was taken (seconds since 1970;
    /// 0 if unknown).
    pub checkpoint: String,
    pub checkpoint_time_s: u64,
    /// "none", "snappy", "zlib", "zstd", "lz4" or the word in the metadata.
    pub compressor: String,

    pub file_bytes: u64,
    /// Leaves that a scan reads.
    pub leaf_pages: u64,
    pub leaf_bytes: u64,
    pub internal_pages: u64,
    pub internal_bytes: u64,
    /// Levels, leaves included: 1 for a tree that is a single leaf.
    pub depth: u32,
    /// Leaves that a truncation removed but whose blocks are still there; a scan skips them.
    pub deleted_leaf_pages: u64,
    /// Large keys and values outside the leaves; `None` if unknown.
    pub overflow_bytes: Option<u64>,
    /// Bytes free for reuse inside the file, the number of such holes, and the largest.
    pub free_bytes: u64,
    pub holes: u64,
    pub largest_hole_bytes: u64,
    /// The part of the free bytes after the last block, which the file's next checkpoint can cut off. `None` in
    /// records of older builds.
    pub free_at_end_bytes: Option<u64>,
    /// The part of the free bytes in holes that begin in the first 80 % and 90 % of the file, which WiredTiger
    /// goes by when it is asked to compact. `None` in records of older builds.
    pub free_in_first_80_percent_bytes: Option<u64>,
    pub free_in_first_90_percent_bytes: Option<u64>,
    /// Bytes that none of the above explains: blocks that an older checkpoint holds; `None` if unknown.
    pub pinned_bytes: Option<u64>,

    /// Bytes requested from the file to find all this out, and the number of reads.
    pub bytes_read: u64,
    pub reads: u64,
    /// Walks that had to be begun again because the server moved on.
    pub restarts: u32,

    /// The order of the leaves; `None` with fewer than two.
    pub order: Option<ScanOrder>,
    pub predicted_scan: Option<PredictedScan>,
    /// MongoDB's count, approximate after a crash, and the bytes of its documents.
    pub documents: Option<u64>,
    pub document_bytes: Option<u64>,
    /// How the file lies on the device, if that could be asked.
    pub extents: Option<DeviceExtents>,
    pub decay: Option<OrderDecay>,
}

impl LayoutFile {
    /// Returns whether the file was read; if not, its figures are unknown although they are 0 here.
    pub fn was_walked(&self) -> bool {
        !self.compressor.is_empty()
    }

    /// Returns whether its leaves are of large documents, each of its own: such leaves the server places where it finds
    /// room, whatever the order in which they are written. After copies of documents of 4 MB each 5 to 8 % of the steps
    /// were sequential, of 16 MB none (mongod 4.4.6).
    pub fn has_large_leaves(&self) -> bool {
        const LARGE_BYTES: u64 = 1 << 20;
        self.leaf_pages > 0 && self.leaf_bytes >= LARGE_BYTES.saturating_mul(self.leaf_pages)
    }

    /// Returns the seconds of a cold scan that order would save; 0 if nothing was predicted.
    pub fn scan_saved_s(&self) -> f64 {
        let scan = self.predicted_scan.as_ref();
        scan.map_or(0.0, |scan| (scan.now_s - scan.ordered_s).max(0.0))
    }
}

/// How the key order and the disk order of a file's leaves compare. With N leaves in key order, leaf i from offset
/// oᵢ to eᵢ, the gap gᵢ is oᵢ₊₁ − eᵢ; W is the read-ahead window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct ScanOrder {
    /// W, the read-ahead window, bytes.
    pub window_bytes: u64,
    /// Share of pairs with g = 0 (0 to 1).
    #[schemars(range(min = 0, max = 1))]
    pub contiguous_share: f64,
    /// Share of pairs with 0 ≤ g ≤ W (0 to 1): the next read falls inside read-ahead.
    #[schemars(range(min = 0, max = 1))]
    pub sequential_share: f64,
    /// Share of pairs in which the next leaf lies before this one (0 to 1): 0.5 is random.
    #[schemars(range(min = 0, max = 1))]
    pub backward_share: f64,
    /// Number of stretches of leaves without any gap.
    pub runs: u64,
    /// Mean length of these stretches, bytes.
    pub mean_run_bytes: f64,
    /// R, the number of seeks: 1 + the number of pairs with g outside [0, W].
    pub seeks: u64,
    /// R_best, the number of seeks for the same leaves in the order of their offsets.
    pub seeks_best: u64,
    /// Bytes of leaves per seek.
    pub bytes_per_seek: f64,
    /// 1 − (R − R_best) / (N − R_best), 0 to 1: the share of avoidable seeks that are avoided.
    #[schemars(range(min = 0, max = 1))]
    pub score: f64,
    /// Mean of |g| over the pairs that are seeks, bytes.
    pub mean_seek_distance_bytes: f64,
    /// Median of |g| over the pairs that are seeks, bytes.
    pub median_seek_distance_bytes: u64,
    /// Kendall's τ of the offsets' ranks, −1 to 1: global drift. Scan cost depends on local runs, so this is not
    /// the headline figure.
    pub kendall_tau: f64,
    /// Spearman's ρ of the offsets' ranks, −1 to 1.
    pub spearman_rho: f64,
    /// Number of stretches without a gap by length: (from this many bytes, stretches), by powers of two.
    pub run_lengths: Vec<(u64, u64)>,
    /// Number of pairs by gap: (from this many bytes, forward pairs, backward pairs), for 0 and powers of two.
    pub gaps: Vec<(u64, u64, u64)>,
}

impl ScanOrder {
    /// The score from which on leaves are called in order: what a scan seeks then are gaps between them, which no order
    /// spares, and which may be many.
    pub const IN_ORDER_SCORE: f64 = 0.95;
    /// Share of sequential steps from which on the kernel's own read-ahead brings what a scan comes to next.
    const IN_ORDER_SHARE: f64 = 0.9;

    /// Returns whether the leaves lie in the order of a scan, so that nothing is gained by rewriting them or by reading
    /// them ahead.
    pub fn is_in_order(&self) -> bool {
        self.sequential_share > Self::IN_ORDER_SHARE
    }
}

/// What a cold scan in key order would take, seconds, by one reader.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct PredictedScan {
    pub now_s: f64,
    /// The same leaves rewritten in key order, without holes.
    pub ordered_s: f64,
    /// The time after `compact`, which removes holes but hardly changes the order.
    pub after_compact_s: f64,
    /// A range that the true value of `now_s` should lie in.
    pub now_low_s: f64,
    pub now_high_s: f64,
    /// What would be requested from the disk, read-ahead included.
    pub device_requests: u64,
    pub device_bytes: u64,
    /// Leaves that were simulated; fewer than there are if a sample stands for the whole.
    pub simulated_leaf_pages: u64,
}

/// Where the file's bytes lie on the device, from the filesystem's own map (FIEMAP).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct DeviceExtents {
    /// Number of extents.
    pub extents: u64,
    /// Mean length of an extent, bytes.
    pub mean_extent_bytes: f64,
    /// Number of steps from one extent to the next, in file order, that jump on the device.
    pub breaks: u64,
    /// Share of the sequential pairs of leaves between which the device must seek nevertheless (0 to 1).
    #[schemars(range(min = 0, max = 1))]
    pub broken_pairs_share: f64,
    /// Whether the prediction used places on the device instead of offsets in the file.
    pub used_for_prediction: bool,
}

/// How fast the order of a file decays: with N leaves, u random single-document updates move the
/// share f = 1 − (1 − 1/N)^u of them, and contiguity becomes c₀ (1 − f)².
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct OrderDecay {
    /// Source of the rate, e.g. "two snapshots 60 s apart" or "--updates-per-hour 1000".
    pub basis: String,
    /// Share of the leaves that move per hour (0 to 1).
    #[schemars(range(min = 0, max = 1))]
    pub moved_share_per_hour: f64,
    /// Hours until half of the remaining sequential share is gone; `None` if that is not in sight.
    #[schemars(range(min = 0))]
    pub half_life_hours: Option<f64>,
    /// Contiguous share now (0 to 1); for an order that is to be restored, right after that.
    #[schemars(range(min = 0, max = 1))]
    pub contiguous_now: f64,
    /// Contiguous share expected after an hour.
    #[schemars(range(min = 0, max = 1))]
    pub contiguous_after_hour: f64,
    /// Contiguous share expected after a day.
    #[schemars(range(min = 0, max = 1))]
    pub contiguous_after_day: f64,
    /// Contiguous share expected after a week.
    #[schemars(range(min = 0, max = 1))]
    pub contiguous_after_week: f64,
}

/// One file at one checkpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct LayoutMoment {
    /// Time of the observation, CLOCK_MONOTONIC ns.
    pub t_ns: u64,
    pub file_id: u32,
    pub checkpoint: String,
    pub leaf_pages: u64,
    pub file_bytes: u64,
    pub free_bytes: u64,
    #[schemars(range(min = 0, max = 1))]
    pub contiguous_share: f64,
    #[schemars(range(min = 0, max = 1))]
    pub sequential_share: f64,
    pub seeks: u64,
    #[schemars(range(min = 0, max = 1))]
    pub score: f64,
    /// Number of leaves at an offset where the previous observation had none.
    pub moved_leaf_pages: u64,
}
