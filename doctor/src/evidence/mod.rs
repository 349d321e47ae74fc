//! All that is known of a run, arranged for questions.

pub(crate) mod ability;
mod counters;
pub(crate) mod read_ahead;
pub(crate) mod waiting;

pub use counters::{Counters, Series};

use seekscope_pattern::{DeviceUse, TraceAnalysis};
use seekscope_run::{
    DeviceFacts, DeviceModel, ExaminationRecord, HostSettings, LayoutFile, MemberRecord,
    RunDocument,
};

/// See the module. What was not measured is `None` or empty, and detectors that need it stay silent.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    pub document: &'a RunDocument,
    /// Of `io.parquet`.
    pub trace: Option<&'a TraceAnalysis>,
    /// Who used the disk, second by second, and each checkpoint: a second pass over the events.
    pub device_use: Option<&'a DeviceUse>,
    /// Of `server.parquet`.
    pub counters: &'a Counters,
}

impl<'a> Evidence<'a> {
    /// What was gathered beside trace and counters.
    pub fn examination(&self) -> Option<&'a ExaminationRecord> {
        self.document.examination.as_ref()
    }

    /// The examined server.
    pub fn examined(&self) -> Option<&'a MemberRecord> {
        self.examination()?.examined()
    }

    pub fn host_settings(&self) -> Option<&'a HostSettings> {
        self.examination()?.host.as_ref()
    }

    /// What the disk can do, and whether that was measured.
    pub fn model(&self) -> Option<(&'a DeviceModel, bool)> {
        let disk = self.examination()?.disk.as_ref()?;
        Some((&disk.model, disk.measured))
    }

    pub fn device(&self) -> Option<&'a DeviceFacts> {
        self.document.device.as_ref()
    }

    /// Files whose leaves were walked, the most to gain first.
    pub fn layout_files(&self) -> &'a [LayoutFile] {
        self.document.layout.as_ref().map_or(&[], |l| &l.files)
    }

    /// The stretch of time that was observed, s; `None` when nothing was.
    pub fn observed_s(&self) -> Option<f64> {
        let phase = self.document.phases.first()?;
        let ns = phase.ended_ns.checked_sub(phase.started_ns)?;
        (ns > 0).then(|| ns as f64 / 1e9)
    }

    /// The connection string for commands that are suggested, without credentials.
    pub fn uri(&self) -> &'a str {
        self.document.target.as_ref().map_or("URI", |t| &t.uri)
    }
}
