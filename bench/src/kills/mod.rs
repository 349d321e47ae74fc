//! What SIGKILL leaves of `seekscope reorder`: a server with concurrent writers that know what they
//! wrote, seekscope at work on their collection, and one of the two killed at a random moment.
//! Afterwards `--resume` or `--rollback`, and a look at every document.
//!
//! Read [`trial`] first; [`writers`] and [`expected`] say what must be there, [`examination`] what is,
//! [`table`] what came of it.

pub mod documents;
pub mod examination;
pub mod expected;
pub mod pause;
pub mod table;
pub mod trial;
pub mod writers;

pub use table::Table;
pub use trial::{Setting, Victim, run_control, run_trials};
