//! Reports of `reorder`: what rewriting a collection would gain and take, and what it came to.
//!
//! Works from a run's [`seekscope_run::ReorderMeasurement`]. Read [`sentences`] first (what is said),
//! then `content.rs` (in which order).

mod content;
mod html;
pub mod sentences;
mod tables;
mod terminal;

pub use html::html;
pub use terminal::terminal;
