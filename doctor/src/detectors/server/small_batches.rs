//! `query.small-batches`: clients fetch the results of their queries a few documents at a time.
//!
//! Each `getMore` is a round trip. Members that follow the oplog send them, too, so that this is said only where one on
//! another collection was seen running.

use seekscope_run::units::{format_count, whole};
use seekscope_run::{Finding, OperationSeen};

use super::Detector;
use crate::namespaces::is_internal;
use crate::wording::{javascript_text, mongosh};
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &["query.small-batches"],
    detect,
};

/// Round trips per second that are worth a finding.
const GETMORES_PER_S_MIN: f64 = 100.0;
/// Round trips for each query.
const EACH_QUERY_MIN: f64 = 10.0;
/// Documents in each; drivers ask for as many as fit into 16 MB unless told otherwise.
const DOCUMENTS_MAX: f64 = 20.0;
/// Mean size of documents of which so few may fill an answer, bytes.
const DOCUMENT_BYTES_MAX: u64 = 100_000;

fn detect(evidence: &Evidence<'_>, _: &Answers) -> Vec<Finding> {
    let rate = |name: &str| evidence.status_rate(&[name]).unwrap_or(0.0);
    let (getmores, queries) = (rate("opcounters.getmore"), rate("opcounters.query"));
    let documents = rate("metrics.document.returned") / (getmores + queries).max(1.0);
    let are_many = getmores >= GETMORES_PER_S_MIN && getmores >= EACH_QUERY_MIN * queries;
    if !are_many || documents > DOCUMENTS_MAX {
        return Vec::new();
    }
    let seen = evidence.examined().map_or(&[][..], |m| &m.operations);
    let fetching = seen.iter().filter(|operation| is_fetching(operation));
    let Some(namespace) = fetching
        .max_by_key(|operation| operation.looks)
        .and_then(|operation| operation.namespace.clone())
        .filter(|namespace| !has_large_documents(evidence, namespace))
    else {
        return Vec::new();
    };
    vec![Finding {
        id: "query.small-batches".into(),
        title: format!(
            "Queries on {namespace} fetch {documents:.0} documents in each of {} round trips per second",
            format_count(whole(getmores))
        ),
        evidence: vec![
            format!(
                "{getmores:.0} getMore and {queries:.1} queries per second returned {documents:.1} documents each \
                 (serverStatus)."
            ),
            "Drivers fetch up to 16 MB at a time unless the program sets batchSize. Without that, or with a few \
             thousand documents, nearly all of these round trips are spared."
                .into(),
        ],
        subject: namespace.clone(),
        confidence: "medium".into(),
        risk: "An answer of up to 16 MB takes so much memory of the client.".into(),
        command: mongosh(
            evidence.uri(),
            &format!(
                "db.currentOp({{op: \"getmore\", ns: {}}})",
                javascript_text(&namespace)
            ),
        ),
        ..Finding::default()
    }]
}

fn is_fetching(operation: &OperationSeen) -> bool {
    let namespace = operation.namespace.as_deref().unwrap_or_default();
    operation.kind == "getmore" && !namespace.is_empty() && !is_internal(namespace)
}

fn has_large_documents(evidence: &Evidence<'_>, namespace: &str) -> bool {
    let facts = evidence
        .examined()
        .and_then(|member| member.collection(namespace));
    facts.is_some_and(|facts| facts.data_bytes / facts.documents.max(1) > DOCUMENT_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Recording;

    fn fetching(namespace: &str, getmores: f64, documents: f64) -> Vec<Finding> {
        let mut recording = Recording::new();
        recording.rising("opcounters.getmore", getmores);
        recording.rising("opcounters.query", 8.0);
        recording.rising("metrics.document.returned", documents);
        recording.examined().operations = vec![OperationSeen {
            kind: "getmore".into(),
            namespace: Some(namespace.into()),
            looks: 4,
            ..OperationSeen::default()
        }];
        recording.findings(&DETECTOR)
    }

    #[test]
    fn ill() {
        let found = fetching("shop.orders", 8000.0, 24_000.0);
        assert!(found[0].title.contains("3 documents in each"), "{found:?}");
    }

    #[test]
    fn healthy() {
        assert_eq!(fetching("local.oplog.rs", 8000.0, 24_000.0), []);
        assert_eq!(fetching("shop.orders", 50.0, 150.0), []);
        assert_eq!(fetching("shop.orders", 800.0, 80_000.0), []);
    }
}
