//! `disk.not-the-problem`: the disk was looked at, and nothing is wrong with it. Where writes wait for syncs of the
//! journal most of their time, it says that instead; syncs that are slow are found by `journal.rs`.
//!
//! Ranking (`ranking.rs`) decides whether anything contradicts it: this finding is dropped when another saves
//! anything noticeable.

use seekscope_pattern::ThreadRole;
use seekscope_run::{FileRole, Finding};

use super::{Detector, EVENTS_MIN, FILLING_SHARE, confidence, journal};
use crate::answers::DeviceLoad;
use crate::detectors::server::unresponsive;
use crate::evidence::waiting::{JournalSyncs, ReadWaiting};
use crate::ranking::NOTICEABLE_S_PER_HOUR;
use crate::thresholds::{NOTHING_WRONG, SYNC_BOUND};
use crate::wording::{duration, percent};
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &[NOTHING_WRONG, SYNC_BOUND],
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
/// Share of the time of all writes that is most of it.
const MOST: f64 = 0.5;

/// Syncs of the journal, and the waiting of operations for them.
struct Syncing {
    syncs: JournalSyncs,
    /// The waiting of all operations together, s per s, at most: several may wait for the same sync.
    waited_s_per_s: f64,
    /// The time that all writes took, s per s; `None` where that is not known, or others wait for this journal.
    writing_s_per_s: Option<f64>,
    /// Whether writes ask for syncs, so that not all of them may be those that the server makes by itself.
    are_asked_for: bool,
}

impl Syncing {
    /// `None` where hardly anybody waits.
    fn of(evidence: &Evidence<'_>, answers: &Answers) -> Option<Self> {
        let waited_s_per_s = answers.waited.syncs / 3600.0;
        let syncs = evidence.syncs().filter(|_| waited_s_per_s >= TOLD_MIN)?;
        Some(Self {
            syncs,
            waited_s_per_s,
            writing_s_per_s: evidence.writing_s_per_hour().map(|s| s / 3600.0),
            are_asked_for: evidence.writes_wait_for_syncs(),
        })
    }

    /// Returns the share of their time for which writes wait for syncs; `None` unless that is most of it.
    fn share_of_writing(&self) -> Option<f64> {
        let share = self.waited_s_per_s / self.writing_s_per_s?.max(1e-9);
        let is_most = self.are_asked_for && self.waited_s_per_s > WAITING_MAX && share >= MOST;
        is_most.then_some(share)
    }

    fn sentences(&self) -> Vec<String> {
        let of_writing = self
            .writing_s_per_s
            .map(|writing| format!(", of the {} that writes took", duration(writing)));
        let mut sentences = vec![
            format!(
                "The syncs of the journal themselves took {} of each second: {:.0} per second, of {} on average ({}).",
                duration(self.syncs.s_per_s()),
                self.syncs.per_s(),
                duration(self.syncs.mean_ns / 1e9),
                self.syncs.source
            ),
            format!(
                "Operations together waited for them up to {} per second{}: several may wait for the same sync.",
                duration(self.waited_s_per_s),
                of_writing.unwrap_or_default()
            ),
        ];
        sentences.extend(self.share_of_writing().map(|_| {
            String::from(
                "Each write with j: true or w: \"majority\" waits for a sync, however little the disk has to do \
                 otherwise; fewer and larger ones (insertMany, bulkWrite) wait for fewer syncs.",
            )
        }));
        sentences
    }
}

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
    if unexplained || is_writing(evidence, answers) || is_syncing(evidence) {
        return None;
    }
    let syncing = Syncing::of(evidence, answers);
    let bound = syncing.as_ref().and_then(|syncing| {
        let share = syncing.share_of_writing()?;
        Some(format!(
            "Writes spend up to {} of their time waiting for syncs of the journal, each of which takes {}",
            percent(share),
            duration(syncing.syncs.mean_ns / 1e9)
        ))
    });
    let (id, title) = match bound {
        Some(title) => (SYNC_BOUND, title),
        None if busy => return None,
        None => {
            let waited = waiting.map(|waiting| share_waited(&waiting, syncing.as_ref(), answers));
            let title = format!(
                "Nothing is wrong with the disk{}",
                waited.unwrap_or_default()
            );
            (NOTHING_WRONG, title)
        }
    };
    Some(Finding {
        id: id.into(),
        title,
        evidence: sentences(evidence, load, waiting.as_ref(), syncing.as_ref()),
        confidence: confidence(evidence),
        ..Finding::default()
    })
}

fn sentences(
    evidence: &Evidence<'_>,
    load: Option<&DeviceLoad>,
    waiting: Option<&ReadWaiting>,
    syncing: Option<&Syncing>,
) -> Vec<String> {
    let mut sentences = syncing.map(Syncing::sentences).unwrap_or_default();
    sentences.extend(waiting.map(reading));
    sentences.extend(load.map(|load| {
        format!(
            "The disk served {:.0} reads and {:.0} writes of all processes per second (diskstats).",
            load.reads_per_s, load.writes_per_s
        )
    }));
    sentences.extend(load.and_then(|load| {
        Some(format!(
            "That is {} of its ability (device model {}).",
            percent(load.utilisation?),
            load.ability_basis
        ))
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
    sentences
}

/// Says how long threads waited for reads.
fn reading(waiting: &ReadWaiting) -> String {
    let reads = match waiting.source {
        "trace" => "reads that the page cache could not serve",
        _ => "reads",
    };
    let source = waiting.source;
    match waiting.reads_per_s > 0.0 {
        false => format!("Threads did not wait for reads: there were no {reads} ({source})."),
        true => format!(
            "Threads waited {} for reads in each second, {:.1} {reads} per second ({source}).",
            duration(waiting.s_per_s),
            waiting.reads_per_s
        ),
    }
}

/// Returns the end of the title: what share of the time threads wait for the disk.
fn share_waited(waiting: &ReadWaiting, syncing: Option<&Syncing>, answers: &Answers) -> String {
    let reads = percent(waiting.s_per_s);
    let writes_s_per_s = own_writes_s_per_s(answers);
    let mut told = match (writes_s_per_s >= TOLD_MIN, syncing) {
        (true, _) => format!(
            ": threads wait {reads} of the time for reads and {} for their own writes",
            percent(writes_s_per_s)
        ),
        (false, Some(_)) => format!(": threads wait {reads} of the time for reads"),
        (false, None) => format!(": threads wait {reads} of the time for it"),
    };
    if let Some(syncing) = syncing {
        told.push_str(&format!(
            ", and syncing its journal takes {} of the time",
            percent(syncing.syncs.s_per_s())
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

/// Returns whether checkpoints run one after the other.
fn is_writing(evidence: &Evidence<'_>, answers: &Answers) -> bool {
    let found = answers.checkpoints.as_ref();
    let share = found.zip(evidence.observed_s());
    share.is_some_and(|(found, seconds)| found.total_s() > CHECKPOINT_SHARE_MAX * seconds)
}

/// Returns whether syncs of the journal fill much of the time because each takes long. Whether anybody waits for them
/// cannot always be told: on a secondary, those do who ask for it on the primary.
fn is_syncing(evidence: &Evidence<'_>) -> bool {
    evidence.syncs().is_some_and(|syncs| {
        syncs.s_per_s() >= FILLING_SHARE && syncs.mean_ns >= journal::SLOW * journal::SLOWEST_NS
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::waiting::{SYNC_US, SYNCS};
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
    fn threads_that_did_not_wait_waited_no_nanoseconds() {
        let none = reading_of(0.0);
        assert_eq!(
            none,
            "Threads did not wait for reads: there were no reads that the page cache could not serve (trace)."
        );
        let some = reading_of(3.0);
        assert!(
            some.starts_with("Threads waited 3.00 ms for reads in each second, 3.0 reads"),
            "{some}"
        );
    }

    fn reading_of(reads_per_s: f64) -> String {
        super::reading(&ReadWaiting {
            reads_per_s,
            s_per_s: reads_per_s / 1e3,
            mean_ns: 1e6,
            source: "trace",
        })
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
        recording.rising(SYNCS, 130.0);
        recording.rising(SYNC_US, 43_000.0);
        recording.rising("opLatencies.writes.latency", 446_000.0);
        let found = recording.findings(&DETECTOR);
        assert!(
            found[0]
                .title
                .ends_with("and syncing its journal takes 4.3 % of the time")
        );
        let told = &found[0].evidence;
        assert!(
            told[0].contains("took 43.0 ms of each second: 130 per second"),
            "{told:?}"
        );
        assert_eq!(
            told[1],
            "Operations together waited for them up to 43.0 ms per second, of the 446 ms that writes took: several may \
             wait for the same sync."
        );
    }

    /// Reproduces a disk that syncs in 1.4 ms while clients insert one document after the other with `j: true`.
    #[test]
    fn a_disk_for_whose_syncs_writes_wait_most_of_their_time_is_not_acquitted() {
        let waiting = |writing_us: f64| {
            let mut recording = reading(20, 2e-4);
            recording.rising(SYNCS, 580.0);
            recording.rising(SYNC_US, 580.0 * 1430.0);
            recording.rising("opLatencies.writes.ops", 1_622.0);
            recording.rising("opLatencies.writes.latency", writing_us);
            recording.findings(&DETECTOR).remove(0)
        };
        let found = waiting(5_150_000.0);
        assert_eq!(found.id, SYNC_BOUND);
        assert_eq!(
            found.title,
            "Writes spend up to 90 % of their time waiting for syncs of the journal, each of which takes 1.43 ms"
        );
        let told = &found.evidence;
        assert!(
            told[0].contains("took 829 ms of each second: 580 per second"),
            "{told:?}"
        );
        assert!(
            told[1].contains("up to 4.64 s per second, of the 5.15 s"),
            "{told:?}"
        );
        assert!(told[2].contains("insertMany"), "{told:?}");
        let found = waiting(20_000_000.0);
        assert_eq!(found.id, NOTHING_WRONG);
        assert_eq!(
            found.title,
            "Nothing is wrong with the disk: threads wait 0.4 % of the time for reads, and syncing its journal takes \
             83 % of the time"
        );
    }

    /// A regression: four clients with `j: true` kept the disk busy with their syncs, and nothing was said of that.
    #[test]
    fn writes_that_wait_for_syncs_of_a_busy_disk_are_told_so() {
        let mut recording = Recording::new();
        for name in ["reads", "writes", "read_bytes", "write_bytes"] {
            recording.values("diskstats", name, |s| s * 100.0);
        }
        recording.values("diskstats", "busy_ms", |s| s * 950.0);
        recording.rising(SYNCS, 1000.0);
        recording.rising(SYNC_US, 600_000.0);
        recording.rising("opLatencies.writes.ops", 3000.0);
        recording.rising("opLatencies.writes.latency", 1.65e6);
        let found = recording.findings(&DETECTOR);
        assert_eq!(found[0].id, SYNC_BOUND, "{found:?}");
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
