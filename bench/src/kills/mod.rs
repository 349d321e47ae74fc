//! What kills leave of a command: servers with concurrent writers that know what they wrote, seekscope at work, and
//! one of them killed at a random moment. Then what the message or the documentation says is done, and
//! everything is looked at: each document, index, setting and process.
//!
//! Read [`trial`] first; [`combination`] says who is killed during what and how that may end, [`recovery`] what is
//! done then, [`writers`] and [`expected`] what must be there, [`examination`] what is, [`table`] what came of it.

pub mod combination;
pub mod documents;
pub mod examination;
pub mod expected;
pub mod pause;
pub mod recovery;
pub mod seekscope;
pub mod servers;
pub mod table;
pub mod trial;
mod world;
pub mod writers;

pub use combination::{During, Victim};
pub use table::Table;
pub use trial::{run_control, run_trials};
pub use world::Setting;
