//! One thread's virtual users on our own client: sockets are watched with epoll, times are kept with a kernel
//! timer.
//!
//! Sockets are watched edge-triggered and registered once: a reply costs one read, as its length is known. With
//! a single connection and nothing else to wait for, the thread waits in that read.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Mutex;
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use seekscope_run::monotonic_ns;
use seekscope_run::units::nanoseconds;

use super::backoff::Backoff;
use super::recorder::Recorder;
use super::shared::Shared;
use super::timer::Timer;
use super::user::{After, Desk, Next, VirtualUser};
use crate::wire::connection::{Connection, Progress};
use crate::wire::socket::LOOK_UP;
use crate::{ClientError, Failure, FailureKind};

/// Events taken from the kernel at a time.
const EVENTS_MAX: usize = 64;
const TIMER_EVENT: u64 = u64::MAX;

/// A virtual user and its connection.
pub(super) struct Slot {
    user: VirtualUser,
    connection: Connection,
    state: State,
    backoff: Backoff,
    /// Not to be asked for work before this time, because connecting failed.
    not_before_ns: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The user is to be asked for its next step.
    Idle,
    /// The user is to be asked at this time.
    Held(u64),
    /// Connecting; the attempt has failed at this time.
    Opening(u64),
    /// Awaiting an answer until this time.
    Asking(u64),
    Over,
}

/// The event loop of one thread.
pub(super) struct EventLoop<'a> {
    desk: Desk<'a>,
    slots: Vec<Slot>,
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
    timer: Timer,
    held: BinaryHeap<Reverse<(u64, usize)>>,
    /// Idle slots, to be asked for their next step.
    idle: Vec<usize>,
    left: usize,
    next_look_ns: u64,
}

impl Slot {
    pub(super) fn new(user: VirtualUser, connection: Connection) -> Self {
        Self {
            user,
            connection,
            state: State::Idle,
            backoff: Backoff::default(),
            not_before_ns: 0,
        }
    }
}

impl<'a> EventLoop<'a> {
    pub(super) fn new(
        shared: &'a Shared,
        recorder: &'a Mutex<Recorder>,
        slots: Vec<Slot>,
    ) -> Result<Self, ClientError> {
        let system = |what| {
            move |errno: Errno| ClientError::System {
                what,
                source: errno.into(),
            }
        };
        let epoll =
            epoll::create(epoll::CreateFlags::CLOEXEC).map_err(system("cannot watch sockets"))?;
        let timer = Timer::new().map_err(system("cannot set a timer"))?;
        let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(
            &epoll,
            timer.as_fd(),
            epoll::EventData::new_u64(TIMER_EVENT),
            flags,
        )
        .map_err(system("cannot watch a timer"))?;
        Ok(Self {
            desk: Desk { shared, recorder },
            left: slots.len(),
            slots,
            epoll,
            events: Vec::with_capacity(EVENTS_MAX),
            timer,
            held: BinaryHeap::new(),
            idle: Vec::new(),
            next_look_ns: 0,
        })
    }

    /// Opens all connections before the work begins.
    pub(super) fn connect(&mut self) -> Result<(), Failure> {
        let deadline_ns = self.deadline_ns(monotonic_ns());
        for index in 0..self.slots.len() {
            self.open(index, deadline_ns)?;
        }
        loop {
            let mut are_ready = true;
            for slot in &mut self.slots {
                if !slot.connection.is_ready() {
                    slot.connection.progress(&slot.user.request, false)?;
                    are_ready &= slot.connection.is_ready();
                }
                slot.state = State::Idle;
            }
            if are_ready {
                return Ok(());
            }
            if self.desk.shared.is_over() || monotonic_ns() >= deadline_ns {
                return Err(timed_out("the server did not answer the greeting in time"));
            }
            self.await_events();
        }
    }

    /// Works until there is nothing left to do.
    pub(super) fn run(mut self) {
        for index in 0..self.slots.len() {
            self.step(index);
        }
        while self.left > 0 {
            let now_ns = monotonic_ns();
            self.release(now_ns);
            for index in std::mem::take(&mut self.idle) {
                self.step(index);
            }
            if now_ns >= self.next_look_ns {
                self.look(now_ns);
            }
            let alone = self.slots.len() == 1
                && matches!(self.slots[0].state, State::Asking(_))
                && self.slots[0]
                    .connection
                    .awaits_only_reply(&self.slots[0].user.request);
            if alone {
                self.ready(0, true);
            } else if self.left > 0 {
                self.wait();
            }
        }
    }

    /// Asks a virtual user for its next step, and does it.
    fn step(&mut self, index: usize) {
        let now_ns = monotonic_ns();
        let desk = self.desk;
        let slot = &mut self.slots[index];
        if slot.not_before_ns > now_ns && !desk.shared.is_over() {
            let until_ns = slot.not_before_ns;
            self.hold(index, until_ns);
            return;
        }
        match slot.user.next(desk, now_ns) {
            Next::Wait(until_ns) => self.hold(index, until_ns),
            Next::Over => self.finish(index),
            Next::Send if slot.connection.is_ready() => self.send(index),
            Next::Send => {
                let deadline_ns = self.deadline_ns(now_ns);
                if let Err(failure) = self.open(index, deadline_ns) {
                    self.failed(index, &failure);
                }
            }
        }
    }

    fn send(&mut self, index: usize) {
        let now_ns = monotonic_ns();
        let deadline_ns = self.deadline_ns(now_ns);
        let slot = &mut self.slots[index];
        slot.user.sending(self.desk, now_ns);
        match slot.connection.send(&slot.user.request) {
            Ok(()) => slot.state = State::Asking(deadline_ns),
            Err(failure) => self.failed(index, &failure),
        }
    }

    fn open(&mut self, index: usize, deadline_ns: u64) -> Result<(), Failure> {
        let slot = &mut self.slots[index];
        slot.state = State::Opening(deadline_ns);
        let socket = slot.connection.open()?;
        let flags = epoll::EventFlags::IN
            | epoll::EventFlags::OUT
            | epoll::EventFlags::RDHUP
            | epoll::EventFlags::ET;
        let data = epoll::EventData::new_u64(index as u64);
        epoll::add(&self.epoll, socket, data, flags).map_err(|errno| {
            let text = format!("cannot watch a socket: {errno}");
            Failure::of(FailureKind::Client, "CannotWatch", text)
        })
    }

    /// Handles a socket that is ready, or that may be waited for.
    fn ready(&mut self, index: usize, may_wait: bool) {
        let slot = &mut self.slots[index];
        match slot.connection.progress(&slot.user.request, may_wait) {
            Ok(Progress::Pending) => (),
            Ok(Progress::Opened) => {
                slot.backoff.succeeded();
                slot.user.connected(monotonic_ns());
                self.send(index);
            }
            Ok(Progress::Answered) => {
                let reply = slot.connection.reply();
                // Only failures are retried.
                let _ = slot.user.outcome(self.desk, Ok(&reply), monotonic_ns());
                self.step(index);
            }
            Err(failure) => self.failed(index, &failure),
        }
    }

    fn failed(&mut self, index: usize, failure: &Failure) {
        let now_ns = monotonic_ns();
        let slot = &mut self.slots[index];
        if matches!(slot.state, State::Opening(_)) {
            slot.connection.close();
            slot.not_before_ns = now_ns.saturating_add(nanoseconds(slot.backoff.failed()));
        }
        match slot.user.outcome(self.desk, Err(failure), now_ns) {
            After::Next => {
                slot.state = State::Idle;
                self.idle.push(index);
            }
            After::Again(pause) => {
                let pause_ns = now_ns.saturating_add(nanoseconds(pause));
                let until_ns = pause_ns.max(slot.not_before_ns);
                self.hold(index, until_ns);
            }
        }
    }

    fn hold(&mut self, index: usize, until_ns: u64) {
        self.slots[index].state = State::Held(until_ns);
        self.held.push(Reverse((until_ns, index)));
    }

    fn finish(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        if slot.state != State::Over {
            slot.state = State::Over;
            slot.connection.close();
            self.left -= 1;
        }
    }

    /// Continues with the slots that were held until now.
    fn release(&mut self, now_ns: u64) {
        while let Some(&Reverse((until_ns, index))) = self.held.peek() {
            if until_ns > now_ns {
                break;
            }
            self.held.pop();
            if self.slots[index].state == State::Held(until_ns) {
                self.step(index);
            }
        }
    }

    /// Checks from time to time for timeouts and for the end.
    fn look(&mut self, now_ns: u64) {
        self.next_look_ns = now_ns + nanoseconds(LOOK_UP);
        let is_over = self.desk.shared.is_over();
        let give_up = self.desk.shared.grace_is_over(now_ns);
        for index in 0..self.slots.len() {
            let slot = &mut self.slots[index];
            match slot.state {
                State::Over => (),
                _ if give_up => {
                    slot.user.abandon(self.desk, now_ns);
                    self.finish(index);
                }
                State::Held(_) if is_over => self.step(index),
                State::Opening(until_ns) | State::Asking(until_ns) if now_ns >= until_ns => {
                    slot.connection.close();
                    self.failed(index, &timed_out("the server did not answer in time"));
                }
                _ => (),
            }
        }
    }

    /// Sleeps until a socket is ready, the next slot is to be released, or it is time for a check.
    fn wait(&mut self) {
        self.await_events();
        for place in 0..self.events.len() {
            let data = self.events[place].data.u64();
            if let Ok(index) = usize::try_from(data)
                && index < self.slots.len()
            {
                self.ready(index, false);
            }
        }
    }

    fn await_events(&mut self) {
        let mut timeout = LOOK_UP;
        if !self.idle.is_empty() {
            timeout = Duration::ZERO;
        } else if let Some(&Reverse((until_ns, _))) = self.held.peek() {
            let now_ns = monotonic_ns();
            if until_ns <= now_ns {
                timeout = Duration::ZERO;
            } else if until_ns - now_ns < nanoseconds(LOOK_UP) {
                self.timer.set(until_ns);
            }
        }
        let timeout = Timespec::try_from(timeout).ok();
        self.events.clear();
        // Interrupted or not, the next round checks everything.
        let _ = epoll::wait(
            &self.epoll,
            spare_capacity(&mut self.events),
            timeout.as_ref(),
        );
    }

    fn deadline_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_add(nanoseconds(self.desk.shared.timeout))
    }
}

fn timed_out(text: &str) -> Failure {
    Failure::of(FailureKind::Timeout, "Timeout", text)
}
