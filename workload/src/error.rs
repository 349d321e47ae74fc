//! Defines the errors of a workload.

use std::io;
use std::path::PathBuf;

use seekscope_run::{ErrorKind, Kinded, visible};
use seekscope_server::{
    LocalServerError, Namespace, PageCacheError, ServerError, SlowDiskError, WorkspaceError,
};

/// Why a workload could not be run.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    #[error(transparent)]
    Server(#[from] ServerError),
    #[error(
        "{namespace} holds documents that seekscope did not write; nothing was changed; name \
         another collection, or remove this one yourself",
        namespace = visible(&namespace.to_string())
    )]
    ForeignData { namespace: Namespace },
    #[error(
        "{namespace} already has an index named {name}; nothing was changed; choose another name, \
         or drop the index",
        namespace = visible(&namespace.to_string()),
        name = visible(name)
    )]
    IndexExists { namespace: Namespace, name: String },
    #[error(
        "the database {name} holds {} that seekscope did not create ({collections}); nothing was \
         changed; name another database with --database, or remove them yourself",
        match count { 1 => "1 collection".to_string(), count => format!("{count} collections") },
        name = visible(name),
        collections = visible(collections)
    )]
    ForeignDatabase {
        name: String,
        count: usize,
        /// Names of some of them.
        collections: String,
    },
    #[error(
        "{name} cannot be used: {why}; nothing was changed; name another database or collection",
        name = visible(name)
    )]
    Database { name: String, why: String },
    #[error(
        "{uri} is a shard of a cluster, and the cluster would not notice what is written or \
         dropped there; nothing was changed; name a mongos of the cluster"
    )]
    Shard { uri: String },
    #[error("{namespace} does not exist or is empty: nothing to index or update", namespace = visible(&namespace.to_string()))]
    NoData { namespace: Namespace },
    #[error("{given:?} is not a key pattern: {why}; write, for example, {{\"i\": 1}}")]
    BadKeys { given: String, why: String },
    #[error("all {attempted} writes to {namespace} failed, the first with: {first}", namespace = visible(&namespace.to_string()))]
    AllFailed {
        namespace: Namespace,
        attempted: u64,
        first: String,
    },
    #[error("the server did not apply all writes of a batch to {collection}: {why}", collection = visible(collection))]
    BatchRefused { collection: String, why: String },
    #[error(transparent)]
    LocalServer(#[from] LocalServerError),
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    #[error(transparent)]
    PageCache(#[from] PageCacheError),
    #[error(transparent)]
    SlowDisk(#[from] SlowDiskError),
    #[error("{path}: {source}; seekscope must be allowed to remove the data of a private server")]
    Files { path: PathBuf, source: io::Error },
}

impl WorkloadError {
    /// Returns whether the server, its data or what was asked for ruled the work out before any of it was done.
    pub fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::ForeignData { .. }
                | Self::ForeignDatabase { .. }
                | Self::Database { .. }
                | Self::Shard { .. }
                | Self::IndexExists { .. }
                | Self::NoData { .. }
                | Self::BadKeys { .. }
        )
    }
}

impl Kinded for WorkloadError {
    fn kind(&self) -> Option<ErrorKind> {
        match self {
            Self::Server(error) => error.kind(),
            Self::LocalServer(error) => error.kind(),
            Self::SlowDisk(error) => error.kind(),
            // The server, or its data, does not allow the work.
            Self::ForeignData { .. }
            | Self::ForeignDatabase { .. }
            | Self::Database { .. }
            | Self::Shard { .. }
            | Self::IndexExists { .. }
            | Self::NoData { .. } => Some(ErrorKind::Target),
            Self::BadKeys { .. } => Some(ErrorKind::Usage),
            Self::AllFailed { .. }
            | Self::BatchRefused { .. }
            | Self::Workspace(_)
            | Self::PageCache(_)
            | Self::Files { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_starts_no_line_of_an_error() {
        let namespace = Namespace::new("shop", "a\nb").unwrap();
        let name = "n\u{2028}m".to_string();
        let error = WorkloadError::IndexExists { namespace, name };
        let text = error.to_string();
        assert!(
            text.starts_with(r"shop.a\nb already has an index named n\u{2028}m"),
            "{text}"
        );
    }

    #[test]
    fn one_foreign_collection_is_one() {
        let foreign = |count| WorkloadError::ForeignDatabase {
            name: "d".into(),
            count,
            collections: "c".into(),
        };
        assert!(foreign(1).to_string().contains("holds 1 collection that"));
        assert!(foreign(2).to_string().contains("holds 2 collections that"));
    }
}
