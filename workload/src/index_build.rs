//! Builds an index on an existing collection, and times it.

use std::time::Instant;

use bson::{Bson, Document, doc};
use seekscope_run::IndexBuild;
use seekscope_run::units::nanoseconds;
use seekscope_server::{Namespace, Server};

use crate::WorkloadError;

/// The most fields of a compound index (server limit).
const FIELDS_MAX: usize = 32;

/// A key pattern such as `{"i": 1}`; the order of fields matters and is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexKeys(Document);

impl IndexKeys {
    /// Parses JSON text. Values are numbers (direction) or strings (`"hashed"`, `"text"`, `"2dsphere"`).
    pub fn parse(json: &str) -> Result<Self, WorkloadError> {
        let bad = |why: &str| WorkloadError::BadKeys {
            given: json.chars().take(200).collect(),
            why: why.into(),
        };
        let value = serde_json::from_str(json).map_err(|error| bad(&error.to_string()))?;
        let serde_json::Value::Object(fields) = value else {
            return Err(bad("it is not an object"));
        };
        if fields.is_empty() || fields.len() > FIELDS_MAX {
            return Err(bad("it must have 1 to 32 fields"));
        }
        let mut keys = Document::new();
        for (name, value) in fields {
            if name.is_empty() || name.contains('\0') {
                return Err(bad("a field name is empty or contains NUL"));
            }
            let value =
                direction(&value).ok_or_else(|| bad("a value is neither 1, -1 nor a string"))?;
            keys.insert(name, value);
        }
        Ok(Self(keys))
    }

    /// Returns the pattern for a command.
    pub fn document(&self) -> &Document {
        &self.0
    }

    /// Returns the pattern as compact JSON text.
    pub fn to_json(&self) -> String {
        let field = |(name, value): (&String, &Bson)| {
            let value = match value {
                Bson::String(text) => serde_json::Value::from(text.as_str()),
                other => serde_json::Value::from(other.as_i32().unwrap_or(1)),
            };
            (name.clone(), value)
        };
        serde_json::Value::Object(self.0.iter().map(field).collect()).to_string()
    }

    /// Returns the name that mongosh would give, e.g. `i_1`.
    pub fn default_name(&self) -> String {
        let parts = self.0.iter().map(|(name, value)| match value {
            Bson::String(text) => format!("{name}_{text}"),
            other => format!("{name}_{}", other.as_i32().unwrap_or(1)),
        });
        parts.collect::<Vec<_>>().join("_")
    }
}

fn direction(value: &serde_json::Value) -> Option<Bson> {
    match value {
        serde_json::Value::String(kind) if !kind.is_empty() => Some(Bson::String(kind.clone())),
        // mongosh sends 1.0 for 1; every other number means a direction too, but nobody intends that.
        serde_json::Value::Number(n) if n.as_f64() == Some(1.0) => Some(Bson::Int32(1)),
        serde_json::Value::Number(n) if n.as_f64() == Some(-1.0) => Some(Bson::Int32(-1)),
        _ => None,
    }
}

/// An index that can be built: checked, but not yet built.
///
/// Checking and building are separate because checking reads: some servers count documents by scanning them,
/// which would warm the caches that a measured build must find cold.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexPlan {
    pub namespace: Namespace,
    pub keys: IndexKeys,
    pub name: String,
    /// Documents in the collection when it was checked.
    pub documents: u64,
}

impl IndexPlan {
    /// Checks that the collection holds documents and has no index with that name.
    pub async fn check(
        server: &Server,
        namespace: &Namespace,
        keys: &IndexKeys,
        name: &str,
    ) -> Result<Self, WorkloadError> {
        let collection = server
            .database(namespace.database())
            .collection::<Document>(namespace.collection());
        let failed = |command: &'static str| move |error| server.error(command, &error);
        let documents = collection
            .estimated_document_count()
            .await
            .map_err(failed("count"))?;
        if documents == 0 {
            return Err(WorkloadError::NoData {
                namespace: namespace.clone(),
            });
        }
        let names = collection
            .list_index_names()
            .await
            .map_err(failed("listIndexes"))?;
        if names.iter().any(|existing| existing == name) {
            let (namespace, name) = (namespace.clone(), name.to_string());
            return Err(WorkloadError::IndexExists { namespace, name });
        }
        let (namespace, keys, name) = (namespace.clone(), keys.clone(), name.to_string());
        Ok(Self {
            namespace,
            keys,
            name,
            documents,
        })
    }

    /// Builds the index and waits until it is complete; sends nothing but `createIndexes`. The server may be
    /// another connection than the one that checked, e.g. after a restart. Dropping the future stops the
    /// waiting; the server may finish the build, and [`drop_index`] undoes it.
    pub async fn build(&self, server: &Server) -> Result<IndexBuild, WorkloadError> {
        let command = doc! {
            "createIndexes": self.namespace.collection(),
            "indexes": [{ "key": self.keys.document().clone(), "name": &self.name }],
        };
        let start = Instant::now();
        server.command(self.namespace.database(), command).await?;
        Ok(IndexBuild {
            keys: self.keys.to_json(),
            name: self.name.clone(),
            documents: self.documents,
            elapsed_ns: nanoseconds(start.elapsed()),
            repeats_ns: Vec::new(),
        })
    }
}

/// Drops the index; returns an error if it does not exist.
pub async fn drop_index(
    server: &Server,
    namespace: &Namespace,
    name: &str,
) -> Result<(), WorkloadError> {
    let command = doc! { "dropIndexes": namespace.collection(), "index": name };
    server.command(namespace.database(), command).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_patterns_keep_their_order() {
        let keys = IndexKeys::parse(r#"{"z": 1, "a.b": -1.0, "t": "hashed"}"#).unwrap();
        assert_eq!(keys.document(), &doc! { "z": 1, "a.b": -1, "t": "hashed" });
        assert_eq!(keys.to_json(), r#"{"z":1,"a.b":-1,"t":"hashed"}"#);
        assert_eq!(keys.default_name(), "z_1_a.b_-1_t_hashed");
    }

    #[test]
    fn everything_else_is_refused() {
        for json in [
            "",
            "[]",
            "{}",
            "1",
            r#"{"a":2}"#,
            r#"{"a":{}}"#,
            r#"{"":1}"#,
            r#"{"a":""}"#,
            r#"{"a":null}"#,
            "{\"a\\u0000\":1}",
        ] {
            let error = IndexKeys::parse(json).unwrap_err();
            assert!(
                matches!(error, WorkloadError::BadKeys { .. }),
                "{json}: {error}"
            );
        }
        assert!(IndexKeys::parse(&"[".repeat(100_000)).is_err());
    }
}
