//! Runs workloads that users write, as TOML.
//!
//! A text is parsed to [`language`] (what was written, with every error at its line), [`plan`] turns that
//! into what runs: `values` that write BSON without allocating, `keys` that choose records, requests to fill
//! in, and one workload for each role of each phase. [`run_phase()`] runs them.
//!
//! The language is described for users in `docs/workloads.md`.

mod actor;
pub mod builtin;
mod error;
mod expected;
mod keys;
pub mod language;
#[cfg(test)]
mod manual_tests;
pub mod plan;
mod run_phase;
pub mod sample;
mod values;

pub use error::OwnError;
pub use expected::ExpectedCollection;
pub use language::Source;
pub use plan::{Plan, PlanOptions};
pub use run_phase::{RoleRun, run_phase};
