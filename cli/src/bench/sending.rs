//! How operations are sent, from the command line: jobs for the engine, and this process's part where several
//! processes do one job together.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use seekscope_client::{Job, Retries, ScheduleKind, Wanted};
use seekscope_run::{Arrivals, ClockOffset};

use super::client_choice::wanted;
use super::rounds::{Pace, Stretch};
use crate::args::{ArrivalsName, SendArgs, StartAt, WarmUpName};
use crate::exit::{Unreadable, Usage};

const IN_FLIGHT: usize = 8;
/// Consecutive failures, in total and per operation in flight, after which nothing is expected to succeed.
const FAILURES_IN_A_ROW: u64 = 1000;
const FAILURES_FOR_EACH: u64 = 20;
/// A start time further in the past is a mistake.
const START_LATE_MAX: Duration = Duration::from_secs(5);
/// Size limit of a file of arrival times.
const REPLAY_BYTES_MAX: u64 = 1 << 30;

/// The workload's values where the command line gives none.
#[derive(Debug, Clone, Copy, Default)]
pub struct Defaults {
    pub in_flight: Option<usize>,
    pub per_s: Option<f64>,
}

/// How operations are sent.
#[derive(Debug, Clone)]
pub struct Sending {
    pub in_flight: usize,
    pub threads: usize,
    pub schedule: ScheduleKind,
    pub arrivals: Arrivals,
    pub client: Wanted,
    pub warm_up: WarmUpName,
    timeout: Duration,
    /// This process's number among several, from 0, and their count.
    pub slice: (u32, u32),
    start_at_ns: Option<u64>,
}

impl Sending {
    /// Reads the arguments. Rates are those of all clients together.
    pub fn new(args: &SendArgs, defaults: Defaults) -> Result<Self> {
        let in_flight = args
            .in_flight
            .map_or(defaults.in_flight.unwrap_or(IN_FLIGHT), |n| n as usize);
        let slice = args
            .clients
            .map_or((0, 1), |(number, count)| (number - 1, count));
        refuse_what_cannot_be_kept(args)?;
        let per_s = args.rate.or(defaults.per_s);
        let (schedule, arrivals) = schedule(args, per_s, slice)?;
        Ok(Self {
            in_flight,
            threads: threads(args).min(in_flight),
            schedule,
            arrivals,
            client: wanted(args.client),
            warm_up: args.warm_up,
            timeout: args.timeout,
            slice,
            start_at_ns: args.start_at.map(start_ns).transpose()?,
        })
    }

    /// Returns this process's share of a number of operations; the first clients take the remainder.
    fn share(&self, count: u64) -> u64 {
        let (index, of) = (u64::from(self.slice.0), u64::from(self.slice.1));
        count / of + u64::from(index < count % of)
    }

    /// Returns a stretch's job, and its schedule as named in results. `operations`: those of all clients, if
    /// the command line or the workload says; probes end by time alone.
    pub fn job_of(
        &mut self,
        stretch: &Stretch,
        operations: Option<u64>,
        seed: u64,
    ) -> (Job, Arrivals) {
        let transactions = operations.map(|count| self.share(count));
        match stretch.pace {
            Pace::AsAsked => (
                self.run_job(transactions, stretch.duration),
                self.arrivals.clone(),
            ),
            Pace::Closed => {
                let mut job = self.run_job(None, stretch.duration);
                job.schedule = ScheduleKind::Closed;
                (job, Arrivals::Closed)
            }
            Pace::Rate(per_s) => {
                let mut job = self.run_job(None, stretch.duration);
                // Like the arrivals of many independent users.
                job.schedule = ScheduleKind::Poisson { per_s, seed };
                (job, Arrivals::Poisson { per_s })
            }
        }
    }

    /// Returns a job that loads as fast as the server allows.
    pub fn load_job(&mut self, in_flight: usize, retries: Retries) -> Job {
        Job {
            schedule: ScheduleKind::Closed,
            in_flight,
            threads: self.threads.min(in_flight),
            transactions: None,
            duration: None,
            retries,
            ..self.run_job(None, None)
        }
    }

    /// Returns a job that ends after this process's number of operations or after a time.
    fn run_job(&mut self, transactions: Option<u64>, duration: Option<Duration>) -> Job {
        Job {
            schedule: self.schedule.clone(),
            in_flight: self.in_flight,
            threads: self.threads,
            transactions,
            duration,
            timeout: self.timeout,
            // Only the first stretch waits for the start time.
            start_at_ns: self.start_at_ns.take(),
            retries: Retries::default(),
            failures_in_a_row_max: Some(
                FAILURES_IN_A_ROW.max(FAILURES_FOR_EACH * self.in_flight as u64),
            ),
        }
    }
}

/// Refuses a rate that nothing would keep, and times that leave nothing to be measured.
fn refuse_what_cannot_be_kept(args: &SendArgs) -> Result<(), Usage> {
    use ArrivalsName::{Ramp, Replay};
    if let (Some(Ramp { .. } | Replay(_)), Some(_)) = (&args.arrivals, args.rate) {
        let text =
            "--arrivals ramp and replay say themselves when operations begin; leave --rate out";
        return Err(Usage(text.into()));
    }
    match (args.duration, args.warm_up) {
        (Some(time), WarmUpName::For(warm_up)) if warm_up >= time => {
            let text = "--warm-up is not shorter than --for, so nothing is left to be measured; name another time";
            Err(Usage(text.into()))
        }
        _ => Ok(()),
    }
}

fn threads(args: &SendArgs) -> usize {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    args.threads.map_or((processors / 2).max(1), |n| n as usize)
}

fn schedule(
    args: &SendArgs,
    per_s: Option<f64>,
    slice: (u32, u32),
) -> Result<(ScheduleKind, Arrivals)> {
    let part = |rate: f64| rate / f64::from(slice.1);
    let of_rate =
        |name: &str| per_s.ok_or_else(|| Usage(format!("--arrivals {name} needs --rate N/s")));
    Ok(match (&args.arrivals, per_s) {
        (None, None) => (ScheduleKind::Closed, Arrivals::Closed),
        (None | Some(ArrivalsName::Constant), _) => {
            let per_s = of_rate("constant")?;
            (
                ScheduleKind::Constant { per_s: part(per_s) },
                Arrivals::Constant { per_s },
            )
        }
        (Some(ArrivalsName::Poisson), _) => {
            let per_s = of_rate("poisson")?;
            let schedule = ScheduleKind::Poisson {
                per_s: part(per_s),
                seed: args.seed.wrapping_add(u64::from(slice.0)),
            };
            (schedule, Arrivals::Poisson { per_s })
        }
        (
            Some(ArrivalsName::Ramp {
                from_per_s,
                to_per_s,
                over,
            }),
            _,
        ) => {
            let schedule = ScheduleKind::Ramp {
                from_per_s: part(*from_per_s),
                to_per_s: part(*to_per_s),
                over: *over,
            };
            let arrivals = Arrivals::Ramp {
                from_per_s: *from_per_s,
                to_per_s: *to_per_s,
            };
            (schedule, arrivals)
        }
        (Some(ArrivalsName::Replay(file)), _) => {
            let arrivals = Arrivals::Replayed {
                file: file.display().to_string(),
            };
            (ScheduleKind::Replayed(replayed(file, slice)?), arrivals)
        }
    })
}

/// Reads arrival times: one per line, in seconds since the start, in any order. Several clients take turns.
fn replayed(file: &Path, slice: (u32, u32)) -> Result<Arc<[u64]>> {
    let bytes = std::fs::metadata(file).map_err(Unreadable::at(file))?;
    if bytes.len() > REPLAY_BYTES_MAX {
        return Err(Usage(format!("{} is larger than 1 GiB", file.display())).into());
    }
    let text = std::fs::read_to_string(file).map_err(Unreadable::at(file))?;
    let offsets = offsets_of(&text).map_err(|line| {
        Usage(format!(
            "{}, line {line}: seconds since the start are expected",
            file.display()
        ))
    })?;
    let own = offsets
        .into_iter()
        .skip(slice.0 as usize)
        .step_by(slice.1 as usize);
    let own: Arc<[u64]> = own.collect();
    if own.is_empty() {
        return Err(Usage(format!("{} holds no time for this client", file.display())).into());
    }
    Ok(own)
}

/// Returns the times in ascending order, ns; the error is the number of the first invalid line.
fn offsets_of(text: &str) -> Result<Vec<u64>, usize> {
    let mut offsets = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let seconds: f64 = line.parse().map_err(|_| i + 1)?;
        // Up to a year.
        if !(0.0..=31_622_400.0).contains(&seconds) {
            return Err(i + 1);
        }
        offsets
            .push(u64::try_from(Duration::from_secs_f64(seconds).as_nanos()).unwrap_or(u64::MAX));
    }
    offsets.sort_unstable();
    Ok(offsets)
}

/// Converts a start time to the clock that the engine waits by, ns.
fn start_ns(start: StartAt) -> Result<u64> {
    let now = ClockOffset::now();
    let wait_ns = match start {
        StartAt::After(wait) => i128::try_from(wait.as_nanos()).unwrap_or(i128::MAX),
        StartAt::Epoch(at_ns) => at_ns - i128::from(now.realtime_ns),
    };
    let late_ns = i128::try_from(START_LATE_MAX.as_nanos()).unwrap_or(0);
    if wait_ns < -late_ns {
        return Err(Usage(format!(
            "--start-at lies {:.0} s back; are the clocks of the clients right?",
            -wait_ns as f64 / 1e9
        ))
        .into());
    }
    let at_ns = i128::from(now.monotonic_ns) + wait_ns.max(0);
    Ok(u64::try_from(at_ns).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_times_are_read_in_any_order() {
        assert_eq!(
            offsets_of("# s\n2\n0.5\n\n 1e-3 "),
            Ok(vec![1_000_000, 500_000_000, 2_000_000_000])
        );
        assert_eq!(offsets_of("1\n-1"), Err(2));
        assert_eq!(offsets_of("NaN"), Err(1));
        assert_eq!(offsets_of("1e300"), Err(1));
    }

    fn refusal(options: &str) -> Option<String> {
        #[derive(clap::Parser)]
        struct Sending {
            #[command(flatten)]
            args: SendArgs,
        }
        let words = std::iter::once("bench").chain(options.split(' '));
        let sending = <Sending as clap::Parser>::parse_from(words);
        let refused = refuse_what_cannot_be_kept(&sending.args);
        refused.err().map(|usage| usage.0)
    }

    #[test]
    fn what_cannot_be_kept_is_refused() {
        assert_eq!(refusal("--for 5s --warm-up 2s --rate 100"), None);
        assert_eq!(refusal("--for 5s --arrivals ramp:1..100:5s"), None);
        let second_rate = refusal("--for 5s --arrivals ramp:1..100:5s --rate 100").unwrap();
        assert!(second_rate.contains("leave --rate out"), "{second_rate}");
        assert!(refusal("--for 5s --warm-up 5s").is_some());
    }

    #[test]
    fn starts_long_past_are_refused() {
        let now = i128::from(ClockOffset::now().realtime_ns);
        assert!(start_ns(StartAt::Epoch(now - 60_000_000_000)).is_err());
        let soon = start_ns(StartAt::Epoch(now + 60_000_000_000)).unwrap();
        let after = start_ns(StartAt::After(Duration::from_secs(60))).unwrap();
        assert!(soon.abs_diff(after) < 10_000_000_000, "{soon} {after}");
    }
}
