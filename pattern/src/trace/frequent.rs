//! The most frequent of many numbers, in bounded space.

use super::hash::NumberMap;

/// The most different numbers counted at once.
const KEPT_MAX: usize = 256;

/// Uses Misra and Gries, "Finding repeated elements" (1982): counts are exact while there were at
/// most 256 different numbers, and afterwards too low by at most 1/257 of everything that was
/// added.
#[derive(Debug, Clone, Default)]
pub(crate) struct Frequent {
    counts: NumberMap<i64, u64>,
    top: Option<(i64, u64)>,
}

impl Frequent {
    pub(crate) fn add(&mut self, value: i64) {
        if let Some(count) = self.counts.get_mut(&value) {
            *count += 1;
            let count = *count;
            if self.top.is_none_or(|(_, most)| count > most) {
                self.top = Some((value, count));
            }
        } else if self.counts.len() < KEPT_MAX {
            self.counts.insert(value, 1);
            self.top = self.top.or(Some((value, 1)));
        } else {
            self.counts.retain(|_, count| {
                *count -= 1;
                *count > 0
            });
            self.top = self
                .top
                .map(|(value, count)| (value, count - 1))
                .filter(|&(_, count)| count > 0);
        }
    }

    /// Returns the most frequent number; of several, the one that became so first.
    pub(crate) fn top(&self) -> Option<i64> {
        self.top.map(|(value, _)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_majority_survives_any_noise() {
        let mut frequent = Frequent::default();
        assert_eq!(frequent.top(), None);
        for i in 0..10_000 {
            frequent.add(if i % 3 == 0 { 42 } else { 1_000_000 + i });
            assert!(frequent.counts.len() <= KEPT_MAX);
        }
        assert_eq!(frequent.top(), Some(42));
        let count = frequent.counts[&42];
        assert!(3334 - count <= 10_000 / 257, "{count}");
    }
}
