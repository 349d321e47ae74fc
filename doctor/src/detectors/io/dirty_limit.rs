//! `cache.dirty-limit-reached`: more of the cache is dirty than allowed, and operations wait until enough is
//! written.

use std::ops::RangeInclusive;

use seekscope_run::{Finding, IoLimit};

use super::{Detector, checkpoint, disk_limited, engine_option, mongosh, saved_per_hour};
use crate::answers::{CACHE_BYTES_MAX, DIRTY_BYTES, ceiling_reached, limit_in_words, used_share};
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
/// Mean use of a limit, as a share of it, that makes the limit a possible cause. Beyond that it is not in force for what
/// was counted.
const LIMIT_USED: RangeInclusive<f64> = DISK_BUSY..=1.3;

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
    let utilisation = load.and_then(|load| load.utilisation);
    let remedy = Remedy::of(evidence, is_limited, utilisation);
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
        confidence: remedy.confidence.into(),
        risk: remedy.risk,
        command: remedy.command,
        ..Finding::default()
    })
}

/// What is to be known before anything is done about it.
struct Remedy {
    risk: String,
    command: String,
    confidence: &'static str,
}

impl Remedy {
    /// `is_limited` says that another finding names the limit as the cause; `utilisation` is the share of what the disk
    /// can do that is used.
    fn of(evidence: &Evidence<'_>, is_limited: bool, utilisation: Option<f64>) -> Self {
        let idle_disk = utilisation.filter(|busy| *busy < DISK_BUSY);
        let open_transactions = || mongosh(evidence.uri(), OPEN_TRANSACTIONS);
        match (limit_in_use(evidence), idle_disk) {
            (Some(limit), _) if is_limited => Self {
                risk: behind_limit(&limit, utilisation),
                command: String::new(),
                confidence: "medium",
            },
            (Some(limit), _) => Self {
                risk: format!(
                    "{} If that is not it, an open transaction or a long operation may keep old versions of documents, \
                     which cannot be written away before it ends. The command lists open transactions.",
                    behind_limit(&limit, utilisation)
                ),
                command: open_transactions(),
                confidence: "low",
            },
            (None, Some(busy)) => Self {
                risk: format!(
                    "The disk has time left ({} of what it can do is used{}), so more threads or a higher limit may \
                     change nothing: see first whether an open transaction or a long operation keeps old versions of \
                     documents, which cannot be written away before it ends. The command lists open transactions.",
                    percent(busy),
                    used_most(evidence).map_or(String::new(), |(limit, share)| {
                        format!(", and {}", in_words(limit, share))
                    })
                ),
                command: open_transactions(),
                confidence: "low",
            },
            (None, None) => Self {
                risk: "The disk does not keep up with the writes: a higher limit delays that and lengthens checkpoints, \
                       more eviction threads help while the disk has something left."
                    .into(),
                command: engine_option(evidence, "eviction=(threads_min=4,threads_max=8)"),
                confidence: "medium",
            },
        }
    }
}

fn behind_limit(limit: &str, utilisation: Option<f64>) -> String {
    let disk = utilisation
        .map(|busy| format!(", while {} of what the disk can do is used", percent(busy)));
    format!(
        "A limit may be what holds up the writing of changed pages: {limit}{}. More threads, or a higher limit of what \
         may be dirty, change nothing about that.",
        disk.unwrap_or_default()
    )
}

/// Names a limit on the server's I/O that was reached, or much of which is used on average, with how much that was.
fn limit_in_use(evidence: &Evidence<'_>) -> Option<String> {
    if let Some(ceiling) = ceiling_reached(evidence) {
        return Some(format!(
            "{} was reached in {} of the seconds",
            ceiling.name,
            percent(ceiling.share)
        ));
    }
    let (limit, share) = used_most(evidence)?;
    let is_much = LIMIT_USED.contains(&share);
    is_much.then(|| format!("{} is used on average", in_words(limit, share)))
}

/// Returns the limit on the server's I/O of which most is used, with how much that is; none that is exceeded.
fn used_most<'a>(evidence: &Evidence<'a>) -> Option<(&'a IoLimit, f64)> {
    let host = evidence.host_settings()?;
    let limits = host.surroundings.io_limits.iter();
    let used = limits.filter_map(|limit| Some((limit, used_share(evidence, limit)?)));
    let used = used.filter(|(_, share)| share <= LIMIT_USED.end());
    used.max_by(|a, b| a.1.total_cmp(&b.1))
}

fn in_words(limit: &IoLimit, share: f64) -> String {
    format!("{} of {}", percent(share), limit_in_words(limit))
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

    /// A regression: the disk is hardly used because the server's control group may use no more of it.
    #[test]
    fn a_disk_behind_a_limit_is_not_said_to_have_time_left() {
        let behind = |what: &str, per_s: u64| {
            let mut recording = dirty(0.2, 500_000.0);
            for (name, rate) in [
                ("reads", 590.0),
                ("reads_merged", 0.0),
                ("writes", 70.0),
                ("writes_merged", 0.0),
                ("read_bytes", 590.0 * 4096.0),
                ("write_bytes", 70.0 * 4096.0),
                ("read_ms", 59.0),
                ("write_ms", 7.0),
                ("queue_ms", 66.0),
            ] {
                recording.values("diskstats", name, |s| s * rate);
            }
            recording.ability(crate::testing::flash(1e-4));
            recording.host().surroundings.io_limits.push(IoLimit {
                cgroup: "/db".into(),
                device: "254:0".into(),
                what: what.into(),
                per_s,
            });
            recording.findings(&DETECTOR).remove(0)
        };
        let reached = behind("read IOPS", 600);
        assert!(
            reached
                .risk
                .contains("cgroup /db read IOPS 600/s was reached in 100 % of the seconds"),
            "{reached:?}"
        );
        assert!(reached.command.contains("$currentOp"), "{reached:?}");
        let near = behind("write IOPS", 100);
        assert!(
            near.risk
                .contains("70 % of cgroup /db write IOPS 100/s is used on average"),
            "{near:?}"
        );
        let claimed = behind("write IOPS", 75);
        assert!(claimed.risk.starts_with("A limit may be"), "{claimed:?}");
        assert_eq!(
            (claimed.command.as_str(), claimed.saves_s_per_hour),
            ("", None)
        );
        let far = behind("write IOPS", 1000);
        assert!(far.risk.starts_with("The disk has time left"), "{far:?}");
        assert!(
            far.risk
                .contains("and 7.0 % of cgroup /db write IOPS 1000/s)"),
            "{far:?}"
        );
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
