//! How many operations are in flight at once.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::QUEUE_DEPTH_MAX;
use super::result::QueueDepth;

/// Takes operations in order of their start.
#[derive(Debug, Clone, Default)]
pub(crate) struct Depth {
    /// Ends of the operations in flight, the next one first.
    ends_ns: BinaryHeap<Reverse<u64>>,
    max: usize,
    busy_ns: u64,
    busy_to_ns: u64,
    sum_ns: u128,
}

impl Depth {
    pub(crate) fn add(&mut self, start_ns: u64, latency_ns: u64) {
        let end_ns = start_ns.saturating_add(latency_ns);
        while self.ends_ns.peek().is_some_and(|end| end.0 <= start_ns) {
            self.ends_ns.pop();
        }
        if self.ends_ns.len() < QUEUE_DEPTH_MAX {
            self.ends_ns.push(Reverse(end_ns));
        }
        self.max = self.max.max(self.ends_ns.len());
        self.busy_ns += end_ns.saturating_sub(start_ns.max(self.busy_to_ns));
        self.busy_to_ns = self.busy_to_ns.max(end_ns);
        self.sum_ns += u128::from(end_ns - start_ns);
    }

    pub(crate) fn finish(&self) -> QueueDepth {
        QueueDepth {
            busy_ns: self.busy_ns,
            mean_while_busy: self.sum_ns as f64 / self.busy_ns.max(1) as f64,
            max: self.max as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlaps() {
        let mut depth = Depth::default();
        assert_eq!(depth.finish(), QueueDepth::default());
        for (start, latency) in [(0, 10), (5, 10), (6, 2), (15, 5), (100, 10)] {
            depth.add(start, latency);
        }
        let found = depth.finish();
        assert_eq!((found.busy_ns, found.max), (30, 3));
        assert!((found.mean_while_busy - 37.0 / 30.0).abs() < 1e-12);
        depth.add(u64::MAX, u64::MAX);
        for _ in 0..QUEUE_DEPTH_MAX + 10 {
            depth.add(200, 50);
        }
        assert_eq!(depth.finish().max, QUEUE_DEPTH_MAX as u64);
    }
}
