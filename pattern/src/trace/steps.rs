//! Judges accesses one after the other: the step that led to each, and whether it continues
//! something older.

use super::frequent::Frequent;
use super::result::Evidence;
use super::streams::{Continues, Streams};
use crate::SEQUENTIAL_WINDOW_BYTES;
use crate::access::Access;

/// Number of recent starts that an access is compared with to see whether it returns to one.
const RECENT_STARTS: usize = 32;

/// Number of recent starts that an access may be one stride away from.
const STRIDE_STARTS: usize = 8;

/// The step from one access to the next.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    /// Bytes between the end of the first and the start of the second, whichever comes first.
    pub(crate) gap_bytes: u64,
    /// Whether the second starts before the end of the first.
    pub(crate) gap_is_backward: bool,
    pub(crate) backward: bool,
}

impl Step {
    pub(crate) fn between(before: Access, after: Access) -> Self {
        Self {
            gap_bytes: after.offset.abs_diff(before.end()),
            gap_is_backward: after.offset < before.end(),
            backward: after.offset < before.offset,
        }
    }

    pub(crate) fn is_contiguous(self) -> bool {
        self.gap_bytes == 0
    }

    pub(crate) fn is_sequential(self) -> bool {
        !self.gap_is_backward && self.gap_bytes <= SEQUENTIAL_WINDOW_BYTES
    }
}

/// The findings about one access.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Judged {
    /// `None` for the first access.
    pub(crate) step: Option<Step>,
    continues: Continues,
    strides: bool,
    repeats: bool,
}

/// The state needed to judge the next access of a file in one direction.
#[derive(Debug, Clone, Default)]
pub(crate) struct Judge {
    last: Option<Access>,
    streams: Streams,
    distances: Frequent,
    recent: Recent,
}

impl Judge {
    pub(crate) fn next(&mut self, access: Access) -> Judged {
        let step = self.last.map(|last| Step::between(last, access));
        if let (Some(last), Some(step)) = (self.last, step)
            && !step.is_sequential()
        {
            let distance = access.offset.wrapping_sub(last.offset).cast_signed();
            self.distances.add(distance);
        }
        self.last = Some(access);
        let stride = self.distances.top();
        let strides = stride.is_some_and(|d| self.recent.strided(access.offset, d));
        Judged {
            step,
            continues: self.streams.next(access),
            strides,
            repeats: self.recent.note(access.offset),
        }
    }

    /// Returns the commonest distance between starts among steps that are not sequential.
    pub(crate) fn stride_bytes(&self) -> Option<i64> {
        self.distances.top()
    }

    pub(crate) fn interleaved_streams(&self) -> u64 {
        self.streams.clone().interleaved()
    }
}

/// Distinct starts, the most recent first.
#[derive(Debug, Clone, Default)]
struct Recent {
    starts: [u64; RECENT_STARTS],
    count: usize,
}

impl Recent {
    /// Moves `start` to the front. Returns whether it was already there.
    fn note(&mut self, start: u64) -> bool {
        let known = &self.starts[..self.count];
        let found = known.iter().position(|&s| s == start);
        let place = match found {
            Some(place) => place,
            None if self.count < RECENT_STARTS => {
                self.count += 1;
                self.count - 1
            }
            None => RECENT_STARTS - 1,
        };
        self.starts.copy_within(..place, 1);
        self.starts[0] = start;
        found.is_some()
    }

    fn strided(&self, start: u64, stride: i64) -> bool {
        let from = start.wrapping_sub(stride.cast_unsigned());
        self.starts[..self.count.min(STRIDE_STARTS)].contains(&from)
    }
}

/// Counts over the accesses of a whole trace or a slice of it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct StepCounts {
    pub(crate) accesses: u64,
    pub(crate) steps: u64,
    pub(crate) contiguous: u64,
    pub(crate) sequential: u64,
    pub(crate) backward: u64,
    forward_stream: u64,
    backward_stream: u64,
    strides: u64,
    repeats: u64,
}

impl StepCounts {
    pub(crate) fn add(&mut self, judged: &Judged) {
        self.accesses += 1;
        let Some(step) = judged.step else {
            return;
        };
        self.steps += 1;
        self.contiguous += u64::from(step.is_contiguous());
        self.sequential += u64::from(step.is_sequential());
        self.backward += u64::from(step.backward);
        self.forward_stream += u64::from(judged.continues == Continues::Forward);
        self.backward_stream += u64::from(judged.continues == Continues::Backward);
        self.strides += u64::from(judged.strides);
        self.repeats += u64::from(judged.repeats);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.accesses += other.accesses;
        self.steps += other.steps;
        self.contiguous += other.contiguous;
        self.sequential += other.sequential;
        self.backward += other.backward;
        self.forward_stream += other.forward_stream;
        self.backward_stream += other.backward_stream;
        self.strides += other.strides;
        self.repeats += other.repeats;
    }

    /// Returns a share of the steps; 0 without steps.
    pub(crate) fn share(&self, count: u64) -> f64 {
        count as f64 / self.steps.max(1) as f64
    }

    /// Returns shares of the accesses after the first, which has nothing to continue.
    pub(crate) fn evidence(&self) -> Evidence {
        Evidence {
            forward_stream_share: self.share(self.forward_stream),
            backward_stream_share: self.share(self.backward_stream),
            stride_share: self.share(self.strides),
            repeat_share: self.share(self.repeats),
        }
    }
}
