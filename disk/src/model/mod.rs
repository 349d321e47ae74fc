//! A small device model: derived from measured steps ([`fit()`]), it predicts what a list of
//! accesses costs ([`predict()`]).
//!
//! Read `fit` for where the numbers come from, `device` for what they mean for one request, and
//! `predict` for how page cache, read-ahead and device work together.

mod access;
mod classes;
mod device;
mod fit;
mod idle_memory;
mod limits;
mod page_cache;
mod pieces;
mod predict;
mod read_ahead;
#[cfg(test)]
mod test_steps;

pub use access::{
    Access, CALL_BYTES_MAX, Operation, Order, Region, TraceAccesses, accesses_of_trace,
    without_think_time,
};
pub use classes::ClassCost;
pub use fit::{FitError, fit, knee_depth};
pub use limits::knee;
pub use pieces::Piece;
pub use predict::{PredictOptions, Prediction, predict};
