//! Reading what servers answer: a field may be missing or of another type.

use bson::{Bson, Document};

/// Is the field this text?
pub(crate) fn says(document: &Document, field: &str, text: &str) -> bool {
    document.get_str(field).is_ok_and(|found| found == text)
}

/// Is the field true?
pub(crate) fn is_set(document: &Document, field: &str) -> bool {
    document.get_bool(field).is_ok_and(|set| set)
}

/// Documents of a reply's first batch.
pub(crate) fn first_batch(reply: &Document) -> impl Iterator<Item = &Document> {
    let batch = reply
        .get_document("cursor")
        .and_then(|cursor| cursor.get_array("firstBatch"));
    let batch = batch.map_or(&[][..], Vec::as_slice);
    batch.iter().filter_map(Bson::as_document)
}
