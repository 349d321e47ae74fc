//! Builds one index on existing data, and records it.

use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use bson::doc;
use futures_util::future::{Either, select};
use seekscope_run::{BenchIndexBuild, Limitation, monotonic_ns};
use seekscope_server::{Namespace, Server, ServerError, number};

use super::documents::IndexedDocuments;
use super::kind::IndexKind;
use super::point_operations::PointOperations;
use super::verify::verify;
use super::watch::Watch;
use crate::sdu::id;
use crate::{
    IndexKeys, LoadOptions, NoCheckpoint, Progress, WorkloadError, checkpoint, drop_index, load,
};

/// A collection on which indexes are built.
#[derive(Debug)]
pub struct IndexLab {
    server: Server,
    /// The connection on which builds wait for their answers.
    builder: Server,
    namespace: Namespace,
    documents: IndexedDocuments,
    count: u64,
    /// The server's process and data directory, if accessible from here.
    pid: Option<u32>,
    data_directory: Option<PathBuf>,
}

/// The progress of a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BuildProgress {
    pub elapsed: Duration,
    /// Progress in the server's own units, and their total; both 0 if it does not report them.
    pub done: u64,
    pub total: u64,
}

/// A build that has ended, successfully or not, and is not yet checked.
#[derive(Debug)]
pub struct Built {
    /// CLOCK_MONOTONIC ns.
    pub started_ns: u64,
    pub ended_ns: u64,
    outcome: Result<(), ServerError>,
    watch: Watch,
}

/// A recorded build, with what is not known of it.
#[derive(Debug)]
pub struct Concluded {
    pub build: BenchIndexBuild,
    pub limitation: Option<Limitation>,
}

#[cfg(test)]
impl Built {
    pub(super) fn between(started_ns: u64, ended_ns: u64) -> Self {
        Self {
            started_ns,
            ended_ns,
            outcome: Ok(()),
            watch: Watch::begin(None, None),
        }
    }
}

impl IndexLab {
    /// Loads the documents. An earlier run's copy of the same data set is replaced; a collection with
    /// anything else in it is refused.
    pub async fn prepare(
        server: &Server,
        namespace: &Namespace,
        documents: IndexedDocuments,
        count: u64,
        progress: Progress<'_>,
    ) -> Result<Self, WorkloadError> {
        load(
            server,
            namespace,
            &documents,
            &LoadOptions::new(count),
            progress,
        )
        .await?;
        Ok(Self {
            server: server.clone(),
            builder: server.another().await?,
            namespace: namespace.clone(),
            documents,
            count,
            pid: None,
            data_directory: None,
        })
    }

    /// Sets which process of this host the server is, and where its files are.
    #[must_use]
    pub fn seen_as(mut self, pid: Option<u32>, data_directory: Option<PathBuf>) -> Self {
        self.pid = pid;
        self.data_directory = data_directory;
        self
    }

    /// Returns the load that runs on the collection while an index is built.
    pub fn point_operations(&self, seed: u64) -> PointOperations {
        let collection = self.namespace.collection();
        PointOperations::new(collection, self.documents.clone(), self.count, seed)
    }

    /// Builds an index, while other load may continue. A refusal by the server is a result with a reason; a server that
    /// is gone is an error.
    pub async fn create(
        &self,
        kind: &IndexKind,
        progress: &(dyn Fn(BuildProgress) + Send + Sync),
    ) -> Result<Built, WorkloadError> {
        let keys = IndexKeys::parse(kind.keys)?;
        let mut index = doc! { "key": keys.document().clone(), "name": kind.name };
        if kind.unique {
            index.insert("unique", true);
        }
        let collection = self.namespace.collection();
        let command = doc! { "createIndexes": collection, "indexes": [index] };
        let mut watch = Watch::begin(self.pid, self.data_directory.as_deref());
        let started_ns = monotonic_ns();
        let outcome = {
            let build = pin!(self.builder.command(self.namespace.database(), command));
            let look = pin!(watch.look(&self.server, collection, progress));
            match select(build, look).await {
                Either::Left((outcome, _)) => outcome,
                Either::Right(((), build)) => build.await,
            }
        };
        let ended_ns = monotonic_ns();
        watch.end();
        match outcome {
            Err(error @ ServerError::Unreachable { .. }) => Err(error.into()),
            outcome => Ok(Built {
                started_ns,
                ended_ns,
                outcome: outcome.map(|_| ()),
                watch,
            }),
        }
    }

    /// Removes the documents that other load inserted and did not delete. The collection then holds what was
    /// loaded, except for changed numbers.
    pub async fn remove_inserted(&self) -> Result<(), WorkloadError> {
        let all = doc! { "q": { "_id": { "$gte": id(self.count) } }, "limit": 0 };
        let command = doc! { "delete": self.namespace.collection(), "deletes": [all] };
        self.server
            .command(self.namespace.database(), command)
            .await?;
        Ok(())
    }

    /// Measures and checks what was built, and drops it. Other load must have ended, and its leftovers must
    /// be removed.
    pub async fn conclude(
        &self,
        kind: &IndexKind,
        repetition: u32,
        built: Built,
    ) -> Result<Concluded, WorkloadError> {
        let mut result = BenchIndexBuild {
            kind: kind.name.into(),
            keys: kind.keys.into(),
            repetition,
            documents: self.count,
            started_ns: built.started_ns,
            elapsed_ns: built.ended_ns.saturating_sub(built.started_ns),
            server_rss_bytes: built.watch.rss_bytes,
            temp_bytes: built.watch.temp_bytes,
            read_bytes: built.watch.io.as_ref().map(|io| io.device_read_bytes),
            write_bytes: built.watch.io.as_ref().map(|io| io.device_write_bytes),
            ..BenchIndexBuild::default()
        };
        if let Err(error) = built.outcome {
            result.failure = Some(error.to_string());
            return Ok(Concluded {
                build: result,
                limitation: None,
            });
        }
        let (database, collection) = (self.namespace.database(), self.namespace.collection());
        let limitation = match checkpoint(&self.server).await {
            Ok(()) => {
                let stats = doc! { "collStats": collection };
                let stats = self.server.command(database, stats).await?;
                let sizes = stats.get_document("indexSizes").ok();
                result.index_bytes = sizes.and_then(|sizes| number(sizes.get(kind.name)?));
                None
            }
            Err(error) => Some(size_unknown(error)),
        };
        let verified = verify(&self.server, database, collection, kind.name, self.count).await;
        result.verified = verified.whole;
        let keys = verified.keys.unwrap_or(self.count);
        result.keys_per_s = keys as f64 / (result.elapsed_ns.max(1) as f64 / 1e9);
        drop_index(&self.server, &self.namespace, kind.name).await?;
        Ok(Concluded {
            build: result,
            limitation,
        })
    }
}

fn size_unknown(error: ServerError) -> Limitation {
    Limitation {
        what: "the size of the indexes is not known".into(),
        ..NoCheckpoint::from(error).limitation()
    }
}
