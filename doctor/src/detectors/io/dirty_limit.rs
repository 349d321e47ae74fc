//! `cache.dirty-limit-reached`: more of the cache is dirty than allowed, and operations wait until enough is
//! written.

use seekscope_run::Finding;

use super::{Detector, checkpoint, disk_limited, engine_option, mongosh, saved_per_hour};
use crate::answers::{CACHE_BYTES_MAX, DIRTY_BYTES};
use crate::detectors::server::locks::{HeldOpen, OPEN_TRANSACTIONS};
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

/// Below this share of what it can do, the disk is not what holds writes up.
const DISK_BUSY: f64 = 0.5;

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
    let load = answers.device_load.as_ref();
    let idle_disk = load
        .and_then(|load| load.utilisation)
        .filter(|busy| *busy < DISK_BUSY && !is_limited);
    let command = match (is_limited, idle_disk) {
        (true, _) => String::new(),
        (false, Some(_)) => mongosh(evidence.uri(), OPEN_TRANSACTIONS),
        (false, None) => engine_option(evidence, "eviction=(threads_min=4,threads_max=8)"),
    };
    let risk = match idle_disk {
        Some(busy) => format!(
            "The disk has time left ({} of what it can do is used), so more threads or a higher limit may change \
             nothing: see first whether an open transaction or a long operation keeps old versions of documents, \
             which cannot be written away before it ends. The command lists open transactions.",
            percent(busy)
        ),
        None => "The disk does not keep up with the writes: a higher limit delays that and lengthens checkpoints, \
                 more eviction threads help while the disk has something left."
            .into(),
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
        ]
        .into_iter()
        .chain(HeldOpen::of(evidence).map(|held| {
            format!(
                "A transaction whose client did nothing was open for {} (currentOp).",
                duration(held.oldest_s)
            )
        }))
        .collect(),
        gain: saved.map(|saved| saved_per_hour(saved, saved * 0.2, saved)),
        saves_s_per_hour: saved,
        confidence: match idle_disk {
            Some(_) => "low",
            None => "medium",
        }
        .into(),
        risk,
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
    fn a_disk_with_time_left_does_not_hold_writes_up() {
        let mut recording = dirty(0.2, 500_000.0);
        for (name, rate) in [
            ("reads", 1.0),
            ("writes", 100.0),
            ("read_bytes", 4096.0),
            ("write_bytes", 100.0 * 4096.0),
            ("read_ms", 1.0),
            ("write_ms", 100.0),
            ("queue_ms", 101.0),
        ] {
            recording.values("diskstats", name, |s| s * rate);
        }
        recording.ability(crate::testing::flash(0.1));
        recording.hold_transaction_open(45);
        let found = recording.findings(&DETECTOR);
        assert!(
            found[0].risk.starts_with("The disk has time left"),
            "{}",
            found[0].risk
        );
        assert!(
            found[0].command.contains("$currentOp"),
            "{}",
            found[0].command
        );
        let last = found[0].evidence.last().unwrap();
        assert!(last.contains("open for 45"), "{last}");
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
