//! Defines tables from the first document that is inserted.

use std::collections::HashSet;

use bson::{RawBsonRef, RawDocument};
use seekscope_client::{Failure, FailureKind};

use crate::document::{column_of, text_of};
use crate::target::is_name;

/// A table for documents like one that was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Table {
    pub(crate) name: String,
    /// Name and CQL type of each column; the key comes first.
    pub(crate) columns: Vec<(String, String)>,
    /// Text columns whose documents have binary data there.
    pub(crate) binary: HashSet<String>,
}

impl Table {
    /// Defines one column for each field, by the type of its value. Documents must have an `_id`, no nested
    /// documents, and arrays only of simple values of one type.
    pub(crate) fn of_document(name: &str, document: &RawDocument) -> Result<Self, Failure> {
        if !is_name(name) {
            return Err(unsupported(format!(
                "{name:?} cannot be the name of a table, which consists of \
                 letters, digits and underscores"
            )));
        }
        let mut table = Self {
            name: name.into(),
            columns: Vec::new(),
            binary: HashSet::new(),
        };
        for field in document {
            let (field, value) = field.map_err(|error| unsupported(error.to_string()))?;
            let column = column_of(field.as_str()).to_string();
            let kind = column_type(value).ok_or_else(|| {
                unsupported(format!(
                    "field {column} of type {:?} has no counterpart in a table",
                    value.element_type()
                ))
            })?;
            if matches!(value, RawBsonRef::Binary(_)) && kind == "text" {
                table.binary.insert(column.clone());
            }
            if field.as_str() == "_id" {
                table.columns.insert(0, (column, kind));
            } else {
                table.columns.push((column, kind));
            }
        }
        let first = table.columns.first().map(|(column, _)| column.as_str());
        if first != Some(column_of("_id")) {
            return Err(unsupported("a document has no _id".into()));
        }
        Ok(table)
    }

    /// Returns the `CREATE TABLE` statement.
    pub(crate) fn cql(&self, keyspace: &str) -> String {
        let columns = self.columns.iter();
        let columns: Vec<String> = columns
            .map(|(name, kind)| format!("{} {kind}", quoted(name)))
            .collect();
        let key = self.columns.first().map_or("", |(name, _)| name.as_str());
        format!(
            "CREATE TABLE IF NOT EXISTS {}.{} ({}, PRIMARY KEY ({}))",
            quoted(keyspace),
            quoted(&self.name),
            columns.join(", "),
            quoted(key)
        )
    }
}

/// Quotes a name for CQL, whatever it contains.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn unsupported(message: String) -> Failure {
    Failure::of(FailureKind::Unsupported, "Unsupported", message)
}

fn column_type(value: RawBsonRef<'_>) -> Option<String> {
    let kind = match value {
        RawBsonRef::String(_) => "text",
        RawBsonRef::Binary(binary) if text_of(binary).is_some() => "text",
        RawBsonRef::Binary(_) => "blob",
        RawBsonRef::Int32(_) => "int",
        RawBsonRef::Int64(_) => "bigint",
        RawBsonRef::Double(_) => "double",
        RawBsonRef::Boolean(_) => "boolean",
        RawBsonRef::DateTime(_) => "timestamp",
        RawBsonRef::Array(array) => {
            let element = array.into_iter().next()?.ok()?;
            if matches!(element, RawBsonRef::Array(_)) {
                return None;
            }
            // Frozen: writing another kind of list whole leaves a tombstone each time.
            return Some(format!("frozen<list<{}>>", column_type(element)?));
        }
        _ => return None,
    };
    Some(kind.into())
}

#[cfg(test)]
mod tests {
    use bson::{Binary, rawdoc, spec::BinarySubtype};

    use super::*;

    #[test]
    fn columns_follow_the_values() {
        let binary = |bytes: &[u8]| Binary {
            subtype: BinarySubtype::Generic,
            bytes: bytes.to_vec(),
        };
        let document = rawdoc! {
            "field0": binary(b"text"), "raw": binary(&[0, 200]), "_id": "user1", "i": 1,
            "a": ["x"], "d": bson::DateTime::from_millis(0),
        };
        let table = Table::of_document("usertable", &document).unwrap();
        assert_eq!(
            table.cql("ks"),
            "CREATE TABLE IF NOT EXISTS \"ks\".\"usertable\" (\"y_id\" text, \"field0\" text, \
             \"raw\" blob, \"i\" int, \"a\" frozen<list<text>>, \"d\" timestamp, \
             PRIMARY KEY (\"y_id\"))"
        );
        assert_eq!(table.binary, HashSet::from(["field0".to_string()]));
    }

    #[test]
    fn what_has_no_counterpart_is_refused() {
        for document in [
            rawdoc! { "_id": 1, "d": { "x": 1 } },
            rawdoc! { "x": 1 },
            rawdoc! { "_id": 1, "a": [] },
        ] {
            let failure = Table::of_document("t", &document).unwrap_err();
            assert_eq!(failure.kind, FailureKind::Unsupported);
        }
        assert!(Table::of_document("a.b", &rawdoc! { "_id": 1 }).is_err());
        assert_eq!(quoted("a\"b"), "\"a\"\"b\"");
    }
}
