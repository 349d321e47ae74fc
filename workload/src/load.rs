//! Inserts documents that are pure functions of their number.

use std::time::Instant;

use bson::{RawDocument, RawDocumentBuf, doc};
use futures_util::stream::{self, StreamExt};
use mongodb::Collection;
use mongodb::error::{Error, ErrorKind};
use mongodb::options::{Acknowledgment, CollectionOptions, WriteConcern};
use seekscope_run::units::nanoseconds;
use seekscope_server::{Namespace, Server};

use crate::{Progress, WorkloadError};

/// A data set: its documents have the `_id`s 0, 1, … (int64).
pub trait Documents: Sync {
    /// Returns document `number` as loaded.
    fn document(&self, number: u64) -> RawDocumentBuf;

    /// Returns whether this is document `number`, as loaded or after our updates.
    fn is_revision_of(&self, number: u64, found: &RawDocument) -> bool;
}

/// How to load.
#[derive(Debug, Clone)]
pub struct LoadOptions {
    /// Number of documents; they are numbered from 0.
    pub documents: u64,
    /// Documents per insert command, 1 to 10,000.
    pub batch_documents: u64,
    /// Commands in flight, at least 1. With one, documents arrive in strict order of `_id`; with
    /// more, neighbouring batches may overtake each other.
    pub writers: usize,
}

impl LoadOptions {
    /// Returns options with batches of 100 documents (about 300 kB) by one writer: larger ones were seen to
    /// starve secantusd-rs when its cache is small.
    pub fn new(documents: u64) -> Self {
        Self {
            documents,
            batch_documents: 100,
            writers: 1,
        }
    }
}

/// The result of a load.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LoadReport {
    /// Documents inserted.
    pub documents: u64,
    /// BSON bytes of all documents sent.
    pub bytes: u64,
    /// Number of documents that the server rejected.
    pub errors: u64,
    /// The first error, without credentials.
    pub first_error: Option<String>,
    pub elapsed_ns: u64,
}

/// Inserts the documents `0..options.documents`. A collection that this load wrote before (its document 0 is
/// ours, updated or not) is dropped first; one with anything else in it is refused.
pub async fn load(
    server: &Server,
    namespace: &Namespace,
    data: &dyn Documents,
    options: &LoadOptions,
    progress: Progress<'_>,
) -> Result<LoadReport, WorkloadError> {
    let collection = collection(server, namespace);
    make_room(server, namespace, &collection, data).await?;
    let start = Instant::now();
    let batch = options.batch_documents.clamp(1, 10_000);
    let starts = (0..options.documents).step_by(usize::try_from(batch).unwrap_or(1));
    let mut batches = stream::iter(starts)
        .map(|first| {
            let last = (first + batch).min(options.documents);
            insert(server, &collection, data, first, last)
        })
        .buffer_unordered(options.writers.max(1));
    let mut report = LoadReport::default();
    while let Some(batch) = batches.next().await {
        let batch = batch?;
        report.documents += batch.documents;
        report.bytes += batch.bytes;
        report.errors += batch.errors;
        report.first_error = report.first_error.or(batch.first_error);
        progress(report.documents + report.errors);
    }
    report.elapsed_ns = nanoseconds(start.elapsed());
    if report.documents == 0 && report.errors > 0 {
        return Err(WorkloadError::AllFailed {
            namespace: namespace.clone(),
            attempted: report.errors,
            first: report.first_error.unwrap_or_default(),
        });
    }
    Ok(report)
}

/// Acknowledgement by one member is enough for made-up data, whatever the connection string says.
fn collection(server: &Server, namespace: &Namespace) -> Collection<RawDocumentBuf> {
    let concern = WriteConcern::builder().w(Acknowledgment::Nodes(1)).build();
    let options = CollectionOptions::builder().write_concern(concern).build();
    server
        .database(namespace.database())
        .collection_with_options(namespace.collection(), options)
}

async fn make_room(
    server: &Server,
    namespace: &Namespace,
    collection: &Collection<RawDocumentBuf>,
    data: &dyn Documents,
) -> Result<(), WorkloadError> {
    let failed = |error| server.error("find", &error);
    if collection
        .find_one(doc! {})
        .await
        .map_err(failed)?
        .is_none()
    {
        return Ok(());
    }
    let first = collection
        .find_one(doc! { "_id": 0_i64 })
        .await
        .map_err(failed)?;
    let is_ours = first.is_some_and(|found| data.is_revision_of(0, &found));
    if !is_ours {
        return Err(WorkloadError::ForeignData {
            namespace: namespace.clone(),
        });
    }
    collection
        .drop()
        .await
        .map_err(|error| server.error("drop", &error))?;
    Ok(())
}

async fn insert(
    server: &Server,
    collection: &Collection<RawDocumentBuf>,
    data: &dyn Documents,
    first: u64,
    last: u64,
) -> Result<LoadReport, WorkloadError> {
    let documents: Vec<RawDocumentBuf> =
        (first..last).map(|number| data.document(number)).collect();
    let bytes: usize = documents.iter().map(|d| d.as_bytes().len()).sum();
    let mut report = LoadReport {
        bytes: u64::try_from(bytes).unwrap_or(u64::MAX),
        ..LoadReport::default()
    };
    if let Err(error) = collection.insert_many(documents).ordered(false).await {
        report.errors = refused(&error).ok_or_else(|| server.error("insert", &error))?;
        report.first_error = Some(server.error("insert", &error).to_string());
    }
    report.documents = (last - first).saturating_sub(report.errors);
    Ok(report)
}

/// Returns how many documents of a batch were rejected individually; `None` if the whole command failed.
fn refused(error: &Error) -> Option<u64> {
    match error.kind.as_ref() {
        ErrorKind::InsertMany(failure) => {
            let count = failure.write_errors.as_ref().map_or(0, Vec::len);
            u64::try_from(count).ok().filter(|&count| count > 0)
        }
        _ => None,
    }
}
