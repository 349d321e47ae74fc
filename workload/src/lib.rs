//! Provides the work that seekscope gives a server: loading a known data set, ageing it by random updates,
//! and building an index.
//!
//! Everything runs inside the returned futures: no task is spawned, so dropping a future ends the work on our
//! side (the server may still finish a command that was already sent).
//!
//! Read [`sdu`] first (the data), then [`mod@load`], [`mod@update`] and [`index_build`].

mod collection_name;
mod error;
pub mod generators;
pub mod index_build;
pub mod index_lab;
pub mod load;
pub mod own;
pub mod ownership;
pub mod quiescence;
pub mod schema;
pub mod sdu;
pub mod sharding;
pub mod sysbench;
pub mod update;
pub mod verification;
pub mod ycsb;

pub use error::WorkloadError;
pub use index_build::{IndexKeys, IndexPlan, drop_index};
pub use load::{Documents, LoadOptions, LoadReport, load};
pub use ownership::{DEFAULT_DATABASE, DataSet, OwnedDatabase};
pub use quiescence::{NoCheckpoint, checkpoint, quiesce};
pub use sdu::{Sdu, SduOptions};
pub use update::{UpdateOptions, UpdateReport, update};
pub use verification::{ExpectedData, VerificationOptions, count_documents, verify};

/// Receives the number of documents done so far; called from the polling thread, so it must be quick.
pub type Progress<'a> = &'a (dyn Fn(u64) + Send + Sync);
