//! Streaming analysis of a whole trace in bounded memory.

pub(crate) mod device;
pub(crate) mod options;
pub(crate) mod result;
pub(crate) mod reuse;
pub(crate) mod roles;

use seekscope_run::{FileRecord, IoEvent, ThreadRecord};

use options::AnalysisOptions;
use result::TraceAnalysis;

/// Up to this many values quantiles are exact.
pub const EXACT_VALUES_MAX: usize = 256;

/// Deeper queues are counted as this deep.
pub const QUEUE_DEPTH_MAX: usize = 4096;

/// Takes the events of a trace one by one.
pub struct TraceAnalyser {
    events: u64,
}

impl TraceAnalyser {
    /// An analyser without events.
    pub fn new(_options: AnalysisOptions) -> Self {
        Self { events: 0 }
    }

    /// The next event, in the order in which a run keeps them.
    pub fn push(&mut self, _event: &IoEvent) {
        self.events += 1;
    }

    /// The figures, with the files and threads by the names that these records give them.
    pub fn finish(self, _files: &[FileRecord], _threads: &[ThreadRecord]) -> TraceAnalysis {
        TraceAnalysis {
            events: self.events,
            ..TraceAnalysis::default()
        }
    }
}
