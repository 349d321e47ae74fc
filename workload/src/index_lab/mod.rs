//! Builds indexes on existing data, with and without other load: how long it takes, what it needs, and how it
//! affects others.
//!
//! Read [`documents`] and [`kind`] first (what is indexed, and how), then [`lab`] (one build with its
//! record). Reads and writes of a build can be traced in parallel: `seekscope trace --pid PID`
//! attaches to the server's process at any time and needs nothing from here.

pub mod documents;
pub mod foreground;
pub mod kind;
pub mod lab;
pub mod point_operations;
mod verify;
mod watch;

pub use documents::{BigIndexDocuments, IndexedDocuments};
pub use foreground::p99_ns;
pub use kind::{IndexKind, is_kind, kinds};
pub use lab::{BuildProgress, Built, Concluded, IndexLab};
pub use point_operations::PointOperations;
