//! Workloads that users write, as TOML.
//!
//! A text is read into [`language`] (what was written, with every error at its line), [`plan`] turns
//! that into what runs: [`values`] that write BSON without allocating, [`keys`] that choose records,
//! [`operations`] that become requests, and one workload for each role of each phase. [`run`] runs them.
//!
//! The language is described for users in `docs/workloads.md`.

mod actor;
pub mod builtin;
mod error;
mod keys;
pub mod language;
pub mod plan;
mod values;

pub use error::OwnError;
pub use language::Source;
pub use plan::{Plan, PlanOptions};
