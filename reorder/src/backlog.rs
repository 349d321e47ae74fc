//! Decides whether catching up converges: each round applies what arrived during the one before.

use crate::CaughtUp;

/// Fewest rounds on which a verdict is based; all were no shorter than the shortest before.
const ROUNDS: u32 = 4;
/// Shortest total time of these rounds; in them more must have been applied than arrived.
const LONG_ENOUGH_S: f64 = 30.0;
/// A round counts as shorter if it took less than this share.
const SHORTER_SHARE: f64 = 0.95;

/// The verdict on a round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Outlook {
    /// What is left takes no longer than writers can be stopped for, or cannot be reduced.
    Last,
    /// Another round is worthwhile.
    Goes,
    /// Changes arrive as fast as they are applied, per second.
    TooFast { came_per_s: f64, changes_per_s: f64 },
}

/// The rounds since the last one that was shorter than all before.
#[derive(Debug)]
pub(crate) struct Backlog {
    shortest_s: f64,
    rounds: u32,
    seconds: f64,
    changes: u64,
    came: u64,
    smallest: bool,
}

impl Backlog {
    pub(crate) fn new() -> Self {
        Self {
            shortest_s: f64::INFINITY,
            rounds: 0,
            seconds: 0.0,
            changes: 0,
            came: 0,
            smallest: true,
        }
    }

    /// Returns the verdict after a round; `smallest`: it took one command of each kind, and could not take
    /// fewer.
    pub(crate) fn after(&mut self, round: &CaughtUp, smallest: bool) -> Outlook {
        if round.is_last() {
            return Outlook::Last;
        }
        if round.seconds < SHORTER_SHARE * self.shortest_s {
            *self = Self {
                shortest_s: round.seconds,
                ..Self::new()
            };
            return Outlook::Goes;
        }
        self.rounds += 1;
        self.seconds += round.seconds;
        self.changes += round.changes;
        self.came += round.came;
        self.smallest &= smallest;
        if self.rounds < ROUNDS {
            Outlook::Goes
        } else if self.smallest {
            Outlook::Last
        } else if self.seconds >= LONG_ENOUGH_S && self.came >= self.changes {
            Outlook::TooFast {
                came_per_s: self.came as f64 / self.seconds,
                changes_per_s: self.changes as f64 / self.seconds,
            }
        } else {
            Outlook::Goes
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(seconds: f64, changes: u64, came: u64) -> CaughtUp {
        CaughtUp {
            round: 1,
            changes,
            came,
            seconds,
        }
    }

    /// Returns the verdict on each of these rounds, up to the first that ends it.
    fn outlooks(rounds: impl IntoIterator<Item = CaughtUp>, smallest: bool) -> Vec<Outlook> {
        let mut backlog = Backlog::new();
        let mut found = Vec::new();
        for round in rounds {
            found.push(backlog.after(&round, smallest));
            if found.last() != Some(&Outlook::Goes) {
                break;
            }
        }
        found
    }

    #[test]
    fn writers_are_too_fast_only_where_the_backlog_does_not_shrink_for_long() {
        let same = || std::iter::repeat_with(|| round(12.0, 40_000, 44_000)).take(50);
        let found = outlooks(same(), false);
        assert_eq!(found.len(), 5, "the first is the shortest so far");
        let Some(Outlook::TooFast {
            came_per_s,
            changes_per_s,
        }) = found.last()
        else {
            panic!("{found:?}");
        };
        assert!(came_per_s > changes_per_s, "{found:?}");
        // The same in rounds of 2 s has to continue for half a minute.
        let short = std::iter::repeat_with(|| round(2.0, 7_000, 7_500)).take(50);
        assert_eq!(outlooks(short, false).len(), 16);
        // Fewer changes arrive than are applied, in rounds of varying length.
        let uneven = (0..50).map(|n| round(12.0 + f64::from(n % 3), 40_000, 39_000));
        assert!(outlooks(uneven, false).iter().all(|o| *o == Outlook::Goes));
    }

    #[test]
    fn rounds_that_shrink_go_on_to_the_last() {
        let halves = (0..20).map(|n| round(64.0 / f64::from(1 << n), 1_000, 1_500));
        let found = outlooks(halves, false);
        assert_eq!(found.len(), 7, "64 s to 1 s: {found:?}");
        assert_eq!(found.last(), Some(&Outlook::Last));
        assert_eq!(outlooks([round(0.3, 0, 1)], true), [Outlook::Last]);
    }

    /// Three changes a second, while each command waits half a second for the other members.
    #[test]
    fn slow_answers_do_not_make_slow_writers_fast() {
        let slow = std::iter::repeat_with(|| round(1.5, 4, 5)).take(50);
        let found = outlooks(slow, true);
        assert_eq!(found.last(), Some(&Outlook::Last), "{found:?}");
    }
}
