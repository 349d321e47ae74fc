//! Predicts how long reading a collection takes: from its walked layout, or from its size and the device
//! model.

use seekscope_run::{CollectionFacts, DeviceModel, LayoutFile};

use super::work::Span;

/// Size of WiredTiger's leaves before compression in MongoDB (`leaf_page_max`).
const LEAF_BYTES: f64 = 32.0 * 1024.0;
/// Blocks on disk are multiples of this (`allocation_size`).
const BLOCK_BYTES: f64 = 4096.0;

/// Time to read one collection, cold, by one reader.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Reading {
    pub(super) span: Span,
    /// Time if disk order were key order, s.
    pub(super) ordered_s: Option<f64>,
    pub(super) basis: String,
}

/// Predicts from the leaves' actual positions.
pub(super) fn by_layout(file: &LayoutFile, disk: &str) -> Option<Reading> {
    let scan = file.predicted_scan.as_ref()?;
    Some(Reading {
        span: Span {
            low_s: scan.now_low_s.min(scan.now_s),
            expected_s: scan.now_s,
            high_s: scan.now_high_s.max(scan.now_s),
        },
        ordered_s: Some(scan.ordered_s),
        basis: format!("layout walked, {disk}"),
    })
}

/// Predicts from the size: in order at best, every leaf a seek at worst. The expected value is the geometric
/// mean of the two, because the order is not known.
pub(super) fn by_size(
    collection: &CollectionFacts,
    model: &DeviceModel,
    disk: &str,
) -> Option<Reading> {
    let free = collection.reusable_bytes.unwrap_or(0);
    let used_bytes = collection.storage_bytes.saturating_sub(free) as f64;
    let stream = match model.buffered_bytes_per_s {
        rate if rate > 0.0 => rate,
        _ => model.sequential_bytes_per_s,
    };
    (used_bytes > 0.0 && stream > 0.0).then_some(())?;
    let leaf_bytes = leaf_bytes(collection, used_bytes);
    let leaves = used_bytes / leaf_bytes;
    let read_s = (model.l0_ns + model.miss_ns + leaf_bytes * model.ns_per_byte) / 1e9;
    let limit_s = model
        .iops_bucket
        .map_or(0.0, |bucket| 1.0 / bucket.per_s.max(1.0));
    let stream = match model.bytes_bucket {
        Some(bucket) if bucket.per_s > 0.0 => stream.min(bucket.per_s),
        _ => stream,
    };
    let low_s = used_bytes / stream;
    let high_s = (leaves * read_s.max(limit_s)).max(low_s);
    Some(Reading {
        span: Span {
            low_s,
            expected_s: (low_s * high_s).sqrt(),
            high_s,
        },
        ordered_s: Some(low_s),
        basis: format!("size, {disk}; the order on disk is not known"),
    })
}

/// Returns the size of a leaf on disk, by how far the collection compresses.
fn leaf_bytes(collection: &CollectionFacts, used_bytes: f64) -> f64 {
    let compression = (used_bytes / collection.data_bytes.max(1) as f64).clamp(0.05, 1.0);
    let documents = collection.documents.max(1) as f64;
    let document_bytes = collection.data_bytes as f64 / documents;
    (LEAF_BYTES.max(document_bytes) * compression).max(BLOCK_BYTES)
}
