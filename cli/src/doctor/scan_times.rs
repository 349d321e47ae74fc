//! Predicts how long scans of the walked files take on the disk as the whole run shows it.
//!
//! The files are walked while the server is watched, but what the disk does for the server is known only
//! afterwards: its limits may have been reached, its latencies observed. So times that were predicted for a
//! disk other than the run's final opinion are predicted again, from the recorded leaves.

use std::collections::HashMap;

use anyhow::Result;
use seekscope_doctor::Evidence;
use seekscope_layout::scan_prediction::{ScanOptions, engine_ns_per_byte, predict_scan};
use seekscope_run::{
    DeviceModel, HostFacts, LayoutFile, LayoutMeasurement, LeafRecord, PredictedScan, RunDirectory,
    RunDocument,
};
use seekscope_wiredtiger::{Compressor, Leaf, LeafKind};

/// Requests that the disk received per page of a file, by file id, where scans of it were observed.
pub type SeenRequests = HashMap<u32, f64>;

/// Returns the observed requests of the walked files.
pub fn seen_requests(evidence: &Evidence<'_>) -> SeenRequests {
    let layout = evidence.document.layout.iter();
    let files = layout.flat_map(|layout| &layout.files);
    let seen = files.filter_map(|file| {
        let per_page = evidence.scanning(file)?.requests_per_page?;
        Some((file.file_id, per_page))
    });
    seen.collect()
}

/// Brings the layout's predictions into line with the run's opinion of the disk.
pub fn predict(
    directory: &RunDirectory,
    document: &mut RunDocument,
    seen: &SeenRequests,
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
    let mut files = Files {
        layout,
        model: &disk.model,
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
    model: &'a DeviceModel,
    host: &'a HostFacts,
    seen: &'a SeenRequests,
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
            reader_ns_per_byte: engine_ns_per_byte(compressor(file)),
            idle_is_paged_out: self.host.idle_is_paged_out,
            ..ScanOptions::with_memory(self.host.memory_bytes)
        };
        let mut predicted = predict_scan(self.model, &leaves, file.file_bytes, &options);
        if let Some(per_page) = self.seen.get(&file_id) {
            take_as_many(&mut predicted, per_page * leaves.len() as f64, self.model);
        }
        file.predicted_scan = Some(predicted);
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
fn take_as_many(scan: &mut PredictedScan, requests: f64, model: &DeviceModel) {
    let Some(limit) = model.iops_bucket.filter(|limit| limit.per_s > 0.0) else {
        return;
    };
    let seconds = requests / limit.per_s;
    if seconds > scan.now_s {
        scan.device_requests = scan.device_requests.max(requests as u64);
        // The width of the range is kept.
        scan.now_high_s *= seconds / scan.now_s.max(1e-9);
        scan.now_s = seconds;
    }
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
    use seekscope_run::{DiskAbility, ExaminationRecord, HostFacts, PredictedScan, TokenBucket};

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

    #[test]
    fn requests_that_were_seen_are_believed() {
        let ability = ability("limited", 150.0);
        let predicted = PredictedScan {
            now_s: 20.0,
            now_high_s: 25.0,
            now_low_s: 16.0,
            device_requests: 3000,
            ..PredictedScan::default()
        };
        let mut more = predicted.clone();
        take_as_many(&mut more, 4500.0, &ability.model);
        assert_eq!((more.now_s, more.device_requests), (30.0, 4500));
        assert_eq!((more.now_low_s, more.now_high_s), (16.0, 37.5));
        let mut fewer = predicted.clone();
        take_as_many(&mut fewer, 2000.0, &ability.model);
        let unlimited = DeviceModel {
            iops_bucket: None,
            ..ability.model
        };
        let mut quick = predicted.clone();
        take_as_many(&mut quick, 4500.0, &unlimited);
        assert_eq!((&fewer, &quick), (&predicted, &predicted));
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
