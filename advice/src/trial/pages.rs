//! How large the pages of a stored sample are.
//!
//! WiredTiger compresses a page as a whole and wants blocks of `leaf_page_max` bytes. It finds the size of a page that
//! compresses to one by trying: from four times that on it makes pages smaller or larger by a tenth with each block that it
//! writes, but uses what it has learnt only when it writes the next part of the file, of several MB
//! (`__rec_compression_adjust` in `rec_write.c`). One such part has enough blocks for the whole way from the largest pages to
//! the smallest and back, so large files have both, and their mean is about twice a block however well they compress: 1.5
//! to 2 times in files of snappy and zstd whose blocks were 0.6 to 0.9 times as large as their documents. Only where the
//! largest pages hardly fill a block do they stay. The few parts of a sample have any mean, and another one with each load of
//! the same documents. A page image that may be no larger than a block (`memory_page_image_max`) keeps WiredTiger from
//! trying. So a sample is stored in such pages: once to see how well it compresses, and then with the mean of a large file.

use bson::{Document, doc};
use seekscope_run::units::parse_bytes;

use crate::collection::{self, COMPRESSOR, LEAF_PAGE_MAX};

/// The size of blocks where the target does not say it, bytes.
const BLOCK_BYTES: f64 = 32_768.0;
/// Sizes of pages are multiples of it, bytes.
const ALLOCATION_BYTES: f64 = 4_096.0;
/// How many times as large as a block the largest pages are.
const LARGEST: f64 = 4.0;
/// How many times as large as a block pages are on average between the smallest and the largest.
const BETWEEN: f64 = 2.0;
/// Part of a page that is filled when pages are written for the first time (`split_pct`).
const FILLED: f64 = 0.9;
/// Two compressors that differ by less do not differ.
const AS_SMALL: f64 = 0.05;

/// Returns the compressor of files that are made with these options; empty if their blocks are not compressed.
pub(super) fn compressor(create: &Document) -> &str {
    match setting(create, COMPRESSOR) {
        Some("none") | None => "",
        Some(name) => name,
    }
}

/// Returns the options with other settings of WiredTiger's table.
fn with_settings(create: &Document, new: &[(&str, String)]) -> Document {
    let is_new = |entry: &&str| {
        let name = entry.split('=').next();
        !entry.is_empty() && !new.iter().any(|(new, _)| Some(*new) == name)
    };
    let others = config(create).split(',').filter(is_new).map(String::from);
    let new = new.iter().map(|(name, value)| format!("{name}={value}"));
    let text: Vec<String> = others.chain(new).collect();
    let mut create = create.clone();
    create.insert(
        "storageEngine",
        doc! { "wiredTiger": { "configString": text.join(",") } },
    );
    create
}

/// Returns the options with another compressor.
pub(super) fn with_compressor(create: &Document, name: &str) -> Document {
    with_settings(create, &[(COMPRESSOR, name.into())])
}

/// Returns the options with pages of one size. All fit under the root, which is read when the file is opened.
pub(super) fn with_pages(create: &Document, page_bytes: f64) -> Document {
    let kib = (page_bytes / ALLOCATION_BYTES).round().max(1.0) * ALLOCATION_BYTES / 1_024.0;
    let names = [LEAF_PAGE_MAX, "internal_page_max", "memory_page_image_max"];
    let new = names.map(|name| (name, format!("{kib:.0}KB")));
    with_settings(create, &new)
}

/// Returns the settings of WiredTiger's table in the options of a collection.
fn config(create: &Document) -> &str {
    let engine = create.get_document("storageEngine");
    let table = engine.and_then(|engine| engine.get_document("wiredTiger"));
    let text = table.and_then(|table| table.get_str("configString"));
    text.unwrap_or_default()
}

fn setting<'a>(create: &'a Document, name: &str) -> Option<&'a str> {
    collection::setting(config(create), name)
}

/// Returns the size that blocks are to have, bytes.
fn block_bytes(create: &Document) -> f64 {
    let given = setting(create, LEAF_PAGE_MAX).and_then(bytes);
    given.unwrap_or(BLOCK_BYTES)
}

/// Reads a size as WiredTiger writes it, such as `32KB`.
fn bytes(text: &str) -> Option<f64> {
    parse_bytes(text).ok().map(|bytes| bytes as f64)
}

/// Returns the largest size of pages with which it is seen how well they compress, bytes.
pub(super) fn to_see(create: &Document) -> f64 {
    BETWEEN * block_bytes(create)
}

/// Returns the size of pages that stand for those of a large file, bytes. `compressed` are the bytes of blocks for each byte
/// of its documents, if they are compressed: those that do not get smaller stay as large as a block.
pub(super) fn of_large_file(create: &Document, compressed: Option<f64>) -> f64 {
    let block = block_bytes(create);
    match compressed {
        Some(compressed) if compressed < 1.0 => {
            let full = block / compressed.max(f64::MIN_POSITIVE) / FILLED;
            full.clamp(BETWEEN * block, LARGEST * block)
        }
        _ => block,
    }
}

/// Returns the largest size of pages that hold this much on average, bytes. A document that is larger has a page of its
/// own in any case.
pub(super) fn of_mean(create: &Document, page_bytes: f64) -> f64 {
    (page_bytes / FILLED).min(LARGEST * block_bytes(create))
}

/// Returns whether blocks that are this many times as small as their documents are as small as others.
pub(super) fn are_as_small(compressed: f64, other: f64) -> bool {
    (compressed / other.max(f64::MIN_POSITIVE) - 1.0).abs() <= AS_SMALL
}

#[cfg(test)]
mod tests {
    use super::*;

    fn create(text: &str) -> Document {
        doc! { "collation": { "locale": "de" }, "storageEngine": { "wiredTiger": { "configString": text } } }
    }

    #[test]
    fn new_settings_leave_the_others() {
        let given = create("block_compressor=snappy,leaf_page_max=16KB");
        let expected = create("leaf_page_max=16KB,block_compressor=zstd");
        assert_eq!(with_compressor(&given, "zstd"), expected);
        let expected = create(
            "block_compressor=snappy,leaf_page_max=60KB,internal_page_max=60KB,memory_page_image_max=60KB",
        );
        assert_eq!(with_pages(&given, 60_000.0), expected);
        assert_eq!(
            config(&with_compressor(&doc! {}, "zlib")),
            "block_compressor=zlib"
        );
    }

    #[test]
    fn pages_are_twice_a_block_unless_larger_ones_fit_or_nothing_is_gained() {
        let plain = doc! {};
        assert_eq!(to_see(&plain), 65_536.0);
        assert_eq!(of_large_file(&plain, None), BLOCK_BYTES);
        assert_eq!(of_large_file(&plain, Some(1.02)), BLOCK_BYTES);
        assert_eq!(of_large_file(&plain, Some(0.8)), BETWEEN * BLOCK_BYTES);
        let full = BLOCK_BYTES / 0.3 / FILLED;
        assert_eq!(of_large_file(&plain, Some(0.3)), full);
        assert_eq!(
            of_large_file(&create("leaf_page_max=16KB"), Some(0.05)),
            LARGEST * 16_384.0
        );
        assert_eq!(of_mean(&plain, 9_000.0), 10_000.0);
        assert_eq!(of_mean(&plain, 5e6), LARGEST * BLOCK_BYTES);
        assert_eq!(bytes("4(KB"), None);
        assert!(are_as_small(1.0, 0.98) && !are_as_small(0.5, 0.6));
    }

    #[test]
    fn blocks_may_not_be_compressed() {
        assert_eq!(compressor(&create("block_compressor=none")), "");
        assert_eq!(compressor(&create("block_compressor=snappy")), "snappy");
        assert_eq!(compressor(&doc! {}), "");
    }
}
