//! The start of a step: threads prepare, report that they are ready, and wait until all are ready
//! or the step is given up.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::recorder::Window;

/// How often the coordinator checks whether all threads are ready.
const POLL: Duration = Duration::from_micros(200);

#[derive(Debug, Clone, Copy)]
enum State {
    Waiting,
    Open(Window),
    GivenUp,
}

#[derive(Debug)]
pub(crate) struct Gate {
    ready: AtomicUsize,
    state: Mutex<State>,
    changed: Condvar,
}

impl Gate {
    pub(crate) fn new() -> Self {
        Self {
            ready: AtomicUsize::new(0),
            state: Mutex::new(State::Waiting),
            changed: Condvar::new(),
        }
    }

    /// Reports that a thread is ready. Returns when the gate opens, with the measured time; `None`
    /// if the step was given up.
    pub(crate) fn pass(&self) -> Option<Window> {
        self.ready.fetch_add(1, Ordering::Release);
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = |state: &mut State| matches!(state, State::Waiting);
        let state = self.changed.wait_while(state, waiting);
        match *state.unwrap_or_else(PoisonError::into_inner) {
            State::Open(window) => Some(window),
            State::Waiting | State::GivenUp => None,
        }
    }

    /// Waits until `threads` are ready, then lets them pass with the window made at that moment. A
    /// thread that is `gone` before can only have panicked: the others go on, and the panic
    /// surfaces when the threads are joined.
    pub(crate) fn open_when(
        &self,
        threads: usize,
        gone: impl Fn() -> bool,
        window: impl FnOnce() -> Window,
    ) -> Window {
        while self.ready.load(Ordering::Acquire) < threads && !gone() {
            thread::sleep(POLL);
        }
        let window = window();
        self.set(State::Open(window));
        window
    }

    /// Gives up the step and releases all threads.
    pub(crate) fn give_up(&self) {
        self.set(State::GivenUp);
    }

    fn set(&self, state: State) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
        self.changed.notify_all();
    }
}
