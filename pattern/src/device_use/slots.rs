//! Latencies by the time at which calls began, so that they can be separated once it is known when
//! checkpoints ran.

use seekscope_stats::Quantiles;

use super::Checkpoint;
use crate::EXACT_VALUES_MAX;
use crate::trace::sketch::Sketch;

/// The most slots; their length doubles when there would be more.
const SLOTS_MAX: usize = 4096;
/// Initial length of a slot, ns.
const SLOT_NS: u64 = 10_000_000;

/// Latencies of calls, counted by the slot of time in which each call began.
pub(super) struct Slots {
    started_ns: u64,
    slot_ns: u64,
    /// `None` if no call began in the slot.
    slots: Vec<Option<Box<Sketch>>>,
}

impl Slots {
    /// Returns slots for a trace that started at `started_ns`.
    pub(super) fn new(started_ns: u64) -> Self {
        Self {
            started_ns,
            slot_ns: SLOT_NS,
            slots: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, t_ns: u64, latency_ns: u64) {
        let slot = loop {
            match usize::try_from(self.slot_of(t_ns)) {
                Ok(slot) if slot < SLOTS_MAX => break slot,
                // A time this far off is damaged; it counts in the last slot.
                _ if self.slot_ns > u64::MAX / 2 => break SLOTS_MAX - 1,
                _ => self.halve(),
            }
        };
        if slot >= self.slots.len() {
            self.slots.resize_with(slot + 1, || None);
        }
        self.slots[slot]
            .get_or_insert_with(|| Box::new(Sketch::new(EXACT_VALUES_MAX)))
            .add(latency_ns);
    }

    /// Returns the latencies of the calls that began while one of the checkpoints ran, and those of
    /// the others. A slot that a checkpoint touches counts as part of it.
    pub(super) fn split(&self, checkpoints: &[Checkpoint]) -> (Quantiles, Quantiles) {
        let mut during = Sketch::<6>::new(EXACT_VALUES_MAX);
        let mut otherwise = during.clone();
        for (slot, latencies) in self.taken() {
            let began_ns = self.started_ns.saturating_add(self.slot_ns * slot);
            let first = checkpoints.partition_point(|c| c.ended_ns < began_ns);
            let is_during = checkpoints
                .get(first)
                .is_some_and(|c| c.started_ns < began_ns.saturating_add(self.slot_ns));
            if is_during {
                during.merge(latencies);
            } else {
                otherwise.merge(latencies);
            }
        }
        (during.quantiles(), otherwise.quantiles())
    }

    /// Returns the latency of the longest call that began while the checkpoint ran, ns; 0 if there
    /// was none.
    pub(super) fn longest_during(&self, checkpoint: &Checkpoint) -> u64 {
        let place = |t_ns| usize::try_from(self.slot_of(t_ns)).unwrap_or(usize::MAX);
        let from = place(checkpoint.started_ns);
        let to = place(checkpoint.ended_ns).saturating_add(1);
        let slots = self.slots.get(from..to.min(self.slots.len()));
        let latencies = slots.into_iter().flatten().flatten();
        latencies.map(|l| l.quantiles().max).max().unwrap_or(0)
    }

    fn slot_of(&self, t_ns: u64) -> u64 {
        t_ns.saturating_sub(self.started_ns) / self.slot_ns
    }

    fn taken(&self) -> impl Iterator<Item = (u64, &Sketch)> {
        (0..)
            .zip(&self.slots)
            .filter_map(|(slot, latencies)| Some((slot, latencies.as_deref()?)))
    }

    fn halve(&mut self) {
        self.slot_ns *= 2;
        let mut halved: Vec<Option<Box<Sketch>>> = Vec::new();
        for (slot, latencies) in std::mem::take(&mut self.slots).into_iter().enumerate() {
            if slot % 2 == 0 {
                halved.push(latencies);
                continue;
            }
            if let (Some(last), Some(latencies)) = (halved.last_mut(), latencies) {
                match last {
                    Some(first) => first.merge(&latencies),
                    None => *last = Some(latencies),
                }
            }
        }
        self.slots = halved;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn checkpoint(from_s: u64, to_s: u64) -> Checkpoint {
        Checkpoint {
            started_ns: from_s * S,
            ended_ns: to_s * S,
            ..Checkpoint::default()
        }
    }

    #[test]
    fn calls_are_told_apart_however_long_the_trace() {
        for hours in [0, 20] {
            let mut slots = Slots::new(10 * S);
            for second in 10..70 {
                slots.add(second * S + S / 2, second);
            }
            if hours > 0 {
                slots.add(hours * 3600 * S, 1);
                assert!(slots.slots.len() <= SLOTS_MAX && slots.slot_ns > S);
                continue;
            }
            let checkpoints = [checkpoint(20, 30), checkpoint(50, 51)];
            let (during, otherwise) = slots.split(&checkpoints);
            assert_eq!((during.count, otherwise.count), (11, 49));
            assert_eq!((during.min, during.max), (20, 50));
            assert_eq!(slots.longest_during(&checkpoints[0]), 29);
            assert_eq!(slots.longest_during(&checkpoint(80, 90)), 0);
        }
    }

    #[test]
    fn damaged_times_end() {
        let mut slots = Slots::new(5);
        slots.add(u64::MAX, 7);
        slots.add(0, 8);
        let (during, otherwise) = slots.split(&[]);
        assert_eq!((during.count, otherwise.count), (0, 2));
    }
}
