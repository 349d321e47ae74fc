//! Cassandra as the server of a benchmark: MongoDB-shaped requests as CQL, through ScyllaDB's driver.
//!
//! Workloads stay as they are. A request such as `{find: "usertable", filter: {_id: "user1"}}` becomes a
//! prepared statement on a table whose key column is `y_id`, as in YCSB's own Cassandra binding; what has
//! no counterpart is refused as [`seekscope_client::FailureKind::Unsupported`]. What differs from MongoDB
//! differs in results too: inserts and updates are both upserts, so there are no duplicate keys and no
//! missing ones, and a scan goes in the order of hashed keys.
//!
//! Read [`target`] first (where), then [`client`] (the engine's client), `translate` (requests as CQL)
//! and [`keyspace`] (whose data is whose).

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
