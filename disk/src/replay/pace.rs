//! When a thread's next operation is due.

use super::{Loop, Op};

/// A thread that wakes later than this was kept from the CPU: hurrying after that would bunch
/// together what was apart.
const OVERSLEPT_NS_MAX: u64 = 1_000_000;

/// The schedule of one thread.
#[derive(Debug)]
pub(super) struct Pace {
    /// Recorded ns per played ns; `None` for no waits.
    speed: Option<f64>,
    pacing: Loop,
    /// The recording's beginning on the scale of CLOCK_MONOTONIC, ns.
    base_ns: u64,
    /// When the thread's last operation ended: in the recording, and here.
    recorded_free_ns: u64,
    free_ns: u64,
    /// How late operations began because the thread woke late, ns. It is subtracted from the next waits, so that
    /// such delays do not add up. At most [`OVERSLEPT_NS_MAX`].
    overslept_ns: u64,
}

impl Pace {
    pub(super) fn new(speed: Option<f64>, pacing: Loop, base_ns: u64) -> Self {
        Self {
            speed,
            pacing,
            base_ns,
            recorded_free_ns: 0,
            free_ns: base_ns,
            overslept_ns: 0,
        }
    }

    /// Returns when the operation is due, CLOCK_MONOTONIC ns; a time in the past means at once.
    pub(super) fn due_ns(&self, op: &Op) -> u64 {
        match (self.speed, self.pacing) {
            (None, _) => self.free_ns,
            (Some(speed), Loop::Open) => self.base_ns.saturating_add(played(op.start_ns, speed)),
            (Some(speed), Loop::Closed) => {
                let wait_ns = self.think_ns(op, speed).saturating_sub(self.overslept_ns);
                self.free_ns.saturating_add(wait_ns)
            }
        }
    }

    /// Returns the recorded time since the thread's last operation, scaled by the speed.
    fn think_ns(&self, op: &Op, speed: f64) -> u64 {
        played(op.start_ns.saturating_sub(self.recorded_free_ns), speed)
    }

    /// Notes that the operation due at `due_ns` began at `called_ns` and ended at `done_ns`.
    pub(super) fn completed(&mut self, op: &Op, due_ns: u64, called_ns: u64, done_ns: u64) {
        let made_up_ns = self.speed.map_or(0, |speed| self.think_ns(op, speed));
        let left_ns = self.overslept_ns.saturating_sub(made_up_ns);
        let overslept_ns = left_ns.saturating_add(called_ns.saturating_sub(due_ns));
        self.overslept_ns = overslept_ns.min(OVERSLEPT_NS_MAX);
        self.recorded_free_ns = self.recorded_free_ns.max(op.end_ns());
        self.free_ns = done_ns;
    }
}

/// Scales a recorded time by the speed.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, and speeds are positive"
)]
fn played(ns: u64, speed: f64) -> u64 {
    if speed == 1.0 {
        return ns;
    }
    (ns as f64 / speed) as u64
}

#[cfg(test)]
mod tests {
    use super::super::Action;
    use super::*;

    fn op(start_ns: u64, latency_ns: u64) -> Op {
        Op {
            start_ns,
            latency_ns,
            offset: 0,
            length: 1,
            action: Action::Read,
            direct: false,
            file: 0,
        }
    }

    /// Recorded: [100, 150) and [250, 260). Here the first takes 500.
    fn second_due(speed: Option<f64>, pacing: Loop) -> [u64; 2] {
        let mut pace = Pace::new(speed, pacing, 1_000);
        let first = op(100, 50);
        let due_ns = pace.due_ns(&first);
        pace.completed(&first, due_ns, due_ns, due_ns + 500);
        [due_ns, pace.due_ns(&op(250, 10))]
    }

    #[test]
    fn a_closed_loop_keeps_the_time_between_operations() {
        assert_eq!(second_due(Some(1.0), Loop::Closed), [1_100, 1_700]);
        assert_eq!(second_due(Some(2.0), Loop::Closed), [1_050, 1_600]);
        assert_eq!(second_due(Some(0.5), Loop::Closed), [1_200, 1_900]);
    }

    #[test]
    fn an_open_loop_keeps_the_starts() {
        assert_eq!(second_due(Some(1.0), Loop::Open), [1_100, 1_250]);
        assert_eq!(second_due(Some(2.0), Loop::Open), [1_050, 1_125]);
    }

    #[test]
    fn at_full_speed_nothing_is_waited_for() {
        for pacing in [Loop::Closed, Loop::Open] {
            assert_eq!(second_due(None, pacing), [1_000, 1_500]);
        }
    }

    #[test]
    fn waking_late_does_not_add_up() {
        let mut pace = Pace::new(Some(1.0), Loop::Closed, 0);
        let first = op(100, 50);
        pace.completed(&first, 100, 130, 180);
        assert_eq!(pace.due_ns(&op(250, 10)), 180 + 100 - 30);
        // 500 too late, 200 of which the next two waits make up for.
        pace.completed(&op(250, 10), 250, 750, 760);
        pace.completed(&op(360, 10), 760, 760, 770);
        assert_eq!(pace.due_ns(&op(470, 10)), 770, "never before it is free");
        pace.completed(&op(470, 10), 770, 770, 780);
        assert_eq!(pace.due_ns(&op(1_480, 10)), 780 + 1_000 - 300);
        pace.completed(&op(1_480, 10), 1_480, 1_000_000_000, 1_000_000_001);
        let hurried = pace.due_ns(&op(3_001_490, 10));
        assert_eq!(hurried, 1_000_000_001 + 3_000_000 - OVERSLEPT_NS_MAX);
    }

    #[test]
    fn absurd_times_do_not_overflow() {
        let pace = Pace::new(Some(1e-3), Loop::Open, u64::MAX - 5);
        assert_eq!(pace.due_ns(&op(u64::MAX, 0)), u64::MAX);
        let mut pace = Pace::new(Some(1e-3), Loop::Closed, 7);
        pace.completed(&op(5, u64::MAX), 0, 0, u64::MAX);
        assert_eq!(pace.due_ns(&op(u64::MAX, 0)), u64::MAX);
    }
}
