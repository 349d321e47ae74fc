//! Reports `reorder`: what rewriting a collection would gain and cost, and its result.
//!
//! Works from a run's [`seekscope_run::ReorderMeasurement`]. Read `headline.rs` and [`sentences`] first (the
//! text), then `content.rs` (its order).

mod content;
mod headline;
mod html;
pub mod sentences;
mod tables;
mod terminal;

pub use html::html;
pub use terminal::terminal;
