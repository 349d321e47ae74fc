//! `schema.large-documents`: small changes of large documents.
//!
//! WiredTiger writes the whole document for a change of a field: to the file once its page leaves the cache or a
//! checkpoint comes, and to the journal if its size changes. A document that an array makes grow is the usual case.

use seekscope_run::units::{format_bytes, format_count};
use seekscope_run::{CollectionFacts, Finding};

use super::Detector;
use crate::namespaces::is_internal;
use crate::wording::{duration, mongosh, mongosh_collection};
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &["schema.large-documents"],
    detect,
};

/// Mean size, bytes: below this, a change costs about what that of any document on the same page does.
const DOCUMENT_BYTES_MIN: u64 = 128 << 10;
/// Bytes written for each operation; those on a document of usual size write a page, of 32 KiB. Several changes of a
/// document in the cache are written once, so this may be far below its size.
const EACH_BYTES_MIN: u64 = 64 << 10;
/// Bytes written per second, below which nothing is worth mending.
const WRITTEN_BYTES_PER_S_MIN: f64 = 4e6;
/// Updates for each document that is inserted: writing a new document takes its size, and that is no waste.
const UPDATES_EACH_INSERT_MIN: f64 = 4.0;

fn detect(evidence: &Evidence<'_>, _: &Answers) -> Vec<Finding> {
    let rate = |name: &str| evidence.status_rate(&[name]).unwrap_or(0.0);
    let updated = rate("metrics.document.updated");
    if updated < UPDATES_EACH_INSERT_MIN * rate("metrics.document.inserted") {
        return Vec::new();
    }
    let Some(seconds) = evidence.observed_s().filter(|_| updated > 0.0) else {
        return Vec::new();
    };
    let collections = evidence.examined().map_or(&[][..], |m| &m.collections);
    collections
        .iter()
        .filter(|facts| !is_internal(&facts.namespace))
        .filter_map(|facts| finding(evidence, facts, seconds))
        .collect()
}

fn finding(evidence: &Evidence<'_>, facts: &CollectionFacts, seconds: f64) -> Option<Finding> {
    let (written, operations) = (facts.written_from_cache_bytes?, facts.operations?);
    let document_bytes = facts.data_bytes / facts.documents.max(1);
    let each_bytes = written / operations.max(1);
    let is_much = written as f64 / seconds >= WRITTEN_BYTES_PER_S_MIN;
    if document_bytes < DOCUMENT_BYTES_MIN || each_bytes < EACH_BYTES_MIN || !is_much {
        return None;
    }
    let namespace = &facts.namespace;
    let writing_s = evidence.writing_to_s_per_hour(facts);
    let mut sentences = vec![
        format!(
            "{} operations on it wrote {} from the cache to its file, {} each; its documents have {} on average \
             (top, collStats).",
            format_count(operations),
            format_bytes(written),
            format_bytes(each_bytes),
            format_bytes(document_bytes)
        ),
        "A change of one field writes the whole document to the file when its page leaves the cache or a checkpoint \
         comes, and one that changes its size to the journal, too. Fields that change often in a document of their own, \
         and arrays that grow cut into documents of a few hundred elements, make each change write a page."
            .into(),
    ];
    sentences.extend(writing_s.map(|s| {
        format!(
            "Its writes took {} per hour, and most of that is for the rest of the document (top).",
            duration(s)
        )
    }));
    Some(Finding {
        id: "schema.large-documents".into(),
        title: format!(
            "Each change of a document of {namespace} writes about {}",
            format_bytes(each_bytes)
        ),
        subject: namespace.clone(),
        evidence: sentences,
        saves_s_per_hour: writing_s.map(|s| s * share_saved(each_bytes)),
        confidence: "medium".into(),
        risk: "The data model changes, and the programs that use it with it.".into(),
        command: mongosh(
            evidence.uri(),
            &format!(
                "{}.aggregate([{{$sample: {{size: 100}}}}, {{$project: {{bytes: {{$bsonSize: \"$$ROOT\"}}}}}}, \
                 {{$sort: {{bytes: -1}}}}])",
                mongosh_collection(namespace)
            ),
        ),
        ..Finding::default()
    })
}

/// Returns the share of the writing that is spared where a change writes a page of 32 KiB, which is what WiredTiger
/// writes at least.
fn share_saved(each_bytes: u64) -> f64 {
    const PAGE_BYTES: f64 = 32_768.0;
    1.0 - PAGE_BYTES / (each_bytes as f64).max(PAGE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Recording;

    fn changing(change: impl FnOnce(&mut CollectionFacts), inserted: f64) -> Vec<Finding> {
        let mut recording = Recording::new();
        let mut facts = CollectionFacts {
            namespace: "shop.carts".into(),
            documents: 30,
            data_bytes: 30 * 5_000_000,
            written_from_cache_bytes: Some(9_000_000_000),
            operations: Some(2_000),
            writing_ns: Some(6_000_000_000),
            ..CollectionFacts::default()
        };
        change(&mut facts);
        recording.examined().collections = vec![facts];
        recording.rising("metrics.document.updated", 40.0);
        recording.rising("metrics.document.inserted", inserted);
        recording.findings(&DETECTOR)
    }

    #[test]
    fn ill() {
        let found = changing(|_| (), 1.0);
        assert_eq!(found[0].subject, "shop.carts");
        assert!(found[0].title.contains("4.29 MiB"), "{found:?}");
        let saved = found[0].saves_s_per_hour.unwrap();
        assert!((saved - 357.0).abs() < 2.0, "{saved}");
    }

    #[test]
    fn healthy() {
        let small = |facts: &mut CollectionFacts| facts.documents = 150_000;
        assert_eq!(changing(small, 1.0), []);
        let few = |facts: &mut CollectionFacts| facts.written_from_cache_bytes = Some(90_000_000);
        assert_eq!(changing(few, 1.0), []);
        let read = |facts: &mut CollectionFacts| facts.operations = Some(2_000_000);
        assert_eq!(changing(read, 1.0), []);
        assert_eq!(
            changing(|_| (), 40.0),
            [],
            "new documents are written as a whole"
        );
    }
}
