//! When to ask again which file holds which collection, for commands that watch while collections come and go.
//!
//! A table that comes into use without a name is asked about soon. If that is in vain, as a collection that was created
//! a moment ago is in no catalogue on the disk before the next checkpoint, it is asked about again, but ever more rarely:
//! some tables never get a name. Where nothing lacks a name, it is asked each hour: collections are renamed.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The least time between two questions.
const SOON: Duration = Duration::from_secs(60);
/// The longest wait for tables that were asked about in vain, and on servers that answer slowly.
const LATE: Duration = Duration::from_secs(300);
/// The time after which names are asked for anew where none is lacking.
const ANEW: Duration = Duration::from_secs(3600);
/// Questions in vain that do not make the next one rarer. A checkpoint comes every minute.
const VAIN_MAX: u32 = 2;
/// Questions after which a table that is not used is forgotten.
const IDLE_MAX: u32 = 50;
/// The wait up to [`LATE`], in multiples of how long the last question took, so that 2 % of the time are spent on them.
const REST: u32 = 50;

/// The tables that lack a name, and when names were last asked for.
#[derive(Debug, Default)]
pub struct NameRenewal {
    lacking: HashMap<PathBuf, Lacking>,
    asked: Option<Asked>,
}

#[derive(Debug)]
struct Lacking {
    /// Whether it was used since names were last asked for.
    is_used: bool,
    /// Questions that brought nothing.
    vain: u32,
    /// Questions since it was used.
    idle: u32,
}

#[derive(Debug)]
struct Asked {
    ended: Instant,
    took: Duration,
}

impl NameRenewal {
    /// Notes that a table without a name is used.
    pub fn lacks(&mut self, path: &Path) {
        if let Some(lacking) = self.lacking.get_mut(path) {
            lacking.is_used = true;
            return;
        }
        let new = Lacking {
            is_used: true,
            vain: 0,
            idle: 0,
        };
        self.lacking.insert(path.into(), new);
    }

    /// Notes that names have been asked for from `began` to `ended`.
    pub fn asked(&mut self, began: Instant, ended: Instant) {
        self.lacking.retain(|_, lacking| {
            lacking.idle = if lacking.is_used { 0 } else { lacking.idle + 1 };
            lacking.is_used = false;
            lacking.vain += 1;
            // What is not used any more has a name by now, or is gone.
            lacking.idle <= IDLE_MAX
        });
        let took = ended.saturating_duration_since(began);
        self.asked = Some(Asked { ended, took });
    }

    /// Returns whether to ask again.
    pub fn is_due(&self, now: Instant) -> bool {
        let used = self.lacking.values().filter(|lacking| lacking.is_used);
        // The one that was asked about the least decides.
        let vain = used.map(|lacking| lacking.vain).min();
        let Some(asked) = &self.asked else {
            return vain.is_some();
        };
        let wait = match vain {
            Some(vain) => {
                let rarer = 1 << vain.saturating_sub(VAIN_MAX).min(8);
                (SOON * rarer).max(asked.took * REST).min(LATE)
            }
            None => ANEW.max(asked.took * REST),
        };
        now.saturating_duration_since(asked.ended) >= wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the times, in seconds, at which names are asked for if it is looked each ten seconds and this lacks one.
    fn asked_at(took_s: u64, until_s: u64, lacks: impl Fn(u64) -> Vec<String>) -> Vec<u64> {
        let (begun, mut renewal) = (Instant::now(), NameRenewal::default());
        let at = |s| begun + Duration::from_secs(s);
        renewal.asked(at(0), at(took_s));
        let mut asked_at = Vec::new();
        let mut now_s = took_s;
        while now_s < until_s {
            now_s += 10;
            for name in lacks(now_s) {
                renewal.lacks(Path::new(&name));
            }
            if renewal.is_due(at(now_s)) {
                asked_at.push(now_s);
                renewal.asked(at(now_s), at(now_s + took_s));
            }
        }
        asked_at
    }

    #[test]
    fn each_hour_is_asked_where_nothing_lacks_a_name() {
        assert_eq!(asked_at(0, 10_000, |_| Vec::new()), [3_600, 7_200]);
        let renewal = NameRenewal::default();
        assert!(!renewal.is_due(Instant::now()));
    }

    #[test]
    fn a_new_table_is_asked_about_soon_and_around_each_of_the_next_checkpoints() {
        let used = |now_s| match now_s {
            600.. => vec!["new.wt".to_owned()],
            _ => Vec::new(),
        };
        let asked = asked_at(0, 2_200, used);
        assert_eq!(asked, [600, 660, 720, 840, 1080, 1380, 1680, 1980]);
        // It got its name the second time.
        let used = |now_s| match now_s {
            600..=660 => vec!["new.wt".to_owned()],
            _ => Vec::new(),
        };
        assert_eq!(asked_at(0, 4_000, used), [600, 660]);
    }

    #[test]
    fn tables_that_never_get_a_name_do_not_keep_a_new_one_waiting() {
        let used = |now_s| match now_s {
            5_000..5_020 => vec!["odd.wt".to_owned(), "new.wt".to_owned()],
            _ => vec!["odd.wt".to_owned()],
        };
        let asked = asked_at(0, 6_000, used);
        let without_new = asked_at(0, 6_000, |_| vec!["odd.wt".to_owned()]);
        let times = |asked: Vec<u64>| asked.into_iter().filter(|s| *s > 4_500).collect::<Vec<_>>();
        assert_eq!(times(without_new), [4_740, 5_040, 5_340, 5_640, 5_940]);
        assert_eq!(times(asked), [4_740, 5_000, 5_060, 5_360, 5_660, 5_960]);
    }

    #[test]
    fn tables_that_take_turns_are_not_new_each_time() {
        let used = |now_s: u64| vec![format!("{}.wt", now_s / 60 % 9)];
        let late = asked_at(0, 10_000, used)
            .into_iter()
            .filter(|s| *s > 5_000)
            .count();
        assert!(late <= 5_000 / 300 + 1, "{late}");
    }

    #[test]
    fn a_server_that_answers_slowly_is_asked_rarely_whatever_is_new() {
        let used = |now_s: u64| vec![format!("{now_s}.wt")];
        for (took_s, at_least_s) in [(0, 60), (1, 60), (3, 150), (30, 300)] {
            let asked = asked_at(took_s, 2_000, used);
            let pauses: Vec<u64> = asked.windows(2).map(|pair| pair[1] - pair[0]).collect();
            assert!(pauses.len() > 4, "{pauses:?}");
            let within = at_least_s..at_least_s + took_s + 20;
            assert!(
                pauses.iter().all(|s| within.contains(s)),
                "{took_s}: {pauses:?}"
            );
        }
    }
}
