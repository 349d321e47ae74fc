//! What tracing itself costs, measured while it runs.

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use libbpf_rs::libbpf_sys;
use rustix::time::{ClockId, clock_gettime};
use seekscope_run::{TraceFacts, TracerCost};

/// Kernel run-time statistics of BPF programs, on while this lives. The switch is tied to a file
/// descriptor: the kernel takes it back when the descriptor closes, also after a crash, and other
/// users of the statistics keep theirs.
struct RunTimeStatistics {
    _switch: OwnedFd,
}

impl RunTimeStatistics {
    /// `None` where the kernel refuses (needs CAP_SYS_ADMIN and Linux 5.8): cost is then unknown,
    /// which is no reason not to trace.
    fn enable() -> Option<Self> {
        // SAFETY: plain system call without pointers; the result is a new descriptor or negative.
        let fd = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
        if fd < 0 {
            return None;
        }
        // SAFETY: a descriptor just made, which nobody else owns.
        let switch = unsafe { OwnedFd::from_raw_fd(fd) };
        Some(Self { _switch: switch })
    }
}

/// Measures what the programs cost on a sample of the events.
///
/// The kernel reads two clocks per program run while its statistics are on, which was measured to
/// add 175 ns to the 390 ns that an event costs otherwise. So they are on for about one event in
/// [`ONE_IN`] only, and the total is estimated from those.
pub(crate) struct CostSampler {
    statistics: Option<RunTimeStatistics>,
    /// Events seen when the statistics were switched on.
    on_since: u64,
    /// Events seen while they were on, without the present stretch.
    sampled: u64,
    /// Events seen at the last look.
    seen: u64,
    drains: u32,
}

/// One event in this many is to be measured.
const ONE_IN: u64 = 16;
/// Switching on changes kernel code on all CPUs, so it is considered at every 8th drain only.
const DRAINS_PER_LOOK: u32 = 8;

impl CostSampler {
    /// Begins with the statistics on, before the first event.
    pub(crate) fn start() -> Self {
        Self {
            statistics: RunTimeStatistics::enable(),
            on_since: 0,
            sampled: 0,
            seen: 0,
            drains: 0,
        }
    }

    /// To be called after each drain: is it time to [look](Self::look)?
    pub(crate) fn is_due(&mut self) -> bool {
        self.drains = self.drains.wrapping_add(1);
        // The first events after an idle start may be all there are; and as long as the statistics
        // are on, every event costs more.
        let waits_for_first = self.statistics.is_none() && self.sampled == 0;
        let is_on = self.statistics.is_some();
        waits_for_first || is_on || self.drains.is_multiple_of(DRAINS_PER_LOOK)
    }

    /// Switches the statistics on or off, as it should be after `seen` events.
    pub(crate) fn look(&mut self, seen: u64) {
        let is_on = self.statistics.is_some();
        // While nothing arrives there is nothing to measure, and all other processes would pay.
        let arriving = seen > self.seen;
        self.seen = seen;
        match arriving && wants_sample(self.sampled_until(seen), seen) {
            true if !is_on => {
                self.statistics = RunTimeStatistics::enable();
                self.on_since = seen;
            }
            false if is_on => self.stop(seen),
            _ => {}
        }
    }

    /// Switches the statistics off.
    pub(crate) fn stop(&mut self, seen: u64) {
        self.sampled = self.sampled_until(seen);
        self.statistics = None;
    }

    fn sampled_until(&self, seen: u64) -> u64 {
        match self.statistics {
            Some(_) => self.sampled + seen.saturating_sub(self.on_since),
            None => self.sampled,
        }
    }

    /// The whole trace's cost, from that of the sample.
    pub(crate) fn estimate(&self, sample: ProgramRuns, seen: u64) -> TracerCost {
        TracerCost {
            program_runs: scaled(sample.runs, seen, self.sampled),
            program_ns: scaled(sample.ns, seen, self.sampled),
            ..TracerCost::default()
        }
    }
}

/// Is the measured share of events too small?
fn wants_sample(sampled: u64, seen: u64) -> bool {
    sampled.saturating_mul(ONE_IN) <= seen
}

/// `value * seen / sampled`. Without events all there was is what was measured.
fn scaled(value: u64, seen: u64, sampled: u64) -> u64 {
    if sampled == 0 {
        return value;
    }
    let total = u128::from(value) * u128::from(seen) / u128::from(sampled);
    u64::try_from(total).unwrap_or(u64::MAX)
}

/// What the kernel counted about one program.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ProgramRuns {
    pub(crate) runs: u64,
    pub(crate) ns: u64,
    /// Events at which the program was skipped because it, or a program of its kind, was running
    /// on that CPU already. Of all processes, not only the traced one.
    pub(crate) missed: u64,
}

/// Reads a loaded program's counters; zeros where the kernel does not tell.
pub(crate) fn program_runs(program: BorrowedFd<'_>) -> ProgramRuns {
    let mut info = libbpf_sys::bpf_prog_info::default();
    let Ok(mut length) = u32::try_from(size_of_val(&info)) else {
        return ProgramRuns::default();
    };
    // SAFETY: `info` is a zeroed plain structure of `length` bytes that outlives the call; zeroed
    // array lengths keep the kernel from following its pointers.
    let failed =
        unsafe { libbpf_sys::bpf_prog_get_info_by_fd(program.as_raw_fd(), &mut info, &mut length) };
    if failed != 0 {
        return ProgramRuns::default();
    }
    ProgramRuns {
        runs: info.run_cnt,
        ns: info.run_time_ns,
        missed: info.recursion_misses,
    }
}

/// CPU time the calling thread has used, ns.
pub(crate) fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// Completes the cost with the CPU time of the thread that drained the events.
pub(crate) fn add_reader(facts: &mut TraceFacts, drain_cpu_ns: u64) {
    let TracerCost { program_ns, .. } = facts.cost;
    facts.cost.drain_cpu_ns = drain_cpu_ns;
    facts.cost.ns_per_event = match facts.written {
        0 => 0.0,
        written => (program_ns + drain_cpu_ns) as f64 / written as f64,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_event_in_sixteen_is_measured() {
        assert!(wants_sample(0, 0), "from the first event on");
        assert!(!wants_sample(1000, 1000));
        assert!(!wants_sample(1000, 15_999));
        assert!(wants_sample(1000, 16_000));
    }

    #[test]
    fn an_idle_trace_is_not_measured_until_events_arrive() {
        let mut sampler = CostSampler::start();
        assert!(sampler.statistics.is_some(), "needs root");
        let mut drained = |seen| {
            assert!(sampler.is_due());
            sampler.look(seen);
            sampler.statistics.is_some()
        };
        assert!(!drained(0), "nothing to measure");
        assert!(!drained(0));
        assert!(drained(5), "at once");
        assert!(!drained(500), "that was enough");
    }

    #[test]
    fn the_total_is_estimated_from_the_sample() {
        assert_eq!(scaled(500, 1600, 100), 8000);
        assert_eq!(scaled(500, 0, 0), 500);
        assert_eq!(scaled(u64::MAX, u64::MAX, 1), u64::MAX);
    }

    #[test]
    fn cost_per_event_counts_programs_and_reader() {
        let mut facts = TraceFacts {
            written: 10,
            ..TraceFacts::default()
        };
        facts.cost.program_ns = 3000;
        add_reader(&mut facts, 1000);
        assert_eq!(facts.cost.ns_per_event, 400.0);
    }

    #[test]
    fn no_events_cost_nothing_each() {
        let mut facts = TraceFacts::default();
        add_reader(&mut facts, 1000);
        assert_eq!(
            (facts.cost.ns_per_event, facts.cost.drain_cpu_ns),
            (0.0, 1000)
        );
    }
}
