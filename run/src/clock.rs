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
    /// Returns what has to be added to monotonic times of this clock to get those of another host's, ns: both then
    /// mean the same moment, as far as the wall clocks of the two agree.
    pub fn shift_to(self, other: Self) -> i128 {
        let boot_ns = |clock: Self| i128::from(clock.realtime_ns) - i128::from(clock.monotonic_ns);
        boot_ns(self) - boot_ns(other)
    }
}

/// Returns a time moved by `shift_ns`, see [`ClockOffset::shift_to`].
pub fn shifted(t_ns: u64, shift_ns: i128) -> u64 {
    u64::try_from(i128::from(t_ns) + shift_ns).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_moment_has_two_times_on_two_hosts() {
        let here = ClockOffset {
            monotonic_ns: 1_000,
            realtime_ns: 5_000_000,
        };
        let there = ClockOffset {
            monotonic_ns: 90_000,
            realtime_ns: 5_000_200,
        };
        // 200 ns before the moment at which that clock was read.
        assert_eq!(shifted(1_000, here.shift_to(there)), 89_800);
        assert_eq!(shifted(89_800, there.shift_to(here)), 1_000);
        assert_eq!(shifted(10, -20), 0);
    }
}
