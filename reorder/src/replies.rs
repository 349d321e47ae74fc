//! Reads servers' answers, in which a field may be missing or of another type.

use bson::Document;

/// Returns whether the field is this text.
pub(crate) fn says(document: &Document, field: &str, text: &str) -> bool {
    document.get_str(field).is_ok_and(|found| found == text)
}

/// Returns whether the field is true.
pub(crate) fn is_set(document: &Document, field: &str) -> bool {
    document.get_bool(field).is_ok_and(|set| set)
}
