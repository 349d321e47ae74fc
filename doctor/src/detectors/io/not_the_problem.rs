//! `disk.not-the-problem`: the disk was looked at, and nothing is wrong with it.
//!
//! Ranking (`ranking.rs`) decides whether anything contradicts it: this finding is dropped when another saves
//! anything noticeable.

use seekscope_pattern::ThreadRole;
use seekscope_run::{FileRole, Finding};

use super::{Detector, EVENTS_MIN, FILLING_SHARE, confidence, journal};
use crate::detectors::server::unresponsive;
use crate::evidence::waiting::ReadWaiting;
use crate::ranking::NOTICEABLE_S_PER_HOUR;
use crate::thresholds::NOTHING_WRONG;
use crate::wording::{duration, percent};
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &[NOTHING_WRONG],
    detect,
};

/// Used share of the capability beyond which "nothing is wrong" would claim too much.
const UTILISATION_MAX: f64 = 0.8;
/// Busy share of the time, used where the disk's capability is not known: a disk that serves many requests at
/// once may be as busy at a tenth of its capability, but only a measurement can show that.
const BUSY_MAX: f64 = 0.8;
/// Unexplained waiting for reads, s per s, above which the disk is not cleared.
const WAITING_MAX: f64 = 0.1;
/// Waiting for anything but reads that is worth being told in the title, s per s.
const TOLD_MIN: f64 = 0.01;
/// Share of the time in which checkpoints ran, above which the disk does not keep up with the writes.
const CHECKPOINT_SHARE_MAX: f64 = 0.5;

fn detect(evidence: &Evidence<'_>, answers: &Answers) -> Vec<Finding> {
    judge(evidence, answers).into_iter().collect()
}

fn judge(evidence: &Evidence<'_>, answers: &Answers) -> Option<Finding> {
    let waiting = evidence.read_waiting();
    let load = answers.device_load.as_ref();
    // What the disk does for all says nothing of a server of which nothing was seen.
    if !evidence.sees_server() || (waiting.is_none() && load.is_none()) {
        return None;
    }
    // What was not recorded may have waited.
    if evidence.document.calls_left_out().is_some() {
        return None;
    }
    // Whatever ended or silenced the server may have to do with the disk.
    if unresponsive::is_unresponsive(evidence) {
        return None;
    }
    let utilisation = load.and_then(|load| load.utilisation);
    let unexplained = waiting.is_some_and(|waiting| waiting.s_per_s > WAITING_MAX);
    // A disk that others keep busy does not matter to a server that hardly waits for it.
    let waits = answers.waited.total_for_disk() >= NOTICEABLE_S_PER_HOUR;
    let busy = is_busy(evidence, utilisation) && (waits || waiting.is_none());
    if unexplained || busy || is_writing(evidence, answers) || is_syncing(evidence) {
        return None;
    }
    let mut sentences = Vec::new();
    let syncs_s_per_s = answers.waited.syncs / 3600.0;
    sentences.extend((syncs_s_per_s >= TOLD_MIN).then(|| {
        let writing = evidence.writing_s_per_hour().map(|s| s / 3600.0);
        let most = writing.filter(|most| *most > syncs_s_per_s).map(|most| {
            format!(", in all no longer than the {} that writes took", duration(most))
        });
        format!(
            "Syncs of the journal took {} of each second; several operations may wait for the same one{}.",
            duration(syncs_s_per_s),
            most.unwrap_or_default()
        )
    }));
    sentences.extend(waiting.map(|waiting| {
        format!(
            "Threads waited {} for reads in each second, {:.1} {} per second ({}).",
            duration(waiting.s_per_s),
            waiting.reads_per_s,
            match waiting.source {
                "trace" => "reads that the page cache could not serve",
                _ => "reads",
            },
            waiting.source
        )
    }));
    sentences.extend(load.map(|load| {
        format!(
            "The disk served {:.0} reads and {:.0} writes of all processes per second (diskstats).",
            load.reads_per_s, load.writes_per_s
        )
    }));
    sentences.extend(utilisation.map(|share| {
        let basis = load.map_or("", |load| &load.ability_basis);
        format!(
            "That is {} of its ability (device model {basis}).",
            percent(share)
        )
    }));
    sentences.extend(evidence.device_use.and_then(|found| {
        let syncs = &found.journal_otherwise_ns;
        (syncs.count as f64 >= EVENTS_MIN).then(|| {
            format!(
                "Syncs of the journal took {} at the median (trace).",
                duration(syncs.p50 as f64 / 1e9)
            )
        })
    }));
    let waited = waiting.map(|waiting| share_waited(&waiting, syncs_s_per_s, answers));
    Some(Finding {
        id: NOTHING_WRONG.into(),
        title: format!(
            "Nothing is wrong with the disk{}",
            waited.unwrap_or_default()
        ),
        evidence: sentences,
        confidence: confidence(evidence),
        risk: "It says nothing of hours that were not observed.".into(),
        ..Finding::default()
    })
}

/// Returns the end of the title: what share of the time threads wait for the disk.
fn share_waited(waiting: &ReadWaiting, syncs_s_per_s: f64, answers: &Answers) -> String {
    let reads = percent(waiting.s_per_s);
    let writes_s_per_s = own_writes_s_per_s(answers);
    let mut told = match writes_s_per_s >= TOLD_MIN {
        true => format!(
            ": threads wait {reads} of the time for reads and {} for their own writes",
            percent(writes_s_per_s)
        ),
        false => format!(": threads wait {reads} of the time for it"),
    };
    if syncs_s_per_s >= TOLD_MIN {
        told.push_str(&format!(
            ", and syncing its journal takes {} of the time",
            percent(syncs_s_per_s.min(1.0))
        ));
    }
    told
}

/// Returns the waiting of application threads in writes of files other than the journal, such as those of sorts that do
/// not fit into memory, s per s.
fn own_writes_s_per_s(answers: &Answers) -> f64 {
    let users = answers.device_users.iter().filter(|user| {
        user.writes && user.thread_role == ThreadRole::Application && user.role != FileRole::Journal
    });
    users.map(|user| user.waiting_s_per_s).sum()
}

fn is_busy(evidence: &Evidence<'_>, utilisation: Option<f64>) -> bool {
    match utilisation {
        Some(share) => share > UTILISATION_MAX,
        None => evidence
            .rate("diskstats", "busy_ms")
            .is_some_and(|ms| ms / 1000.0 > BUSY_MAX),
    }
}

/// Do checkpoints run one after the other?
fn is_writing(evidence: &Evidence<'_>, answers: &Answers) -> bool {
    let found = answers.checkpoints.as_ref();
    let share = found.zip(evidence.observed_s());
    share.is_some_and(|(found, seconds)| found.total_s() > CHECKPOINT_SHARE_MAX * seconds)
}

/// Do syncs of the journal fill much of the time because each takes long? Whether anybody waits for them cannot always
/// be told: on a secondary, those do who ask for it on the primary.
fn is_syncing(evidence: &Evidence<'_>) -> bool {
    evidence.syncs().is_some_and(|syncs| {
        syncs.s_per_s() >= FILLING_SHARE && syncs.mean_ns >= journal::SLOW * journal::SLOWEST_NS
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Call, Recording, shuffled};

    fn reading(per_s: u32, latency_s: f64) -> Recording {
        let mut recording = Recording::new();
        let file_id = recording.file("a.wt", FileRole::Collection, None);
        let tid = recording.thread("conn1");
        for (i, place) in shuffled(per_s * 60).into_iter().enumerate() {
            recording.miss(Call {
                tid,
                file_id,
                at_s: i as f64 / f64::from(per_s),
                offset: u64::from(place) * 32_768,
                bytes: 32_768,
                latency_s,
            });
        }
        recording
    }

    #[test]
    fn healthy_servers_are_told_so() {
        let found = reading(20, 2e-4).findings(&DETECTOR);
        let title = "Nothing is wrong with the disk: threads wait 0.4 % of the time for it";
        assert_eq!(found[0].title, title);
        let first = reading(20, 2e-4).diagnosis().findings.remove(0);
        assert_eq!(first.id, "disk.not-the-problem");
    }

    #[test]
    fn a_disk_whose_server_was_lost_is_not_acquitted() {
        let mut recording = reading(20, 2e-4);
        recording.examination().server_lost_after_ns = Some(7_000_000_000);
        assert_eq!(recording.findings(&DETECTOR), []);
    }

    #[test]
    fn nothing_is_acquitted_unseen_or_unexplained() {
        assert_eq!(Recording::new().findings(&DETECTOR), []);
        assert_eq!(reading(40, 0.05).findings(&DETECTOR), []);
        assert_eq!(
            reading(40, 0.005).findings(&DETECTOR),
            [],
            "a fifth of a thread's time"
        );
    }

    /// A server that nobody could log in to, and whose calls were not traced, beside an idle disk.
    #[test]
    fn a_disk_whose_server_was_not_seen_is_not_acquitted() {
        let mut recording = Recording::new();
        for name in ["reads", "writes", "read_bytes", "write_bytes", "busy_ms"] {
            recording.values("diskstats", name, |s| s * 10.0);
        }
        assert_eq!(recording.findings(&DETECTOR), []);
        recording.rising("opcounters.query", 5.0);
        assert_eq!(
            recording.findings(&DETECTOR).len(),
            1,
            "counters say it is idle"
        );
    }

    /// Eight writers wait for one sync, whose time is no bound of theirs.
    #[test]
    fn the_time_of_syncs_is_not_taken_for_that_of_operations() {
        let mut recording = reading(20, 2e-4);
        recording.rising(crate::evidence::waiting::SYNCS, 130.0);
        recording.rising(crate::evidence::waiting::SYNC_US, 43_000.0);
        recording.rising("opLatencies.writes.latency", 446_000.0);
        let found = recording.findings(&DETECTOR);
        assert!(
            found[0]
                .title
                .ends_with("and syncing its journal takes 4.3 % of the time")
        );
        assert_eq!(
            found[0].evidence[0],
            "Syncs of the journal took 43.0 ms of each second; several operations may wait for the same one, in all \
             no longer than the 446 ms that writes took."
        );
    }

    #[test]
    fn a_busy_disk_is_not_acquitted() {
        let busy_beside = |ms_per_s: f64, read_s: f64| {
            let mut recording = reading(20, read_s);
            for name in ["reads", "writes", "read_bytes", "write_bytes"] {
                recording.values("diskstats", name, |s| s * 100.0);
            }
            recording.values("diskstats", "busy_ms", |s| s * ms_per_s);
            recording
        };
        let busy = |ms_per_s| busy_beside(ms_per_s, 2e-3);
        assert_eq!(busy(950.0).findings(&DETECTOR), []);
        let hardly_waiting = busy_beside(950.0, 2e-4).findings(&DETECTOR);
        assert_eq!(hardly_waiting.len(), 1, "others keep it busy");
        assert_eq!(busy(100.0).findings(&DETECTOR).len(), 1);
        let mut able = busy(950.0);
        able.ability(crate::testing::flash(1e-4));
        assert_eq!(able.findings(&DETECTOR).len(), 1, "what it can do is known");
    }

    #[test]
    fn a_disk_that_checkpoints_keep_busy_is_not_acquitted() {
        let written_for = |seconds: u32| {
            let mut recording = reading(20, 2e-4);
            let table = recording.file("b.wt", FileRole::Collection, None);
            let checkpoint = recording.thread("WTCheck.tThread");
            for second in 5..5 + seconds {
                recording.write(Call {
                    tid: checkpoint,
                    file_id: table,
                    at_s: f64::from(second),
                    offset: 0,
                    bytes: 1 << 20,
                    latency_s: 0.9,
                });
            }
            recording.findings(&DETECTOR).len()
        };
        assert_eq!([written_for(45), written_for(5)], [0, 1]);
    }
}
