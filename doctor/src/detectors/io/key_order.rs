//! `layout.key-order-lost`: leaves are in a different order from the one in which scans visit them.
//!
//! The duration of a scan in either order was predicted from the walked leaves (crate `layout`). Where the
//! trace has scans of the file, their waiting shrinks by the same factor. The same rule applies where a
//! layout is all that is known ([`of_layout`]).

use seekscope_run::units::format_bytes;
use seekscope_run::{
    Finding, Gain, LayoutFile, LayoutMeasurement, PredictedScan, RunDocument, ScanOrder,
};

use super::{Detector, confidence, saved_per_hour};
use crate::answers::{IndexBuildAnswer, name_of};
use crate::evidence::Scanning;
use crate::namespaces::is_internal;
use crate::wording::{duration, percent, shell_quoted};
use crate::{Answers, Counters, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &["layout.key-order-lost"],
    detect,
};

/// Smallest share saved; a scan that gains less than a quarter is practically in order.
const SHARE_SAVED_MIN: f64 = 0.25;
/// Smallest saving that is worth a rewrite, s.
const SCAN_SAVED_S_MIN: f64 = 1.0;
/// The same where nothing is known of the disk, s: it may be several times as fast as is typical.
const GUESSED_SAVED_S_MIN: f64 = 5.0;
/// Fewest leaves; smaller files are read in no time.
const LEAVES_MIN: u64 = 100;

fn detect(evidence: &Evidence<'_>, answers: &Answers) -> Vec<Finding> {
    let files = evidence.layout_files().iter();
    // Nobody scans or rewrites what the server keeps for itself, such as the oplog.
    let files = files.filter(|file| !is_internal(file.namespace.as_deref().unwrap_or_default()));
    let found = files.filter_map(|file| judge(evidence, answers, file));
    found.collect()
}

/// Returns the findings of a run that holds nothing but a layout: the files that are out of order, in the
/// layout's order.
pub fn of_layout(document: &RunDocument) -> Vec<Finding> {
    let evidence = Evidence {
        document,
        trace: None,
        device_use: None,
        counters: &Counters::default(),
    };
    detect(&evidence, &Answers::default())
}

/// Returns whether the file is so far out of order that a cold scan of it would be worth a rewrite.
pub fn is_worth_ordering(file: &LayoutFile) -> bool {
    let scan = file.predicted_scan.as_ref();
    scan.is_some_and(|scan| is_out_of_order(file, scan)) && file.scan_saved_s() >= SCAN_SAVED_S_MIN
}

fn is_out_of_order(file: &LayoutFile, scan: &PredictedScan) -> bool {
    let in_order = file.order.as_ref().is_some_and(ScanOrder::is_in_order);
    file.leaf_pages >= LEAVES_MIN && !in_order && share_saved(scan) >= SHARE_SAVED_MIN
}

fn judge(evidence: &Evidence<'_>, answers: &Answers, file: &LayoutFile) -> Option<Finding> {
    let (scan, order) = (file.predicted_scan.as_ref()?, file.order.as_ref()?);
    if !is_out_of_order(file, scan) || order.score >= ScanOrder::IN_ORDER_SCORE {
        return None;
    }
    let name = name_of(file);
    let what = if file.index.is_some() {
        "index"
    } else {
        "collection"
    };
    let now = duration(scan.now_s);
    let ordered = duration(scan.ordered_s);
    let mut finding = Finding {
        id: "layout.key-order-lost".into(),
        subject: name.clone(),
        title: format!(
            "The {what} {name} has lost its order on disk: a cold scan takes {now}, in order {ordered}"
        ),
        evidence: vec![
            format!(
                "Of {} steps from leaf to leaf in key order {} lead to the neighbour on disk; a scan seeks \
                 {} times, {} at best (layout).",
                file.leaf_pages - 1,
                percent(order.sequential_share),
                order.seeks,
                order.seeks_best
            ),
            format!(
                "{} in {} leaves, predicted for {} (layout).",
                format_bytes(file.leaf_bytes),
                file.leaf_pages,
                evidence.document.layout.as_ref().map_or("", |l| &l.predicted_for)
            ),
        ],
        confidence: confidence(evidence),
        risk: "Rewriting needs room for a copy and reads and writes all of it (compact does not restore the \
               order); writes during it decay the order again, at the rate that its plan tells."
            .into(),
        command: command(evidence, file, &name),
        ..Finding::default()
    };
    let of_typical_disk = of_typical_disk(evidence);
    let built = built(answers, &name);
    let is_guess = of_typical_disk.is_some() && built.is_empty();
    finding.evidence.extend(of_typical_disk);
    finding.evidence.splice(0..0, built);
    match evidence.scanning(file) {
        Some(seen) if seen.has_ended => {
            finding.evidence.push(format!(
                "{} reads of it waited for the disk while it was scanned: {}, and that has ended; the gain is that \
                 of each cold scan or index build.",
                seen.reads, seen.because
            ));
            of_one_scan(&mut finding, scan, evidence);
        }
        Some(seen) => of_seen(&mut finding, &seen, share_saved(scan), evidence),
        // Backups, resyncs and index builds scan collections. Hardly anything reads all of an index in key
        // order, and every index on a random key is out of order.
        None if file.index.is_some() => return None,
        None if !is_worth_ordering(file) => return None,
        None if is_for_typical_disk(evidence) && file.scan_saved_s() < GUESSED_SAVED_S_MIN => {
            return None;
        }
        None => {
            finding.evidence.extend(evidence.trace.is_some().then(|| {
                "No scan of it was seen meanwhile; the gain is that of each cold scan or index build.".into()
            }));
            of_one_scan(&mut finding, scan, evidence);
        }
    }
    if is_guess {
        finding.confidence = "low".into();
    }
    Some(finding)
}

/// Says that times are those of a typical disk, where scans were predicted for one, with the limits on the server's I/O or
/// without.
fn of_typical_disk(evidence: &Evidence<'_>) -> Option<String> {
    let layout = evidence.document.layout.as_ref()?;
    let limited = match layout.is_limited() {
        true => " with the limits on the server",
        false => "",
    };
    layout.is_of_guessed_disk().then(|| {
        format!(
            "The times are for a typical disk{limited}: this one was neither measured nor seen at work for long enough, and \
             may be several times as fast or slow."
        )
    })
}

/// Returns measurements, which come before predictions: index builds of this run, where there was another
/// collection to compare with.
fn built(answers: &Answers, name: &str) -> Vec<String> {
    let builds = answers.index_builds.iter();
    builds
        .filter(|build| build.namespace == name && build.against.is_some())
        .map(IndexBuildAnswer::sentence)
        .collect()
}

/// Returns the share of a scan's time that is saved. Limits on the server are in both figures already.
fn share_saved(scan: &PredictedScan) -> f64 {
    1.0 - scan.ordered_s / scan.now_s.max(1e-9)
}

fn of_seen(finding: &mut Finding, seen: &Scanning, share: f64, evidence: &Evidence<'_>) {
    let saved = seen.waiting_s_per_hour * share;
    finding.evidence.push(format!(
        "{} reads of it waited {} per hour for the disk (trace of {}); they scan: {}.",
        seen.reads,
        duration(seen.waiting_s_per_hour),
        duration(evidence.traced_s().unwrap_or(0.0)),
        seen.because
    ));
    finding.saves_s_per_hour = Some(saved);
    finding.gain = Some(saved_per_hour(saved, saved * 0.7, seen.waiting_s_per_hour));
}

/// Returns whether nothing is known of the disk, so that times are those of a typical one.
fn is_for_typical_disk(evidence: &Evidence<'_>) -> bool {
    let layout = evidence.document.layout.as_ref();
    layout.is_some_and(LayoutMeasurement::is_for_typical_disk)
}

fn of_one_scan(finding: &mut Finding, scan: &PredictedScan, evidence: &Evidence<'_>) {
    let saved_s = scan.now_s - scan.ordered_s;
    // The order is exact; the seconds are as good as the knowledge of the disk.
    let layout = evidence.document.layout.as_ref();
    let is_guess = is_for_typical_disk(evidence);
    finding.confidence = match layout {
        Some(layout) if layout.disk_measured => "high".into(),
        _ => "medium".into(),
    };
    finding.saves_s_per_hour = Some(saved_s);
    finding.gain = Some(Gain {
        value: saved_s,
        low: match is_guess {
            // The disk may be many times as fast as is typical.
            true => 0.0,
            false => (scan.now_low_s - scan.ordered_s).clamp(0.0, saved_s),
        },
        high: (scan.now_high_s - scan.ordered_s).max(saved_s),
        unit: "s per cold scan".into(),
    });
}

fn command(evidence: &Evidence<'_>, file: &LayoutFile, name: &str) -> String {
    // An index is put in order by rebuilding it, which `compact` does not do.
    let collection = file.namespace.as_ref().filter(|_| file.index.is_none());
    let reorder = collection.and_then(|namespace| evidence.reorder(namespace));
    reorder.unwrap_or_else(|| {
        let [uri, name] = [evidence.uri(), name].map(shell_quoted);
        format!("seekscope layout {uri} {name}")
    })
}

#[cfg(test)]
mod tests {
    use seekscope_run::{FileRole, OperationSeen};

    use super::*;
    use crate::testing::{Call, Recording, shuffled};

    const LEAVES: u32 = 2000;

    fn walked(now_s: f64, ordered_s: f64) -> LayoutFile {
        LayoutFile {
            file: "collection-7.wt".into(),
            namespace: Some("shop.orders".into()),
            leaf_pages: u64::from(LEAVES),
            leaf_bytes: u64::from(LEAVES) * 32_768,
            order: Some(ScanOrder {
                window_bytes: 131_072,
                sequential_share: 0.01,
                seeks: 1980,
                seeks_best: 1,
                ..ScanOrder::default()
            }),
            predicted_scan: Some(PredictedScan {
                now_s,
                ordered_s,
                now_low_s: now_s * 0.9,
                now_high_s: now_s * 1.1,
                device_requests: u64::from(LEAVES),
                ..PredictedScan::default()
            }),
            ..LayoutFile::default()
        }
    }

    /// Reads every leaf once, in key order, which is not offset order.
    fn scanned(recording: &mut Recording, threads: u32) {
        read(recording, threads, 0.03, shuffled(LEAVES).into_iter());
    }

    #[test]
    fn ill_while_scanned() {
        let mut recording = Recording::new();
        scanned(&mut recording, 1);
        recording.layout(walked(16.0, 4.0));
        let found = recording.findings(&DETECTOR);
        // 2000 reads of 8 ms in a minute, three quarters of them unnecessary.
        let expected = 16.0 * 60.0 * 0.75;
        let saved = found[0].saves_s_per_hour.unwrap();
        assert!((saved / expected - 1.0).abs() < 0.01, "{saved}");
        assert_eq!(found[0].subject, "shop.orders");
        assert_eq!(
            found[0].command,
            "seekscope reorder mongodb://db1:27017/ shop.orders"
        );
    }

    /// Scans that need more requests than one in order would still have lost no order.
    #[test]
    fn what_lies_in_order_is_not_ill() {
        let mut recording = Recording::new();
        scanned(&mut recording, 1);
        let mut in_order = walked(16.0, 4.0);
        in_order.order.as_mut().unwrap().sequential_share = 0.97;
        recording.layout(in_order);
        assert!(recording.findings(&DETECTOR).is_empty());
    }

    #[test]
    fn an_index_that_nobody_scans_is_not_ill() {
        let mut recording = Recording::new();
        recording.layout(LayoutFile {
            index: Some("client_1".into()),
            ..walked(16.0, 4.0)
        });
        assert!(recording.findings(&DETECTOR).is_empty());
    }

    #[test]
    fn operations_tell_a_scan_by_many_threads() {
        let mut recording = Recording::new();
        scanned(&mut recording, 4);
        recording.layout(walked(16.0, 4.0));
        let unit =
            |recording: &Recording| recording.findings(&DETECTOR)[0].gain.clone().unwrap().unit;
        assert_eq!(
            unit(&recording),
            "s per cold scan",
            "they may be single documents"
        );
        let build = OperationSeen {
            kind: "index build".into(),
            namespace: Some("shop.orders".into()),
            looks_since: 3,
            ..OperationSeen::default()
        };
        recording.examined().operations.push(build);
        assert_eq!(unit(&recording), "s per cold scan", "it has ended");
        recording.examined().operations[0].looks_since = 0;
        assert_eq!(unit(&recording), "s of waiting per hour", "it goes on");
        recording.examined().operations[0].looks_since = 3;
        recording.examined().operations.push(OperationSeen {
            kind: "query".into(),
            namespace: Some("shop.orders".into()),
            plan: Some("COLLSCAN".into()),
            ..OperationSeen::default()
        });
        assert_eq!(unit(&recording), "s of waiting per hour");
    }

    /// Reads leaves by threads in turn, one in this many seconds.
    fn read(
        recording: &mut Recording,
        threads: u32,
        every_s: f64,
        leaves: impl Iterator<Item = u32>,
    ) {
        let file_id = recording.file("collection-7.wt", FileRole::Collection, Some("shop.orders"));
        let tids: Vec<u32> = (0..threads)
            .map(|i| recording.thread(&format!("conn{i}")))
            .collect();
        for (i, leaf) in leaves.enumerate() {
            recording.miss(Call {
                tid: tids[i % tids.len()],
                file_id,
                at_s: i as f64 * every_s,
                offset: u64::from(leaf) * 32_768,
                bytes: 32_768,
                latency_s: 0.008,
            });
        }
    }

    #[test]
    fn repeated_scans_are_told_from_random_reads() {
        let unit = |leaves: &mut dyn Iterator<Item = u32>| {
            let mut recording = Recording::new();
            read(&mut recording, 4, 0.009, leaves);
            recording.layout(walked(16.0, 4.0));
            recording.findings(&DETECTOR)[0].gain.clone().unwrap().unit
        };
        let round = shuffled(LEAVES);
        let mut rounds = (0..3).flat_map(|_| round.clone());
        assert_eq!(unit(&mut rounds), "s of waiting per hour");
        let mut at_random = shuffled(3 * LEAVES).into_iter().map(|n| n % LEAVES);
        assert_eq!(unit(&mut at_random), "s per cold scan");
    }

    #[test]
    fn ill_without_a_trace() {
        let mut recording = Recording::new();
        recording.layout(walked(300.0, 40.0));
        let found = recording.findings(&DETECTOR);
        assert_eq!(found[0].saves_s_per_hour, Some(260.0));
    }

    /// A regression: "in order 6.27 s" was medium sure where 1.49 s were measured.
    #[test]
    fn times_of_a_typical_disk_are_little_sure() {
        let typical = "typical cloud volume (3,000 IOPS, 125 MB/s)";
        let limited = format!("{typical}, limited to 200 read requests per second by the server's");
        for scans in [0, 1] {
            let told = |predicted_for: &str| {
                let mut recording = Recording::new();
                (0..scans).for_each(|_| scanned(&mut recording, 1));
                recording.layout(walked(300.0, 40.0));
                let layout = recording.document.layout.as_mut().unwrap();
                (layout.predicted_for, layout.disk_measured) = (predicted_for.into(), false);
                let found = recording.findings(&DETECTOR).remove(0);
                (found.confidence, found.evidence.join(" "))
            };
            for (disk, says) in [
                (typical, "The times are for a typical disk: this one"),
                (
                    limited.as_str(),
                    "for a typical disk with the limits on the server: this",
                ),
            ] {
                let (confidence, said) = told(disk);
                assert_eq!(confidence, "low", "{said}");
                assert!(said.contains(says), "{said}");
            }
            let (confidence, said) = told("the data's disk as seen in this run");
            assert_eq!(confidence, "medium", "{said}");
            assert!(!said.contains("typical disk"), "{said}");
        }
    }

    /// A regression: leaves in order, with gaps of what was deleted between them, had "lost their order".
    #[test]
    fn gaps_are_no_lost_order() {
        let mut with_gaps = walked(300.0, 40.0);
        let order = with_gaps.order.as_mut().unwrap();
        (order.sequential_share, order.score) = (0.2, 1.0);
        (order.seeks, order.seeks_best) = (1600, 1600);
        let mut recording = Recording::new();
        recording.layout(with_gaps.clone());
        assert_eq!(recording.findings(&DETECTOR), []);
        with_gaps.order.as_mut().unwrap().score = 0.9;
        let mut lost = Recording::new();
        lost.layout(with_gaps);
        assert_eq!(lost.findings(&DETECTOR).len(), 1);
    }

    #[test]
    fn of_a_layout_alone() {
        let mut document = RunDocument::begin("layout", Vec::new());
        let index = LayoutFile {
            index: Some("client_1".into()),
            ..walked(16.0, 4.0)
        };
        document.layout = Some(LayoutMeasurement {
            files: vec![walked(31.0, 2.0), index, walked(2.1, 2.0), walked(0.9, 0.1)],
            disk_measured: true,
            ..LayoutMeasurement::default()
        });
        let found = of_layout(&document);
        let told: Vec<_> = found
            .iter()
            .map(|f| (&*f.command, &*f.confidence))
            .collect();
        assert_eq!(told, [("seekscope reorder URI shop.orders", "high")]);
        let gain = found[0].gain.as_ref().unwrap();
        assert_eq!((gain.value, gain.unit.as_str()), (29.0, "s per cold scan"));
    }

    #[test]
    fn healthy() {
        let mut recording = Recording::new();
        scanned(&mut recording, 1);
        recording.layout(walked(5.0, 4.5));
        assert_eq!(recording.findings(&DETECTOR), [], "as good as in order");
        let mut unwalked = Recording::new();
        unwalked.layout(LayoutFile::default());
        assert_eq!(unwalked.findings(&DETECTOR), []);
        let mut quick = Recording::new();
        quick.layout(walked(1.2, 0.5));
        assert_eq!(quick.findings(&DETECTOR), []);
    }
}
