//! `cache.dirty-limit-reached`: more of the cache is dirty than allowed, and operations wait until enough is
//! written.

use seekscope_run::Finding;

use super::{Detector, checkpoint, disk_limited, engine_option, saved_per_hour};
use crate::answers::{CACHE_BYTES_MAX, DIRTY_BYTES};
use crate::evidence::waiting::{CACHE_ROOM_US, EVICTING_US};
use crate::ranking::NOTICEABLE_S_PER_HOUR;
use crate::wording::{duration, percent};
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &["cache.dirty-limit-reached"],
    detect,
};

/// WiredTiger's default `eviction_dirty_trigger`: beyond it operations have to write before they continue.
const TRIGGER: f64 = 0.2;
/// Share of the limit that counts as at the limit, in samples a second apart.
const NEAR: f64 = 0.95;
/// Smallest share of the samples.
const SHARE_MIN: f64 = 0.05;

fn detect(evidence: &Evidence<'_>, answers: &Answers) -> Vec<Finding> {
    judge(evidence, answers).into_iter().collect()
}

fn judge(evidence: &Evidence<'_>, answers: &Answers) -> Option<Finding> {
    let dirty = evidence.status(&[DIRTY_BYTES])?;
    let cache_bytes = evidence
        .status(&[CACHE_BYTES_MAX])?
        .last()
        .filter(|bytes| *bytes > 0.0)?;
    let trigger = trigger(evidence);
    let share = dirty.share(|bytes| bytes / cache_bytes >= NEAR * trigger);
    if share < SHARE_MIN {
        return None;
    }
    // Waiting while evicting belongs to another finding.
    let waited = checkpoint::beyond(evidence, answers, &CACHE_ROOM_US);
    let evicted = checkpoint::beyond(evidence, answers, &EVICTING_US).unwrap_or(0.0);
    let waited = waited.map(|s_per_hour| (s_per_hour - evicted).max(0.0));
    if waited.is_some_and(|s| s < NOTICEABLE_S_PER_HOUR) {
        return None;
    }
    let most = dirty.max().unwrap_or(0.0) / cache_bytes;
    // The limit claims the waiting then, and threads that evict would wait for it, too.
    let is_limited = disk_limited::limits_writes(evidence, answers);
    let saved = waited.filter(|_| !is_limited);
    let command = match is_limited {
        true => String::new(),
        false => engine_option(evidence, "eviction=(threads_min=4,threads_max=8)"),
    };
    Some(Finding {
        id: "cache.dirty-limit-reached".into(),
        title: format!(
            "The cache is as dirty as it may be in {} of the time, and operations wait for it",
            percent(share)
        ),
        evidence: vec![
            format!(
                "Up to {} of the cache was dirty; operations are held up from {} on (serverStatus).",
                percent(most),
                percent(trigger)
            ),
            match waited {
                Some(waited) => format!(
                    "They waited {} per hour for room beyond what they evicted themselves (serverStatus).",
                    duration(waited)
                ),
                None => "How long they waited this server does not count.".into(),
            },
        ],
        gain: saved.map(|saved| saved_per_hour(saved, saved * 0.2, saved)),
        saves_s_per_hour: saved,
        confidence: "medium".into(),
        risk:
            "The disk does not keep up with the writes: a higher limit delays that and lengthens \
               checkpoints, more eviction threads help while the disk has something left."
                .into(),
        command,
        ..Finding::default()
    })
}

/// Returns the trigger as configured, where the options say so.
fn trigger(evidence: &Evidence<'_>) -> f64 {
    let option = "storage.wiredTiger.engineConfig.configString";
    let text = evidence
        .examined()
        .and_then(|member| member.option(option))
        .unwrap_or_default();
    let value = text
        .split(',')
        .find_map(|word| word.trim().strip_prefix("eviction_dirty_trigger="));
    let percent = value.and_then(|value| value.parse::<f64>().ok());
    let percent = percent.filter(|percent| (1.0..=100.0).contains(percent));
    percent.map_or(TRIGGER, |percent| percent / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{GIB, Recording};

    fn dirty(share: f64, waiting_us_per_s: f64) -> Recording {
        let mut recording = Recording::new();
        recording.steady(CACHE_BYTES_MAX, GIB as f64);
        recording.steady(DIRTY_BYTES, share * GIB as f64);
        recording.rising(CACHE_ROOM_US[0], waiting_us_per_s);
        recording
    }

    #[test]
    fn ill() {
        let found = dirty(0.2, 500_000.0).findings(&DETECTOR);
        assert_eq!(found[0].saves_s_per_hour, Some(1800.0));
        let mut evicting = dirty(0.2, 500_000.0);
        evicting.rising(EVICTING_US[0], 400_000.0);
        let saved = evicting.findings(&DETECTOR)[0].saves_s_per_hour.unwrap();
        assert!((saved - 360.0).abs() < 1e-6, "{saved}");
    }

    #[test]
    fn healthy() {
        assert_eq!(dirty(0.1, 500_000.0).findings(&DETECTOR), []);
        assert_eq!(dirty(0.2, 100.0).findings(&DETECTOR), [], "nobody waits");
        assert_eq!(Recording::new().findings(&DETECTOR), []);
    }

    #[test]
    fn the_configured_trigger_counts() {
        let mut recording = dirty(0.06, 500_000.0);
        recording
            .examined()
            .options
            .push(seekscope_run::NamedValue {
                name: "storage.wiredTiger.engineConfig.configString".into(),
                value: "eviction_dirty_target=3,eviction_dirty_trigger=6".into(),
            });
        assert_eq!(recording.findings(&DETECTOR).len(), 1);
    }
}
