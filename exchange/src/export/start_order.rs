//! Puts events that come in order of completion into order of start, with bounded memory.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use seekscope_run::IoEvent;

/// The most events held back. An event during which more than this many others ended comes late.
const HELD_MAX: usize = 1 << 18;

/// Holds events back until no earlier one can follow.
#[derive(Default)]
pub(super) struct StartOrder {
    held: BinaryHeap<Reverse<Held>>,
    taken: u64,
}

/// An event, ordered by its start and then by its place in the run.
struct Held {
    key: (u64, u64),
    event: IoEvent,
}

impl PartialEq for Held {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Held {}

impl PartialOrd for Held {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Held {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

impl StartOrder {
    /// Takes an event; returns one once enough are held.
    pub(super) fn push(&mut self, event: &IoEvent) -> Option<IoEvent> {
        self.held.push(Reverse(Held {
            key: (event.t_ns, self.taken),
            event: *event,
        }));
        self.taken += 1;
        if self.held.len() > HELD_MAX {
            self.pop()
        } else {
            None
        }
    }

    /// Removes and returns the earliest event held.
    pub(super) fn pop(&mut self) -> Option<IoEvent> {
        self.held.pop().map(|Reverse(held)| held.event)
    }
}
