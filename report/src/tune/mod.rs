//! Reports `tune`: what was tried, what the duel proved, what to change and how to undo it.
//!
//! Works from a run's [`seekscope_run::TuneRecord`] alone, also for a session that was interrupted or failed.
//! Read `reading.rs` first (the meaning of the record), then `sentences.rs` (the text). The figures are drawn
//! here, as SVG, so that they are visible without scripts too; `plot.rs` has their axes.

mod convergence;
mod duels;
mod exports;
mod forest;
mod html;
mod importance;
mod pair;
mod reading;
mod response;
mod runs;
mod sentences;
mod summary;
mod tables;
mod terminal;

pub use html::html;
pub use sentences::left_database;
pub use summary::TuneSummary;
pub use terminal::terminal;
