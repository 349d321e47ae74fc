//! How the leaves of a file lie on the disk, as a walk over its internal pages found them.

use std::cmp::Reverse;

use seekscope_run::units::whole;

use crate::files::FileName;
use crate::metrics::{
    LAYOUT_FILE_BYTES, LAYOUT_FREE_BYTES, LAYOUT_LEAF_PAGES, LAYOUT_ORDER_SCORE,
    LAYOUT_SCAN_SECONDS,
};
use crate::page::Page;

/// The most series that one file has.
const SERIES: usize = 6;

/// What a walk found of one file. What it could not find is `None`.
#[derive(Debug, Clone, PartialEq)]
pub struct FileLayout {
    pub name: FileName,
    /// The share (0 to 1) of the avoidable seeks of a scan that are avoided.
    pub order_score: Option<f64>,
    /// Predicted time of a scan from a cold cache, seconds.
    pub scan_now_s: Option<f64>,
    /// The same after the leaves were rewritten in the order of their keys, seconds.
    pub scan_restored_s: Option<f64>,
    pub file_bytes: u64,
    pub free_bytes: u64,
    pub leaf_pages: u64,
}

impl FileLayout {
    fn saved_s(&self) -> f64 {
        match (self.scan_now_s, self.scan_restored_s) {
            (Some(now), Some(restored)) => (now - restored).max(0.0),
            _ => 0.0,
        }
    }
}

/// Returns the files for which there is room: those whose scans would gain most, then the largest. Files that share
/// a name, as those that nothing names do, are left out: their figures cannot be told apart.
pub(crate) fn bounded(mut files: Vec<FileLayout>, series_max: usize) -> Vec<FileLayout> {
    files.retain(|file| !file.name.is_nameless());
    let gain_ms = |file: &FileLayout| whole(file.saved_s() * 1e3);
    files.sort_by_key(|file| Reverse((gain_ms(file), file.file_bytes)));
    files.truncate(series_max / SERIES);
    files.sort_by(|a, b| a.name.cmp(&b.name));
    files.dedup_by(|a, b| a.name == b.name);
    files
}

/// Returns the number of their series.
pub(crate) fn series(files: &[FileLayout]) -> usize {
    let mut page = Page::default();
    add_to(&mut page, "", files);
    page.series()
}

pub(crate) fn add_to(page: &mut Page, server: &str, files: &[FileLayout]) {
    for file in files {
        let labels = file.name.labels(server);
        if let Some(score) = file.order_score {
            page.add(&LAYOUT_ORDER_SCORE, labels.clone(), score);
        }
        for (order, seconds) in [("now", file.scan_now_s), ("restored", file.scan_restored_s)] {
            if let Some(seconds) = seconds {
                let mut labels = labels.clone();
                labels.push(("order", order.into()));
                page.add(&LAYOUT_SCAN_SECONDS, labels, seconds);
            }
        }
        page.add(&LAYOUT_FILE_BYTES, labels.clone(), file.file_bytes as f64);
        page.add(&LAYOUT_FREE_BYTES, labels.clone(), file.free_bytes as f64);
        page.add(&LAYOUT_LEAF_PAGES, labels, file.leaf_pages as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(collection: &str, saved_s: f64, file_bytes: u64) -> FileLayout {
        FileLayout {
            name: FileName::of_collection(collection),
            order_score: Some(0.5),
            scan_now_s: Some(saved_s + 1.0),
            scan_restored_s: Some(1.0),
            file_bytes,
            free_bytes: 0,
            leaf_pages: 9,
        }
    }

    #[test]
    fn the_largest_gains_have_room() {
        let files = vec![
            file("a.small", 0.0, 5),
            file("a.large", 0.0, 7),
            file("a.drifted", 3.0, 1),
            file("", 9.0, 1),
        ];
        let kept = bounded(files, 2 * SERIES + 1);
        let names: Vec<&str> = kept.iter().map(|f| f.name.collection.as_str()).collect();
        assert_eq!(names, ["a.drifted", "a.large"]);
        let mut page = Page::default();
        add_to(&mut page, "a:1", &kept);
        assert_eq!(page.series(), 2 * SERIES);
    }
}
