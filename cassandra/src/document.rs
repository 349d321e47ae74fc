//! Binds BSON values to statements, and converts rows to BSON documents.

use std::collections::HashSet;
use std::fmt;

use bson::raw::CString;
use bson::spec::BinarySubtype;
use bson::{DateTime, RawArrayBuf, RawBinaryRef, RawBson, RawBsonRef, RawDocumentBuf};
use scylla::cluster::metadata::{ColumnType, NativeType};
use scylla::serialize::SerializationError;
use scylla::serialize::value::SerializeValue;
use scylla::serialize::writers::{CellWriter, WrittenCellProof};
use scylla::value::{CqlTimestamp, CqlValue, Row};

/// The column of `_id`, named as in YCSB.
pub(crate) const KEY_COLUMN: &str = "y_id";

/// Returns the column of a field.
pub(crate) fn column_of(field: &str) -> &str {
    if field == "_id" { KEY_COLUMN } else { field }
}

/// Returns the field of a column.
fn field_of(column: &str) -> &str {
    if column == KEY_COLUMN { "_id" } else { column }
}

/// A BSON value that is serialised according to its column's type, without a copy.
#[derive(Clone, Copy)]
pub(crate) struct Bound<'a>(pub(crate) RawBsonRef<'a>);

/// A value that does not fit its column's type.
#[derive(Debug, thiserror::Error)]
#[error("a value of BSON type {found} does not fit a column of type {column}")]
struct Unfit {
    found: String,
    column: String,
}

impl SerializeValue for Bound<'_> {
    fn serialize<'b>(
        &self,
        typ: &ColumnType<'_>,
        writer: CellWriter<'b>,
    ) -> Result<WrittenCellProof<'b>, SerializationError> {
        match self.0 {
            RawBsonRef::String(text) => text.serialize(typ, writer),
            RawBsonRef::Binary(binary) => match (text_of(binary), typ) {
                (Some(text), ColumnType::Native(NativeType::Text)) => text.serialize(typ, writer),
                (_, ColumnType::Native(NativeType::Blob)) => binary.bytes.serialize(typ, writer),
                _ => Err(self.unfit(typ)),
            },
            RawBsonRef::Int32(number) => match typ {
                ColumnType::Native(NativeType::BigInt) => i64::from(number).serialize(typ, writer),
                _ => number.serialize(typ, writer),
            },
            RawBsonRef::Int64(number) => match (typ, i32::try_from(number)) {
                (ColumnType::Native(NativeType::Int), Ok(number)) => number.serialize(typ, writer),
                _ => number.serialize(typ, writer),
            },
            RawBsonRef::Double(number) => number.serialize(typ, writer),
            RawBsonRef::Boolean(value) => value.serialize(typ, writer),
            RawBsonRef::DateTime(date) => {
                CqlTimestamp(date.timestamp_millis()).serialize(typ, writer)
            }
            RawBsonRef::Null => Ok(writer.set_null()),
            RawBsonRef::Array(array) => {
                let elements = array.into_iter().map(|element| element.map(Bound));
                let elements = elements.collect::<Result<Vec<_>, _>>();
                elements
                    .map_err(|_| self.unfit(typ))?
                    .serialize(typ, writer)
            }
            _ => Err(self.unfit(typ)),
        }
    }
}

impl Bound<'_> {
    fn unfit(&self, typ: &ColumnType<'_>) -> SerializationError {
        SerializationError::new(Unfit {
            found: format!("{:?}", self.0.element_type()),
            column: format!("{typ:?}"),
        })
    }
}

impl fmt::Debug for Bound<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Returns binary data as text if it is printable, as YCSB's values are (bytes 0x20 to 0x7F).
pub(crate) fn text_of(binary: RawBinaryRef<'_>) -> Option<&str> {
    let printable = binary.bytes.iter().all(|&b| (0x20..=0x7F).contains(&b));
    (binary.subtype == BinarySubtype::Generic && printable)
        .then(|| std::str::from_utf8(binary.bytes).ok())
        .flatten()
}

/// Returns a row as the document that was inserted: columns without a value are left out, and text in a
/// `binary` column becomes binary again.
pub(crate) fn document_of<'a>(
    columns: impl Iterator<Item = &'a str>,
    row: Row,
    binary: &HashSet<String>,
) -> RawDocumentBuf {
    let mut document = RawDocumentBuf::new();
    for (column, value) in columns.zip(row.columns) {
        let Ok(field) = CString::try_from(field_of(column)) else {
            continue;
        };
        let value = match value {
            Some(CqlValue::Text(text)) if binary.contains(column) => generic(text.into_bytes()),
            Some(value) => match bson_of(value) {
                Some(value) => value,
                None => continue,
            },
            None => continue,
        };
        document.append(field, value);
    }
    document
}

fn generic(bytes: Vec<u8>) -> RawBson {
    RawBson::Binary(bson::Binary {
        subtype: BinarySubtype::Generic,
        bytes,
    })
}

/// Converts the types that we create columns of; no others occur here.
fn bson_of(value: CqlValue) -> Option<RawBson> {
    Some(match value {
        CqlValue::Ascii(text) | CqlValue::Text(text) => RawBson::String(text),
        CqlValue::Int(number) => RawBson::Int32(number),
        CqlValue::BigInt(number) => RawBson::Int64(number),
        CqlValue::Double(number) => RawBson::Double(number),
        CqlValue::Boolean(value) => RawBson::Boolean(value),
        CqlValue::Timestamp(date) => RawBson::DateTime(DateTime::from_millis(date.0)),
        CqlValue::Blob(bytes) => generic(bytes),
        CqlValue::List(values) => {
            let mut array = RawArrayBuf::new();
            for value in values {
                array.push(bson_of(value)?);
            }
            RawBson::Array(array)
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use bson::rawdoc;

    use super::*;

    #[test]
    fn a_row_is_the_document_that_was_inserted() {
        let row = Row {
            columns: vec![
                Some(CqlValue::Text("user1".into())),
                Some(CqlValue::Text("abc".into())),
                None,
                Some(CqlValue::List(vec![CqlValue::BigInt(5)])),
            ],
        };
        let columns = ["y_id", "field0", "gone", "list"];
        let binary = HashSet::from(["field0".to_string()]);
        let document = document_of(columns.into_iter(), row, &binary);
        let field0 = generic(b"abc".to_vec());
        let expected = rawdoc! { "_id": "user1", "field0": field0, "list": [5_i64] };
        assert_eq!(document, expected);
    }

    #[test]
    fn only_printable_generic_binaries_are_text() {
        let binary = |bytes, subtype| RawBinaryRef { bytes, subtype };
        assert_eq!(
            text_of(binary(b" ~\x7f", BinarySubtype::Generic)),
            Some(" ~\x7f")
        );
        assert_eq!(text_of(binary(b"a\n", BinarySubtype::Generic)), None);
        assert_eq!(text_of(binary(b"a", BinarySubtype::Uuid)), None);
    }
}
