//! What tracing itself costs, measured while it runs.

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Instant;

use libbpf_rs::libbpf_sys;
use rustix::time::{ClockId, clock_gettime};
use seekscope_run::units::{nanoseconds, whole};
use seekscope_run::{TraceFacts, TracerCost};

/// The kernel's run-time statistics of BPF programs, switched on while this value lives. The switch
/// is tied to a file descriptor: the kernel switches them off when the descriptor closes, also
/// after a crash, and other users of the statistics keep theirs.
struct RunTimeStatistics {
    _switch: OwnedFd,
}

impl RunTimeStatistics {
    /// Returns `None` if the kernel refuses (needs CAP_SYS_ADMIN and Linux 5.8): the cost is then
    /// unknown, which is no reason not to trace.
    fn enable() -> Option<Self> {
        // SAFETY: plain system call without pointers; the result is a new descriptor or negative.
        let fd = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
        if fd < 0 {
            return None;
        }
        // SAFETY: a new descriptor that nobody else owns.
        let switch = unsafe { OwnedFd::from_raw_fd(fd) };
        Some(Self { _switch: switch })
    }
}

/// Measures what the programs cost in a sample of the time.
///
/// The kernel reads two clocks per program run while its statistics are on, which was measured to
/// add 175 ns to the 390 ns that an event costs otherwise. So they are on only in windows: about
/// one sixteenth of the time, and of the events. The cost of the programs has two parts, which
/// `shares` separates: an amount per event, and an amount per second for the calls and requests of
/// all other processes.
pub(crate) struct CostSampler {
    statistics: Option<RunTimeStatistics>,
    began: Instant,
    ended: Option<Instant>,
    /// The totals at the start of the present window.
    window: Totals,
    /// Finished windows.
    windows: Vec<Totals>,
    /// The sum of the finished windows.
    sampled: Totals,
    /// Events seen at the last look.
    seen: u64,
    drains: u32,
    delays: Option<CallTimes>,
}

/// How long system calls of processes that are not followed take, or by how much longer than untraced, ns.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct CallTimes {
    /// A call that is not followed.
    passing_ns: f64,
    /// A call of which the programs find that it is none of the followed processes'.
    rejected_ns: f64,
}

impl CallTimes {
    /// Measures them. `followed` is the number of a call that is followed, and whose first argument is a file
    /// descriptor.
    pub(crate) fn measure(followed: Option<libc::c_long>) -> Self {
        let passing_ns = shortest_call_ns(libc::SYS_getppid);
        Self {
            passing_ns,
            rejected_ns: followed.map_or(passing_ns, shortest_call_ns),
        }
    }

    /// Returns by how much they take longer than `before`.
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            passing_ns: (self.passing_ns - before.passing_ns).max(0.0),
            rejected_ns: (self.rejected_ns - before.rejected_ns).max(0.0),
        }
    }
}

/// Measures how long a call with an impossible file descriptor takes, ns: the best of many short series, since
/// anything else the machine does can only lengthen one.
fn shortest_call_ns(number: libc::c_long) -> f64 {
    const SERIES: u32 = 48;
    const CALLS: u32 = 128;
    let one = |_| {
        let began = Instant::now();
        for _ in 0..CALLS {
            // SAFETY: the call has no arguments, or fails because there is no such descriptor.
            unsafe { libc::syscall(number, -1, 0, 0, 0, 0, 0) };
        }
        began.elapsed().as_nanos() as f64 / f64::from(CALLS)
    };
    (0..SERIES).map(one).fold(f64::INFINITY, f64::min)
}

/// Counts since the beginning of the trace, or within a window.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Totals {
    events: u64,
    time_ns: u64,
    /// Runs of all programs.
    runs: u64,
    program_ns: u64,
    /// Runs of the programs at the entry and exit of system calls.
    call_runs: u64,
    call_ns: u64,
}

impl Totals {
    fn since(self, earlier: Self) -> Self {
        Self {
            events: self.events.saturating_sub(earlier.events),
            time_ns: self.time_ns.saturating_sub(earlier.time_ns),
            runs: self.runs.saturating_sub(earlier.runs),
            program_ns: self.program_ns.saturating_sub(earlier.program_ns),
            call_runs: self.call_runs.saturating_sub(earlier.call_runs),
            call_ns: self.call_ns.saturating_sub(earlier.call_ns),
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            events: self.events + other.events,
            time_ns: self.time_ns + other.time_ns,
            runs: self.runs + other.runs,
            program_ns: self.program_ns + other.program_ns,
            call_runs: self.call_runs + other.call_runs,
            call_ns: self.call_ns + other.call_ns,
        }
    }
}

/// One in this many events, and of the time, is to be measured.
const ONE_IN: u64 = 16;
/// Switching on changes kernel code on all CPUs, so it is considered at every 8th drain only.
const DRAINS_PER_LOOK: u32 = 8;
/// The most that an event may cost, in ns and in program runs. Measured: 400 ns and two runs for a
/// call, less than 2,000 ns and four runs for a call with a request.
const EVENT_NS_MAX: f64 = 10_000.0;
const EVENT_RUNS_MAX: f64 = 16.0;
/// The most windows kept separately. In a trace of days the later ones are added to the last.
const WINDOWS_MAX: usize = 4096;

impl CostSampler {
    /// Returns a sampler that does not measure yet.
    pub(crate) fn new() -> Self {
        Self {
            statistics: None,
            began: Instant::now(),
            ended: None,
            window: Totals::default(),
            windows: Vec::new(),
            sampled: Totals::default(),
            seen: 0,
            drains: 0,
            delays: None,
        }
    }

    /// Begins with the statistics on.
    pub(crate) fn start(&mut self, delays: CallTimes) {
        self.began = Instant::now();
        self.statistics = RunTimeStatistics::enable();
        self.delays = Some(delays);
    }

    /// Returns the extra time of a system call that is not traced, ns; 0 before the start.
    pub(crate) fn call_delay_ns(&self) -> f64 {
        self.delays.map_or(0.0, |delays| delays.passing_ns)
    }

    /// Returns whether it is time to [look](Self::look). To be called after each drain.
    pub(crate) fn is_due(&mut self) -> bool {
        self.drains = self.drains.wrapping_add(1);
        // The first events after an idle start may be the only ones; and as long as the statistics
        // are on, every event costs more.
        let waits_for_first = self.statistics.is_none() && self.sampled.events == 0;
        let is_on = self.statistics.is_some();
        waits_for_first || is_on || self.drains.is_multiple_of(DRAINS_PER_LOOK)
    }

    /// Switches the statistics on or off as required after `seen` events; `runs` reads what the
    /// kernel has counted about the programs.
    pub(crate) fn look(&mut self, seen: u64, runs: impl FnOnce() -> AllRuns) {
        let time_ns = self.elapsed_ns();
        let arriving = seen > self.seen;
        self.seen = seen;
        let sampled = match self.statistics {
            Some(_) => self.sampled.plus(
                Totals {
                    events: seen,
                    time_ns,
                    ..self.window
                }
                .since(self.window),
            ),
            None => self.sampled,
        };
        // While no events arrive, only time is left to be sampled.
        let wanted = wants_sample(sampled.time_ns, time_ns)
            || arriving && wants_sample(sampled.events, seen);
        if wanted == self.statistics.is_some() {
            return;
        }
        let now = self.totals(seen, runs());
        if wanted {
            self.statistics = RunTimeStatistics::enable();
            self.window = now;
        } else {
            self.end_window(now);
        }
    }

    /// Switches the statistics off for good.
    pub(crate) fn stop(&mut self, seen: u64, runs: AllRuns) {
        self.ended.get_or_insert_with(Instant::now);
        let now = self.totals(seen, runs);
        self.end_window(now);
    }

    fn end_window(&mut self, now: Totals) {
        if self.statistics.take().is_none() {
            return;
        }
        let window = now.since(self.window);
        self.sampled = self.sampled.plus(window);
        let is_full = self.windows.len() >= WINDOWS_MAX;
        match self.windows.last_mut() {
            Some(last) if is_full => *last = last.plus(window),
            _ => self.windows.push(window),
        }
    }

    fn totals(&self, events: u64, runs: AllRuns) -> Totals {
        Totals {
            events,
            time_ns: self.elapsed_ns(),
            runs: runs.calls.runs + runs.groups.runs,
            program_ns: runs.calls.ns + runs.groups.ns,
            call_runs: runs.calls.runs,
            call_ns: runs.calls.ns,
        }
    }

    fn elapsed_ns(&self) -> u64 {
        let until = self.ended.unwrap_or_else(Instant::now);
        nanoseconds(until.duration_since(self.began))
    }

    /// Estimates the cost of the whole trace from that of the sample; `cpus` bounds it. `host_calls_per_s` is known
    /// where the programs do not run at all of the host's system calls.
    ///
    /// The kernel's statistics do not count the way to a program and back. So the extra time of a call that the
    /// programs reject is added for each call at which they run, in place of what is counted for those rejected; and
    /// that of a call at which none runs, for all others.
    pub(crate) fn estimate(
        &self,
        seen: u64,
        cpus: u64,
        host_calls_per_s: Option<f64>,
    ) -> TracerCost {
        let time_ns = self.elapsed_ns();
        let estimated = |of: fn(&Totals) -> u64, event_max: f64| {
            let (per_event, per_ns) = shares(&self.windows, of, event_max);
            let standing = (per_ns * time_ns as f64).max(0.0);
            (per_event * seen as f64 + standing, standing)
        };
        let (counted_ns, standing_ns) = estimated(|window| window.program_ns, EVENT_NS_MAX);
        let (runs, _) = estimated(|window| window.runs, EVENT_RUNS_MAX);
        let (call_runs, others_call_runs) = estimated(|window| window.call_runs, EVENT_RUNS_MAX);
        let (_, others_calls_ns) = estimated(|window| window.call_ns, EVENT_NS_MAX);
        // Two programs run at each of these calls.
        let (calls, others_calls) = (call_runs / 2.0, others_call_runs / 2.0);
        let passing =
            host_calls_per_s.map_or(0.0, |per_s| (per_s * time_ns as f64 / 1e9 - calls).max(0.0));
        let (traced_calls_ns, others_ns) = self.delays.map_or((0.0, 0.0), |delays| {
            let others_ns = passing * delays.passing_ns + others_calls * delays.rejected_ns;
            let traced_calls_ns = (calls - others_calls) * delays.rejected_ns;
            (traced_calls_ns, others_ns - others_calls_ns)
        });
        let most = time_ns.saturating_mul(cpus.max(1));
        let program_ns = whole(counted_ns + traced_calls_ns + others_ns).min(most.max(1));
        TracerCost {
            program_runs: whole(runs).max(self.sampled.runs),
            program_ns,
            standing_ns: whole(standing_ns + others_ns).min(program_ns),
            ..TracerCost::default()
        }
    }
}

/// Returns whether the measured share is too small.
fn wants_sample(sampled: u64, all: u64) -> bool {
    sampled.saturating_mul(ONE_IN) <= all
}

/// Returns the amount per event and the amount per ns that minimise the sum of squared errors over
/// the windows. Neither is below 0, and the amount per event is at most `event_max`: anything
/// beyond was caused by others. If the windows cannot separate the two, events are given as much as
/// allowed.
fn shares(windows: &[Totals], of: fn(&Totals) -> u64, event_max: f64) -> (f64, f64) {
    let sum = |f: &dyn Fn(&Totals) -> f64| windows.iter().map(f).sum::<f64>();
    let (events, time) = (|w: &Totals| w.events as f64, |w: &Totals| w.time_ns as f64);
    let value = |w: &Totals| of(w) as f64;
    let (all, all_events, all_time) = (sum(&value), sum(&events), sum(&time));
    let with = |per_event: f64| {
        let per_event = per_event
            .clamp(0.0, event_max)
            .min(all / all_events.max(1.0));
        let others = (all - per_event * all_events).max(0.0);
        (per_event, others / all_time.max(1.0))
    };
    let (ee, et, tt) = (
        sum(&|w| events(w) * events(w)),
        sum(&|w| events(w) * time(w)),
        sum(&|w| time(w) * time(w)),
    );
    let (ev, tv) = (sum(&|w| events(w) * value(w)), sum(&|w| time(w) * value(w)));
    let determinant = ee * tt - et * et;
    // With two proportional columns only rounding errors remain.
    if determinant <= ee * tt * 1e-9 {
        return with(event_max);
    }
    let per_event = (ev * tt - tv * et) / determinant;
    let per_ns = (tv * ee - ev * et) / determinant;
    if per_ns < 0.0 {
        return with(event_max);
    }
    if (0.0..=event_max).contains(&per_event) {
        (per_event, per_ns)
    } else {
        with(per_event)
    }
}

/// What the kernel counted about one program.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ProgramRuns {
    pub(crate) runs: u64,
    pub(crate) ns: u64,
    /// Events at which the program was skipped because it, or a program of its kind, was already
    /// running on that CPU. Covers all processes, not only the traced one.
    pub(crate) missed: u64,
}

impl std::iter::Sum for ProgramRuns {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            runs: sum.runs + one.runs,
            ns: sum.ns + one.ns,
            missed: sum.missed + one.missed,
        })
    }
}

/// What the kernel counted about all programs of a trace.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct AllRuns {
    /// The programs at the entry and exit of system calls.
    pub(crate) calls: ProgramRuns,
    /// The programs of the other groups of I/O.
    pub(crate) groups: ProgramRuns,
}

impl AllRuns {
    /// Returns the number of events at which a program was skipped.
    pub(crate) fn missed(&self) -> u64 {
        self.calls.missed + self.groups.missed
    }
}

/// Reads a loaded program's counters; zeros if the kernel does not provide them.
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

/// Returns the CPU time that the calling thread has used, ns.
pub(crate) fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// With fewer events, the reader's idle wake-ups would dominate the mean.
const EVENTS_FOR_A_MEAN: u64 = 1000;

/// Completes the cost with the CPU time of the thread that drained the events.
pub(crate) fn add_reader(facts: &mut TraceFacts, drain_cpu_ns: u64) {
    let cost = &mut facts.cost;
    cost.drain_cpu_ns = drain_cpu_ns;
    let of_events_ns = cost.program_ns.saturating_sub(cost.standing_ns) + drain_cpu_ns;
    cost.ns_per_event = match facts.written {
        0..EVENTS_FOR_A_MEAN => 0.0,
        written => of_events_ns as f64 / written as f64,
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
    fn the_first_events_after_an_idle_start_are_measured_at_once() {
        let mut sampler = CostSampler::new();
        sampler.start(CallTimes::default());
        assert!(sampler.statistics.is_some(), "needs root");
        let mut drained = |seen| {
            assert!(sampler.is_due());
            sampler.look(seen, AllRuns::default);
            sampler.statistics.is_some()
        };
        assert!(!drained(0), "of the time so far, all was measured");
        assert!(drained(5), "at once");
        assert!(!drained(500), "that was enough");
    }

    fn window(events: u64, time_ns: u64, program_ns: u64) -> Totals {
        Totals {
            events,
            time_ns,
            runs: program_ns / 100,
            program_ns,
            ..Totals::default()
        }
    }

    fn sampler(windows: &[Totals], time_ns: u64) -> CostSampler {
        let began = Instant::now();
        CostSampler {
            statistics: None,
            began,
            ended: began.checked_add(std::time::Duration::from_nanos(time_ns)),
            window: Totals::default(),
            sampled: windows
                .iter()
                .fold(Totals::default(), |sum, w| sum.plus(*w)),
            windows: windows.to_vec(),
            seen: 0,
            drains: 0,
            delays: None,
        }
    }

    #[test]
    fn a_call_of_others_costs_what_it_takes_longer_and_not_what_the_statistics_count() {
        // A million calls a second of others, 100 ns counted for each of two programs; 1,000 requests of
        // others with 500 ns each.
        let second = |events: u64| Totals {
            events,
            time_ns: 1_000_000_000,
            runs: 2_001_000 + 2 * events,
            program_ns: 200_500_000 + 400 * events,
            call_runs: 2_000_000 + 2 * events,
            call_ns: 200_000_000 + 400 * events,
        };
        let mut sampler = sampler(&[second(0), second(1000), second(5000)], 10_000_000_000);
        let counted = sampler.estimate(20_000, 2, None);
        assert_eq!(counted.standing_ns, 2_005_000_000);
        sampler.delays = Some(CallTimes {
            passing_ns: 50.0,
            rejected_ns: 140.0,
        });
        let measured = sampler.estimate(20_000, 2, None);
        assert_eq!(measured.standing_ns, 10 * (140_000_000 + 500_000));
        assert_eq!(
            measured.program_ns - measured.standing_ns,
            20_000 * (400 + 140),
            "the way to the programs and back is part of a traced call's cost"
        );
        assert_eq!(measured.program_runs, counted.program_runs);
        // Two million more calls a second, at which no program runs.
        let traced_and_rejected_per_s = 1_000_000.0 + 2_000.0;
        let per_s = 2_000_000.0 + traced_and_rejected_per_s;
        let with_passing = sampler.estimate(20_000, 2, Some(per_s));
        let more_ns = with_passing.standing_ns - measured.standing_ns;
        assert_eq!(more_ns, 10 * 2_000_000 * 50);
    }

    #[test]
    fn what_others_do_is_not_ascribed_to_events() {
        // 400 ns an event, and a hundredth of the time for everybody else.
        let of = |events: u64, time_ns: u64| window(events, time_ns, events * 400 + time_ns / 100);
        let windows = [of(0, 40_000_000), of(5, 320_000_000), of(9000, 40_000_000)];
        let cost = sampler(&windows, 30_000_000_000).estimate(20_000, 2, None);
        assert_eq!(
            (cost.program_ns, cost.standing_ns),
            (308_000_000, 300_000_000)
        );
        assert_eq!(cost.program_runs, 3_080_000);
    }

    #[test]
    fn a_handful_of_events_makes_no_nonsense() {
        // Five events were seen while others kept the programs busy; a flood came unmeasured.
        let windows = [window(5, 320_000_000, 16_000_000)];
        let cost = sampler(&windows, 5_000_000_000).estimate(100, 2, None);
        assert!(
            (200_000_000..260_000_000).contains(&cost.program_ns),
            "{cost:?}"
        );
        assert!(cost.program_ns - cost.standing_ns <= 1_000_000, "{cost:?}");
        let idle = sampler(&[window(0, 320_000_000, 3_200_000)], 30_000_000_000);
        assert_eq!(idle.estimate(0, 2, None).program_ns, 300_000_000);
        let unknown = sampler(&[], 30_000_000_000).estimate(10, 2, None);
        assert_eq!((unknown.program_ns, unknown.program_runs), (0, 0));
    }

    #[test]
    fn cost_per_event_counts_programs_and_reader() {
        let mut facts = TraceFacts {
            written: 10_000,
            ..TraceFacts::default()
        };
        (facts.cost.program_ns, facts.cost.standing_ns) = (53_000_000, 50_000_000);
        add_reader(&mut facts, 1_000_000);
        assert_eq!(facts.cost.ns_per_event, 400.0);
        facts.written = 1;
        add_reader(&mut facts, 16_000_000);
        assert_eq!(facts.cost.ns_per_event, 0.0, "one event tells nothing");
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
