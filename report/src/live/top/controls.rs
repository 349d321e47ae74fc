//! Holds the choices of the reader of `top`.

use std::cmp::Ordering;

use super::super::snapshot::FileLine;

/// The figure by which files are sorted, largest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// Time that threads spent in calls.
    #[default]
    Waited,
    /// Bytes read and written.
    Bytes,
    Calls,
}

impl Order {
    /// Returns the word for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Waited => "time waited",
            Self::Bytes => "bytes",
            Self::Calls => "calls",
        }
    }

    fn next(self) -> Self {
        match self {
            Self::Waited => Self::Bytes,
            Self::Bytes => Self::Calls,
            Self::Calls => Self::Waited,
        }
    }

    pub(super) fn compare(self, a: &FileLine, b: &FileLine) -> Ordering {
        let key = |file: &FileLine| match self {
            Self::Waited => file.rates.in_flight,
            Self::Bytes => file.rates.bytes(),
            Self::Calls => file.rates.calls(),
        };
        let most_first = key(b).total_cmp(&key(a));
        most_first.then(a.file_id.cmp(&b.file_id))
    }
}

/// A key with a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TopKey {
    Order(Order),
    NextOrder,
    Pause,
    Help,
    Up,
    Down,
    First,
}

/// The choices of the reader: the order of files, and whether the picture is held.
#[derive(Debug, Clone, Copy, Default)]
pub struct TopControls {
    pub order: Order,
    /// The picture is frozen; counting continues.
    pub paused: bool,
    pub help: bool,
    /// Number of files above the first line shown.
    pub(super) skipped: usize,
}

impl TopControls {
    /// Returns the controls of a reader who has only chosen the order.
    pub fn sorted_by(order: Order) -> Self {
        Self {
            order,
            ..Self::default()
        }
    }

    /// Applies a key, with `files` files in the frame.
    pub fn obey(&mut self, key: TopKey, files: usize) {
        match key {
            TopKey::Order(order) => self.order = order,
            TopKey::NextOrder => self.order = self.order.next(),
            TopKey::Pause => self.paused = !self.paused,
            TopKey::Help => self.help = !self.help,
            TopKey::Up => self.skipped = self.skipped.saturating_sub(1),
            TopKey::Down => self.skipped = (self.skipped + 1).min(files.saturating_sub(1)),
            TopKey::First => self.skipped = 0,
        }
    }
}
