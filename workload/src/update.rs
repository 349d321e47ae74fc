//! Ages a collection: random updates that keep every document's size, so that a server that never overwrites
//! pages in place writes the changed ones elsewhere and key order is lost.

use std::time::Instant;

use bson::{Document, RawArrayBuf, RawDocumentBuf, rawdoc};
use futures_util::stream::{self, StreamExt};
use seekscope_run::units::nanoseconds;
use seekscope_server::{Namespace, Server, number};

use crate::sdu::{Sdu, id};
use crate::{Progress, WorkloadError};

/// Which documents to update and how.
#[derive(Debug, Clone)]
pub struct UpdateOptions {
    /// Number of documents in the collection; they are numbered from 0.
    pub documents: u64,
    /// Share of them to update, 0 to 1; each at most once.
    pub share: f64,
    /// Seed of the choice and its order.
    pub seed: u64,
    /// Which revision to write, 1 or more; the same one again changes nothing.
    pub revision: u64,
    /// Updates per command, 1 to 1,000.
    pub batch_documents: u64,
    /// Commands in flight, at least 1.
    pub writers: usize,
}

impl UpdateOptions {
    /// Returns options with batches of 100 updates by two writers.
    pub fn new(documents: u64, share: f64, seed: u64) -> Self {
        Self {
            documents,
            share,
            seed,
            revision: 1,
            batch_documents: 100,
            writers: 2,
        }
    }
}

/// The result of the updates.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UpdateReport {
    /// Documents changed.
    pub documents: u64,
    /// Documents that were not found.
    pub missing: u64,
    /// Number of updates that the server rejected.
    pub errors: u64,
    /// The first error, without credentials.
    pub first_error: Option<String>,
    pub elapsed_ns: u64,
}

/// Replaces `s1` and `s2` of randomly chosen SDU documents by new texts of the same length.
pub async fn update(
    server: &Server,
    namespace: &Namespace,
    sdu: &Sdu,
    options: &UpdateOptions,
    progress: Progress<'_>,
) -> Result<UpdateReport, WorkloadError> {
    let start = Instant::now();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a u64"
    )]
    let count = (options.documents as f64 * options.share.clamp(0.0, 1.0)).round() as u64;
    let numbers = seekscope_stats::shuffled::distinct(options.documents, count, options.seed);
    let batch = usize::try_from(options.batch_documents.clamp(1, 1_000)).unwrap_or(1);
    let mut batches = stream::iter(numbers.chunks(batch))
        .map(|numbers| send(server, namespace, sdu, numbers, options.revision))
        .buffer_unordered(options.writers.max(1));
    let mut report = UpdateReport::default();
    while let Some(batch) = batches.next().await {
        let batch = batch?;
        report.documents += batch.documents;
        report.missing += batch.missing;
        report.errors += batch.errors;
        report.first_error = report.first_error.or(batch.first_error);
        progress(report.documents + report.missing + report.errors);
    }
    report.elapsed_ns = nanoseconds(start.elapsed());
    match (report.documents, report.errors) {
        (0, 0) if count > 0 => Err(WorkloadError::NoData {
            namespace: namespace.clone(),
        }),
        (0, errors) if errors > 0 => Err(WorkloadError::AllFailed {
            namespace: namespace.clone(),
            attempted: errors,
            first: report.first_error.unwrap_or_default(),
        }),
        _ => Ok(report),
    }
}

/// Sends the `update` command: the driver has no bulk update for servers before 8.0.
async fn send(
    server: &Server,
    namespace: &Namespace,
    sdu: &Sdu,
    numbers: &[u64],
    revision: u64,
) -> Result<UpdateReport, WorkloadError> {
    let updates: RawArrayBuf = numbers
        .iter()
        .map(|&number| one(sdu, number, revision))
        .collect();
    let command = rawdoc! {
        "update": namespace.collection(),
        "updates": updates,
        "ordered": false,
        "writeConcern": { "w": 1 },
    };
    let reply = server
        .database(namespace.database())
        .run_raw_command(command)
        .await;
    let reply = reply.map_err(|error| server.error("update", &error))?;
    Ok(read_reply(&reply, numbers.len()))
}

fn one(sdu: &Sdu, number: u64, revision: u64) -> RawDocumentBuf {
    rawdoc! { "q": { "_id": id(number) }, "u": { "$set": sdu.revised_strings(number, revision) } }
}

fn read_reply(reply: &Document, sent: usize) -> UpdateReport {
    let sent = u64::try_from(sent).unwrap_or(0);
    let count = |name: &str| {
        let told = reply.get(name).and_then(number);
        told.unwrap_or(0).min(sent)
    };
    let failures = reply
        .get_array("writeErrors")
        .map(Vec::as_slice)
        .unwrap_or_default();
    let errors = u64::try_from(failures.len()).unwrap_or(0).min(sent);
    let first = failures
        .first()
        .and_then(|f| f.as_document()?.get_str("errmsg").ok());
    UpdateReport {
        documents: count("nModified"),
        missing: (sent - errors).saturating_sub(count("n")),
        errors,
        first_error: first.map(String::from),
        elapsed_ns: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;

    #[test]
    fn replies_are_counted() {
        let all = read_reply(&doc! { "n": 3, "nModified": 3, "ok": 1.0 }, 3);
        assert_eq!((all.documents, all.missing, all.errors), (3, 0, 0));
        let errors = vec![doc! { "index": 0, "code": 1, "errmsg": "no" }];
        let mixed = read_reply(
            &doc! { "n": 1_i64, "nModified": 1.0, "writeErrors": errors },
            3,
        );
        assert_eq!((mixed.documents, mixed.missing, mixed.errors), (1, 1, 1));
        assert_eq!(mixed.first_error.as_deref(), Some("no"));
        let hostile = read_reply(
            &doc! { "n": -5, "nModified": i64::MAX, "writeErrors": 1 },
            2,
        );
        assert_eq!(
            (hostile.documents, hostile.missing, hostile.errors),
            (2, 2, 0)
        );
    }
}
