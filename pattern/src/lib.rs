//! Turns I/O events into access patterns: per file, how consecutive offsets relate, how long calls
//! took and what the page cache held. Works from records alone.
//!
//! [`TraceAnalyser`] makes the single pass over the events; [`DensityGrid`] plots them.

mod access;
mod asked;
mod density;
mod device_use;
mod totals;
mod trace;
mod transfers;

pub use access::{AccessPattern, Direction, PatternKind, SEQUENTIAL_WINDOW_BYTES};
pub use asked::ReadsRecorded;
pub use density::{Axis, DensityGrid};
pub use device_use::{Checkpoint, DeviceUse, DeviceUseFinder, FileUse, PAUSE_NS};
pub use trace::QUEUE_DEPTH_MAX;
pub use trace::analyser::TraceAnalyser;
pub use trace::classify::DOMINANT_SHARE;
pub use trace::device::{BytesByPurpose, DiskTrace};
pub use trace::options::{AnalysisOptions, EXACT_VALUES_MAX};
pub use trace::result::{
    BytesBySource, DirectionTrace, Distribution, Evidence, FileOnDevice, FileSlice, FileTrace,
    FilesBeyond, LatencyByOutcome, Octave, PatternShape, QueueDepth, RoleTrace, SliceDirection,
    SyncCalls, ThreadTrace, TraceAnalysis,
};
pub use trace::reuse::{DistanceCount, ReuseDistances};
pub use trace::roles::ThreadRole;
pub use transfers::{CacheCounts, Transfers};
