//! `settings.worth-tuning`: the storage engine shows symptoms that its settings can treat.

use seekscope_run::Finding;

use super::Detector;
use crate::detectors::io::EVICTED_BY_APPLICATION;
use crate::wording::{capitalised, duration, listed, percent, shell_quoted};
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &["settings.worth-tuning"],
    detect,
};

/// Pages per second that threads with a client waiting had to evict: this should not happen at all.
const EVICTED_PER_S_MIN: f64 = 10.0;
/// Dirty share of the cache: from 20 % on (`eviction_dirty_trigger`) application threads have to help.
const DIRTY_SHARE_MIN: f64 = 0.15;
/// Share of the time with a checkpoint running: with the default of 60 s from one to the next it should be
/// small.
const CHECKPOINT_SHARE_MIN: f64 = 0.5;
/// Fewest checkpoints from which a share is computed.
const CHECKPOINTS_MIN: usize = 2;

/// A knob group of `tune`, and the reason to tune it.
struct Symptom {
    knobs: &'static str,
    /// What they have to do with.
    seen: &'static str,
    sentence: String,
}

fn detect(evidence: &Evidence<'_>, answers: &Answers) -> Vec<Finding> {
    let symptoms: Vec<Symptom> = [
        eviction(evidence),
        dirty(evidence),
        checkpoints(evidence, answers),
    ]
    .into_iter()
    .flatten()
    .collect();
    if symptoms.is_empty() {
        return Vec::new();
    }
    let joined = |of: fn(&Symptom) -> &'static str| {
        let words: Vec<&str> = symptoms.iter().map(of).collect();
        listed(&words)
    };
    let knobs = capitalised(&joined(|symptom| symptom.knobs));
    let seen = joined(|symptom| symptom.seen);
    vec![Finding {
        id: "settings.worth-tuning".into(),
        title: format!("{knobs} may limit this server: {seen}"),
        evidence: symptoms.into_iter().map(|symptom| symptom.sentence).collect(),
        confidence: "low".into(),
        risk: "What a setting gains here is not known before it was tried; `tune` tries on a test server, \
               proves it in a duel, and puts everything back."
            .into(),
        command: format!(
            "seekscope tune {} --workload ycsb:a --budget 45m",
            shell_quoted("mongodb://TEST-SERVER/")
        ),
        ..Finding::default()
    }]
}

fn eviction(evidence: &Evidence<'_>) -> Option<Symptom> {
    let evicted = evidence.status_rate(&EVICTED_BY_APPLICATION);
    let per_s = evicted.filter(|rate| *rate >= EVICTED_PER_S_MIN)?;
    Some(Symptom {
        knobs: "eviction settings",
        seen: "application threads evict pages themselves",
        sentence: format!(
            "Application threads evicted {per_s:.0} pages per second themselves (serverStatus)."
        ),
    })
}

fn dirty(evidence: &Evidence<'_>) -> Option<Symptom> {
    let get = |name| evidence.counters.get("serverStatus", name);
    let dirty = get("wiredTiger.cache.tracked dirty bytes in the cache")?.mean()?;
    let cache = get("wiredTiger.cache.maximum bytes configured")?.last()?;
    let share = dirty / cache;
    (cache > 0.0 && share >= DIRTY_SHARE_MIN).then(|| Symptom {
        knobs: "the limits of dirty data",
        seen: "much of the cache is dirty",
        sentence: format!(
            "{} of the cache were dirty on average; from 20 % on operations are made to wait \
             (serverStatus).",
            percent(share)
        ),
    })
}

fn checkpoints(evidence: &Evidence<'_>, answers: &Answers) -> Option<Symptom> {
    let checkpoints = answers.checkpoints.as_ref()?;
    let list = &checkpoints.checkpoints;
    let observed_s = checkpoints.covered_s(evidence)?;
    let busy_ns: u64 = list
        .iter()
        .map(|c| c.ended_ns.saturating_sub(c.started_ns))
        .fold(0, u64::saturating_add);
    let share = busy_ns as f64 / 1e9 / observed_s;
    (list.len() >= CHECKPOINTS_MIN && share >= CHECKPOINT_SHARE_MIN).then(|| Symptom {
        knobs: "the time between checkpoints",
        seen: "checkpoints run most of the time",
        sentence: format!(
            "A checkpoint was under way {} of the time, {} in the median ({}).",
            percent(share.min(1.0)),
            duration(checkpoints.median_s),
            checkpoints.source
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Recording;

    const EVICTED: &str = "wiredTiger.cache.pages evicted by application threads";
    const DIRTY: &str = "wiredTiger.cache.tracked dirty bytes in the cache";
    const CACHE: &str = "wiredTiger.cache.maximum bytes configured";

    #[test]
    fn ill() {
        let mut recording = Recording::new();
        recording.rising(EVICTED, 500.0);
        recording.steady(DIRTY, 19e8);
        recording.steady(CACHE, 1e10);
        let found = recording.findings(&DETECTOR);
        assert_eq!(
            found[0].title,
            "Eviction settings and the limits of dirty data may limit this server: application threads evict pages \
             themselves and much of the cache is dirty"
        );
        assert!(found[0].command.starts_with("seekscope tune "));
        let mut newer = Recording::new();
        newer.rising(
            "wiredTiger.cache.page evict attempts by application threads",
            500.0,
        );
        assert_eq!(newer.findings(&DETECTOR).len(), 1, "MongoDB 8.0");
    }

    #[test]
    fn healthy() {
        let mut recording = Recording::new();
        assert_eq!(recording.findings(&DETECTOR), []);
        recording.rising(EVICTED, 0.1);
        recording.steady(DIRTY, 4e8);
        recording.steady(CACHE, 1e10);
        assert_eq!(recording.findings(&DETECTOR), []);
    }
}
