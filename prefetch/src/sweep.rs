//! Which leaves to read next: the head goes round and round over the file by rising offset and
//! takes what the scan will need soon.
//!
//! A scan visits leaves in key order, which is all over the file; a disk wants rising offsets. The
//! window is as many of the leaves after the scan's position as fit into the given memory, and the
//! head reads those of them that it passes. It begins a round when the scan has taken most of what
//! the last one brought (`ROUND_TENTHS`): leaves still in memory between the wanted ones split
//! requests that would otherwise read through.
//!
//! This module does no I/O and has no clock.

use std::ops::Range;

use seekscope_layout::order::scanned;
use seekscope_wiredtiger::Leaf;

/// A round begins when this many tenths of the window are unread. With a mongod on a disk of 150
/// IOPS and 150 MB/s, an aged file of 138 MB, 74 MB of which are leaves, and memory for a quarter
/// of these, a scan takes 15 s alone, 4.8 to 5.6 s at 7, and 6.6 to 14 s at 2 with a window that
/// reaches further than the memory, the requests being 415 and 225 KB on average.
const ROUND_TENTHS: u64 = 7;

/// A leaf's place in the file, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub offset: u64,
    pub length: u32,
}

impl Place {
    /// The offset of the byte after the last one.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.length.into())
    }
}

/// A range that is read in one go: from the first leaf to the end of the last, with everything
/// between.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stretch {
    /// Sorted by rising offset; never empty.
    pub leaves: Vec<Place>,
}

impl Stretch {
    /// Returns the range of the file that is read, bytes.
    pub fn range(&self) -> Range<u64> {
        let first = self.leaves.first().map_or(0, |leaf| leaf.offset);
        first..self.leaves.last().map_or(first, Place::end)
    }

    /// Returns the bytes of the leaves alone.
    pub fn leaf_bytes(&self) -> u64 {
        self.leaves.iter().map(|leaf| u64::from(leaf.length)).sum()
    }
}

/// How leaves are joined into stretches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Joining {
    /// The longest gap that is read through.
    pub gap_bytes: u64,
    /// The longest stretch, unless a single leaf is longer.
    pub stretch_bytes: u64,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    Read(Stretch),
    /// The memory is full of leaves that the scan has not come to.
    Full,
    /// Too little of the window is unread for another round.
    Nothing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Unread,
    Reading,
    /// The leaf is in memory, read by us.
    Held,
    /// The leaf was in memory before we came.
    Found,
    /// The leaf is not to be read, to see how fast the scan is without help.
    LeftOut,
    Passed,
}

/// The order in which leaves are read ahead, and how far the reading has come.
#[derive(Debug)]
pub struct Sweep {
    /// The leaves that scans read, in key order.
    leaves: Vec<Place>,
    states: Vec<State>,
    /// Bytes of all leaves before each one, and of all of them.
    bytes_before: Vec<u64>,
    /// Ordinals by rising offset.
    by_offset: Vec<u32>,
    /// The next leaf that the scan will read.
    position: usize,
    /// Ordinal after the last leaf of the window.
    end: usize,
    memory_bytes: u64,
    /// Index into `by_offset`.
    head: usize,
    /// Steps left in the round; 0 between rounds.
    steps_left: usize,
    held_bytes: u64,
    /// Bytes of the stretches being read, wherever their leaves are now.
    reading_bytes: u64,
    unread_bytes: u64,
    /// Number of rounds begun.
    pub rounds: u64,
}

impl Sweep {
    /// Returns a sweep over leaves in key order, starting at the first leaf, with `memory_bytes`
    /// for what is read ahead. `None` for 2³² leaves or more.
    pub fn new(leaves: &[Leaf], memory_bytes: u64) -> Option<Self> {
        let place = |leaf: &Leaf| Place {
            offset: leaf.offset,
            length: leaf.length,
        };
        let leaves: Vec<Place> = scanned(leaves).map(place).collect();
        let mut by_offset: Vec<u32> = (0..u32::try_from(leaves.len()).ok()?).collect();
        by_offset.sort_unstable_by_key(|&ordinal| leaves[ordinal as usize]);
        let mut bytes_before = Vec::with_capacity(leaves.len() + 1);
        let mut sum: u64 = 0;
        bytes_before.push(0);
        for leaf in &leaves {
            sum = sum.saturating_add(leaf.length.into());
            bytes_before.push(sum);
        }
        let mut sweep = Self {
            states: vec![State::Unread; leaves.len()],
            leaves,
            bytes_before,
            by_offset,
            position: 0,
            end: 0,
            memory_bytes,
            head: 0,
            steps_left: 0,
            held_bytes: 0,
            reading_bytes: 0,
            unread_bytes: 0,
            rounds: 0,
        };
        sweep.move_end();
        Some(sweep)
    }

    /// Returns the leaves in key order.
    pub fn leaves(&self) -> &[Place] {
        &self.leaves
    }

    /// Returns the bytes of all leaves.
    pub fn leaf_bytes(&self) -> u64 {
        self.bytes_before.last().copied().unwrap_or(0)
    }

    /// Returns the mean length of a leaf, bytes; 0 without leaves.
    pub fn mean_leaf_bytes(&self) -> f64 {
        self.leaf_bytes() as f64 / self.leaves.len().max(1) as f64
    }

    /// Returns the ordinal of the next leaf that the scan will read.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Returns the ordinals of the leaves that may be read now.
    pub fn window(&self) -> Range<usize> {
        self.position..self.end
    }

    /// Returns the bytes that we have read and the scan has not passed, or that are being read.
    pub fn held_bytes(&self) -> u64 {
        self.held_bytes.saturating_add(self.reading_bytes)
    }

    /// Returns the memory it was given, bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    /// Returns whether everything fits, so that nothing needs to be given back.
    pub fn fits(&self) -> bool {
        self.leaf_bytes() <= self.memory_bytes
    }

    /// Returns whether the head has been over the whole file and nothing is being read.
    pub fn is_read(&self) -> bool {
        let has_been = self.rounds > 0 || self.unread_bytes == 0;
        has_been && self.steps_left == 0 && self.reading_bytes == 0
    }

    /// Returns the ordinal of the leaf that begins at `offset`, if there is one.
    pub fn ordinal_at(&self, offset: u64) -> Option<usize> {
        let offset_of = |&ordinal: &u32| self.leaves[ordinal as usize].offset;
        let at = self.by_offset.binary_search_by_key(&offset, offset_of);
        at.ok().map(|at| self.by_offset[at] as usize)
    }

    /// Changes the amount of memory, bytes. Returns those of our leaves for which there is no
    /// longer room, which are those that the scan comes to last; they will be read again.
    pub fn set_memory(&mut self, memory_bytes: u64) -> Vec<Place> {
        self.memory_bytes = memory_bytes;
        self.move_end();
        let mut too_many = Vec::new();
        let mut ordinal = self.leaves.len();
        while self.held_bytes() > memory_bytes && ordinal > self.position {
            ordinal -= 1;
            if self.states[ordinal] == State::Held {
                too_many.push(self.leaves[ordinal]);
                self.lost(self.leaves[ordinal]);
            }
        }
        too_many
    }

    /// Notes that the scan will read leaf `to` next. A step back means another scan, for which
    /// everything is to be read again. Returns the leaves we read that the scan has now passed.
    pub fn advance(&mut self, to: usize) -> Vec<Place> {
        let to = to.min(self.leaves.len());
        let mut released = Vec::new();
        if to < self.position {
            for ordinal in to..self.position {
                if self.states[ordinal] == State::Passed {
                    self.states[ordinal] = State::Unread;
                    self.count_unread(ordinal, ordinal < self.end, true);
                }
            }
        }
        for ordinal in self.position..to.max(self.position) {
            match self.states[ordinal] {
                State::Held => {
                    self.held_bytes -= u64::from(self.leaves[ordinal].length);
                    released.push(self.leaves[ordinal]);
                }
                State::Unread => self.count_unread(ordinal, ordinal < self.end, false),
                _ => {}
            }
            self.states[ordinal] = State::Passed;
        }
        self.position = to;
        self.end = self.end.max(to);
        self.move_end();
        released
    }

    fn count_unread(&mut self, ordinal: usize, in_window: bool, more: bool) {
        let bytes = if in_window {
            u64::from(self.leaves[ordinal].length)
        } else {
            0
        };
        self.unread_bytes = if more {
            self.unread_bytes.saturating_add(bytes)
        } else {
            self.unread_bytes.saturating_sub(bytes)
        };
    }

    /// Moves the end of the window to where the memory ends.
    fn move_end(&mut self) {
        let wanted = if self.fits() {
            self.leaves.len()
        } else {
            let until = self.bytes_before[self.position].saturating_add(self.memory_bytes);
            let behind = self.bytes_before.partition_point(|&before| before <= until);
            behind.saturating_sub(1).max(self.position)
        };
        for ordinal in self.end..wanted {
            if self.states[ordinal] == State::Unread {
                self.count_unread(ordinal, true, true);
            }
        }
        for ordinal in wanted..self.end {
            if self.states[ordinal] == State::Unread {
                self.count_unread(ordinal, true, false);
            }
        }
        self.end = wanted;
    }

    /// Leaves these leaves out. Returns those that we have already read, which are to be given
    /// back.
    pub fn leave_out(&mut self, ordinals: Range<usize>) -> Vec<Place> {
        let mut ours = Vec::new();
        for ordinal in ordinals.start..ordinals.end.min(self.leaves.len()) {
            let leaf = self.leaves[ordinal];
            match self.states[ordinal] {
                State::Unread => {
                    self.count_unread(ordinal, self.window().contains(&ordinal), false);
                }
                State::Held => {
                    self.held_bytes -= u64::from(leaf.length);
                    ours.push(leaf);
                }
                // Such a leaf comes too late, and is given back when it is there.
                State::Reading => {}
                _ => continue,
            }
            self.states[ordinal] = State::LeftOut;
        }
        ours
    }

    /// Takes leaves that were left out back in, except those that the scan has passed.
    pub fn take_in(&mut self, ordinals: Range<usize>) {
        for ordinal in ordinals.start..ordinals.end.min(self.leaves.len()) {
            if self.states[ordinal] == State::LeftOut {
                self.states[ordinal] = State::Unread;
                self.count_unread(ordinal, self.window().contains(&ordinal), true);
            }
        }
    }

    /// Returns the bytes of the leaves before this one.
    pub fn bytes_before(&self, ordinal: usize) -> u64 {
        self.bytes_before[ordinal.min(self.leaves.len())]
    }

    /// Returns the leaf at which this many bytes of leaves have been read, at most the last leaf.
    pub fn ordinal_after(&self, bytes: u64) -> usize {
        let behind = self.bytes_before.partition_point(|&before| before <= bytes);
        behind.saturating_sub(1)
    }

    /// Returns the first leaf from the position on that is neither in memory nor left out.
    pub fn first_unread(&self) -> usize {
        let ahead = self.states.iter().skip(self.position);
        let known = ahead.take_while(|s| !matches!(s, State::Unread | State::Reading));
        self.position + known.count()
    }

    /// Notes leaves of ours that were read before, outside of stretches.
    pub fn hold(&mut self, ours: &[Place]) {
        for leaf in ours {
            let Some(ordinal) = self.ordinal_at(leaf.offset) else {
                continue;
            };
            if ordinal >= self.position && self.states[ordinal] == State::Unread {
                self.count_unread(ordinal, self.window().contains(&ordinal), false);
                self.states[ordinal] = State::Held;
                self.held_bytes += u64::from(leaf.length);
            }
        }
    }

    /// Returns the next stretch, which counts as being read until [`Sweep::done`] or
    /// [`Sweep::failed`].
    pub fn next(&mut self, joining: Joining) -> Next {
        if self.steps_left == 0 && !self.begin_round() {
            return Next::Nothing;
        }
        if self.held_bytes() >= self.memory_bytes {
            return Next::Full;
        }
        let mut stretch: Vec<Place> = Vec::new();
        while self.steps_left > 0 {
            let ordinal = self.by_offset[self.head] as usize;
            if self.is_wanted(ordinal) {
                let leaf = self.leaves[ordinal];
                if !fits_behind(&stretch, leaf, joining) {
                    break;
                }
                stretch.push(leaf);
                self.states[ordinal] = State::Reading;
                self.count_unread(ordinal, true, false);
                self.reading_bytes += u64::from(leaf.length);
            } else if let Some(last) = stretch.last() {
                let offset = self.leaves[ordinal].offset;
                if offset.saturating_sub(last.end()) > joining.gap_bytes {
                    break;
                }
            }
            if !self.step() {
                break;
            }
        }
        match stretch.is_empty() {
            true => Next::Nothing,
            false => Next::Read(Stretch { leaves: stretch }),
        }
    }

    fn is_wanted(&self, ordinal: usize) -> bool {
        self.window().contains(&ordinal) && self.states[ordinal] == State::Unread
    }

    /// Moves the head. Returns false at the end of the file, beyond which no stretch can go on.
    fn step(&mut self) -> bool {
        self.steps_left -= 1;
        self.head += 1;
        if self.head < self.by_offset.len() {
            return true;
        }
        self.head = 0;
        false
    }

    fn begin_round(&mut self) -> bool {
        let window = self.bytes_before[self.end] - self.bytes_before[self.position];
        // No scan empties the window before the first round, whatever the trial of the disk has left there.
        let begins_at_any = self.rounds == 0 || self.end == self.leaves.len();
        let is_enough = begins_at_any || self.unread_bytes >= window / 10 * ROUND_TENTHS;
        if self.unread_bytes == 0 || !is_enough {
            return false;
        }
        self.rounds += 1;
        self.steps_left = self.by_offset.len();
        true
    }

    /// Notes that a stretch was read. Of its leaves, `ours` were not even partly in memory before.
    /// Returns those of ours that the scan has passed meanwhile.
    pub fn done(&mut self, stretch: &Stretch, ours: &[Place]) -> Vec<Place> {
        self.reading_bytes = self.reading_bytes.saturating_sub(stretch.leaf_bytes());
        let mut late = Vec::new();
        for &leaf in &stretch.leaves {
            let is_ours = ours.binary_search(&leaf).is_ok();
            match (self.reading(leaf), is_ours) {
                (Some(ordinal), true) => {
                    self.states[ordinal] = State::Held;
                    self.held_bytes += u64::from(leaf.length);
                }
                (Some(ordinal), false) => self.states[ordinal] = State::Found,
                // Passed by the scan, or moved by a checkpoint.
                (None, true) => late.push(leaf),
                (None, false) => {}
            }
        }
        late
    }

    /// Notes that a stretch could not be read, so the server will have to read it.
    pub fn failed(&mut self, stretch: &Stretch) {
        self.done(stretch, &[]);
    }

    /// Returns the leaf's ordinal, if it is being read and the scan has not passed it.
    fn reading(&self, leaf: Place) -> Option<usize> {
        let ordinal = self.ordinal_at(leaf.offset)?;
        let same = self.leaves[ordinal] == leaf && self.states[ordinal] == State::Reading;
        same.then_some(ordinal)
    }

    /// Returns up to `count` leaves that should be in memory, those that the scan comes to first.
    pub fn held_next(&self, count: usize) -> Vec<Place> {
        let held = self
            .window()
            .filter(|&ordinal| self.states[ordinal] == State::Held);
        held.take(count)
            .map(|ordinal| self.leaves[ordinal])
            .collect()
    }

    /// Notes that this leaf of ours is no longer in memory and is to be read again.
    pub fn lost(&mut self, leaf: Place) {
        let Some(ordinal) = self.ordinal_at(leaf.offset) else {
            return;
        };
        if self.states[ordinal] == State::Held {
            self.states[ordinal] = State::Unread;
            self.held_bytes -= u64::from(leaf.length);
            self.count_unread(ordinal, self.window().contains(&ordinal), true);
        }
    }

    /// Continues the same scan in the tree of a newer checkpoint, at the first leaf that it has not
    /// read and that is still where it was; if there is none, as far on as before. What was read
    /// stays read.
    #[must_use]
    pub fn in_tree_of(&self, mut newer: Self) -> Self {
        let still = |leaf: &Place| {
            let at = newer.ordinal_at(leaf.offset);
            at.filter(|&ordinal| newer.leaves[ordinal] == *leaf)
        };
        let known = self.leaves.iter().zip(&self.states);
        let known: Vec<(usize, State)> = known
            .filter_map(|(leaf, &state)| Some((still(leaf)?, state)))
            .collect();
        let next = self.leaves[self.position..].iter().find_map(still);
        let as_far_on = self.position * newer.leaves.len() / self.leaves.len().max(1);
        let position = next.unwrap_or(as_far_on);
        newer.advance(position);
        for (ordinal, state) in known {
            let is_ahead = ordinal >= newer.position && newer.states[ordinal] == State::Unread;
            if is_ahead && !matches!(state, State::Unread | State::Passed) {
                newer.count_unread(ordinal, ordinal < newer.end, false);
                newer.states[ordinal] = state;
                if state == State::Held {
                    newer.held_bytes += u64::from(newer.leaves[ordinal].length);
                }
            }
        }
        newer.reading_bytes = self.reading_bytes;
        newer.rounds = self.rounds;
        newer
    }
}

fn fits_behind(stretch: &[Place], leaf: Place, joining: Joining) -> bool {
    let (Some(first), Some(last)) = (stretch.first(), stretch.last()) else {
        return true;
    };
    leaf.offset.saturating_sub(last.end()) <= joining.gap_bytes
        && leaf.end().saturating_sub(first.offset) <= joining.stretch_bytes
}

#[cfg(test)]
mod tests;
