//! Lets a benchmark run on Cassandra: translates MongoDB-shaped requests to CQL, through ScyllaDB's driver.
//!
//! Workloads are unchanged. A request such as `{find: "usertable", filter: {_id: "user1"}}` becomes a
//! prepared statement on a table whose key column is `y_id`, as in YCSB's own Cassandra binding; requests
//! without a counterpart are rejected as [`seekscope_client::FailureKind::Unsupported`]. Differences from
//! MongoDB show in results too: inserts and updates are both upserts, so there are no duplicate keys and no
//! missing ones, and a scan is in the order of hashed keys.
//!
//! Read [`target`] first (where), then [`client`] (the engine's client), `translate` (requests as CQL) and
//! [`keyspace`] (ownership of data).

pub mod client;
mod document;
pub mod error;
mod failure;
mod index;
pub mod keyspace;
mod session;
mod table;
pub mod target;
mod translate;
pub mod verification;

pub use client::CqlFactory;
pub use error::CqlError;
pub use keyspace::OwnedKeyspace;
pub use target::CqlTarget;
pub use verification::verify;
