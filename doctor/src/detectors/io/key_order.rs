//! `layout.key-order-lost`: leaves lie in another order than scans visit them.
//!
//! What a scan would take in either order was predicted from the walked leaves (crate `layout`). Where
//! scans of the file were in the trace, their waiting shrinks by the same factor.

use seekscope_pattern::{FileTrace, ThreadRole};
use seekscope_run::units::format_bytes;
use seekscope_run::{Finding, Gain, LayoutFile, PredictedScan};

use super::{Detector, EVENTS_MIN, confidence, saved_per_hour};
use crate::answers::name_of;
use crate::evidence::waiting::waited;
use crate::wording::{duration, percent, shell_quoted};
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &["layout.key-order-lost"],
    detect,
};

/// A scan that gains less than a quarter is in order for all that matters.
const SHARE_SAVED_MIN: f64 = 0.25;
/// … and one that gains less than this is not worth a rewrite, s.
const SCAN_SAVED_S_MIN: f64 = 1.0;
/// Leaves; smaller files are read in no time.
const LEAVES_MIN: u64 = 100;
/// Documents that a read brings of those in a leaf, from which on the readers want neighbours.
const NEIGHBOURS_SHARE: f64 = 0.3;
/// Share of the leaves that one thread read without reading hardly any twice.
const COVERED_SHARE: f64 = 0.3;
const REREAD_SHARE_MAX: f64 = 0.05;
/// Jobs that read a collection in key order, as currentOp calls them.
const SCAN_KINDS: [&str; 5] = [
    "index build",
    "createIndexes",
    "initial sync",
    "clone",
    "validate",
];

fn detect(evidence: &Evidence<'_>, _: &Answers) -> Vec<Finding> {
    let files = evidence.layout_files().iter();
    files.filter_map(|file| judge(evidence, file)).collect()
}

fn judge(evidence: &Evidence<'_>, file: &LayoutFile) -> Option<Finding> {
    let (scan, order) = (file.predicted_scan.as_ref()?, file.order.as_ref()?);
    let share = share_saved(scan);
    if file.leaf_pages < LEAVES_MIN || share < SHARE_SAVED_MIN {
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
        risk: "Rewriting needs room for a copy and reads and writes all of it; writes during it decay the \
               order again, at the rate that its plan tells."
            .into(),
        command: command(evidence, file, &name),
        ..Finding::default()
    };
    match seen_scanning(evidence, file) {
        Some(seen) => of_seen(&mut finding, &seen, share, evidence),
        None => of_one_scan(&mut finding, scan)?,
    }
    Some(finding)
}

/// Of a scan's time. Limits that hold for the server are in both figures already.
fn share_saved(scan: &PredictedScan) -> f64 {
    1.0 - scan.ordered_s / scan.now_s.max(1e-9)
}

/// Scans in the trace.
struct Seen {
    reads: u64,
    waiting_s_per_hour: f64,
    /// Why these reads are taken for a scan.
    because: String,
}

fn seen_scanning(evidence: &Evidence<'_>, file: &LayoutFile) -> Option<Seen> {
    let seconds = evidence.traced_s()?;
    let mut files = evidence.trace?.files.iter();
    let traced = files.find(|traced| is_same(traced, file))?;
    let (reads, ns) = waited(traced);
    let enough = reads as f64 >= EVENTS_MIN;
    enough.then_some(())?;
    let because = by_operation(evidence, file)
        .or_else(|| by_steps(traced, file))
        .or_else(|| by_documents(evidence, file, traced, seconds))
        .or_else(|| by_coverage(evidence, traced, file))?;
    Some(Seen {
        reads,
        waiting_s_per_hour: ns / 1e9 / seconds * 3600.0,
        because,
    })
}

fn is_same(traced: &FileTrace, file: &LayoutFile) -> bool {
    let path = &traced.file.path;
    let ends_alike = path
        .strip_suffix(&file.file)
        .is_some_and(|folder| folder.is_empty() || folder.ends_with('/'));
    let named = file.namespace.is_some() && traced.file.namespace == Some(name_of(file));
    ends_alike || named
}

fn by_operation(evidence: &Evidence<'_>, file: &LayoutFile) -> Option<String> {
    let namespace = file.namespace.as_ref().filter(|_| file.index.is_none())?;
    let operations = &evidence.examined()?.operations;
    let scan = operations.iter().find(|operation| {
        let plan = operation.plan.as_deref().unwrap_or_default();
        let job = SCAN_KINDS.iter().any(|word| operation.kind.contains(word));
        operation.namespace.as_ref() == Some(namespace) && (job || plan.starts_with("COLLSCAN"))
    })?;
    let plan = scan.plan.as_deref().unwrap_or("no plan");
    Some(format!("currentOp showed a {} on it ({plan})", scan.kind))
}

/// A thread that follows the key order steps to the neighbour as often as the leaves do.
fn by_steps(traced: &FileTrace, file: &LayoutFile) -> Option<String> {
    let expected = file.order.as_ref()?.sequential_share;
    let shape = traced.reads.shape.as_ref()?;
    let found = shape.thread_sequential_share;
    let telling = (0.1..=0.9).contains(&expected) && (found - expected).abs() < expected / 3.0;
    telling.then(|| {
        format!(
            "its threads step to the neighbour in {} of cases, as a scan in key order does ({})",
            percent(found),
            percent(expected)
        )
    })
}

/// Every read brings documents that are wanted together.
fn by_documents(
    evidence: &Evidence<'_>,
    file: &LayoutFile,
    traced: &FileTrace,
    seconds: f64,
) -> Option<String> {
    let per_leaf = file.documents.filter(|_| file.index.is_none())? as f64 / file.leaf_pages as f64;
    let returned = evidence.status_rate(&[
        "metrics.queryExecutor.scannedObjects",
        "metrics.document.returned",
    ])?;
    let per_read = returned * seconds / traced.reads.transfers.calls.max(1) as f64;
    let neighbours = per_leaf >= 2.0 && per_read >= NEIGHBOURS_SHARE * per_leaf;
    // A cache that serves most of what is asked for also makes for many documents per read.
    let requested = evidence.status_rate(&["wiredTiger.cache.pages requested from the cache"])?;
    let missed = evidence.status_rate(&["wiredTiger.cache.pages read into cache"])?;
    let cold = missed * per_leaf * 4.0 >= requested;
    (neighbours && cold).then(|| {
        format!("{per_read:.0} documents were wanted per read, of {per_leaf:.0} in a leaf")
    })
}

/// One thread read much of the file, and hardly anything twice.
fn by_coverage(evidence: &Evidence<'_>, traced: &FileTrace, file: &LayoutFile) -> Option<String> {
    let pattern = traced.reads.pattern.as_ref()?;
    let covered = pattern.distinct_bytes as f64 / file.leaf_bytes.max(1) as f64;
    let one_thread = traced.reads.shape.as_ref()?.threads == 1;
    let users = evidence.device_use.map_or(&[][..], |found| &found.users);
    let by_application = users.iter().any(|user| {
        user.file_id == traced.file.file_id && !user.writes && user.role == ThreadRole::Application
    });
    let scanned = covered >= COVERED_SHARE && pattern.reread_share <= REREAD_SHARE_MAX;
    (scanned && one_thread && by_application).then(|| {
        format!(
            "one thread read {} of its leaves, hardly any twice",
            percent(covered.min(1.0))
        )
    })
}

fn of_seen(finding: &mut Finding, seen: &Seen, share: f64, evidence: &Evidence<'_>) {
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

fn of_one_scan(finding: &mut Finding, scan: &PredictedScan) -> Option<()> {
    let saved_s = scan.now_s - scan.ordered_s;
    if saved_s < SCAN_SAVED_S_MIN {
        return None;
    }
    finding.evidence.push(
        "No scan of it was seen meanwhile; the gain is that of each cold scan or index build."
            .into(),
    );
    finding.saves_s_per_hour = Some(saved_s);
    finding.gain = Some(Gain {
        value: saved_s,
        low: (scan.now_low_s - scan.ordered_s).clamp(0.0, saved_s),
        high: (scan.now_high_s - scan.ordered_s).max(saved_s),
        unit: "s per cold scan".into(),
    });
    Some(())
}

fn command(evidence: &Evidence<'_>, file: &LayoutFile, name: &str) -> String {
    let uri = shell_quoted(evidence.uri());
    match (&file.namespace, &file.index) {
        (Some(namespace), None) => {
            format!("seekscope reorder {uri} {}", shell_quoted(namespace))
        }
        // An index is put in order by building it anew, which `compact` does not.
        _ => format!("seekscope layout {uri} {}", shell_quoted(name)),
    }
}

#[cfg(test)]
mod tests {
    use seekscope_run::{FileRole, OperationSeen, ScanOrder};

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

    /// Every leaf once, in the order of keys, which is none of offsets.
    fn scanned(recording: &mut Recording, threads: u32) {
        let file_id = recording.file("collection-7.wt", FileRole::Collection, Some("shop.orders"));
        let tids: Vec<u32> = (0..threads)
            .map(|i| recording.thread(&format!("conn{i}")))
            .collect();
        for (i, leaf) in shuffled(LEAVES).into_iter().enumerate() {
            recording.miss(Call {
                tid: tids[i % tids.len()],
                file_id,
                at_s: i as f64 * 0.03,
                offset: u64::from(leaf) * 32_768,
                bytes: 32_768,
                latency_s: 0.008,
            });
        }
    }

    #[test]
    fn ill_while_scanned() {
        let mut recording = Recording::new();
        scanned(&mut recording, 1);
        recording.layout(walked(16.0, 4.0));
        let found = recording.findings(&DETECTOR);
        // 2000 reads of 8 ms in a minute, three quarters of them too many.
        let expected = 16.0 * 60.0 * 0.75;
        let saved = found[0].saves_s_per_hour.unwrap();
        assert!((saved / expected - 1.0).abs() < 0.01, "{saved}");
        assert_eq!(found[0].subject, "shop.orders");
        assert_eq!(
            found[0].command,
            "seekscope reorder mongodb://db1:27017/ shop.orders"
        );
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
        recording.examined().operations.push(OperationSeen {
            kind: "query".into(),
            namespace: Some("shop.orders".into()),
            plan: Some("COLLSCAN".into()),
            ..OperationSeen::default()
        });
        assert_eq!(unit(&recording), "s of waiting per hour");
    }

    #[test]
    fn ill_without_a_trace() {
        let mut recording = Recording::new();
        recording.layout(walked(300.0, 40.0));
        let found = recording.findings(&DETECTOR);
        assert_eq!(found[0].saves_s_per_hour, Some(260.0));
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
