//! Puts events that arrive in order of completion into order of start.

use seekscope_run::IoEvent;

/// Holds up to twice `window` events. When full, it sorts them (stable, so ties stay in order of
/// arrival; nearly sorted input makes that cheap) and hands out the earlier half. An event that
/// arrives more than `window` places after a later one comes out late, and is counted.
pub(crate) struct Reorder {
    window: usize,
    held: Vec<IoEvent>,
    handed_out_to_ns: u64,
    late: u64,
}

impl Reorder {
    pub(crate) fn new(window: usize) -> Self {
        Self {
            window,
            held: Vec::new(),
            handed_out_to_ns: 0,
            late: 0,
        }
    }

    /// Takes an event; returns those that are due, mostly none.
    pub(crate) fn push(&mut self, event: IoEvent) -> Vec<IoEvent> {
        self.held.push(event);
        if self.held.len() <= self.window.saturating_mul(2) {
            return Vec::new();
        }
        self.hand_out(self.window + 1)
    }

    /// Returns all that are left.
    pub(crate) fn finish(&mut self) -> Vec<IoEvent> {
        self.hand_out(self.held.len())
    }

    fn hand_out(&mut self, count: usize) -> Vec<IoEvent> {
        // Sorting moves the times and places of events, which are much smaller than events.
        let places = self.held.iter().zip(0_u32..);
        let mut order: Vec<(u64, u32)> = places.map(|(event, place)| (event.t_ns, place)).collect();
        order.sort();
        let event = |&(_, place): &(u64, u32)| self.held[place as usize];
        let (due, kept) = order.split_at(count.min(order.len()));
        let due: Vec<IoEvent> = due.iter().map(event).collect();
        self.held = kept.iter().map(event).collect();
        let from = self.handed_out_to_ns;
        self.late += due.partition_point(|e| e.t_ns < from) as u64;
        self.handed_out_to_ns = from.max(due.last().map_or(0, |e| e.t_ns));
        due
    }

    pub(crate) fn late(&self) -> u64 {
        self.late
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::testing::read;

    fn sort(window: usize, starts: &[u64]) -> (Vec<u64>, u64) {
        let mut reorder = Reorder::new(window);
        let mut out = Vec::new();
        for &t_ns in starts {
            out.extend(reorder.push(read(t_ns, 1, 0, 1)));
        }
        out.extend(reorder.finish());
        (out.iter().map(|e| e.t_ns).collect(), reorder.late())
    }

    #[test]
    fn order_is_restored_within_the_window() {
        assert_eq!(
            sort(3, &[2, 1, 4, 3, 6, 5, 8, 7, 9]).0,
            (1..=9).collect::<Vec<_>>()
        );
        assert_eq!(sort(3, &[2, 1, 4, 3, 6, 5, 8, 7, 9]).1, 0);
        assert_eq!(sort(0, &[2, 1, 3]), (vec![2, 1, 3], 1));
        let (out, late) = sort(2, &[10, 11, 12, 13, 14, 15, 1]);
        assert_eq!((out.len(), late), (7, 1));
    }
}
