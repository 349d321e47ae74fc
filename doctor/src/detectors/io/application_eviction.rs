//! `eviction.by-application-threads`: threads that should answer clients free room in the cache instead.
//!
//! WiredTiger has them help when the cache is more than 95 % full (`eviction_trigger`) or more than 20 %
//! dirty (`eviction_dirty_trigger`), because its own eviction threads do not keep up.

use seekscope_run::Finding;
use seekscope_run::units::{format_count, whole};

use super::{Detector, cache_too_small, checkpoint, disk_limited, engine_option, saved_per_hour};
use crate::answers::{CACHE_BYTES_MAX, DIRTY_BYTES};
use crate::evidence::Series;
use crate::evidence::waiting::EVICTING_US;
use crate::ranking::NOTICEABLE_S_PER_HOUR;
use crate::wording::{duration, percent};
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &["eviction.by-application-threads"],
    detect,
};

pub(in crate::detectors) const PAGES: [&str; 3] = [
    "wiredTiger.cache.pages evicted by application threads",
    "wiredTiger.cache.eviction - pages evicted by application threads",
    "wiredTiger.cache.page evict attempts by application threads",
];
/// Fewest evicted pages; fewer may be a single bad moment.
const PAGES_MIN: f64 = 100.0;
/// Share of the cache: with less of it dirty on average, room is made by dropping clean pages so that others
/// can be read.
const CLEAN_SHARE: f64 = 0.05;

fn detect(evidence: &Evidence<'_>, answers: &Answers) -> Vec<Finding> {
    judge(evidence, answers).into_iter().collect()
}

/// Returns the time that application threads spent evicting, s per s.
pub(super) fn evicting_s_per_s(evidence: &Evidence<'_>) -> Option<f64> {
    Some(evidence.status_rate(&EVICTING_US)? / 1e6)
}

/// Returns whether they make room for what they read. If so, the cache is too small, and more eviction threads would
/// only drop sooner what is read again.
pub(super) fn is_for_reads(evidence: &Evidence<'_>, answers: &Answers) -> bool {
    let dirty = evidence.status(&[DIRTY_BYTES]).and_then(Series::mean);
    let most = evidence.status(&[CACHE_BYTES_MAX]).and_then(Series::last);
    let clean = dirty
        .zip(most)
        .is_some_and(|(dirty, most)| dirty < CLEAN_SHARE * most);
    clean && !(cache_too_small::DETECTOR.detect)(evidence, answers).is_empty()
}

fn judge(evidence: &Evidence<'_>, answers: &Answers) -> Option<Finding> {
    let all_s_per_s = evicting_s_per_s(evidence)?;
    // While long checkpoints run, eviction stalls because of them.
    let saved = checkpoint::beyond(evidence, answers, &EVICTING_US)?;
    let pages = evidence.status(&PAGES).and_then(Series::increase);
    if saved < NOTICEABLE_S_PER_HOUR
        || pages.is_some_and(|pages| pages < PAGES_MIN)
        || is_for_reads(evidence, answers)
        // Which says how long they do; more threads would wait for the limit, too.
        || disk_limited::limits_writes(evidence, answers)
    {
        return None;
    }
    let mut sentences = vec![format!(
        "Application threads together spent {} of each second evicting (serverStatus).",
        duration(all_s_per_s)
    )];
    sentences.extend(pages.map(|pages| {
        format!(
            "They evicted {} pages (serverStatus).",
            format_count(whole(pages))
        )
    }));
    let gauge = |name: &str| evidence.status(&[name]).and_then(|series| series.mean());
    let most = gauge(CACHE_BYTES_MAX);
    let filled = gauge("wiredTiger.cache.bytes currently in the cache").zip(most);
    sentences.extend(filled.map(|(used, most)| {
        format!(
            "The cache was {} full on average (serverStatus).",
            percent(used / most.max(1.0))
        )
    }));
    Some(Finding {
        id: "eviction.by-application-threads".into(),
        title: format!(
            "Application threads make room in the cache themselves: {} per hour",
            duration(saved)
        ),
        evidence: sentences,
        gain: Some(saved_per_hour(saved, saved * 0.2, saved)),
        saves_s_per_hour: Some(saved),
        confidence: "medium".into(),
        risk: "More eviction threads take CPU time; on a disk that is full they change nothing."
            .into(),
        command: engine_option(evidence, "eviction=(threads_min=4,threads_max=8)"),
        ..Finding::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Recording;

    #[test]
    fn ill() {
        let mut recording = Recording::new();
        recording.rising(EVICTING_US[0], 250_000.0);
        recording.rising(PAGES[0], 90.0);
        let found = recording.findings(&DETECTOR);
        let title = "Application threads make room in the cache themselves: 15 min per hour";
        assert_eq!(found[0].title, title);
        assert_eq!(found[0].saves_s_per_hour, Some(900.0));
    }

    #[test]
    fn healthy() {
        let mut recording = Recording::new();
        recording.rising(EVICTING_US[0], 1000.0);
        recording.rising(PAGES[0], 90.0);
        assert_eq!(recording.findings(&DETECTOR), []);
        assert_eq!(Recording::new().findings(&DETECTOR), []);
    }

    /// Records one checkpoint that the server counts, which makes operations take five times as long.
    fn with_checkpoint(from_s: f64, to_s: f64) -> Recording {
        let mut recording = Recording::new();
        let total = "wiredTiger.transaction.transaction checkpoint total time (msecs)";
        recording.values("serverStatus", total, |s| {
            if s < to_s {
                0.0
            } else {
                (to_s - from_s) * 1000.0
            }
        });
        recording.rising("opLatencies.writes.ops", 100.0);
        recording.values("serverStatus", "opLatencies.writes.latency", |s| {
            s * 1e5 + (s - from_s).clamp(0.0, to_s - from_s) * 4e5
        });
        recording
    }

    #[test]
    fn what_checkpoints_bring_about_is_theirs() {
        let mut recording = with_checkpoint(20.0, 40.0);
        recording.values("serverStatus", EVICTING_US[0], |s| {
            s * 1e5 + (s - 20.0).clamp(0.0, 20.0) * 5e5
        });
        let saved = recording.findings(&DETECTOR)[0].saves_s_per_hour.unwrap();
        assert!((saved / 360.0 - 1.0).abs() < 0.01, "{saved}");
        let mut evenly = with_checkpoint(20.0, 40.0);
        evenly.rising(EVICTING_US[0], 250_000.0);
        let saved = evenly.findings(&DETECTOR)[0].saves_s_per_hour.unwrap();
        assert!((saved / 900.0 - 1.0).abs() < 0.01, "{saved}");
    }

    /// No pause is left between them: all waiting is theirs, and none is lost.
    #[test]
    fn without_a_pause_between_checkpoints() {
        let mut recording = with_checkpoint(2.0, 59.0);
        recording.rising(EVICTING_US[0], 500_000.0);
        assert_eq!(recording.findings(&DETECTOR), []);
        let diagnosis = recording.diagnosis();
        let ids: Vec<&str> = diagnosis.findings.iter().map(|f| f.id.as_str()).collect();
        assert!(ids.contains(&"checkpoint.long"), "{ids:?}");
    }

    #[test]
    fn room_for_reads_is_a_matter_of_the_cache() {
        let mut recording = Recording::new();
        recording.rising(EVICTING_US[0], 250_000.0);
        let read = "wiredTiger.cache.application threads page read from disk to cache";
        recording.rising(&format!("{read} time (usecs)"), 500_000.0);
        recording.rising(&format!("{read} count"), 500.0);
        recording.rising("wiredTiger.block-manager.bytes read", 5e7);
        recording.steady(CACHE_BYTES_MAX, 1e8);
        recording
            .examined()
            .collections
            .push(seekscope_run::CollectionFacts {
                storage_bytes: 1_000_000_000,
                data_bytes: 3_000_000_000,
                ..seekscope_run::CollectionFacts::default()
            });
        assert_eq!(
            recording.findings(&DETECTOR).len(),
            1,
            "nobody knows what is dirty"
        );
        recording.steady(DIRTY_BYTES, 1e6);
        assert_eq!(recording.findings(&DETECTOR), []);
        recording.examined().collections.clear();
        assert_eq!(recording.findings(&DETECTOR).len(), 1, "of which size?");
    }
}
