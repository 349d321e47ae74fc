//! `reorder`: a collection is copied in the order wanted, checked, and put in the original's place.
//!
//! Copying into a new collection is the only rewrite that restores the order of leaves (`compact`
//! does not). Everything that is done is first written to a collection of the same database
//! (the room's `state.rs`), so whatever is killed whenever, [`resume`] or [`rollback`] find their way from what is
//! on the server alone, and the original is untouched until a copy that has been verified takes its
//! name.
//!
//! Nothing here prints or reads the environment. Read [`request`] first (what can be asked for), then
//! [`apply()`] (the steps in their order).

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

pub use apply::apply;
pub use definition::Definition;
pub use error::ReorderError;
pub use hold::block_refusal;
pub use progress::{CaughtUp, PauseReason, Progress, Step};
pub use recovery::{Pending, RolledBack, pending, resume, rollback};
pub use request::{By, GuardLimits, Judge, Request, WriterControl, Writers};
pub use seekscope_run::Reordered;
pub use state::Phase;
