//! One cell of the table: an activity on a disk, with this much memory.

use std::fmt;

use anyhow::Result;
use seekscope_bench::gains::{Activity, Conditions, Pairs};
use seekscope_stats::{SplitMix64, median};

use crate::trial::{Bed, Trial};

/// The memory limit of a trial that finds out how much the processes need: none in effect.
const NO_LIMIT_BYTES: u64 = 1 << 40;
/// A margin that is added to the memory limit.
const MARGIN_BYTES: u64 = 4 << 20;
/// How much slower a scan may be with prefetch.
const SLOWER_MAX: f64 = 1.05;
/// How far what a run says of its gain may be from what was measured.
const STATED_OFF_MAX: f64 = 0.25;
/// A trial that takes at least this long, s, has time for a pause, so the run should say something.
const LONG_S: f64 = 6.0;

/// Page cache for this much of the leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Memory {
    All,
    Percent(u64, &'static str),
}

impl Memory {
    pub(crate) const ALL: [Self; 4] = [
        Self::All,
        Self::Percent(50, "50 %"),
        Self::Percent(25, "25 %"),
        Self::Percent(10, "10 %"),
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Percent(_, name) => name,
        }
    }
}

/// Pairs of trials without and with prefetch.
pub(crate) struct Cell {
    conditions: Conditions,
    memory: Memory,
    activity: Activity,
    trials: Vec<[Trial; 2]>,
}

impl Cell {
    pub(crate) const HEADER: &'static str = "disk       memory  activity     without s                     with s                        times faster \
        (95 %)                    said    CPU share without, with  page cache MB";

    /// Which of a pair goes first is drawn, so that drift within it cancels.
    pub(crate) async fn measure(
        bed: &mut Bed,
        conditions: Conditions,
        memory: Memory,
        activity: Activity,
        leaf_bytes: u64,
        pairs: u32,
    ) -> Result<Self> {
        let limits = match memory {
            Memory::All => [None; 2],
            Memory::Percent(percent, _) => {
                let cache_bytes = leaf_bytes / 100 * percent;
                needs(bed, conditions, activity, cache_bytes).await?
            }
        };
        let mut random = SplitMix64::new(1);
        let mut trials = Vec::new();
        for _ in 0..pairs {
            let mut pair = [Trial::default(); 2];
            let with_first = random.below(2) == 1;
            for prefetching in [with_first, !with_first] {
                let limited = Conditions {
                    memory_bytes: limits[usize::from(prefetching)],
                    ..conditions
                };
                let trial = bed.trial(limited, activity, prefetching).await?;
                pair[usize::from(prefetching)] = trial;
            }
            trials.push(pair);
        }
        Ok(Self {
            conditions,
            memory,
            activity,
            trials,
        })
    }

    /// How many of its conditions do not hold.
    pub(crate) fn missed(&self) -> u32 {
        [self.is_slower(), self.is_misjudged(), self.is_silent()]
            .map(u32::from)
            .iter()
            .sum()
    }

    /// Most runs say nothing of their gain, so that nothing of it can be wrong.
    pub(crate) fn says_nothing(&self) -> bool {
        self.stated().is_none()
    }

    /// The same where they could have said something. That it cannot help is said, too.
    fn is_silent(&self) -> bool {
        let gave_up = self.trials.iter().filter(|pair| pair[1].gave_up).count();
        let is_long = self.middle(1, |trial| trial.whole_s) >= LONG_S;
        self.says_nothing() && is_long && gave_up * 2 <= self.trials.len()
    }

    fn is_slower(&self) -> bool {
        self.times_faster()
            .is_some_and(|ratio| ratio < 1.0 / SLOWER_MAX)
    }

    fn is_misjudged(&self) -> bool {
        let off = self.stated().zip(self.times_faster());
        off.is_some_and(|(stated, measured)| (stated / measured - 1.0).abs() > STATED_OFF_MAX)
    }

    fn pairs(&self) -> Pairs {
        let mut pairs = Pairs::default();
        for [without, with] in &self.trials {
            // What a user waits: finding the leaves, and what is read before the scan begins, count.
            pairs.push(without.whole_s, with.whole_s);
        }
        pairs
    }

    fn times_faster(&self) -> Option<f64> {
        let [without, with] = [0, 1].map(|which| self.middle(which, |trial| trial.whole_s));
        (with > 0.0).then_some(without / with)
    }

    /// What the runs said, where most of them said something.
    fn stated(&self) -> Option<f64> {
        let said: Vec<f64> = self
            .trials
            .iter()
            .filter_map(|pair| pair[1].stated)
            .collect();
        (said.len() * 2 > self.trials.len()).then(|| median(&said))?
    }

    fn middle(&self, which: usize, of: fn(&Trial) -> f64) -> f64 {
        let values: Vec<f64> = self.trials.iter().map(|pair| of(&pair[which])).collect();
        median(&values).unwrap_or(0.0)
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cpu_share = |trial: &Trial| trial.cpu_s / trial.whole_s;
        let cache_mb = |trial: &Trial| trial.charged.cache_bytes as f64 / 1e6;
        write!(
            f,
            "{:9}  {:6}  {:11}  {}  {}   {:4.2}, {:4.2}   {:5.1}, {:5.1}  (begins {:.2} s later){}{}{}",
            self.conditions.disk.name(),
            self.memory.name(),
            self.activity.name(),
            self.pairs(),
            self.stated()
                .map_or("  --".into(), |ratio| format!("{ratio:6.2}")),
            self.middle(0, cpu_share),
            self.middle(1, cpu_share),
            self.middle(0, cache_mb),
            self.middle(1, cache_mb),
            self.middle(1, |trial| trial.whole_s - trial.seconds),
            if self.is_slower() { "  SLOWER" } else { "" },
            if self.is_misjudged() {
                "  MISJUDGED"
            } else {
                ""
            },
            if self.is_silent() { "  SILENT" } else { "" },
        )
    }
}

/// Limits without and with prefetch that leave this much page cache.
async fn needs(
    bed: &mut Bed,
    conditions: Conditions,
    activity: Activity,
    cache_bytes: u64,
) -> Result<[Option<u64>; 2]> {
    let conditions = Conditions {
        memory_bytes: Some(NO_LIMIT_BYTES),
        ..conditions
    };
    let mut limits = [None; 2];
    for (prefetching, limit) in [false, true].into_iter().zip(&mut limits) {
        let trial = bed.trial(conditions, activity, prefetching).await?;
        *limit = Some(cache_bytes + trial.charged.own_bytes + MARGIN_BYTES);
    }
    Ok(limits)
}
