//! A kernel timer that is precise to microseconds, whereas waiting for sockets has a resolution of
//! milliseconds.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

const NS_PER_S: u64 = 1_000_000_000;

/// A timer that becomes readable at a set time. When watched edge-triggered, it need not be read.
#[derive(Debug)]
pub(super) struct Timer {
    timer: OwnedFd,
    set_ns: u64,
}

impl Timer {
    pub(super) fn new() -> Result<Self, Errno> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        Ok(Self {
            timer: timerfd_create(TimerfdClockId::Monotonic, flags)?,
            set_ns: 0,
        })
    }

    /// Sets it to a time of CLOCK_MONOTONIC, ns, replacing the previous time.
    pub(super) fn set(&mut self, at_ns: u64) {
        if self.set_ns == at_ns {
            return;
        }
        let whole = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let value = Itimerspec {
            it_interval: Timespec::default(),
            it_value: Timespec {
                tv_sec: whole(at_ns / NS_PER_S),
                tv_nsec: whole(at_ns % NS_PER_S),
            },
        };
        // This fails only for impossible values; the wait then ends at its own limit.
        if timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &value).is_ok() {
            self.set_ns = at_ns;
        }
    }
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}

/// Required by tokio in addition to the safe form.
impl AsRawFd for Timer {
    fn as_raw_fd(&self) -> RawFd {
        self.timer.as_raw_fd()
    }
}
