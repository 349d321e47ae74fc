//! Reorders a collection: copies it in the wanted order, checks the copy, and puts it in the original's
//! place.
//!
//! Copying into a new collection is the only rewrite that restores the order of leaves (`compact` does not).
//! Every step is first recorded in a collection of the same database (`state.rs`), so after a crash at any
//! moment [`resume`] and [`rollback`] can continue from what is on the server alone, and the original is
//! untouched until a verified copy takes its name.
//!
//! Nothing here prints or reads the environment. Read [`request`] first (the possible requests), then
//! [`apply()`] (the steps in order).

mod apply;
mod backlog;
mod catch_up;
mod checkpoints;
mod checksum;
mod copy;
pub mod definition;
pub mod error;
mod follow;
mod guard;
mod hold;
mod indexes;
mod job;
mod obstacles;
pub mod progress;
mod reader;
mod recovery;
mod replies;
pub mod request;
mod same;
mod site;
mod space;
mod spool;
mod state;
mod swap;
mod trial;
mod under_way;
mod undo;
mod worker;
mod writes;

pub use apply::{apply, check_room};
pub use definition::Definition;
pub use error::ReorderError;
pub use hold::block_refusal;
pub use progress::{CaughtUp, PauseReason, Progress, Step};
pub use recovery::{Pending, RolledBack, pending, resume, rollback};
pub use request::{By, GuardLimits, Judge, Request, WriterControl, Writers};
pub use seekscope_run::Reordered;
pub use state::Phase;
