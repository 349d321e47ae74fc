//! Streaming analysis of a whole trace in bounded memory.

pub(crate) mod analyser;
mod calls;
pub(crate) mod classify;
mod depth;
pub(crate) mod device;
pub(crate) mod direction;
mod disk_counter;
mod distinct;
mod file;
mod frequent;
pub(crate) mod hash;
mod latency;
pub(crate) mod options;
mod reorder;
pub(crate) mod result;
pub(crate) mod reuse;
pub(crate) mod roles;
pub(crate) mod sketch;
mod slices;
mod steps;
mod streams;
#[cfg(test)]
pub(crate) mod testing;
mod threads;
mod touched;

/// Deeper queues are counted as this deep.
pub const QUEUE_DEPTH_MAX: usize = 4096;
