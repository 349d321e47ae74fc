//! One playing thread: waits until an operation is due, makes the call, and records what it took.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use seekscope_run::monotonic_ns;
use seekscope_stats::SplitMix64;

use super::pace::Pace;
use super::tallies::{Sample, Samples};
use super::threads::Team;
use super::{Action, Loop, Op, Plan, Stream};
use crate::buffer::AlignedBuffer;
use crate::engine::{Stop, incomplete};
use crate::job::RateLimits;
use crate::pacing::sleep_until;
use crate::random_bytes::make_distinct;
use crate::recorder::Operation;
use crate::{DiskError, TestFile};

/// The most open file descriptions. Each recorded file has one, as in databases; further files
/// share.
const DESCRIPTIONS_MAX: u16 = 64;
/// Shorter waits are spent on the CPU, as the recorded thread did: a sleep takes longer than this.
const SPIN_NS: u64 = 30_000;
/// Threads hand over samples older than this when they wait or complete.
const HAND_OVER_NS: u64 = 200_000_000;

/// The open file descriptions of the target.
pub(super) struct Descriptions {
    buffered: Vec<File>,
    direct: Vec<File>,
}

impl Descriptions {
    pub(super) fn open(plan: &Plan, file: &TestFile) -> Result<Self, DiskError> {
        let ops = || plan.streams.iter().flat_map(|stream| &stream.ops);
        let files = ops()
            .map(|op| op.file)
            .max()
            .map_or(0, |last| last.saturating_add(1));
        let all = |direct| -> Result<Vec<File>, DiskError> {
            (0..files.min(DESCRIPTIONS_MAX))
                .map(|_| file.open(direct))
                .collect()
        };
        Ok(Self {
            buffered: if plan.is_buffered() {
                all(false)?
            } else {
                Vec::new()
            },
            direct: if plan.is_direct() {
                all(true)?
            } else {
                Vec::new()
            },
        })
    }

    #[inline]
    fn of(&self, op: &Op) -> &File {
        let files = if op.direct {
            &self.direct
        } else {
            &self.buffered
        };
        &files[usize::from(op.file % DESCRIPTIONS_MAX)]
    }
}

/// Limits the rate of all threads together: each operation takes the next free place in time.
pub(super) struct Throttle {
    limits: RateLimits,
    next_ns: AtomicU64,
}

impl Throttle {
    pub(super) fn new(limits: RateLimits) -> Self {
        Self {
            limits,
            next_ns: AtomicU64::new(0),
        }
    }

    /// Returns when the operation may begin, if it would otherwise begin at `due_ns`.
    pub(super) fn place_ns(&self, op: &Op, due_ns: u64) -> u64 {
        let seconds =
            (1.0 / self.limits.requests_per_s).max(f64::from(op.length) / self.limits.bytes_per_s);
        let cost_ns = u64::try_from(Duration::from_secs_f64(seconds).as_nanos()).unwrap_or(0);
        let later = |next_ns: u64| Some(next_ns.max(due_ns).saturating_add(cost_ns));
        let before = (self.next_ns).fetch_update(Ordering::Relaxed, Ordering::Relaxed, later);
        before.unwrap_or(due_ns).max(due_ns)
    }
}

/// One playing thread.
pub(super) struct Player<'a> {
    pub(super) team: &'a Team<'a>,
    pub(super) pace: Pace,
    /// When the time is over.
    pub(super) end_ns: u64,
    /// A buffer with room for the longest operation.
    pub(super) buffer: AlignedBuffer,
    /// Stamps that make written data different each time.
    pub(super) stamps: SplitMix64,
}

impl Player<'_> {
    /// Plays from `start_ns` (CLOCK_MONOTONIC) until everything is played, or until told to stop.
    pub(super) fn play(mut self, stream: &Stream, start_ns: u64) -> Result<(), DiskError> {
        let team = self.team;
        let mut samples = Samples::new(&team.ledger, start_ns);
        let mut now_ns = start_ns;
        for op in &stream.ops {
            if op.action == Action::Write {
                let length = usize::try_from(op.length).unwrap_or(0);
                make_distinct(&mut self.buffer.bytes()[..length], &mut self.stamps);
                now_ns = monotonic_ns();
            }
            let due_ns = self.pace.due_ns(op);
            let may_ns = match &team.throttle {
                Some(throttle) => throttle.place_ns(op, due_ns.max(now_ns)),
                None => due_ns,
            };
            let late_ns = match (self.team.options.pacing, self.team.options.speed) {
                (Loop::Open, Some(_)) => now_ns.saturating_sub(due_ns),
                _ => 0,
            };
            let Some(called_ns) = self.wait(may_ns, now_ns, &mut samples) else {
                return Ok(());
            };
            let result = self.call(op);
            now_ns = monotonic_ns();
            samples.add(Sample {
                operation: op.action.operation(),
                failed: result.is_err(),
                bytes: if op.action.operation() == Operation::Sync {
                    0
                } else {
                    op.length
                },
                recorded_ns: op.latency_ns,
                recorded_end_ns: op.end_ns(),
                service_ns: now_ns.saturating_sub(called_ns),
                response_ns: now_ns.saturating_sub(due_ns),
                late_ns,
                done_ns: now_ns,
            });
            samples.hand_over_after(HAND_OVER_NS, now_ns);
            result?;
            self.pace
                .completed(op, may_ns.max(due_ns), called_ns, now_ns);
        }
        Ok(())
    }

    /// Waits until an operation is due. Returns when it begins; `None` if the replay is over.
    #[inline]
    fn wait(&self, due_ns: u64, now_ns: u64, samples: &mut Samples<'_>) -> Option<u64> {
        let team = self.team;
        let stop = Stop {
            cancel: team.cancel,
            ended: &team.ended,
        };
        let mut now_ns = now_ns;
        loop {
            if stop.is_asked() {
                return None;
            }
            if now_ns >= self.end_ns {
                team.timed_out.store(true, Ordering::Relaxed);
                return None;
            }
            if now_ns >= due_ns {
                return Some(now_ns);
            }
            if due_ns - now_ns > SPIN_NS {
                samples.hand_over_after(HAND_OVER_NS, now_ns);
                sleep_until(due_ns.min(self.end_ns), now_ns);
            } else {
                std::hint::spin_loop();
            }
            now_ns = monotonic_ns();
        }
    }

    fn call(&mut self, op: &Op) -> Result<(), DiskError> {
        let file = self.team.descriptions.of(op);
        let length = usize::try_from(op.length).unwrap_or(0);
        let buffer = &mut self.buffer.bytes()[..length];
        let (operation, result) = match op.action {
            Action::Read => ("read", file.read_at(buffer, op.offset)),
            Action::Write => ("write", file.write_at(buffer, op.offset)),
            Action::Fsync => ("sync", synced(file.sync_all())),
            Action::Fdatasync => ("sync", synced(file.sync_data())),
        };
        match result {
            Ok(bytes) if bytes == length => Ok(()),
            other => Err(incomplete(operation, op.offset, other)),
        }
    }
}

fn synced(result: io::Result<()>) -> io::Result<usize> {
    result.map(|()| 0)
}
