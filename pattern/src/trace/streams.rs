//! Finds accesses that continue where one of several recent streams stopped.

use crate::SEQUENTIAL_WINDOW_BYTES;
use crate::access::Access;

/// Streams remembered at once.
const STREAMS_MAX: usize = 64;

/// A stream of at least this many accesses may continue after a small gap even if other accesses
/// came between; a younger one only without a gap, since random accesses happen to land close to
/// one of many single places.
const ESTABLISHED_ACCESSES: u32 = 3;

/// Gaps after the heads of all streams cover at most one byte in this many of what was touched. In a small file, random
/// accesses land close to one of many heads just as easily, and would pass for scans that take turns.
const COVERED_ONE_IN: u64 = 8;

/// Number of accesses over which streams that take turns are counted.
const TURN_WINDOW_ACCESSES: u32 = 256;

/// How an access relates to the streams before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Continues {
    Forward,
    Backward,
    Nothing,
}

/// The heads of the recent streams: where each last began and ended. A stream not continued during
/// one full round of the table is forgotten (second-chance replacement).
#[derive(Debug, Clone)]
pub(crate) struct Streams {
    starts: [u64; STREAMS_MAX],
    ends: [u64; STREAMS_MAX],
    /// Number of accesses of each stream so far; 0 if there is no stream.
    accesses: [u32; STREAMS_MAX],
    /// First byte that was touched, and the end of the last.
    touched: (u64, u64),
    used: u64,
    hand: usize,
    /// The stream of the last access.
    newest: usize,
    /// The last stream that was continued.
    continued: usize,
    /// Streams that took a turn in the current window, and those that took two: once happens by
    /// chance.
    turned: u64,
    turned_twice: u64,
    window: u32,
    /// How many windows saw each number of streams take turns.
    windows: [u32; STREAMS_MAX + 1],
}

impl Default for Streams {
    fn default() -> Self {
        Self {
            starts: [0; STREAMS_MAX],
            ends: [0; STREAMS_MAX],
            accesses: [0; STREAMS_MAX],
            touched: (u64::MAX, 0),
            used: 0,
            hand: 0,
            newest: 0,
            continued: 0,
            turned: 0,
            turned_twice: 0,
            window: 0,
            windows: [0; STREAMS_MAX + 1],
        }
    }
}

impl Streams {
    /// Assigns the access to the stream that it continues, or to a new one.
    pub(crate) fn next(&mut self, access: Access) -> Continues {
        let end = access.end();
        self.touched = (self.touched.0.min(access.offset), self.touched.1.max(end));
        let (found, stream) = match self.find(access.offset, end) {
            Some((found, stream)) => {
                self.note_turn(stream);
                (found, stream)
            }
            None => {
                let free = self.free_place();
                self.accesses[free] = 0;
                (Continues::Nothing, free)
            }
        };
        self.starts[stream] = access.offset;
        self.ends[stream] = end;
        self.accesses[stream] = self.accesses[stream].saturating_add(1);
        self.newest = stream;
        self.window += 1;
        if self.window == TURN_WINDOW_ACCESSES {
            self.close_window();
        }
        found
    }

    /// Finds the stream with the nearest head; forward streams come before backward ones.
    fn find(&self, start: u64, end: u64) -> Option<(Continues, usize)> {
        let gap = start.wrapping_sub(self.ends[self.newest]);
        if self.accesses[self.newest] > 0 && start >= self.ends[self.newest] && gap == 0 {
            return Some((Continues::Forward, self.newest));
        }
        let ahead = near(start, &self.ends, |start, end| start.wrapping_sub(end));
        let behind = near(end, &self.starts, |end, start| start.wrapping_sub(end));
        let forward = self.best(ahead, |i| start.checked_sub(self.ends[i]));
        let backward = || self.best(behind, |i| self.starts[i].checked_sub(end));
        forward
            .map(|i| (Continues::Forward, i))
            .or_else(|| backward().map(|i| (Continues::Backward, i)))
    }

    fn best(&self, mut candidates: u64, gap: impl Fn(usize) -> Option<u64>) -> Option<usize> {
        let (first, last) = self.touched;
        let gap_max = last.saturating_sub(first) / (STREAMS_MAX as u64 * COVERED_ONE_IN);
        let mut best: Option<(u64, usize)> = None;
        while candidates != 0 {
            let i = candidates.trailing_zeros() as usize;
            candidates &= candidates - 1;
            let Some(gap) = gap(i).filter(|_| self.accesses[i] > 0) else {
                continue;
            };
            let is_established = self.accesses[i] >= ESTABLISHED_ACCESSES && gap <= gap_max;
            let trusted = gap == 0 || i == self.newest || is_established;
            if trusted && best.is_none_or(|(least, _)| gap < least) {
                best = Some((gap, i));
            }
        }
        best.map(|(_, i)| i)
    }

    /// Notes a turn. A stream takes a turn when it continues after another one did. A stream that
    /// only begins does not, so runs one after the other do not count as concurrent streams.
    fn note_turn(&mut self, stream: usize) {
        self.used |= 1 << stream;
        if stream != self.continued && self.accesses[stream] >= 2 {
            self.turned_twice |= self.turned & 1 << stream;
            self.turned |= 1 << stream;
        }
        self.continued = stream;
    }

    fn free_place(&mut self) -> usize {
        loop {
            let place = self.hand;
            self.hand = (self.hand + 1) % STREAMS_MAX;
            let was_used = self.used & 1 << place != 0;
            self.used &= !(1 << place);
            if !was_used && (place != self.continued || self.accesses[place] == 0) {
                return place;
            }
        }
    }

    fn close_window(&mut self) {
        self.windows[self.turned_twice.count_ones() as usize] += 1;
        self.window = 0;
        self.turned = 0;
        self.turned_twice = 0;
    }

    /// Returns the number of streams that take turns: the median over windows of 256 accesses, at
    /// least 1.
    pub(crate) fn interleaved(mut self) -> u64 {
        // A short remainder says little, unless there is nothing else.
        let closed: u32 = self.windows.iter().sum();
        if closed == 0 || self.window >= TURN_WINDOW_ACCESSES / 2 {
            self.close_window();
        }
        let half = self.windows.iter().sum::<u32>().div_ceil(2);
        let mut below = 0;
        let median = self.windows.iter().position(|&windows| {
            below += windows;
            below >= half
        });
        median.unwrap_or(0).max(1) as u64
    }
}

/// Returns a bit for each head whose gap is within the sequential window. The loop has no branches,
/// so that the compiler can use vector instructions.
fn near(at: u64, heads: &[u64; STREAMS_MAX], gap: impl Fn(u64, u64) -> u64) -> u64 {
    let mut candidates = 0;
    for (i, &head) in heads.iter().enumerate() {
        candidates |= u64::from(gap(at, head) <= SEQUENTIAL_WINDOW_BYTES) << i;
    }
    candidates
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: u64 = 4096;
    const FAR: u64 = 1 << 32;

    fn run(offsets: impl IntoIterator<Item = u64>) -> (Vec<Continues>, u64) {
        let mut streams = Streams::default();
        let next = |offset| {
            streams.next(Access {
                offset,
                bytes: BLOCK,
            })
        };
        let found = offsets.into_iter().map(next).collect();
        (found, streams.interleaved())
    }

    fn count(found: &[Continues], what: Continues) -> usize {
        found.iter().filter(|&&f| f == what).count()
    }

    #[test]
    fn streams_that_take_turns_are_told_apart() {
        for streams in [1, 2, 7, 32] {
            let turns = (0..3000).map(|i| i % streams * FAR + i / streams * BLOCK);
            let (found, interleaved) = run(turns);
            assert_eq!(interleaved, streams);
            assert_eq!(count(&found, Continues::Nothing) as u64, streams);
        }
    }

    #[test]
    fn random_accesses_of_a_small_file_are_not_scans_that_take_turns() {
        for file_blocks in [500, 2_000, 20_000] {
            let mut random = seekscope_stats::SplitMix64::new(7);
            let offsets = (0..20_000).map(|_| random.next_u64() % file_blocks * BLOCK);
            let (found, interleaved) = run(offsets.collect::<Vec<_>>());
            let forward = count(&found, Continues::Forward);
            assert!(forward < found.len() * 3 / 10, "{file_blocks}: {forward}");
            assert!(interleaved < 10, "{file_blocks}: {interleaved}");
        }
    }

    #[test]
    fn one_stream_with_noise_is_one_and_runs_are_not_at_once() {
        let noise = (0..3000).map(|i: u64| {
            if i % 5 == 4 {
                FAR + i * i % 997 * FAR
            } else {
                i * BLOCK
            }
        });
        // The stream leaves one block out at each accident: a small gap.
        let (found, interleaved) = run(noise);
        assert_eq!(interleaved, 1);
        assert!(count(&found, Continues::Forward) > 2380);
        let (_, interleaved) = run((0..3000).map(|i| i / 8 * 7919 % 375 * FAR + i % 8 * BLOCK));
        assert_eq!(interleaved, 1);
    }

    #[test]
    fn backwards_and_nothing() {
        let (found, _) = run((0..100).rev().map(|i| i * BLOCK));
        assert_eq!(count(&found, Continues::Backward), 99);
        let (found, _) = run((0..100).map(|i| i * FAR));
        assert_eq!(count(&found, Continues::Nothing), 100);
        let (found, _) = run([u64::MAX, u64::MAX, 0, u64::MAX - 5, 0]);
        assert_eq!(found[0], Continues::Nothing);
    }
}
