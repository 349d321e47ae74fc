//! The run directory: what one execution of a seekscope command leaves behind.
//!
//! Producers (`trace`, `workload`, …) write the record types of this crate; readers (`pattern`,
//! `report`) work from them alone, so a run brought from another host can be analysed without
//! root, eBPF or a server. Nothing here talks to a database or prints.
//!
//! Read [`document`] first (what `run.json` says), then [`io_event`] (one row per read or write).

pub mod clock;
pub mod directory;
pub mod document;
pub mod file_record;
pub mod host;
pub mod io_event;
mod io_spool;
mod parquet_file;
pub mod units;

pub use clock::{ClockOffset, monotonic_ns};
pub use directory::{RunDirectory, RunError};
pub use document::{
    CacheState, Disk, Finding, Gain, IndexBuild, Limitation, Outcome, Phase, ProcessIo,
    RunDocument, TargetFacts, TraceFacts, TracerCost,
};
pub use file_record::{FileRecord, FileRole, PathState};
pub use host::{DeviceFacts, HostFacts};
pub use io_event::{CacheOutcome, IoEvent, IoFlags, IoOp};
