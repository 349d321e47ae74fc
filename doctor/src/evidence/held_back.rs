//! Detects reads that wait far longer than the disk takes for their requests while CPUs are free: something
//! between the two holds them back, such as a limit that is not reported.

use super::waiting::ReadWaiting;
use super::{Evidence, cpu};

/// Calls are held back if they wait this many times as long as the disk takes, and at least this long, ns.
pub(crate) const HELD_BACK: f64 = 8.0;
const HELD_BACK_MIN_NS: f64 = 5e6;
/// Fewest reads, and requests in a minute, from which anything is concluded.
const EVENTS_MIN: f64 = 100.0;
/// Share of the time in which some task waited for a CPU; beyond it, calls may wait for that. Where the
/// kernel does not report it, the share of the CPUs that the server used.
const CPU_PRESSURE_MAX: f64 = 0.5;
const CPU_USED_MAX: f64 = 0.5;

/// Reads that were held back between the server and its disk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HeldBack {
    pub(crate) waiting: ReadWaiting,
    /// Number of reads in the trace.
    pub(crate) reads: f64,
    /// Time the disk takes for a request, ns.
    pub(crate) disk_ns: f64,
    /// Requests that reached the disk.
    pub(crate) requests_per_s: f64,
    /// Share of the time in which some task waited for a CPU; `None` where the kernel does not report it
    /// (some kernels need a boot option for that).
    pub(crate) cpu_pressure: Option<f64>,
}

impl HeldBack {
    pub(crate) fn of(evidence: &Evidence<'_>) -> Option<Self> {
        let waiting = evidence
            .read_waiting()
            .filter(|waiting| waiting.source == "trace")?;
        let requests_per_s = evidence.rate("diskstats", "reads").filter(|n| *n > 0.0)?;
        let found = Self {
            waiting,
            reads: waiting.reads_per_s * evidence.traced_s()?,
            disk_ns: evidence.rate("diskstats", "read_ms")? * 1e6 / requests_per_s,
            requests_per_s,
            cpu_pressure: cpu::pressure(evidence),
        };
        let held = waiting.mean_ns >= HELD_BACK * found.disk_ns;
        let few = found.reads < EVENTS_MIN || requests_per_s * 60.0 < EVENTS_MIN;
        let long = waiting.mean_ns >= HELD_BACK_MIN_NS;
        (held && long && !few && found.is_cpu_free(evidence)).then_some(found)
    }

    /// Returns whether the CPU is free, as far as is known. If not known, returns false.
    fn is_cpu_free(&self, evidence: &Evidence<'_>) -> bool {
        match self.cpu_pressure {
            Some(share) => share <= CPU_PRESSURE_MAX,
            None => cpu::Use::of(evidence).is_some_and(|found| found.share() < CPU_USED_MAX),
        }
    }
}
