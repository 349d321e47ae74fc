//! Converts TOML's values to BSON.

use bson::{Bson, DateTime, Document};
use toml::value::Datetime;

/// Returns the BSON value of a TOML value. Integers become int32 where they fit, as in shells and drivers.
pub(crate) fn bson_of(value: &toml::Value) -> Result<Bson, String> {
    Ok(match value {
        toml::Value::String(text) if text.contains('\0') => {
            return Err("a string must not contain NUL".into());
        }
        toml::Value::String(text) => Bson::String(text.clone()),
        toml::Value::Integer(number) => {
            i32::try_from(*number).map_or(Bson::Int64(*number), Bson::Int32)
        }
        toml::Value::Float(number) => Bson::Double(*number),
        toml::Value::Boolean(truth) => Bson::Boolean(*truth),
        toml::Value::Datetime(date) => Bson::DateTime(DateTime::from_millis(epoch_ms(date)?)),
        toml::Value::Array(values) => {
            Bson::Array(values.iter().map(bson_of).collect::<Result<_, _>>()?)
        }
        toml::Value::Table(table) => {
            let mut document = Document::new();
            for (name, value) in table {
                document.insert(name, bson_of(value)?);
            }
            Bson::Document(document)
        }
    })
}

/// Returns milliseconds since 1970; a date without a time is its midnight, one without an offset is UTC.
pub(crate) fn epoch_ms(date: &Datetime) -> Result<i64, String> {
    let mut text = date.to_string();
    if date.date.is_none() {
        return Err(format!("{text} is a time without a date"));
    }
    if date.time.is_none() {
        text.push_str("T00:00:00");
    }
    if date.offset.is_none() {
        text.push('Z');
    }
    DateTime::parse_rfc3339_str(&text)
        .map(DateTime::timestamp_millis)
        .map_err(|_| format!("{text} is not a date"))
}

/// Returns type and bytes of a value.
pub(crate) fn encoded(value: Bson) -> Result<(u8, Box<[u8]>), String> {
    let kind = value.element_type() as u8;
    let mut document = Document::new();
    document.insert("", value);
    let bytes = document.to_vec().map_err(|error| error.to_string())?;
    // Length, type and the empty name's NUL come before it, the document's NUL after it.
    Ok((kind, bytes[6..bytes.len() - 1].into()))
}
