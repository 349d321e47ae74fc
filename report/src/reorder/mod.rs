//! Reports of `reorder`: what rewriting a collection would gain and take, and what it came to.
//!
//! Works from a run's [`seekscope_run::ReorderMeasurement`]. Read [`sentences`] first.

pub mod sentences;
mod tables;
mod terminal;

pub use terminal::terminal;
