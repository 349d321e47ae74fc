//! Values of fields by their dotted paths, drawn from sampled documents for the queries of a trial.

use bson::{Bson, Document, RawDocument, Utf8Lossy};

/// Returns a document, with other characters for what is no UTF-8 in its texts; `None` if it is no document.
pub fn decoded(raw: &RawDocument) -> Option<Document> {
    let decoded = Utf8Lossy::<Document>::try_from(raw);
    decoded.ok().map(|Utf8Lossy(document)| document)
}

/// Returns the value at a path. Of an array its first element is taken: a query that compares a field with one value
/// matches any of them.
pub fn value_at(document: &Document, path: &str) -> Option<Bson> {
    let mut parts = path.split('.');
    let mut value = document.get(parts.next()?)?;
    for part in parts {
        value = first_of(value)?.as_document()?.get(part)?;
    }
    first_of(value).cloned()
}

/// Returns whether there is a list anywhere on a path.
pub fn holds_list(document: &Document, path: &str) -> bool {
    let mut parts = path.split('.');
    let mut value = parts.next().and_then(|part| document.get(part));
    loop {
        value = match (value, parts.next()) {
            (Some(Bson::Array(_)), _) => return true,
            (Some(Bson::Document(inner)), Some(part)) => inner.get(part),
            _ => return false,
        }
    }
}

fn first_of(value: &Bson) -> Option<&Bson> {
    match value {
        Bson::Array(elements) => elements.first(),
        other => Some(other),
    }
}

/// Returns a date's milliseconds since 1970.
pub fn date_ms(value: &Bson) -> Option<i64> {
    match value {
        Bson::DateTime(date) => Some(date.timestamp_millis()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use bson::{RawDocumentBuf, doc, rawdoc};

    use super::*;

    #[test]
    fn texts_that_are_no_utf_8_do_not_hide_the_rest() {
        let mut bytes = rawdoc! { "s": "ab", "d": 7 }.into_bytes();
        let place = bytes.windows(2).position(|two| two == b"ab").unwrap();
        bytes[place] = 0xff;
        let raw = RawDocumentBuf::from_bytes(bytes).unwrap();
        assert!(Document::try_from(raw.as_ref()).is_err());
        assert_eq!(decoded(&raw).unwrap().get("d"), Some(&Bson::Int32(7)));
    }

    #[test]
    fn paths_lead_through_documents_and_arrays() {
        let document = doc! { "a": { "b": [{ "c": 5 }, { "c": 6 }] }, "d": [] };
        assert_eq!(value_at(&document, "a.b.c"), Some(Bson::Int32(5)));
        assert_eq!(value_at(&document, "d"), None);
        assert_eq!(value_at(&document, "a.x.y"), None);
        assert!(holds_list(&document, "a.b.c") && holds_list(&document, "d"));
        assert!(!holds_list(&document, "a") && !holds_list(&document, "a.x.y"));
    }
}
