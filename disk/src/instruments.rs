//! What the kernel counts during a step, independently of our own counting.

use std::path::{Path, PathBuf};
use std::time::Duration;

use seekscope_run::{HostFacts, IoPressure, ProcessDeviceIo, monotonic_ns};

/// A reading at one moment.
#[derive(Debug, Clone)]
pub(crate) struct Instruments {
    at_ns: u64,
    process: Option<ProcessDeviceIo>,
    pressure: Option<IoPressure>,
}

/// The difference between two readings; see the fields of [`seekscope_run::DiskStep`].
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Readings {
    pub(crate) device_read_bytes: Option<u64>,
    pub(crate) io_pressure: Option<f64>,
    pub(crate) load_1m: f64,
}

impl Instruments {
    /// Takes a reading below `root` ("/" outside of tests).
    pub(crate) fn read(root: &Path) -> Self {
        Self {
            at_ns: monotonic_ns(),
            process: ProcessDeviceIo::read(root),
            pressure: IoPressure::read(root),
        }
    }

    /// Returns the difference since this reading.
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

/// Watches how long the host waits for I/O, for measurements that must not disturb others.
#[derive(Debug)]
pub(crate) struct PressureGuard {
    root: PathBuf,
    max: f64,
    /// The start of the present span.
    since: Instruments,
    /// The share that exceeded the limit.
    pub(crate) exceeded: Option<f64>,
}

/// Shares over shorter spans are coarse, and one slow second does no harm yet.
const PRESSURE_SPAN_NS: u64 = 3_000_000_000;

impl PressureGuard {
    pub(crate) fn new(root: &Path, max: f64) -> Self {
        Self {
            root: root.into(),
            max,
            since: Instruments::read(root),
            exceeded: None,
        }
    }

    /// Checks the pressure when a span is over; cheap to call often.
    pub(crate) fn is_exceeded(&mut self) -> bool {
        if monotonic_ns() >= self.since.at_ns + PRESSURE_SPAN_NS {
            let share = self.since.until_now(&self.root).io_pressure;
            self.exceeded = self.exceeded.or(share.filter(|share| *share > self.max));
            self.since = Instruments::read(&self.root);
        }
        self.exceeded.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn pressure_counts_over_a_span() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("proc/pressure")).unwrap();
        let set = |total_us: u64| {
            let text = format!("some avg10=0.00 avg60=0.00 avg300=0.00 total={total_us}\n");
            fs::write(root.path().join("proc/pressure/io"), text).unwrap();
        };
        set(0);
        let mut guard = PressureGuard::new(root.path(), 0.5);
        set(10_000_000_000);
        assert!(!guard.is_exceeded(), "the span is not over");
        guard.since.at_ns -= PRESSURE_SPAN_NS;
        assert!(guard.is_exceeded());
        assert_eq!(guard.exceeded, Some(1.0));
    }
}
