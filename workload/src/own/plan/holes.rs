//! Handles filters, pipelines and commands: documents as written, with placeholders ("holes").
//!
//! A text that begins with `@` is a hole: `"@key"` is the chosen record's `_id`, `"@key+9"` that of the
//! record nine positions later, `"@record"` its number, `"@record.NAME"` the value of its field NAME, and
//! `"@NAME"` a parameter of the operation. `"@@…"` stands for the text `"@…"`.

use std::sync::Arc;

use bson::{Bson, Document};

use super::fields::{Fields, constant};
use crate::own::error::Fault;
use crate::own::language::NumberKind;
use crate::own::values::{self, Entry, OfRecord, Shape, ShapeBuilder, Value};

/// What the holes of one operation can refer to.
pub(super) struct Scope<'s> {
    /// Collection whose records are chosen.
    pub(super) collection: Option<&'s str>,
    pub(super) parameters: &'s [Arc<Entry>],
}

impl Scope<'_> {
    /// Returns a whole document.
    pub(super) fn shape(
        &self,
        document: &Document,
        path: &str,
        fields: &mut Fields<'_>,
    ) -> Result<Shape, Fault> {
        Ok(self.builder(document, path, fields)?.finish())
    }

    fn builder(
        &self,
        document: &Document,
        path: &str,
        fields: &mut Fields<'_>,
    ) -> Result<ShapeBuilder, Fault> {
        let mut builder = ShapeBuilder::default();
        for (name, value) in document {
            if name.contains('\0') {
                return Err(Fault::new(path, "a name must not contain NUL"));
            }
            let value = self.value(value, path, fields)?;
            builder.add(Entry {
                name: name.as_str().into(),
                key: 0,
                absent: 0.0,
                value,
            });
        }
        Ok(builder)
    }

    /// Returns a value that may contain holes.
    pub(super) fn value(
        &self,
        value: &Bson,
        path: &str,
        fields: &mut Fields<'_>,
    ) -> Result<Value, Fault> {
        let literal = |value: Bson| constant(value).map_err(|why| Fault::new(path, why));
        match value {
            Bson::String(text) => match text.strip_prefix('@') {
                Some(escaped) if escaped.starts_with('@') => literal(escaped.into()),
                Some(hole) => self.hole(hole, path, fields),
                None => literal(value.clone()),
            },
            Bson::Document(inner) => {
                let builder = self.builder(inner, path, fields)?;
                if builder.is_static() && !has_at(value) {
                    literal(value.clone())
                } else {
                    Ok(Value::Document(builder.finish()))
                }
            }
            Bson::Array(elements) => {
                let places = elements.iter().enumerate();
                let inner = places
                    .map(|(n, element)| (n.to_string(), element.clone()))
                    .collect();
                let builder = self.builder(&inner, path, fields)?;
                if builder.is_static() && !has_at(value) {
                    literal(value.clone())
                } else {
                    Ok(Value::List(builder.finish()))
                }
            }
            other => literal(other.clone()),
        }
    }

    fn hole(&self, hole: &str, path: &str, fields: &mut Fields<'_>) -> Result<Value, Fault> {
        if let Some(entry) = self.parameters.iter().find(|entry| &*entry.name == hole) {
            return Ok(Value::OfRecord(OfRecord {
                entry: Arc::clone(entry),
                offset: 0,
                is_fresh: true,
            }));
        }
        let of_record = |name: &str, offset: u64, fields: &mut Fields<'_>| {
            let collection = self.collection.ok_or_else(|| {
                Fault::new(path, "name the collection that these records belong to")
            })?;
            let entry = fields.of_collection(collection, name, path)?;
            Ok(Value::OfRecord(OfRecord {
                entry,
                offset,
                is_fresh: false,
            }))
        };
        if hole == "record" {
            return Ok(Value::Record(NumberKind::Int64));
        }
        if let Some(name) = hole.strip_prefix("record.") {
            return of_record(name, 0, fields);
        }
        if let Some(rest) = hole.strip_prefix("key") {
            let offset = if rest.is_empty() {
                Some(0)
            } else {
                rest.strip_prefix('+').and_then(|n| n.parse().ok())
            };
            if let Some(offset) = offset {
                return of_record("_id", offset, fields);
            }
        }
        let parameters: Vec<String> = self
            .parameters
            .iter()
            .map(|entry| format!("@{}", entry.name))
            .collect();
        let message = format!(
            "\"@{hole}\" is unknown; known are @key, @key+N, @record, @record.FIELD and the \
             parameters ({}); write @@ for a string that begins with @",
            parameters.join(", ")
        );
        Err(Fault::new(path, message))
    }
}

/// Returns whether it contains a text that begins with `@`, so that it cannot be taken literally.
fn has_at(value: &Bson) -> bool {
    match value {
        Bson::String(text) => text.starts_with('@'),
        Bson::Document(inner) => inner.values().any(has_at),
        Bson::Array(elements) => elements.iter().any(has_at),
        _ => false,
    }
}

/// Returns what was written as TOML, or as JSON in a text.
pub(super) fn written(value: &toml::Value, path: &str) -> Result<Bson, Fault> {
    let fault = |why: String| Fault::new(path, why);
    let json = match value {
        // A hole for the whole value.
        toml::Value::String(hole) if hole.starts_with('@') => return Ok(hole.as_str().into()),
        toml::Value::String(json) => json,
        other => return values::bson_of(other).map_err(fault),
    };
    let json: serde_json::Value = serde_json::from_str(json)
        .map_err(|error| fault(format!("it is not valid JSON: {error}")))?;
    Ok(bson_of_json(&json))
}

/// Returns what must be a document.
pub(super) fn written_document(value: &toml::Value, path: &str) -> Result<Document, Fault> {
    match written(value, path)? {
        Bson::Document(document) => Ok(document),
        _ => Err(Fault::new(
            path,
            "must be a table, or a JSON object in a string",
        )),
    }
}

/// Converts JSON. Whole numbers become int32 where they fit, else int64.
pub(crate) fn bson_of_json(value: &serde_json::Value) -> Bson {
    match value {
        serde_json::Value::Null => Bson::Null,
        serde_json::Value::Bool(truth) => Bson::Boolean(*truth),
        serde_json::Value::Number(number) => match number.as_i64() {
            Some(whole) => i32::try_from(whole).map_or(Bson::Int64(whole), Bson::Int32),
            None => Bson::Double(number.as_f64().unwrap_or(f64::NAN)),
        },
        serde_json::Value::String(text) => Bson::String(text.clone()),
        serde_json::Value::Array(elements) => {
            Bson::Array(elements.iter().map(bson_of_json).collect())
        }
        serde_json::Value::Object(fields) => Bson::Document(
            fields
                .iter()
                .map(|(name, value)| (name.clone(), bson_of_json(value)))
                .collect(),
        ),
    }
}
