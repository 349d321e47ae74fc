//! When transactions start: arrivals shared by all threads, claimed in order, none ever skipped.
//!
//! Times are offsets from the start in ns. Even arrivals and ramps are computed from the arrival's number, so
//! that no error accumulates over hours; random ones are summed in whole ns with the fraction kept.

use std::sync::{Mutex, PoisonError};

use seekscope_run::units::nanoseconds;
use seekscope_stats::SplitMix64;

use crate::{ClientError, EndReason, Job, ScheduleKind};

/// Faster than any client can send; keeps the arithmetic far from its limits.
const RATE_PER_S_MAX: f64 = 1e8;
const NS_PER_S: f64 = 1e9;

/// The arrivals of an open loop, in order.
#[derive(Debug, Clone)]
pub(crate) struct Arrivals {
    kind: ScheduleKind,
    /// Index of the next arrival.
    index: u64,
    /// Time of the latest random arrival: whole ns, and the remainder.
    at_ns: u64,
    fraction_ns: f64,
    random: SplitMix64,
}

impl Arrivals {
    /// Creates the arrivals; `None` for a closed loop.
    pub(crate) fn new(kind: &ScheduleKind) -> Result<Option<Self>, ClientError> {
        let rate = |per_s: f64, lowest: f64| {
            if per_s.is_finite() && per_s >= lowest && per_s <= RATE_PER_S_MAX {
                return Ok(());
            }
            Err(ClientError::Job {
                text: format!(
                    "{per_s} operations per second is not a rate between 0 and 100 million"
                ),
            })
        };
        let seed = match kind {
            ScheduleKind::Closed => return Ok(None),
            ScheduleKind::Constant { per_s } => {
                rate(*per_s, f64::MIN_POSITIVE)?;
                0
            }
            ScheduleKind::Poisson { per_s, seed } => {
                rate(*per_s, f64::MIN_POSITIVE)?;
                *seed
            }
            ScheduleKind::Ramp {
                from_per_s,
                to_per_s,
                ..
            } => {
                rate(*from_per_s, 0.0)?;
                rate(*to_per_s, f64::MIN_POSITIVE)?;
                0
            }
            ScheduleKind::Replayed(times) => {
                if !times.is_sorted() {
                    return Err(ClientError::Job {
                        text: "the arrival times to replay are not in order".into(),
                    });
                }
                0
            }
        };
        Ok(Some(Self {
            kind: kind.clone(),
            index: 0,
            at_ns: 0,
            fraction_ns: 0.0,
            random: SplitMix64::new(seed),
        }))
    }

    /// Adds an exponentially distributed gap, by inversion, and returns the sum.
    fn next_random_ns(&mut self, per_s: f64) -> u64 {
        let gap_ns = -(1.0 - self.random.unit_f64()).ln() * NS_PER_S / per_s;
        let sum = self.fraction_ns + gap_ns;
        self.fraction_ns = sum.fract();
        self.at_ns = self.at_ns.saturating_add(whole_ns(sum.trunc()));
        self.at_ns
    }
}

impl Iterator for Arrivals {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let number = self.index as f64;
        let at_ns = match &self.kind {
            ScheduleKind::Closed => return None,
            ScheduleKind::Constant { per_s } => whole_ns(number * NS_PER_S / per_s),
            ScheduleKind::Ramp {
                from_per_s,
                to_per_s,
                over,
            } => whole_ns(ramp_s(number, *from_per_s, *to_per_s, over.as_secs_f64()) * NS_PER_S),
            ScheduleKind::Replayed(times) => {
                *times.get(usize::try_from(self.index).unwrap_or(usize::MAX))?
            }
            ScheduleKind::Poisson { per_s, .. } => {
                let per_s = *per_s;
                self.next_random_ns(per_s)
            }
        };
        self.index += 1;
        Some(at_ns)
    }
}

/// Returns the time at which `number` arrivals have come, s: the root of `from·t + (to − from)·t²/(2·over)`, in
/// the form that does not cancel; linear after the ramp.
fn ramp_s(number: f64, from: f64, to: f64, over_s: f64) -> f64 {
    let in_ramp = over_s * f64::midpoint(from, to);
    if number >= in_ramp {
        return over_s + (number - in_ramp) / to;
    }
    if number == 0.0 {
        return 0.0;
    }
    let slope = (to - from) / over_s;
    2.0 * number / (from + (from * from + 2.0 * slope * number).max(0.0).sqrt())
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturating is right: an arrival after the end of time never comes"
)]
fn whole_ns(ns: f64) -> u64 {
    ns as u64
}

/// The answer to a virtual user that asks for work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claim {
    /// Start now, in a closed loop.
    Now,
    /// Start at this offset, which may be in the past or the future.
    At(u64),
    /// Nothing arrives before the time is over, which is at this offset.
    Idle(u64),
    /// There is no more work.
    Over(EndReason),
}

/// Gives each arrival to one virtual user.
#[derive(Debug)]
pub(crate) struct Schedule {
    open: Mutex<Open>,
    is_open_loop: bool,
    transactions: u64,
    duration_ns: u64,
}

#[derive(Debug)]
struct Open {
    arrivals: Option<Arrivals>,
    claimed: u64,
}

impl Schedule {
    pub(crate) fn new(job: &Job) -> Result<Self, ClientError> {
        let arrivals = Arrivals::new(&job.schedule)?;
        Ok(Self {
            is_open_loop: arrivals.is_some(),
            open: Mutex::new(Open {
                arrivals,
                claimed: 0,
            }),
            transactions: job.transactions.unwrap_or(u64::MAX),
            duration_ns: duration_ns(job),
        })
    }

    /// Returns whether the pace is set by a schedule rather than by the server.
    pub(crate) fn is_open_loop(&self) -> bool {
        self.is_open_loop
    }

    /// Claims the next arrival. After the end of the time nothing is given out, not even what was due.
    pub(crate) fn claim(&self, now_offset_ns: u64) -> Claim {
        if now_offset_ns >= self.duration_ns {
            return Claim::Over(EndReason::Time);
        }
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.claimed >= self.transactions {
            return Claim::Over(EndReason::Done);
        }
        let claim = match open.arrivals.as_mut().map(Iterator::next) {
            None => Claim::Now,
            Some(None) => return Claim::Over(EndReason::Done),
            Some(Some(at_ns)) if at_ns >= self.duration_ns => {
                return Claim::Idle(self.duration_ns);
            }
            Some(Some(at_ns)) => Claim::At(at_ns),
        };
        open.claimed += 1;
        claim
    }
}

fn duration_ns(job: &Job) -> u64 {
    job.duration.map_or(u64::MAX, nanoseconds)
}

/// Counts the arrivals that are due separately, so that no sender has to.
#[derive(Debug)]
pub(crate) struct DueCounter {
    arrivals: Option<std::iter::Peekable<std::iter::Take<Arrivals>>>,
    duration_ns: u64,
    due: u64,
}

impl DueCounter {
    pub(crate) fn new(job: &Job) -> Result<Self, ClientError> {
        let count = usize::try_from(job.transactions.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
        Ok(Self {
            arrivals: Arrivals::new(&job.schedule)?.map(|all| all.take(count).peekable()),
            duration_ns: duration_ns(job),
            due: 0,
        })
    }

    /// Returns how many transactions were due up to `offset_ns` and within the time; 0 in a closed loop.
    /// Offsets must not decrease.
    pub(crate) fn due_by(&mut self, offset_ns: u64) -> u64 {
        if let Some(arrivals) = &mut self.arrivals {
            let duration_ns = self.duration_ns;
            while arrivals
                .next_if(|&at_ns| at_ns <= offset_ns && at_ns < duration_ns)
                .is_some()
            {
                self.due += 1;
            }
        }
        self.due
    }
}

#[cfg(test)]
mod tests;
