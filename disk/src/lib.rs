//! What a disk can do for a database: I/O engines, jobs, and the device model made of them.
//!
//! Read [`test_file`] (what is measured), [`job`] (what may be requested), `engine` (the loops) and
//! [`step`] (threads, window, results), in this order; [`replay`] plays recorded I/O instead of a
//! job.

pub mod buffer;
mod direct_probe;
mod engine;
mod error;
mod gate;
mod instruments;
pub mod job;
pub mod model;
pub mod mongoperf;
mod offsets;
mod pacing;
mod random_bytes;
mod recorder;
pub mod replay;
pub mod safety;
pub mod step;
pub mod survey;
pub mod test_file;

pub use direct_probe::probe as probe_direct;
pub use engine::{end_process_on_bus_error, uring_is_available};
pub use error::DiskError;
pub use job::{Job, RateLimits};
pub use pacing::clock_read_ns;
pub use recorder::{Operation, Tally};
pub use step::{Second, Step, StepEnd};
pub use test_file::{Contents, CopyKind, FillOptions, TestFile};
