//! What the kernel counts around a step, independently of our own counting.

use std::path::Path;
use std::time::Duration;

use seekscope_run::{HostFacts, IoPressure, ProcessDeviceIo, monotonic_ns};

/// A reading at one moment.
#[derive(Debug, Clone)]
pub(crate) struct Instruments {
    at_ns: u64,
    process: Option<ProcessDeviceIo>,
    pressure: Option<IoPressure>,
}

/// What passed between two moments; see the fields of [`seekscope_run::DiskStep`].
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Readings {
    pub(crate) device_read_bytes: Option<u64>,
    pub(crate) io_pressure: Option<f64>,
    pub(crate) load_1m: f64,
}

impl Instruments {
    /// Reads them now, below `root` ("/" outside of tests).
    pub(crate) fn read(root: &Path) -> Self {
        Self {
            at_ns: monotonic_ns(),
            process: ProcessDeviceIo::read(root),
            pressure: IoPressure::read(root),
        }
    }

    /// What passed since.
    pub(crate) fn until_now(&self, root: &Path) -> Readings {
        let now = Self::read(root);
        let elapsed = Duration::from_nanos(now.at_ns.saturating_sub(self.at_ns));
        let process = self.process.zip(now.process);
        let pressure = self.pressure.zip(now.pressure);
        Readings {
            device_read_bytes: process.map(|(then, now)| now.since(&then).read_bytes),
            io_pressure: pressure.map(|(then, now)| now.share_since(&then, elapsed)),
            load_1m: HostFacts::load_1m(root),
        }
    }
}
