//! Gathers the collections that jobs are predicted for, from what the server reports and what was walked.

use seekscope_run::{CollectionFacts, LayoutFile};

use super::reading::{self, Reading};
use crate::Evidence;
use crate::namespaces::is_internal;
use crate::wording::disk_in_words;

/// A collection.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Subject {
    pub(super) namespace: String,
    pub(super) documents: Option<u64>,
    /// Document bytes, uncompressed, and on disk without free space.
    pub(super) data_bytes: Option<u64>,
    pub(super) used_bytes: u64,
    /// Size of each index's file without free space.
    pub(super) index_bytes: Vec<u64>,
    pub(super) reading: Reading,
}

/// Returns every collection whose reading can be predicted, except the server's own: a resync copies only
/// small ones of these.
pub(super) fn subjects(evidence: &Evidence<'_>) -> Vec<Subject> {
    let disk = disk_in_words(evidence.ability());
    let files = evidence.layout_files();
    let collections = evidence.examined().map_or(&[][..], |m| &m.collections);
    let walked = files.iter().filter(|file| file.index.is_none());
    let mut subjects: Vec<Subject> = walked
        .filter_map(|file| {
            let namespace = file.namespace.as_deref()?;
            let told = collections.iter().find(|c| c.namespace == namespace);
            of_walked(file, files, told, disk)
        })
        .collect();
    if let Some((model, _)) = evidence.model() {
        let told = collections.iter().filter_map(|collection| {
            let reading = reading::by_size(collection, model, disk)?;
            Some(of_told(collection, reading))
        });
        let told: Vec<Subject> = told
            .filter(|told| !subjects.iter().any(|s| s.namespace == told.namespace))
            .collect();
        subjects.extend(told);
    }
    subjects.retain(|subject| !is_internal(&subject.namespace));
    subjects
}

fn of_walked(
    file: &LayoutFile,
    files: &[LayoutFile],
    told: Option<&CollectionFacts>,
    disk: &str,
) -> Option<Subject> {
    let used = |file: &LayoutFile| file.file_bytes.saturating_sub(file.free_bytes);
    let indexes = files
        .iter()
        .filter(|f| f.index.is_some() && f.namespace == file.namespace);
    let index_bytes: Vec<u64> = indexes.map(used).collect();
    Some(Subject {
        namespace: file.namespace.clone()?,
        documents: told.map(|c| c.documents).or(file.documents),
        data_bytes: told.map(|c| c.data_bytes).or(file.document_bytes),
        used_bytes: used(file),
        index_bytes: match (index_bytes.is_empty(), told) {
            (true, Some(told)) => index_bytes_of(told),
            _ => index_bytes,
        },
        reading: reading::by_layout(file, disk)?,
    })
}

fn of_told(collection: &CollectionFacts, reading: Reading) -> Subject {
    let free = collection.reusable_bytes.unwrap_or(0);
    Subject {
        namespace: collection.namespace.clone(),
        documents: Some(collection.documents),
        data_bytes: Some(collection.data_bytes),
        used_bytes: collection.storage_bytes.saturating_sub(free),
        index_bytes: index_bytes_of(collection),
        reading,
    }
}

fn index_bytes_of(collection: &CollectionFacts) -> Vec<u64> {
    let indexes = collection.indexes.iter();
    indexes
        .map(|index| {
            index
                .bytes
                .saturating_sub(index.reusable_bytes.unwrap_or(0))
        })
        .collect()
}
