//! The commands of requests, as far as the driver's own methods can express them. A field that none of them
//! accepts is refused by name: leaving it out would make a different operation.

use std::time::Duration;

use bson::{Bson, Document, RawDocumentBuf};
use mongodb::options::{
    AggregateOptions, Collation, DeleteOptions, FindOptions, Hint, UpdateModifications,
    UpdateOptions,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::unsupported;
use crate::Failure;

/// Rows of a first batch by default (MongoDB's default).
const FIRST_BATCH_ROWS: u32 = 101;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Find {
    #[serde(rename = "find")]
    pub(super) collection: String,
    #[serde(default)]
    pub(super) filter: Document,
    projection: Option<Document>,
    sort: Option<Document>,
    skip: Option<u64>,
    limit: Option<i64>,
    batch_size: Option<u32>,
    #[serde(default)]
    single_batch: bool,
    hint: Option<Hint>,
    min: Option<Document>,
    max: Option<Document>,
    collation: Option<Collation>,
    comment: Option<Bson>,
    allow_disk_use: Option<bool>,
    no_cursor_timeout: Option<bool>,
    #[serde(rename = "let")]
    let_vars: Option<Document>,
    #[serde(rename = "maxTimeMS")]
    max_time_ms: Option<u64>,
}

impl Find {
    /// Returns the filter, and everything else.
    pub(super) fn split(self) -> (Document, FindOptions) {
        // A negative limit tells the driver to use a single batch.
        let limit = match (self.single_batch, self.limit) {
            (false, limit) => limit,
            (true, Some(limit)) if limit != 0 => Some(-limit.saturating_abs()),
            (true, _) => Some(-i64::from(self.batch_size.unwrap_or(FIRST_BATCH_ROWS))),
        };
        let mut options = FindOptions::default();
        options.limit = limit;
        options.projection = self.projection;
        options.sort = self.sort;
        options.skip = self.skip;
        options.batch_size = self.batch_size;
        options.hint = self.hint;
        options.min = self.min;
        options.max = self.max;
        options.collation = self.collation;
        options.comment = self.comment;
        options.allow_disk_use = self.allow_disk_use;
        options.no_cursor_timeout = self.no_cursor_timeout;
        options.let_vars = self.let_vars;
        options.max_time = self.max_time_ms.map(Duration::from_millis);
        (self.filter, options)
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Aggregate {
    #[serde(rename = "aggregate")]
    pub(super) collection: String,
    pub(super) pipeline: Vec<Document>,
    #[serde(default)]
    cursor: CursorFields,
    hint: Option<Hint>,
    collation: Option<Collation>,
    comment: Option<Bson>,
    allow_disk_use: Option<bool>,
    #[serde(rename = "let")]
    let_vars: Option<Document>,
    #[serde(rename = "maxTimeMS")]
    max_time_ms: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CursorFields {
    batch_size: Option<u32>,
}

impl Aggregate {
    /// Returns the pipeline, and everything else.
    pub(super) fn split(self) -> (Vec<Document>, AggregateOptions) {
        let mut options = AggregateOptions::default();
        options.batch_size = self.cursor.batch_size;
        options.hint = self.hint;
        options.collation = self.collation;
        options.comment = self.comment;
        options.allow_disk_use = self.allow_disk_use;
        options.let_vars = self.let_vars;
        options.max_time = self.max_time_ms.map(Duration::from_millis);
        (self.pipeline, options)
    }
}

/// The body of an insert, update or delete.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Write {
    #[serde(alias = "insert", alias = "update", alias = "delete")]
    pub(super) collection: String,
    #[serde(default = "yes")]
    pub(super) ordered: bool,
    pub(super) bypass_document_validation: Option<bool>,
    pub(super) comment: Option<Bson>,
}

fn yes() -> bool {
    true
}

/// A statement of an update.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct UpdateStatement {
    pub(super) q: Document,
    pub(super) u: UpdateModifications,
    #[serde(default)]
    pub(super) multi: bool,
    upsert: Option<bool>,
    array_filters: Option<Vec<Document>>,
    hint: Option<Hint>,
    collation: Option<Collation>,
}

impl UpdateStatement {
    /// Returns the replacement: a document without operators replaces the one that is found.
    pub(super) fn replacement(&self) -> Option<RawDocumentBuf> {
        match &self.u {
            UpdateModifications::Document(u) if !u.keys().any(|k| k.starts_with('$')) => {
                RawDocumentBuf::try_from(u).ok()
            }
            _ => None,
        }
    }

    pub(super) fn options(&self) -> UpdateOptions {
        let mut options = UpdateOptions::default();
        options.upsert = self.upsert;
        options.array_filters.clone_from(&self.array_filters);
        options.hint.clone_from(&self.hint);
        options.collation.clone_from(&self.collation);
        options
    }
}

/// A statement of a delete.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DeleteStatement {
    pub(super) q: Document,
    /// 0: all that match; 1: one of them.
    pub(super) limit: i32,
    hint: Option<Hint>,
    collation: Option<Collation>,
}

impl DeleteStatement {
    /// Returns the filter and the options.
    pub(super) fn split(self) -> (Document, DeleteOptions) {
        let mut options = DeleteOptions::default();
        options.hint = self.hint;
        options.collation = self.collation;
        (self.q, options)
    }
}

/// Reads a BSON document.
pub(super) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Failure> {
    bson::deserialize_from_slice(bytes)
        .map_err(|error| unsupported(format!("the driver cannot send this request: {error}")))
}

/// Splits a buffer into its documents.
pub(super) fn documents(mut bytes: &[u8]) -> Result<Vec<RawDocumentBuf>, Failure> {
    let mut documents = Vec::new();
    while !bytes.is_empty() {
        let length = bytes.first_chunk::<4>().map(|b| u32::from_le_bytes(*b));
        let length = length.and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
        let document = bytes.get(..length).map(<[u8]>::to_vec);
        let document = document.and_then(|bytes| RawDocumentBuf::from_bytes(bytes).ok());
        documents
            .push(document.ok_or_else(|| unsupported("a statement is not a valid BSON document"))?);
        bytes = &bytes[length..];
    }
    Ok(documents)
}
