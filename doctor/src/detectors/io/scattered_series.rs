//! `schema.scattered-series`: documents that are read together are not stored together: every document of a
//! range costs a read of its own.
//!
//! A range of an index names documents that the collection holds in the order of their arrival. Where a read
//! brings hardly more than one wanted document, though a leaf holds many, the same documents side by side (in
//! buckets, or in the order of that index) would take documents / leaf as many reads.

use seekscope_pattern::{PatternKind, ThreadRole};
use seekscope_run::units::{format_count, whole};
use seekscope_run::{FileRole, Finding, LayoutFile};

use super::{Detector, EVENTS_MIN, confidence, saved_per_hour};
use crate::answers::DeviceUser;
use crate::ranking::NOTICEABLE_S_PER_HOUR;
use crate::wording::{advise, duration};
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &["schema.scattered-series"],
    detect,
};

/// Documents per query from which on it counts as reading a range.
const DOCUMENTS_PER_QUERY_MIN: f64 = 10.0;
/// Share of wanted documents among those in a leaf that a read brings; from here on they are stored together.
const WANTED_SHARE_MAX: f64 = 0.3;
const DOCUMENTS_PER_LEAF_MIN: f64 = 4.0;
/// With fewer documents per read, most reads serve another purpose: updates read what they change.
const DOCUMENTS_PER_READ_MIN: f64 = 0.2;

fn detect(evidence: &Evidence<'_>, answers: &Answers) -> Vec<Finding> {
    let Some(ranges) = Ranges::of(evidence) else {
        return Vec::new();
    };
    let users = answers.device_users.iter();
    users
        .filter_map(|user| judge(evidence, answers, user, &ranges))
        .collect()
}

struct Ranges {
    documents_per_s: f64,
    per_query: f64,
}

impl Ranges {
    fn of(evidence: &Evidence<'_>) -> Option<Self> {
        let documents_per_s = evidence.status_rate(&["metrics.document.returned"])?;
        let queries_per_s = evidence.status_rate(&["opcounters.query"])?;
        let per_query = documents_per_s / queries_per_s.max(1e-9);
        let ranges = queries_per_s > 0.0 && per_query >= DOCUMENTS_PER_QUERY_MIN;
        ranges.then_some(Self {
            documents_per_s,
            per_query,
        })
    }
}

fn judge(
    evidence: &Evidence<'_>,
    answers: &Answers,
    user: &DeviceUser,
    ranges: &Ranges,
) -> Option<Finding> {
    let namespace = user.namespace.as_ref()?;
    let scattered = user.role == FileRole::Collection
        && user.thread_role == ThreadRole::Application
        && !user.writes
        && matches!(user.pattern, Some(PatternKind::Random | PatternKind::Mixed));
    if !scattered
        || user.calls_per_s * evidence.traced_s()? < EVENTS_MIN
        || is_scanned(evidence, namespace)
    {
        return None;
    }
    let per_leaf = documents_per_leaf(evidence, namespace)?;
    let per_read = ranges.documents_per_s / user.calls_per_s;
    let wanted = DOCUMENTS_PER_READ_MIN..=WANTED_SHARE_MAX * per_leaf;
    if per_leaf < DOCUMENTS_PER_LEAF_MIN || !wanted.contains(&per_read) {
        return None;
    }
    let waiting = user.waiting_s_per_s * 3600.0;
    let saved = waiting * (1.0 - per_read / per_leaf).min(0.95);
    (saved >= NOTICEABLE_S_PER_HOUR).then(|| {
        let index = index_reads_per_s(answers, namespace);
        Finding {
            id: "schema.scattered-series".into(),
            subject: namespace.clone(),
            title: format!(
                "Ranges of {namespace} are scattered over the file: a read brings {per_read:.1} of the \
                 documents that are wanted, of {per_leaf:.0} in it"
            ),
            evidence: vec![
                format!(
                    "A query returned {} documents on average (serverStatus).",
                    format_count(whole(ranges.per_query))
                ),
                format!(
                    "For {:.0} documents per second the collection was read {:.0} times per second at random, \
                     its indexes {index:.0} times (trace).",
                    ranges.documents_per_s, user.calls_per_s
                ),
                format!("These reads waited {} per hour (trace).", duration(waiting)),
            ],
            gain: Some(saved_per_hour(saved, saved * 0.5, waiting)),
            saves_s_per_hour: Some(saved),
            confidence: confidence(evidence),
            risk: "Buckets and time-series collections change how documents are written; the order of an index \
                   decays with updates and inserts."
                .into(),
            command: advise(evidence.uri(), namespace),
..Finding::default()
}
    })
}

fn is_scanned(evidence: &Evidence<'_>, namespace: &str) -> bool {
    let operations = evidence
        .examined()
        .map_or(&[][..], |member| &member.operations);
    operations.iter().any(|operation| {
        let plan = operation.plan.as_deref().unwrap_or_default();
        operation.namespace.as_deref() == Some(namespace) && plan.starts_with("COLLSCAN")
    })
}

/// Returns documents per leaf, by the walked leaves, else by 32 KiB, WiredTiger's usual size before
/// compression.
fn documents_per_leaf(evidence: &Evidence<'_>, namespace: &str) -> Option<f64> {
    let same = |file: &&LayoutFile| {
        file.index.is_none() && file.namespace.as_deref() == Some(namespace) && file.leaf_pages > 0
    };
    let mut collections = evidence.examined().into_iter().flat_map(|m| &m.collections);
    let told = collections.find(|collection| collection.namespace == namespace);
    let walked = evidence.layout_files().iter().find(same);
    let documents = told
        .map(|c| c.documents)
        .or(walked.and_then(|file| file.documents))?;
    match (walked, told) {
        (Some(file), _) => Some(documents as f64 / file.leaf_pages as f64),
        (None, Some(told)) => Some(documents as f64 * 32_768.0 / told.data_bytes.max(1) as f64),
        (None, None) => None,
    }
}

fn index_reads_per_s(answers: &Answers, namespace: &str) -> f64 {
    let prefix = format!("{namespace}/");
    let of_it = |user: &&DeviceUser| {
        !user.writes
            && user
                .namespace
                .as_ref()
                .is_some_and(|name| name.starts_with(&prefix))
    };
    answers
        .device_users
        .iter()
        .filter(of_it)
        .map(|user| user.calls_per_s)
        // The sum of an empty iterator would be -0.
        .fold(0.0, |sum, calls_per_s| sum + calls_per_s)
}

#[cfg(test)]
mod tests {
    use seekscope_run::OperationSeen;

    use super::*;
    use crate::testing::{Call, Recording, shuffled};

    /// Records 50 reads per second of a collection with 100 documents in a leaf.
    fn reading(returned_per_s: f64, queries_per_s: f64) -> Recording {
        let mut recording = Recording::new();
        let file_id = recording.file("collection-7.wt", FileRole::Collection, Some("iot.values"));
        let tid = recording.thread("conn1");
        for (i, place) in shuffled(3000).into_iter().enumerate() {
            recording.miss(Call {
                tid,
                file_id,
                at_s: i as f64 * 0.02,
                offset: u64::from(place) * 32_768,
                bytes: 32_768,
                latency_s: 0.005,
            });
        }
        recording.layout(LayoutFile {
            namespace: Some("iot.values".into()),
            leaf_pages: 3000,
            documents: Some(300_000),
            ..LayoutFile::default()
        });
        recording.rising("metrics.document.returned", returned_per_s);
        recording.rising("opcounters.query", queries_per_s);
        recording
    }

    #[test]
    fn ill() {
        let found = reading(60.0, 1.0).findings(&DETECTOR);
        assert_eq!(found[0].subject, "iot.values");
        let saved = found[0].saves_s_per_hour.unwrap();
        assert!((saved - 0.95 * 900.0).abs() < 1.0, "{saved}");
    }

    #[test]
    fn healthy() {
        assert_eq!(
            reading(60.0, 60.0).findings(&DETECTOR),
            [],
            "single documents"
        );
        assert_eq!(
            reading(4000.0, 4.0).findings(&DETECTOR),
            [],
            "they lie together"
        );
        assert_eq!(
            reading(1.0, 0.05).findings(&DETECTOR),
            [],
            "the reads are those of updates"
        );
        assert_eq!(Recording::new().findings(&DETECTOR), []);
        let mut scanned = reading(60.0, 1.0);
        scanned.examined().operations.push(OperationSeen {
            namespace: Some("iot.values".into()),
            plan: Some("COLLSCAN".into()),
            ..OperationSeen::default()
        });
        assert_eq!(
            scanned.findings(&DETECTOR),
            [],
            "it is read in its own order"
        );
    }
}
