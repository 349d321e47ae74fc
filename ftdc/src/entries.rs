//! The documents that a diagnostic file is made of.

use bson::RawDocument;
use bson::raw::RawBsonRef;

use crate::FtdcError;

/// The length and the closing zero.
const DOCUMENT_MIN_BYTES: usize = 5;
const METADATA: i32 = 0;
const METRICS: i32 = 1;

/// One document of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry<'a> {
    /// Facts about the host and the server; once per file.
    Metadata,
    /// Samples, to be decoded by [`crate::Chunk::decode`].
    Metrics {
        /// Time of the first sample, ms since 1970 by the server's clock.
        started_ms: i64,
        data: &'a [u8],
    },
    /// A document of an unknown kind, or one that changes metadata.
    Other,
}

/// An iterator over the documents of a file; see [`entries`].
#[derive(Debug)]
pub struct Entries<'a> {
    file: &'a [u8],
    at: usize,
}

/// Returns the documents of a file in order. A document that is cut off, as the last one of a file being
/// written may be, is returned as an error and ends the iteration.
pub fn entries(file: &[u8]) -> Entries<'_> {
    Entries { file, at: 0 }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<Entry<'a>, FtdcError>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.file.get(self.at..).filter(|rest| !rest.is_empty())?;
        let at = self.at;
        match split(rest) {
            Some((document, bytes)) => {
                self.at += bytes;
                Some(Ok(read(document)))
            }
            None => {
                self.at = self.file.len();
                Some(Err(FtdcError::Torn { at }))
            }
        }
    }
}

/// Returns the first document and its length.
fn split(bytes: &[u8]) -> Option<(&RawDocument, usize)> {
    let length = bytes.first_chunk().map(|b| u32::from_le_bytes(*b))?;
    let length = usize::try_from(length).ok()?;
    if length < DOCUMENT_MIN_BYTES {
        return None;
    }
    let document = RawDocument::from_bytes(bytes.get(..length)?).ok()?;
    Some((document, length))
}

fn read(document: &RawDocument) -> Entry<'_> {
    let started = document
        .get_datetime("_id")
        .map(|date| date.timestamp_millis());
    // Servers have written the type as different kinds of number.
    let kind = match document.get("type") {
        Ok(Some(RawBsonRef::Int32(kind))) => Some(kind),
        Ok(Some(RawBsonRef::Int64(kind))) => i32::try_from(kind).ok(),
        Ok(Some(RawBsonRef::Double(kind))) if kind == f64::from(METRICS) => Some(METRICS),
        _ => None,
    };
    match (kind, started, document.get_binary("data")) {
        (Some(METRICS), Ok(started_ms), Ok(data)) => Entry::Metrics {
            started_ms,
            data: data.bytes,
        },
        (Some(METADATA), ..) => Entry::Metadata,
        _ => Entry::Other,
    }
}

#[cfg(test)]
mod tests {
    use bson::{DateTime, doc};

    use super::*;
    use crate::writing;

    #[test]
    fn documents_of_a_file_and_a_torn_end() {
        let metadata = doc! { "_id": DateTime::from_millis(5), "type": 0, "doc": { "x": 1 } };
        let changed = doc! { "_id": DateTime::from_millis(5), "type": 2, "doc": {} };
        let chunk = writing::entry(&[doc! { "start": DateTime::from_millis(7) }]);
        let file = [&metadata, &chunk, &changed].map(writing::bytes).concat();
        let all: Vec<_> = entries(&file).collect();
        assert_eq!(all.len(), 3);
        assert_eq!(all[0], Ok(Entry::Metadata));
        assert!(
            matches!(&all[1], Ok(Entry::Metrics { started_ms: 7, data }) if !data.is_empty()),
            "{all:?}"
        );
        assert_eq!(all[2], Ok(Entry::Other));

        let torn: Vec<_> = entries(&file[..file.len() - 1]).collect();
        assert_eq!(torn.len(), 3);
        let at = file.len() - writing::bytes(&changed).len();
        assert_eq!(torn[2], Err(FtdcError::Torn { at }));
        assert_eq!(entries(&[]).count(), 0);
        assert_eq!(entries(&[0; 100]).count(), 1, "no endless loop over zeros");
    }
}
