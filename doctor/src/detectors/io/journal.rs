//! `journal.slow-sync`: syncs of the journal take longer than this disk needs for one.
//!
//! Writers with `j: true` or "majority" wait for them; for other writes the journal's own thread syncs ten
//! times a second, and nobody waits. So the total time of writes is an upper limit of the waiting counted.

use seekscope_pattern::DeviceUse;
use seekscope_run::Finding;
use seekscope_run::units::{format_bytes, format_count};

use super::{Detector, are_enough, checkpoint, confidence, disk_limited, saved_per_hour};
use crate::answers::sides_of_checkpoints;
use crate::evidence::Series;
use crate::evidence::waiting::{JournalSyncs, SYNC_US, SYNCS};
use crate::ranking::NOTICEABLE_S_PER_HOUR;
use crate::wording::duration;
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &["journal.slow-sync"],
    detect,
};

/// Slowdown compared with the disk's own sync.
pub(super) const SLOW: f64 = 3.0;
/// Expected sync time where it is not known, ns: the slowest disks, rotating ones, need one rotation.
pub(super) const SLOWEST_NS: f64 = 8e6;
/// Mean sync time below which there is no problem, whatever the disk could do, ns.
const MEAN_MIN_NS: f64 = 2e6;

fn detect(evidence: &Evidence<'_>, answers: &Answers) -> Vec<Finding> {
    let found = evidence.device_use;
    let found = found.filter(|f| f.journal_during_ns.count + f.journal_otherwise_ns.count > 0);
    // What the trace saw and leaves out must not come back through the counters.
    let syncs = match found {
        Some(found) => traced(evidence, answers, found),
        None => counted(evidence, answers),
    };
    syncs
        .and_then(|syncs| judge(evidence, answers, &syncs))
        .into_iter()
        .collect()
}

/// Returns the syncs in the trace, without those that long checkpoints slowed down.
fn traced(evidence: &Evidence<'_>, answers: &Answers, found: &DeviceUse) -> Option<JournalSyncs> {
    let latencies = [found.journal_otherwise_ns, found.journal_during_ns];
    let taken = match checkpoint::is_harmful(evidence, answers) {
        true => &latencies[..1],
        false => &latencies[..],
    };
    JournalSyncs::traced(taken, evidence.traced_s()?)
}

/// Returns the same from the counters.
fn counted(evidence: &Evidence<'_>, answers: &Answers) -> Option<JournalSyncs> {
    let (syncs, us) = (evidence.status(&[SYNCS])?, evidence.status(&[SYNC_US])?);
    let harmful = answers
        .checkpoints
        .as_ref()
        .filter(|_| checkpoint::is_harmful(evidence, answers));
    let rise = |series: &Series| match harmful {
        Some(found) => {
            let [_, otherwise] = sides_of_checkpoints(evidence, found, series);
            otherwise.map(|steps| steps.sum)
        }
        None => series.increase(),
    };
    JournalSyncs::counted(rise(syncs)?, rise(us)?, syncs.span_s())
}

fn judge(evidence: &Evidence<'_>, answers: &Answers, syncs: &JournalSyncs) -> Option<Finding> {
    let measured = measured(evidence);
    if measured.is_none() && disk_limited::limits_writes(evidence, answers) {
        // The limit says what a sync takes without it.
        return None;
    }
    let (expected_ns, basis) = measured.unwrap_or((
        SLOWEST_NS,
        "the slowest kind of disk; this one's syncs were not measured".into(),
    ));
    let slow_ns = MEAN_MIN_NS.max(SLOW * expected_ns);
    if !are_enough(syncs) || syncs.mean_ns < slow_ns {
        return None;
    }
    let waiters = waiters(evidence);
    let longer = waiters * syncs.per_s() * (syncs.mean_ns - expected_ns) / 1e9 * 3600.0;
    let writing = evidence.writing_s_per_hour();
    let saved = writing.map_or(longer, |most| longer.min(most));
    if saved < NOTICEABLE_S_PER_HOUR {
        return None;
    }
    let p99 = syncs.p99_ns.map_or(String::new(), |ns| {
        format!(", one in a hundred more than {}", duration(ns as f64 / 1e9))
    });
    let whose = match writing.filter(|most| *most < longer) {
        Some(most) => format!(
            "All writes together took {} per hour, and no more than that is waiting (serverStatus).",
            duration(most)
        ),
        None if waiters > 1.0 => format!(
            "Writes ask for them, and {waiters:.1} wait for each sync on average (serverStatus)."
        ),
        None => "Writes that ask for the journal or a majority wait for them.".into(),
    };
    Some(Finding {
        id: "journal.slow-sync".into(),
        subject: String::new(),
        title: format!(
            "Syncs of the journal take {} on average, where {} is to be expected",
            duration(syncs.mean_ns / 1e9),
            duration(expected_ns / 1e9)
        ),
        evidence: vec![
            format!(
                "{:.0} syncs in {} took {} on average{p99} ({}).",
                syncs.count,
                duration(syncs.seconds),
                duration(syncs.mean_ns / 1e9),
                syncs.source
            ),
            format!("Expected: {} ({basis}).", duration(expected_ns / 1e9)),
            whose,
        ]
        .into_iter()
        .chain(write_limit(evidence))
        .collect(),
        gain: Some(saved_per_hour(saved, saved * 0.3, saved * 1.2)),
        saves_s_per_hour: Some(saved),
        confidence: confidence(evidence),
        risk: "The journal on a disk of its own must be part of snapshots and backups of the data."
            .into(),
        command: super::measure_disk(evidence),
        ..Finding::default()
    })
}

/// Names a limit of the server's writes. Even if no whole second reached it, what a checkpoint writes at once does, and
/// syncs wait behind that.
fn write_limit(evidence: &Evidence<'_>) -> Option<String> {
    let host = evidence.host_settings()?;
    let mut limits = host.surroundings.io_limits.iter();
    let limit = limits.find(|limit| limit.per_s > 0 && limit.is_of_writes())?;
    let allowed = match limit.is_in_bytes() {
        true => format!("{}/s", format_bytes(limit.per_s)),
        false => format!("{} writes per second", format_count(limit.per_s)),
    };
    Some(format!(
        "The control group {} allows the server {allowed}: syncs wait behind what a checkpoint writes at once.",
        limit.cgroup
    ))
}

/// Returns how many writes wait for a sync on average; at least one is assumed.
fn waiters(evidence: &Evidence<'_>) -> f64 {
    let waiting = evidence.sync_waiting_s_per_hour().unwrap_or(0.0);
    let took = evidence.syncs().map(|syncs| syncs.s_per_s() * 3600.0);
    took.map_or(1.0, |took| waiting / took.max(1e-9)).max(1.0)
}

/// Returns what one writer's sync takes on this disk, ns, and the source of that figure; `None` if it was not measured.
/// Excludes the limits of the server's control group, because a longer sync is due to these.
fn measured(evidence: &Evidence<'_>) -> Option<(f64, String)> {
    let disk = evidence.expected()?;
    let point = disk.model.sync.iter().find(|p| p.writers == 1)?;
    let source = match disk.measured {
        true => "device model, measured".into(),
        false => disk.source.clone(),
    };
    Some((point.latency.mean_ns, source))
}

#[cfg(test)]
mod tests {
    use seekscope_run::{FileRole, MemberState};

    use super::*;
    use crate::evidence::waiting::{READ_COUNT, READ_TIME};
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

    /// Records checkpoints from second 10 to 50, in which operations take five times as long.
    fn checkpointing() -> Recording {
        let mut recording = Recording::new();
        let total = "wiredTiger.transaction.transaction checkpoint total time (msecs)";
        recording.values("serverStatus", total, |s| {
            (s.min(50.0) - 10.0).max(0.0) * 1000.0
        });
        recording.rising("opLatencies.writes.ops", 1000.0);
        recording.values("serverStatus", "opLatencies.writes.latency", |s| {
            s * 1e6 + (s - 10.0).clamp(0.0, 40.0) * 4e6
        });
        recording
    }

    #[test]
    fn what_checkpoints_slow_down_does_not_come_back_by_the_counters() {
        let mut recording = checkpointing();
        recording.rising(SYNCS, 10.0);
        recording.values("serverStatus", SYNC_US, |s| {
            s * 10_000.0 + (s - 10.0).clamp(0.0, 40.0) * 390_000.0
        });
        assert_eq!(recording.findings(&DETECTOR), []);
        // In the trace all syncs fall into one long checkpoint.
        let mut traced = Recording::new();
        let table = traced.file("a.wt", FileRole::Collection, None);
        let log = traced.file("journal/WiredTigerLog.1", FileRole::Journal, None);
        let checkpoint = traced.thread("WTCheck.tThread");
        let journal = traced.thread("WTJourn.Flusher");
        for i in 0..600 {
            let call = Call {
                tid: journal,
                file_id: log,
                at_s: f64::from(i) / 10.0,
                offset: 0,
                bytes: 4096,
                latency_s: 0.05,
            };
            traced.sync(call);
            traced.write(Call {
                tid: checkpoint,
                file_id: table,
                latency_s: 0.1,
                ..call
            });
        }
        traced.ability(flash(5e-4));
        traced.rising(SYNCS, 10.0);
        traced.rising(SYNC_US, 10.0 * 50_000.0);
        assert_eq!(traced.findings(&DETECTOR), []);
    }

    /// A regression: four clients insert with `j: true`, and one sync serves those that wait together.
    #[test]
    fn one_sync_is_waited_for_by_several_writes() {
        let mut recording = Recording::new();
        // 30 syncs of 30 ms a second, and 60 writes of 60 ms.
        recording.rising(SYNCS, 30.0);
        recording.rising(SYNC_US, 900_000.0);
        recording.rising("opLatencies.writes.ops", 60.0);
        recording.rising("opLatencies.writes.latency", 60.0 * 60_000.0);
        recording.ability(flash(5e-4));
        let found = recording.findings(&DETECTOR).remove(0);
        let saved = found.saves_s_per_hour.unwrap();
        assert!((12_000.0..13_000.0).contains(&saved), "{found:?}");
        assert!(found.evidence[2].contains("4.0 wait for each"), "{found:?}");
        // What they wait for reads is none of it.
        recording.rising(READ_TIME, 2e6);
        recording.rising(READ_COUNT, 60.0);
        let saved = recording.findings(&DETECTOR)[0].saves_s_per_hour.unwrap();
        assert!((5_000.0..6_000.0).contains(&saved), "{saved}");
    }

    #[test]
    fn nobody_waits_longer_than_all_writes_take() {
        let saved = |recording: &Recording| {
            let found = recording.findings(&DETECTOR);
            found.first().and_then(|finding| finding.saves_s_per_hour)
        };
        let mut recording = syncing(0.031);
        recording.rising("opLatencies.writes.latency", 50_000.0);
        assert!((saved(&recording).unwrap() - 180.0).abs() < 1.0);
        recording.examined().state = MemberState::Secondary;
        assert!(saved(&recording).unwrap() > 1000.0, "the primary waits");
        let mut unacknowledged = syncing(0.031);
        unacknowledged.rising("opLatencies.writes.latency", 5_000.0);
        assert_eq!(saved(&unacknowledged), None);
    }
}
