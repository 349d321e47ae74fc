//! What can go wrong with a workload.

use seekscope_server::{Namespace, ServerError};

/// Why a workload could not be run.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    #[error(transparent)]
    Server(#[from] ServerError),
    #[error(
        "{namespace} holds documents that seekscope did not write; nothing was changed; \
         name another collection or remove it yourself"
    )]
    ForeignData { namespace: Namespace },
    #[error(
        "{namespace} has an index named {name} already; nothing was changed; choose another name or drop it"
    )]
    IndexExists { namespace: Namespace, name: String },
    #[error(
        "the database {name} holds {count} collections that seekscope did not make ({collections}); \
         nothing was changed; name another database with --database, or remove them yourself"
    )]
    ForeignDatabase {
        name: String,
        count: usize,
        /// Some of them.
        collections: String,
    },
    #[error("{name} cannot be used: {why}; nothing was changed; name another database")]
    Database { name: String, why: String },
    #[error("{namespace} does not exist or is empty: nothing to index or update")]
    NoData { namespace: Namespace },
    #[error("{given:?} is not a key pattern: {why}; write for example {{\"i\": 1}}")]
    BadKeys { given: String, why: String },
    #[error("all {attempted} writes to {namespace} failed, the first with: {first}")]
    AllFailed {
        namespace: Namespace,
        attempted: u64,
        first: String,
    },
}
