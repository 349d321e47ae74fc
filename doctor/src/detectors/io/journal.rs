//! `journal.slow-sync`: syncs of the journal take longer than this disk needs for one.
//!
//! Whoever writes with `j: true`, or "majority", waits for them.

use seekscope_run::Finding;

use super::{Detector, EVENTS_MIN, checkpoint, confidence, saved_per_hour};
use crate::ranking::NOTICEABLE_S_PER_HOUR;
use crate::wording::{duration, shell_quoted};
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &["journal.slow-sync"],
    detect,
};

/// Times as long as the disk's own sync.
const SLOW: f64 = 3.0;
/// Without a measured disk: rotating disks need about this long, and nothing else does, ns.
const ROTATING_NS: f64 = 8e6;
/// Mean of a sync; a quicker one is no trouble whatever the disk could do, ns.
const MEAN_MIN_NS: f64 = 2e6;

const SYNCS: &str = "wiredTiger.log.log sync operations";
const SYNC_US: &str = "wiredTiger.log.log sync time duration (usecs)";

fn detect(evidence: &Evidence<'_>, answers: &Answers) -> Vec<Finding> {
    let seen = traced(evidence, answers).or_else(|| counted(evidence));
    seen.and_then(|seen| judge(evidence, &seen))
        .into_iter()
        .collect()
}

/// Syncs of the journal.
struct Seen {
    count: f64,
    seconds: f64,
    mean_ns: f64,
    p99_ns: Option<u64>,
    source: &'static str,
}

/// What long checkpoints slow down is their fault.
fn traced(evidence: &Evidence<'_>, answers: &Answers) -> Option<Seen> {
    let seconds = evidence.traced_s()?;
    let found = evidence.device_use?;
    let mut sides = vec![found.journal_otherwise_ns];
    if !checkpoint::is_harmful(evidence, answers) {
        sides.push(found.journal_during_ns);
    }
    let count = sides.iter().map(|q| q.count).sum::<u64>() as f64;
    let ns: f64 = sides.iter().map(|q| q.count as f64 * q.mean as f64).sum();
    (count > 0.0).then(|| Seen {
        count,
        seconds,
        mean_ns: ns / count,
        p99_ns: sides.iter().map(|q| q.p99).max(),
        source: "trace",
    })
}

fn counted(evidence: &Evidence<'_>) -> Option<Seen> {
    let series = evidence.status(&[SYNCS])?;
    let count = series.increase()?;
    let us = evidence.status(&[SYNC_US])?.increase()?;
    (count > 0.0).then(|| Seen {
        count,
        seconds: series.span_s(),
        mean_ns: us * 1e3 / count,
        p99_ns: None,
        source: "serverStatus",
    })
}

fn judge(evidence: &Evidence<'_>, seen: &Seen) -> Option<Finding> {
    let (expected_ns, basis) = expected(evidence);
    if seen.count < EVENTS_MIN || seen.mean_ns < MEAN_MIN_NS || seen.mean_ns < SLOW * expected_ns {
        return None;
    }
    let saved = seen.count * (seen.mean_ns - expected_ns) / 1e9 / seen.seconds * 3600.0;
    if saved < NOTICEABLE_S_PER_HOUR {
        return None;
    }
    let p99 = seen.p99_ns.map_or(String::new(), |ns| {
        format!(", one in a hundred more than {}", duration(ns as f64 / 1e9))
    });
    let path = evidence.device().map_or(".", |device| &device.path);
    Some(Finding {
        id: "journal.slow-sync".into(),
        subject: String::new(),
        title: format!(
            "Syncs of the journal take {} on average, where {} is to be expected",
            duration(seen.mean_ns / 1e9),
            duration(expected_ns / 1e9)
        ),
        evidence: vec![
            format!(
                "{:.0} syncs in {} took {} on average{p99} ({}).",
                seen.count,
                duration(seen.seconds),
                duration(seen.mean_ns / 1e9),
                seen.source
            ),
            format!("Expected: {} ({basis}).", duration(expected_ns / 1e9)),
            "Writes that ask for the journal or a majority wait for them.".into(),
        ],
        gain: Some(saved_per_hour(saved, saved * 0.3, saved * 1.2)),
        saves_s_per_hour: Some(saved),
        confidence: confidence(evidence),
        risk: "The journal on a disk of its own must be part of snapshots and backups of the data."
            .into(),
        command: format!("seekscope disk {}", shell_quoted(path)),
    })
}

/// What one writer's sync takes on this disk, ns, and where that is known from.
fn expected(evidence: &Evidence<'_>) -> (f64, String) {
    let model = evidence.model();
    let point = model.and_then(|(model, _)| model.sync.iter().find(|p| p.writers == 1));
    match (point, model) {
        (Some(point), Some((_, true))) => (point.latency.mean_ns, "device model, measured".into()),
        (Some(point), _) => (point.latency.mean_ns, "a typical disk of its kind".into()),
        (None, _) => (ROTATING_NS, "a rotating disk".into()),
    }
}

#[cfg(test)]
mod tests {
    use seekscope_run::FileRole;

    use super::*;
    use crate::testing::{Call, Recording, flash};

    fn syncing(latency_s: f64) -> Recording {
        let mut recording = Recording::new();
        let file_id = recording.file("journal/WiredTigerLog.1", FileRole::Journal, None);
        let tid = recording.thread("WTJourn.Flusher");
        for i in 0..600 {
            recording.sync(Call {
                tid,
                file_id,
                at_s: f64::from(i) / 10.0,
                offset: 0,
                bytes: 0,
                latency_s,
            });
        }
        recording.ability(flash(5e-4));
        recording
    }

    #[test]
    fn ill() {
        let found = syncing(0.031).findings(&DETECTOR);
        let saved = found[0].saves_s_per_hour.unwrap();
        assert!((saved - 10.0 * 0.03 * 3600.0).abs() < 1.0, "{saved}");
        let mut counted = Recording::new();
        counted.rising(SYNCS, 10.0);
        counted.rising(SYNC_US, 10.0 * 40_000.0);
        assert_eq!(counted.findings(&DETECTOR)[0].confidence, "low");
    }

    #[test]
    fn healthy() {
        assert_eq!(syncing(0.0012).findings(&DETECTOR), []);
        assert_eq!(Recording::new().findings(&DETECTOR), []);
        let mut few = Recording::new();
        few.rising(SYNCS, 0.5);
        few.rising(SYNC_US, 50_000.0);
        assert_eq!(few.findings(&DETECTOR), [], "a handful");
    }
}
