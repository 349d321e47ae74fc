//! One clock for everything in a run: CLOCK_MONOTONIC, the clock that eBPF's `bpf_ktime_get_ns`
//! reads, with its distance to wall-clock time recorded once.

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// Returns the present time of CLOCK_MONOTONIC, ns.
pub fn monotonic_ns() -> u64 {
    clock_ns(ClockId::Monotonic)
}

fn clock_ns(id: ClockId) -> u64 {
    let t = clock_gettime(id);
    u64::try_from(t.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(t.tv_nsec).unwrap_or(0)
}

/// A moment read on both clocks, so that monotonic times can be shown as dates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockOffset {
    /// CLOCK_MONOTONIC at that moment, ns.
    pub monotonic_ns: u64,
    /// CLOCK_REALTIME (ns since 1970 UTC) at the same moment.
    pub realtime_ns: u64,
}

impl ClockOffset {
    /// Reads both clocks, back to back.
    pub fn now() -> Self {
        Self {
            monotonic_ns: monotonic_ns(),
            realtime_ns: clock_ns(ClockId::Realtime),
        }
    }
}
