//! Predicts how long scans of the walked files take on the disk as the whole run shows it.
//!
//! The files are walked while the server is watched, but what the disk does for the server is known only
//! afterwards: its limits may have been reached, its latencies observed. So times that were predicted for a
//! disk other than the run's final opinion are predicted again, from the recorded leaves.

use std::collections::HashMap;

use anyhow::Result;
use seekscope_doctor::{Evidence, Scanning};
use seekscope_layout::scan_prediction::{ScanOptions, engine_ns_per_byte, predict_scan};
use seekscope_run::{
    CollectionFacts, DeviceModel, DiskAbility, HostFacts, LayoutFile, LayoutMeasurement,
    LeafRecord, PredictedScan, RunDirectory, RunDocument, TokenBucket,
};
use seekscope_wiredtiger::{Compressor, Leaf, LeafKind};

/// Scans that were observed, by file id.
pub type SeenScans = HashMap<u32, Scanning>;

/// Returns the observed scans of the walked files.
pub fn seen_scans(evidence: &Evidence<'_>) -> SeenScans {
    let layout = evidence.document.layout.iter();
    let files = layout.flat_map(|layout| &layout.files);
    let seen = files.filter_map(|file| Some((file.file_id, evidence.scanning(file)?)));
    seen.collect()
}

/// Brings the layout's predictions into line with the run's opinion of the disk.
pub fn predict(
    directory: &RunDirectory,
    document: &mut RunDocument,
    seen: &SeenScans,
) -> Result<()> {
    let opinion = document
        .examination
        .as_ref()
        .and_then(|examination| examination.disk_opinion.as_ref());
    let (Some(disk), Some(layout)) = (opinion, &mut document.layout) else {
        return Ok(());
    };
    if layout.predicted_for == disk.model.disk {
        return Ok(());
    }
    let host = document.host.clone().unwrap_or_default();
    let examined = document.examination.as_ref().and_then(|e| e.examined());
    let mut files = Files {
        layout,
        collections: examined.map_or(&[], |member| &member.collections),
        disk,
        host: &host,
        seen,
        current: None,
    };
    directory.for_each_leaf(|_| true, |leaf| files.leaf(leaf))?;
    files.finish();
    layout.predicted_for.clone_from(&disk.model.disk);
    layout.disk_measured = disk.measured;
    sort(&mut layout.files);
    Ok(())
}

/// Takes leaves file by file, as they were written, holding those of one file at a time.
struct Files<'a> {
    layout: &'a mut LayoutMeasurement,
    collections: &'a [CollectionFacts],
    disk: &'a DiskAbility,
    host: &'a HostFacts,
    seen: &'a SeenScans,
    current: Option<(u32, Vec<Leaf>)>,
}

impl Files<'_> {
    fn leaf(&mut self, record: &LeafRecord) {
        let leaf = Leaf {
            offset: record.offset,
            length: record.length,
            kind: LeafKind::Plain,
        };
        match &mut self.current {
            Some((file_id, leaves)) if *file_id == record.file_id => leaves.push(leaf),
            _ => {
                self.finish();
                self.current = Some((record.file_id, vec![leaf]));
            }
        }
    }

    fn finish(&mut self) {
        let Some((file_id, leaves)) = self.current.take() else {
            return;
        };
        let mut files = self.layout.files.iter_mut();
        let Some(file) = files.find(|file| file.file_id == file_id) else {
            return;
        };
        let options = ScanOptions {
            reader_ns_per_byte: engine_ns_per_byte(
                compressor(file),
                document_bytes(file, self.collections),
                file.leaf_bytes,
            ),
            idle_is_paged_out: self.host.idle_is_paged_out,
            direct: self.disk.read_directly,
            ..ScanOptions::with_memory(self.host.memory_bytes)
        };
        let model = &self.disk.model;
        let mut predicted = predict_scan(model, &leaves, file.file_bytes, &options);
        if let Some(seen) = self.seen.get(&file_id) {
            let engine_s = options.reader_ns_per_byte * file.leaf_bytes as f64 / 1e9;
            let count = leaves.len() as f64;
            believe(&mut predicted, seen, count, engine_s, model);
        }
        file.predicted_scan = Some(predicted);
    }
}

/// The most requests, over the predicted ones, of reads that can be such a scan: more are reads of single pages.
const MORE_MAX: f64 = 1.25;

/// Corrects the prediction for a file of this many leaves by the scans of it that were observed. `engine_s` is
/// what the server itself spends on such a scan.
fn believe(
    scan: &mut PredictedScan,
    seen: &Scanning,
    leaves: f64,
    engine_s: f64,
    model: &DeviceModel,
) {
    let Some(requests) = seen.requests_per_page.map(|per_page| per_page * leaves) else {
        return;
    };
    let is_like_it = requests <= MORE_MAX * scan.device_requests as f64;
    let reading_s = seen.page_latency_ns * leaves / 1e9;
    let is_told = seen.is_whole || reading_s > scan.now_s - engine_s;
    if seen.is_cold_and_alone && is_like_it && is_told {
        take_as_long(scan, reading_s, engine_s);
    } else if let Some(limit) = model.iops_bucket.filter(|limit| limit.per_s > 0.0) {
        take_as_many(scan, requests, limit);
    }
}

/// Makes the reads of a scan take as long as those of observed scans did, and those in other orders as much
/// longer or shorter. The model knows little of a disk that was only watched: most of all, how much of what is
/// read ahead it serves at once.
fn take_as_long(scan: &mut PredictedScan, reading_s: f64, engine_s: f64) {
    let predicted_s = scan.now_s - engine_s;
    if predicted_s <= 0.0 || reading_s <= 0.0 {
        return;
    }
    let times = reading_s / predicted_s;
    for seconds in [
        &mut scan.now_s,
        &mut scan.now_low_s,
        &mut scan.now_high_s,
        &mut scan.ordered_s,
        &mut scan.after_compact_s,
    ] {
        *seconds = engine_s + (*seconds - engine_s).max(0.0) * times;
    }
}

/// Raises a prediction to the observed number of requests. A page that is partly in memory takes several
/// requests, and no simulation tells which parts the kernel has given up. Scans that were seen to need more
/// requests than predicted will need them again, and no more of them are served per second than the limit
/// allows.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates, and is not negative"
)]
fn take_as_many(scan: &mut PredictedScan, requests: f64, limit: TokenBucket) {
    let seconds = requests / limit.per_s;
    if seconds > scan.now_s {
        scan.device_requests = scan.device_requests.max(requests as u64);
        // The width of the range is kept.
        scan.now_high_s *= seconds / scan.now_s.max(1e-9);
        scan.now_s = seconds;
    }
}

/// Returns the size of the file's documents: as the data directory says, else as the server counts them.
fn document_bytes(file: &LayoutFile, collections: &[CollectionFacts]) -> Option<u64> {
    let told = || {
        let namespace = file.namespace.as_deref().filter(|_| file.index.is_none())?;
        let collection = collections.iter().find(|c| c.namespace == namespace)?;
        Some(collection.data_bytes)
    };
    file.document_bytes.or_else(told)
}

/// Returns the file's compressor; if unknown, MongoDB's default.
fn compressor(file: &LayoutFile) -> Compressor {
    let known = [
        Compressor::None,
        Compressor::Snappy,
        Compressor::Zlib,
        Compressor::Zstd,
        Compressor::Lz4,
    ];
    let named = known.into_iter().find(|c| c.name() == file.compressor);
    named.unwrap_or(Compressor::Snappy)
}

/// Sorts files by what order would save, the largest saving first.
fn sort(files: &mut [LayoutFile]) {
    files.sort_by(|a, b| b.scan_saved_s().total_cmp(&a.scan_saved_s()));
}

#[cfg(test)]
mod tests {
    use seekscope_run::{ExaminationRecord, HostFacts, PredictedScan, TokenBucket};

    use super::*;

    const LEAVES: u64 = 2000;
    const LEAF_BYTES: u64 = 32_768;

    fn ability(disk: &str, iops: f64) -> DiskAbility {
        let mut model = seekscope_layout::typical_disks::cloud_volume().model;
        model.disk = disk.into();
        model.iops_bucket = Some(TokenBucket {
            per_s: iops,
            burst: 0.0,
        });
        DiskAbility {
            model,
            ..DiskAbility::default()
        }
    }

    fn seen(requests_per_page: f64) -> Scanning {
        Scanning {
            requests_per_page: Some(requests_per_page),
            page_latency_ns: 1e6,
            is_cold_and_alone: true,
            is_whole: true,
            ..Scanning::default()
        }
    }

    #[test]
    fn requests_that_were_seen_are_believed() {
        let model = ability("limited", 150.0).model;
        let predicted = PredictedScan {
            now_s: 20.0,
            now_high_s: 25.0,
            now_low_s: 16.0,
            device_requests: 3000,
            ..PredictedScan::default()
        };
        let of_several = |requests_per_page| Scanning {
            is_cold_and_alone: false,
            ..seen(requests_per_page)
        };
        let mut more = predicted.clone();
        believe(&mut more, &of_several(1.5), 3000.0, 0.0, &model);
        assert_eq!((more.now_s, more.device_requests), (30.0, 4500));
        assert_eq!((more.now_low_s, more.now_high_s), (16.0, 37.5));
        let mut fewer = predicted.clone();
        believe(&mut fewer, &of_several(0.6), 3000.0, 0.0, &model);
        let unlimited = DeviceModel {
            iops_bucket: None,
            ..model
        };
        let mut quick = predicted.clone();
        believe(&mut quick, &of_several(1.5), 3000.0, 0.0, &unlimited);
        assert_eq!((&fewer, &quick), (&predicted, &predicted));
    }

    #[test]
    fn the_time_of_scans_that_were_seen_is_believed() {
        let unlimited = DeviceModel::default();
        let predicted = PredictedScan {
            now_s: 6.5,
            now_low_s: 4.5,
            now_high_s: 8.5,
            ordered_s: 2.5,
            after_compact_s: 6.5,
            device_requests: 3000,
            ..PredictedScan::default()
        };
        let with = |seen: &Scanning| {
            let mut scan = predicted.clone();
            believe(&mut scan, seen, 3000.0, 0.5, &unlimited);
            scan
        };
        // 3 s of reading where 6 were predicted, and half a second of the server's own.
        let scan = with(&seen(0.9));
        assert_eq!((scan.now_s, scan.ordered_s), (3.5, 1.5));
        assert_eq!((scan.now_low_s, scan.now_high_s), (2.5, 4.5));
        let warm = Scanning {
            is_cold_and_alone: false,
            ..seen(0.9)
        };
        let of_single_pages = seen(1.3);
        let uncounted = Scanning {
            requests_per_page: None,
            ..seen(0.9)
        };
        // The end of a scan finds more in the page cache than all of it.
        let part = Scanning {
            is_whole: false,
            ..seen(0.9)
        };
        for other in [warm, of_single_pages, uncounted, part.clone()] {
            assert_eq!(with(&other), predicted, "{other:?}");
        }
        let slower = Scanning {
            page_latency_ns: 3e6,
            ..part
        };
        assert_eq!(with(&slower).now_s, 9.5, "at least that");
    }

    #[test]
    fn a_limit_that_was_seen_decides_the_seconds() {
        let folder = tempfile::tempdir().unwrap();
        let mut document = RunDocument::begin("doctor", Vec::new());
        let directory = RunDirectory::create(&folder.path().join("run"), &document).unwrap();
        let mut writer = directory.leaf_writer().unwrap();
        for file_id in [7, 8] {
            for ordinal in 0..LEAVES {
                // One file in an order that nothing guesses, and one in file order.
                let step = if file_id == 7 { 619 } else { 1 };
                let place = ordinal * step % LEAVES;
                writer
                    .leaf(LeafRecord {
                        file_id,
                        ordinal,
                        offset: 4096 + place * LEAF_BYTES,
                        length: 32_768,
                    })
                    .unwrap();
            }
        }
        writer.finish().unwrap();
        document.host = Some(HostFacts {
            memory_bytes: 8 << 30,
            ..HostFacts::default()
        });
        document.examination = Some(ExaminationRecord {
            disk_opinion: Some(ability("limited", 150.0)),
            ..ExaminationRecord::default()
        });
        let file = |file_id| LayoutFile {
            file_id,
            file_bytes: (LEAVES + 1) * LEAF_BYTES,
            leaf_pages: LEAVES,
            predicted_scan: Some(PredictedScan::default()),
            ..LayoutFile::default()
        };
        document.layout = Some(LayoutMeasurement {
            predicted_for: "typical".into(),
            files: vec![file(8), file(7)],
            ..LayoutMeasurement::default()
        });
        predict(&directory, &mut document, &HashMap::new()).unwrap();
        let layout = document.layout.clone().unwrap();
        assert_eq!(layout.predicted_for, "limited");
        assert_eq!(layout.files[0].file_id, 7, "the most to gain first");
        let scan = layout.files[0].predicted_scan.clone().unwrap();
        assert!((12.5..15.0).contains(&scan.now_s), "{scan:?}");
        // The second time nothing changes, whatever the prediction is.
        document.layout.as_mut().unwrap().files[0].predicted_scan = None;
        predict(&directory, &mut document, &HashMap::new()).unwrap();
        assert_eq!(document.layout.unwrap().files[0].predicted_scan, None);
    }
}
