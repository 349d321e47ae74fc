//! Judges whether a step's figures are reliable. In an open loop the client must have kept to its schedule, or
//! latency and throughput describe the client.

use std::fmt;
use std::time::Duration;

use seekscope_client::{EndReason, Ended, Job, ScheduleKind};
use seekscope_run::LatencySummary;
use seekscope_run::units::format_ns;

use super::step_recorder::SecondTotals;

/// Minimum share of due operations that must have been started.
pub const ACHIEVED_SHARE_MIN: f64 = 0.99;
/// Fewer operations say nothing of a rate, nor do those that are due within less time than this and late by less.
const JUDGED_OPERATIONS_MIN: u64 = 100;
const JUDGED_S_MIN: f64 = 1.0;
/// If the client is late by more than this share of the response time, which includes the lateness, for one
/// operation in a hundred, then the client is what was measured. Lateness up to `LAG_NS_MAX` is tolerated all
/// the same.
const LAG_SHARE_MAX: f64 = 0.5;
const LAG_NS_MAX: u64 = 10_000_000;
/// A client that uses a larger share of its threads' time has no capacity left.
const CPU_SHARE_MAX: f64 = 0.9;

/// The data that is judged.
#[derive(Debug, Clone, Copy)]
pub struct Judged<'a> {
    pub job: &'a Job,
    pub ended: &'a Ended,
    pub seconds: &'a [SecondTotals],
    pub lag: &'a LatencySummary,
    /// p99 of response time over all operations, ns.
    pub response_p99_ns: u64,
}

/// Why a step is unreliable, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Due operations were not begun, whether because of the server or the client.
    Behind(String),
    /// The client itself was late.
    ClientLate(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Behind(why) | Self::ClientLate(why) => f.write_str(why),
        }
    }
}

/// Returns why the step is unreliable; empty if it is reliable.
pub fn faults(judged: &Judged<'_>) -> Vec<Fault> {
    let is_closed = matches!(judged.job.schedule, ScheduleKind::Closed);
    // If work was broken off, it is unknown what would have become of its backlog.
    if is_closed || judged.ended.reason == EndReason::Stopped {
        return Vec::new();
    }
    let found = [
        behind(judged).map(Fault::Behind),
        growing_backlog(judged).map(Fault::Behind),
        lag(judged).map(Fault::ClientLate),
    ];
    found.into_iter().flatten().collect()
}

/// Returns the rates of operations due and begun, per second of the schedule: what is waited for after its end, such as a
/// server that stalls, is no time in which anything is due.
pub fn offered_and_begun(job: &Job, ended: &Ended) -> (f64, f64) {
    let elapsed_s = elapsed_s(job, ended);
    let due = match due_time_s(job, ended) {
        // Due at an end that comes before the real one.
        Some(due_s) => ended.transactions as f64 / due_s.min(elapsed_s),
        None => (ended.transactions + ended.backlog) as f64 / elapsed_s,
    };
    (due, ended.transactions as f64 / elapsed_s)
}

/// Returns how long the step took, without what comes after the end of its schedule, s.
fn elapsed_s(job: &Job, ended: &Ended) -> f64 {
    let taken_s = (ended.ended_ns.saturating_sub(ended.started_ns).max(1)) as f64 / 1e9;
    let scheduled_s = job
        .duration
        .map_or(f64::INFINITY, |duration| duration.as_secs_f64());
    taken_s.min(scheduled_s.max(1e-9))
}

/// Returns when the last of a fixed number of operations was due, s; `None` if time ended the work.
fn due_time_s(job: &Job, ended: &Ended) -> Option<f64> {
    if ended.reason != EndReason::Done {
        return None;
    }
    let count = ended.transactions as f64;
    let due_s = match &job.schedule {
        ScheduleKind::Closed => return None,
        ScheduleKind::Constant { per_s } | ScheduleKind::Poisson { per_s, .. } => count / per_s,
        ScheduleKind::Ramp {
            from_per_s,
            to_per_s,
            over,
        } => {
            let (over_s, mean) = (over.as_secs_f64(), (from_per_s + to_per_s) / 2.0);
            let growing = over_s * mean;
            match count > growing {
                true => over_s + (count - growing) / to_per_s,
                // Where the integral of the rate reaches the count.
                false => ramp_time_s(count, *from_per_s, (to_per_s - from_per_s) / over_s),
            }
        }
        ScheduleKind::Replayed(offsets_ns) => offsets_ns.last().map_or(0.0, |ns| *ns as f64 / 1e9),
    };
    (due_s > 0.0).then_some(due_s)
}

fn ramp_time_s(count: f64, from_per_s: f64, growth: f64) -> f64 {
    if growth.abs() < 1e-9 {
        return count / from_per_s;
    }
    let root = from_per_s.mul_add(from_per_s, 2.0 * growth * count);
    (root.max(0.0).sqrt() - from_per_s) / growth
}

fn behind(judged: &Judged<'_>) -> Option<String> {
    let (job, ended) = (judged.job, judged.ended);
    let (due, begun) = offered_and_begun(job, ended);
    let begun_share = begun / due.max(f64::MIN_POSITIVE);
    let elapsed_s = elapsed_s(job, ended);
    let judged_share = match due_time_s(job, ended) {
        None => begun_share,
        Some(due_s) if is_too_little(ended.transactions, due_s, elapsed_s) => return None,
        Some(due_s) => {
            // The last operation may take a while, and its arrival is random.
            let slack_s = judged.response_p99_ns as f64 / 1e9;
            let chance = match job.schedule {
                ScheduleKind::Poisson { .. } => 3.0 / (ended.transactions.max(1) as f64).sqrt(),
                _ => 0.0,
            };
            due_s * (1.0 + chance) / (elapsed_s - slack_s.min(due_s * 0.5)).max(due_s * 0.01)
        }
    };
    (judged_share < ACHIEVED_SHARE_MIN).then(|| {
        format!(
            "{:.1} % of the target was reached: {due:.0}/s were due, {begun:.0}/s were begun, {} were never begun",
            begun_share * 100.0,
            ended.backlog
        )
    })
}

/// Returns whether a fixed number of operations is too small for its rate to be judged.
fn is_too_little(transactions: u64, due_s: f64, elapsed_s: f64) -> bool {
    let is_brief = due_s < JUDGED_S_MIN && elapsed_s - due_s < JUDGED_S_MIN;
    transactions < JUDGED_OPERATIONS_MIN || is_brief
}

/// Reports a growing number of waiting operations: the rate is just above what the server can do.
fn growing_backlog(judged: &Judged<'_>) -> Option<String> {
    let started_ns = judged.ended.started_ns;
    // After the schedule's end nothing is due, and the backlog stands still.
    let is_scheduled = |second: &&SecondTotals| {
        let began = Duration::from_nanos(second.t_ns.saturating_sub(started_ns));
        judged.job.duration.is_none_or(|whole| began < whole)
    };
    let scheduled = judged.seconds.iter().filter(is_scheduled);
    let backlog: Vec<f64> = scheduled.map(|s| s.backlog as f64).collect();
    let half = backlog
        .get(backlog.len() / 2..)
        .filter(|half| half.len() >= 5)?;
    let (last, highest) = (*half.last()?, half.iter().copied().fold(0.0, f64::max));
    let (rate, _) = offered_and_begun(judged.job, judged.ended);
    let is_much = last > (rate * 0.1).max(2.0 * judged.job.in_flight as f64);
    let slope = slope(half);
    let grows = slope > rate * 1e-3 && last >= 0.8 * highest;
    (is_much && grows).then(|| {
        format!(
            "the backlog grew by {slope:.0} operations a second and stood at {last:.0} at the end"
        )
    })
}

/// Returns the least-squares slope, per value.
fn slope(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let (mean, middle) = (values.iter().sum::<f64>() / n, (n - 1.0) / 2.0);
    let (mut product, mut square) = (0.0, 0.0);
    for (i, value) in values.iter().enumerate() {
        let place = i as f64 - middle;
        product += place * (value - mean);
        square += place * place;
    }
    if square > 0.0 { product / square } else { 0.0 }
}

fn lag(judged: &Judged<'_>) -> Option<String> {
    let late = late(judged.lag, judged.response_p99_ns)?;
    (judged.lag.p99_ns > LAG_NS_MAX)
        .then(|| format!("{late} although it had a free connection: its host is too busy"))
}

/// Reports the client's own lateness if it is a large part of what was measured.
fn late(lag: &LatencySummary, response_p99_ns: u64) -> Option<String> {
    let is_late = lag.p99_ns as f64 > response_p99_ns as f64 * LAG_SHARE_MAX;
    is_late.then(|| {
        format!(
            "the client itself was late by {} (p99)",
            format_ns(lag.p99_ns)
        )
    })
}

/// Returns why a long response time may be due to the client, however slightly it was late.
pub fn late_client(
    lag: &LatencySummary,
    response_p99_ns: u64,
    is_client_bound: bool,
) -> Option<String> {
    match is_client_bound {
        true => Some("the client had no CPU time left".into()),
        false => late(lag, response_p99_ns),
    }
}

/// Returns the share of its threads' time that the client used if it had no capacity left: then the client, not
/// the server, limited the throughput.
pub fn client_bottleneck(job: &Job, seconds: &[SecondTotals]) -> Option<f64> {
    let cpu_ns: u64 = seconds.iter().map(|s| s.client_cpu_ns).sum();
    let time_ns: u64 = seconds.iter().map(|s| s.duration_ns).sum();
    let share = cpu_ns as f64 / (time_ns.max(1) as f64 * job.threads.max(1) as f64);
    (share > CPU_SHARE_MAX).then_some(share)
}

#[cfg(test)]
mod tests {
    use seekscope_client::Retries;

    use super::*;

    fn job(schedule: ScheduleKind) -> Job {
        Job {
            schedule,
            in_flight: 8,
            threads: 1,
            transactions: None,
            duration: None,
            timeout: Duration::from_secs(30),
            start_at_ns: None,
            retries: Retries::default(),
            failures_in_a_row_max: None,
        }
    }

    fn ended(seconds: u64, transactions: u64, backlog: u64, reason: EndReason) -> Ended {
        Ended {
            started_ns: 0,
            ended_ns: seconds * 1_000_000_000,
            reason,
            transactions,
            failures: Vec::new(),
            in_doubt: 0,
            retried: 0,
            backlog,
        }
    }

    fn judge(job: &Job, ended: &Ended, backlogs: &[u64], lag_p99_ns: u64) -> Vec<Fault> {
        let second = |(number, backlog): (u64, &u64)| SecondTotals {
            t_ns: number * 1_000_000_000,
            duration_ns: 1_000_000_000,
            operations: Vec::new(),
            transactions: 0,
            backlog: *backlog,
            client_cpu_ns: 950_000_000,
        };
        let seconds: Vec<SecondTotals> = (0..).zip(backlogs).map(second).collect();
        let lag = LatencySummary {
            p99_ns: lag_p99_ns,
            ..LatencySummary::default()
        };
        assert!(backlogs.is_empty() || client_bottleneck(job, &seconds).is_some());
        faults(&Judged {
            job,
            ended,
            seconds: &seconds,
            lag: &lag,
            response_p99_ns: 10_000_000,
        })
    }

    #[test]
    fn a_schedule_that_was_not_kept_is_told() {
        let open = job(ScheduleKind::Constant { per_s: 1000.0 });
        let kept = judge(&open, &ended(10, 9990, 10, EndReason::Time), &[], 0);
        assert!(kept.is_empty(), "{kept:?}");
        let behind = judge(&open, &ended(10, 9000, 1000, EndReason::Time), &[], 0);
        let said = behind[0].to_string();
        assert!(said.starts_with("90.0 % of the target"), "{said}");
        // A fixed number of operations that took twice its time leaves no backlog.
        let late = judge(&open, &ended(20, 10_000, 0, EndReason::Done), &[], 0);
        let said = late[0].to_string();
        assert!(said.contains("1000/s were due, 500/s"), "{said}");
        assert!(judge(&open, &ended(10, 10_000, 0, EndReason::Done), &[], 0).is_empty());
        let broken_off = judge(&open, &ended(10, 10, 5000, EndReason::Stopped), &[], 0);
        assert!(broken_off.is_empty());
        let closed = job(ScheduleKind::Closed);
        assert!(judge(&closed, &ended(10, 10, 0, EndReason::Time), &[], 1 << 40).is_empty());
    }

    #[test]
    fn a_rate_is_not_judged_by_a_handful_of_operations() {
        let open = job(ScheduleKind::Constant { per_s: 1000.0 });
        let one = Ended {
            ended_ns: 2_331_000,
            ..ended(0, 1, 0, EndReason::Done)
        };
        assert!(judge(&open, &one, &[], 0).is_empty());
        assert!(judge(&open, &ended(1, 500, 0, EndReason::Done), &[], 0).is_empty());
        let slow = judge(&open, &ended(10, 500, 0, EndReason::Done), &[], 0);
        let said = slow[0].to_string();
        assert!(said.starts_with("5.0 % of the target"), "{said}");
    }

    #[test]
    fn the_share_that_is_told_is_that_of_the_rates_beside_it() {
        let open = job(ScheduleKind::Constant { per_s: 1000.0 });
        let ended = Ended {
            ended_ns: 1_100_000_000,
            ..ended(0, 1000, 0, EndReason::Done)
        };
        let lag = LatencySummary::default();
        let faults = faults(&Judged {
            job: &open,
            ended: &ended,
            seconds: &[],
            lag: &lag,
            // What is granted for the last answer is no part of the share that is told.
            response_p99_ns: 50_000_000,
        });
        let said = faults[0].to_string();
        assert!(
            said.starts_with("90.9 % of the target was reached: 1000/s were due, 909/s were begun"),
            "{said}"
        );
    }

    #[test]
    fn the_wait_after_the_schedules_end_is_no_time_of_it() {
        let mut open = job(ScheduleKind::Constant { per_s: 500.0 });
        open.duration = Some(Duration::from_secs(15));
        // The server answers nothing from the 5th to the 25th second.
        let stalled = ended(26, 2500, 5000, EndReason::Time);
        let (due, begun) = offered_and_begun(&open, &stalled);
        assert!((due - 500.0).abs() < 1e-6, "{due}");
        assert!((begun - 2500.0 / 15.0).abs() < 1e-6, "{begun}");
        let growing: Vec<u64> = (0..26)
            .map(|second| (500 * (second + 1)).clamp(2500, 7500) - 2500)
            .collect();
        let faults = judge(&open, &stalled, &growing, 0);
        let said = faults[1].to_string();
        assert!(said.contains("grew by 500"), "{said}");
    }

    #[test]
    fn a_stall_that_was_made_up_for_is_no_growing_backlog() {
        let open = job(ScheduleKind::Poisson {
            per_s: 1000.0,
            seed: 1,
        });
        let done = ended(12, 11_990, 0, EndReason::Time);
        let stall = [0, 0, 0, 0, 900, 1900, 2900, 3900, 2000, 100, 0, 0];
        assert!(judge(&open, &done, &stall, 0).is_empty());
        let growing = [0, 20, 40, 60, 80, 100, 120, 140, 160, 180, 200, 220];
        let grew = judge(&open, &done, &growing, 0)[0].to_string();
        assert!(grew.contains("grew by 20"), "{grew}");
    }

    #[test]
    fn a_late_client_is_no_fault_of_the_server() {
        let open = job(ScheduleKind::Constant { per_s: 1000.0 });
        let done = ended(10, 10_000, 0, EndReason::Time);
        let faults = judge(&open, &done, &[], 11_000_000);
        assert!(
            matches!(faults.as_slice(), [Fault::ClientLate(_)]),
            "{faults:?}"
        );
        // This little does not invalidate figures, but may have caused a limit of 10 ms to be missed.
        assert!(judge(&open, &done, &[], 6_000_000).is_empty());
        let lag = |p99_ns| LatencySummary {
            p99_ns,
            ..LatencySummary::default()
        };
        assert!(late_client(&lag(6_000_000), 10_000_000, false).is_some());
        assert!(late_client(&lag(4_000_000), 10_000_000, false).is_none());
        assert!(late_client(&lag(0), 10_000_000, true).is_some());
    }

    #[test]
    fn ramps_are_due_when_their_rate_has_summed_up() {
        let ramp = job(ScheduleKind::Ramp {
            from_per_s: 0.0,
            to_per_s: 100.0,
            over: Duration::from_secs(10),
        });
        let due = |n| due_time_s(&ramp, &ended(1, n, 0, EndReason::Done)).unwrap();
        assert!((due(125) - 5.0).abs() < 1e-9, "{}", due(125));
        assert!((due(600) - 11.0).abs() < 1e-9, "{}", due(600));
    }
}
