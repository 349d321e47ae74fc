//! Which files are walked beside a database that is being used, and how fast.

use std::cmp::Reverse;
use std::sync::atomic::AtomicBool;

use seekscope_doctor::is_internal;
use seekscope_layout::{DataDirectory, TableFile, WalkOptions};
use seekscope_run::{DataState, DeviceModel, FileRole, LayoutMeasurement};
use seekscope_server::FileMap;

use super::ScanDisks;

/// Maximum rate for internal pages, 4 to 32 KiB each, on any disk.
const READS_PER_S_MAX: u64 = 400;
/// Minimum rate on a slow disk, so that a walk still ends at some point.
const READS_PER_S_MIN: u64 = 5;
/// Share of the disk's capability, which belongs to the server.
const SHARE_OF_DISK: f64 = 0.05;
const PARALLEL_READS: usize = 4;
/// The largest files contain nearly everything.
const FILES_MAX: usize = 24;
/// The order of smaller files does not matter, unless they were asked for.
const FILE_BYTES_MIN: u64 = 1 << 20;

/// Returns how many pages the walk may read per second: a small share of the disk's random reads.
pub fn reads_per_s(model: &DeviceModel) -> u64 {
    let unlimited = f64::from(model.parallelism.max(1)) * 1e9 / model.l0_ns.max(1.0);
    let limit = model
        .iops_bucket
        .as_ref()
        .map_or(f64::INFINITY, |bucket| bucket.per_s);
    let share = unlimited.min(limit) * SHARE_OF_DISK;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to small positive numbers"
    )]
    let rate = share.clamp(READS_PER_S_MIN as f64, READS_PER_S_MAX as f64) as u64;
    rate
}

/// Returns the options for a walk at this rate.
pub fn walk_options(reads_per_s: u64, stop: &AtomicBool) -> WalkOptions<'_> {
    WalkOptions {
        parallel_reads: PARALLEL_READS,
        reads_per_s: Some(reads_per_s),
        stop,
        keep_pages: false,
    }
}

/// Returns the record of a walk that has not walked a file yet.
pub fn measurement(directory: &DataDirectory, disks: &ScanDisks) -> LayoutMeasurement {
    LayoutMeasurement {
        path: directory.path().display().to_string(),
        state: DataState::Live,
        names: directory.names,
        wiredtiger_version: directory.wiredtiger_version.clone(),
        predicted_for: disks.in_words(),
        disk_measured: disks.measured(),
        ..LayoutMeasurement::default()
    }
}

/// Returns the files of the `wanted` namespaces, followed by the largest collections and indexes; those of the server's
/// own databases, such as the oplog, come last.
pub fn largest_files<'a>(
    directory: &'a DataDirectory,
    names: &FileMap,
    wanted: &[String],
) -> Vec<&'a TableFile> {
    let rank = |table: &TableFile| {
        let own = table.namespace.as_ref();
        let told = || names.classify(table.file.as_ref()).1;
        let namespace = own.cloned().or_else(told).unwrap_or_default();
        (wanted.contains(&namespace), !is_internal(&namespace))
    };
    let mut tables: Vec<((bool, bool), u64, &TableFile)> = directory
        .tables()
        .iter()
        .filter(|table| holds_documents_or_keys(table))
        .map(|table| (rank(table), bytes_of(directory, table), table))
        .filter(|((is_wanted, _), bytes, _)| *is_wanted || *bytes >= FILE_BYTES_MIN)
        .collect();
    tables.sort_by_key(|(rank, bytes, _)| Reverse((*rank, *bytes)));
    tables.truncate(FILES_MAX);
    tables.into_iter().map(|(_, _, table)| table).collect()
}

fn holds_documents_or_keys(table: &TableFile) -> bool {
    let (role, _) = FileMap::default().classify(table.file.as_ref());
    matches!(role, FileRole::Collection | FileRole::Index)
}

/// Returns the size of a table's file; 0 if it is gone.
pub fn bytes_of(directory: &DataDirectory, table: &TableFile) -> u64 {
    let path = directory.path().join(&table.file);
    path.metadata().map_or(0, |metadata| metadata.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_takes_a_small_share_of_any_disk() {
        let disk = |parallelism, l0_ns| DeviceModel {
            parallelism,
            l0_ns,
            ..DeviceModel::default()
        };
        // A hard disk, a network volume of 3,000 reads per second, NVMe; and a model without information.
        assert_eq!(reads_per_s(&disk(1, 8e6)), 6);
        assert_eq!(reads_per_s(&disk(3, 1e6)), 150);
        assert_eq!(reads_per_s(&disk(32, 8e4)), 400);
        assert_eq!(reads_per_s(&disk(0, f64::NAN)), 400);
    }
}
