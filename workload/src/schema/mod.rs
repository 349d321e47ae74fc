//! Runs schema labs: the same samples of time-series metrics stored in several ways, and the cost of each.
//!
//! Read [`samples`] first (the data, a pure function of seed, series and time), then [`variant`] (the ways of
//! storing them), [`statement`] and [`query`] (what a way writes and reads), [`lab_server`] (where), and
//! [`lab`] (the measurement). [`mod@experiments`] interprets the figures.

pub mod experiments;
mod filling;
pub mod lab;
pub mod lab_server;
pub mod query;
pub mod samples;
pub mod statement;
pub mod variant;

pub use experiments::{experiments, recommendation};
pub use lab::{LabOptions, measure};
pub use lab_server::{ForeignServer, LabServer};
pub use samples::{SampleOptions, Samples, ValueKind};
pub use variant::{IndexOrder, Shape, Variant};
