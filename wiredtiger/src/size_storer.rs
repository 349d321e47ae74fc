//! `sizeStorer.wt`: how many documents MongoDB believes each collection has. Approximate after a
//! crash.

use std::collections::BTreeMap;

use bson::{RawBsonRef, RawDocument};

use crate::walk::KeyValue;

/// The name of the table's file.
pub const SIZE_STORER_FILE: &str = "sizeStorer.wt";

/// The stored size of a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredSize {
    pub documents: u64,
    /// Bytes of the documents as BSON, uncompressed.
    pub document_bytes: u64,
}

/// Returns sizes by ident, from the table's rows; rows that cannot be parsed are left out.
#[must_use]
pub fn parse(rows: &[KeyValue]) -> BTreeMap<String, StoredSize> {
    rows.iter().filter_map(StoredSize::of_row).collect()
}

impl StoredSize {
    /// Returns an ident and its size, from a row of the table; `None` if it cannot be parsed.
    #[must_use]
    pub fn of_row((key, value): &KeyValue) -> Option<(String, StoredSize)> {
        let table = str::from_utf8(key)
            .ok()?
            .trim_end_matches('\0')
            .strip_prefix("table:")?;
        let stored = RawDocument::from_bytes(value).ok()?;
        let number = |key| count(stored.get(key).ok()??);
        let size = StoredSize {
            documents: number("numRecords")?,
            document_bytes: number("dataSize")?,
        };
        Some((table.to_owned(), size))
    }
}

fn count(number: RawBsonRef<'_>) -> Option<u64> {
    match number {
        RawBsonRef::Int64(number) => u64::try_from(number).ok(),
        RawBsonRef::Int32(number) => u64::try_from(number).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;

    #[test]
    fn sizes_by_ident() {
        let row =
            |key: &str, value: bson::Document| (key.as_bytes().to_vec(), value.to_vec().unwrap());
        let rows = [
            row(
                "table:collection-1",
                doc! { "numRecords": 3_i64, "dataSize": 77 },
            ),
            row(
                "table:collection-2",
                doc! { "numRecords": -1_i64, "dataSize": 77 },
            ),
            row("other", doc! { "numRecords": 3_i64, "dataSize": 77 }),
        ];
        let sizes = parse(&rows);
        let size = StoredSize {
            documents: 3,
            document_bytes: 77,
        };
        assert_eq!(
            sizes.into_iter().collect::<Vec<_>>(),
            [("collection-1".to_owned(), size)]
        );
    }
}
