//! Chooses the next block. Everything random is drawn from a seed, without modulo bias.

use std::ops::Range;

use seekscope_run::JobFacts;
use seekscope_stats::{SplitMix64, shuffled};

use crate::job::Job;

/// The most places for which an order that visits each place once is kept in memory; with more,
/// places are drawn independently, and few are drawn twice.
const SHUFFLED_MAX: u64 = 1 << 22;

/// The next access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Access {
    /// Offset from the start of the file, bytes.
    pub(crate) offset: u64,
    pub(crate) is_write: bool,
}

/// The accesses of one thread.
#[derive(Debug)]
pub(crate) struct Offsets {
    order: Order,
    random: SplitMix64,
    /// Values below this, in units of 2^-64, make reads; `None` if all accesses are alike.
    read_threshold: Option<u64>,
    all_writes: bool,
    start: u64,
    block_bytes: u64,
    /// Number of accesses that may still be made.
    left: u64,
}

#[derive(Debug)]
enum Order {
    Sequential {
        next: u64,
        first: u64,
        blocks: u64,
    },
    Random {
        blocks: u64,
    },
    /// Runs of adjacent blocks.
    Runs {
        starts: Starts,
        run: u64,
        at: u64,
        left: u64,
    },
}

/// Where runs begin, in units of runs.
#[derive(Debug)]
enum Starts {
    /// Drawn from this many.
    Drawn(u64),
    /// Taken from a given order, each once.
    Listed(std::vec::IntoIter<u64>),
}

impl Offsets {
    /// Returns the accesses of thread `number` of `job` on a file of `file_bytes`. Sequential
    /// threads have separate parts of the region; random threads share all of it.
    pub(crate) fn new(job: &Job, file_bytes: u64, number: u32) -> Self {
        let facts = &job.facts;
        let region = job.region(file_bytes);
        let threads = u64::from(facts.threads);
        let blocks = (region.end - region.start) / facts.block_bytes;
        let part = part_of(blocks, threads, number.into());
        let seed = thread_seed(job.seed, number);
        let order = order(job, blocks, &part, number);
        let once = if job.once && !facts.access.is_random() {
            part.end - part.start
        } else {
            u64::MAX
        };
        let limit = job.operations_max.map_or(u64::MAX, |max| {
            let share = part_of(max, threads, number.into());
            share.end - share.start
        });
        Self {
            order,
            random: SplitMix64::new(seed),
            read_threshold: read_threshold(facts),
            all_writes: facts.access.writes(),
            start: region.start,
            block_bytes: facts.block_bytes,
            left: once.min(limit),
        }
    }

    /// Returns the next access; `None` when the job is done.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Access> {
        if self.left == 0 {
            return None;
        }
        let block = self.next_block()?;
        self.left -= 1;
        let is_write = match self.read_threshold {
            None => self.all_writes,
            Some(threshold) => self.random.next_u64() >= threshold,
        };
        Some(Access {
            offset: self.start + block * self.block_bytes,
            is_write,
        })
    }

    #[inline]
    fn next_block(&mut self) -> Option<u64> {
        match &mut self.order {
            Order::Random { blocks } => Some(self.random.below(*blocks)),
            Order::Sequential {
                next,
                first,
                blocks,
            } => {
                let block = *first + *next;
                *next = if *next + 1 == *blocks { 0 } else { *next + 1 };
                Some(block)
            }
            Order::Runs {
                starts,
                run,
                at,
                left,
            } => {
                if *left == 0 {
                    let start = match starts {
                        Starts::Drawn(units) => self.random.below(*units),
                        Starts::Listed(units) => units.next()?,
                    };
                    (*at, *left) = (start * *run, *run);
                }
                *left -= 1;
                *at += 1;
                Some(*at - 1)
            }
        }
    }
}

fn order(job: &Job, blocks: u64, part: &Range<u64>, number: u32) -> Order {
    let facts = &job.facts;
    let run = facts.run_blocks.unwrap_or(1).min(blocks);
    let units = blocks / run;
    if !facts.access.is_random() {
        return Order::Sequential {
            next: 0,
            first: part.start,
            blocks: part.end - part.start,
        };
    }
    let starts = if job.once && units <= SHUFFLED_MAX {
        // All threads know the same order, and each takes its share of it.
        let all = shuffled::distinct(units, units, job.seed);
        let [number, threads] = [number, facts.threads].map(|n| usize::try_from(n).unwrap_or(1));
        let mine: Vec<u64> = all.into_iter().skip(number).step_by(threads).collect();
        Starts::Listed(mine.into_iter())
    } else if run == 1 {
        return Order::Random { blocks };
    } else {
        Starts::Drawn(units)
    };
    Order::Runs {
        starts,
        run,
        at: 0,
        left: 0,
    }
}

/// Returns share `number` of `total` things divided among `threads`, as a range; the shares differ
/// by at most one.
fn part_of(total: u64, threads: u64, number: u64) -> Range<u64> {
    let at = |n: u64| {
        let product = u128::from(total) * u128::from(n) / u128::from(threads.max(1));
        u64::try_from(product).unwrap_or(u64::MAX)
    };
    at(number)..at(number + 1)
}

/// Returns a seed for each thread, so that no two draw the same numbers.
pub(crate) fn thread_seed(seed: u64, number: u32) -> u64 {
    SplitMix64::new(seed ^ (u64::from(number) << 32)).next_u64()
}

fn read_threshold(facts: &JobFacts) -> Option<u64> {
    if !facts.access.writes() || facts.read_share <= 0.0 {
        return None;
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of 2^64; 1.0 saturates"
    )]
    let threshold = (facts.read_share * 2f64.powi(64)) as u64;
    Some(threshold)
}

#[cfg(test)]
mod tests {
    use super::*;
    use seekscope_run::{AccessKind, EngineKind};
    use std::collections::HashSet;

    fn job(access: AccessKind) -> Job {
        Job::new(access, EngineKind::Null)
    }

    fn take(job: &Job, number: u32, count: usize) -> Vec<Access> {
        let mut offsets = Offsets::new(job, 64 * 4096, number);
        std::iter::from_fn(|| offsets.next()).take(count).collect()
    }

    #[test]
    fn in_order_each_thread_goes_through_its_part() {
        let mut job = job(AccessKind::Read);
        job.facts.threads = 2;
        let second: Vec<u64> = take(&job, 1, 40).iter().map(|a| a.offset / 4096).collect();
        assert_eq!(second[..3], [32, 33, 34]);
        assert_eq!(
            second[31..34],
            [63, 32, 33],
            "starts again at its own beginning"
        );
        job.once = true;
        assert_eq!(take(&job, 0, 100).len(), 32);
    }

    #[test]
    fn once_visits_each_block_once_over_all_threads() {
        for run in [1, 4] {
            let mut job = job(AccessKind::RandRead);
            (job.once, job.facts.threads, job.facts.run_blocks) = (true, 3, Some(run));
            let all: Vec<u64> = (0..3)
                .flat_map(|n| take(&job, n, 100))
                .map(|a| a.offset / 4096)
                .collect();
            assert_eq!(
                (all.len(), all.iter().collect::<HashSet<_>>().len()),
                (64, 64)
            );
            let adjacent = all.windows(2).filter(|w| w[1] == w[0] + 1).count();
            assert!(
                adjacent
                    >= 64 / usize::try_from(run).unwrap() * (usize::try_from(run).unwrap() - 1)
            );
        }
    }

    #[test]
    fn random_is_seeded_uniform_and_inside_the_region() {
        let mut job = job(AccessKind::RandRead);
        job.region = Some(8 * 4096..24 * 4096);
        let drawn = take(&job, 0, 16_000);
        assert_eq!(drawn, take(&job, 0, 16_000));
        assert_ne!(drawn, take(&job, 1, 16_000));
        let mut counts = [0u32; 64];
        for access in drawn {
            counts[usize::try_from(access.offset / 4096).unwrap()] += 1;
        }
        // Five standard deviations of binomial(16000, 1/16) are 153.
        assert!(
            counts[8..24].iter().all(|c| c.abs_diff(1000) < 160),
            "{counts:?}"
        );
        assert_eq!(counts[8..24].iter().sum::<u32>(), 16_000);
    }

    #[test]
    fn reads_and_writes_come_in_the_share_asked_for() {
        let mut mixed = job(AccessKind::RandRw);
        mixed.facts.read_share = 0.7;
        let writes = take(&mixed, 0, 10_000)
            .iter()
            .filter(|a| a.is_write)
            .count();
        assert!(writes.abs_diff(3_000) < 230, "{writes}");
        assert!(
            take(&job(AccessKind::RandWrite), 0, 100)
                .iter()
                .all(|a| a.is_write)
        );
        assert!(
            take(&job(AccessKind::Read), 0, 100)
                .iter()
                .all(|a| !a.is_write)
        );
    }

    #[test]
    fn stops_after_the_number_asked_for() {
        let mut job = job(AccessKind::RandRead);
        (job.operations_max, job.facts.threads) = (Some(10), 3);
        let counts: Vec<usize> = (0..3).map(|n| take(&job, n, 100).len()).collect();
        assert_eq!(counts.iter().sum::<usize>(), 10);
    }
}
