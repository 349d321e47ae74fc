//! Defines errors outside measured requests.

use seekscope_client::Failure;
use seekscope_run::{ErrorKind, Kinded};

/// The reason why something outside a measured request failed. Messages hold no credentials.
#[derive(Debug, thiserror::Error)]
pub enum CqlError {
    #[error(
        "the connection string of Cassandra cannot be used: {why}. It must look like \
         cql://host:9042,host2/keyspace?consistency=quorum"
    )]
    Uri { why: String },
    #[error("{what} failed on Cassandra: {}", .failure.message)]
    Request {
        what: &'static str,
        failure: Failure,
    },
    #[error(
        "the keyspace {keyspace} holds {count} tables that seekscope did not create ({tables}); \
         name another keyspace, or drop this one yourself"
    )]
    ForeignKeyspace {
        keyspace: String,
        count: usize,
        tables: String,
    },
    #[error("{keyspace}.{table}: {why}")]
    Keyspace {
        keyspace: String,
        table: String,
        why: String,
    },
}

impl CqlError {
    pub(crate) fn request(what: &'static str) -> impl FnOnce(Failure) -> Self {
        move |failure| Self::Request { what, failure }
    }

    /// Converts to the engine's type.
    pub(crate) fn into_failure(self) -> Failure {
        match self {
            Self::Request { failure, .. } => failure,
            other => Failure::of(
                seekscope_client::FailureKind::Client,
                "Keyspace",
                other.to_string(),
            ),
        }
    }
}

impl Kinded for CqlError {
    fn kind(&self) -> Option<ErrorKind> {
        Some(match self {
            Self::Uri { .. } => ErrorKind::Usage,
            _ => ErrorKind::Target,
        })
    }
}
