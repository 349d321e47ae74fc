//! `checkpoint.long`: checkpoints take long, and journal, reads or operations are slower meanwhile.
//!
//! Their cost is the extra waiting compared with the time between them: of journal syncs and reads in the
//! trace, of operations by the server's own latencies, or of threads for room in the cache, whichever is
//! more. Other findings leave that waiting to this one.

use seekscope_run::Finding;
use seekscope_run::units::format_bytes;
use seekscope_stats::Quantiles;

use super::application_eviction::is_for_reads;
use super::{Detector, confidence, disk_limited, engine_option, saved_per_hour};
use crate::answers::{CheckpointAnswer, extra_in_checkpoints, split_by_checkpoints};
use crate::evidence::Series;
use crate::evidence::waiting::{CACHE_ROOM_US, EVICTING_US};
use crate::ranking::NOTICEABLE_S_PER_HOUR;
use crate::wording::{duration, percent, shell_quoted};
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &["checkpoint.long"],
    detect,
};

/// Duration of a long checkpoint, s. Shorter ones are over before anybody notices.
const LONG_S: f64 = 2.0;
/// Shorter ones also count if they run this share of the time.
const SHARE_MIN: f64 = 0.1;
/// Affected calls take this many times as long.
const SUFFERS: f64 = 1.5;
/// Fewest calls on either side; fewer say nothing.
const CALLS_MIN: u64 = 10;

/// The share of the usual operations per second from which none count as held up.
const SLOWED_MAX: f64 = 0.95;

/// Share of what is written; with so little of it their own, checkpoints flush for others.
const OWN_SHARE_FEW: f64 = 0.33;

const LIMIT_RISK: &str = "Less may be dirty, so pages that change often are written more often: more bytes \
                          in all, in smaller portions. It holds where the disk has written what is evicted \
                          before the next checkpoint begins. Set it back if throughput falls.";
const LIMITED_RISK: &str =
    "No setting of the server makes a limit on its writes higher: raise the limit, or write less.";
const TUNE_RISK: &str = "Which setting bounds them is not known from what was seen; `tune` tries on a test \
                         server, and puts everything back.";

fn detect(evidence: &Evidence<'_>, answers: &Answers) -> Vec<Finding> {
    let Some(found) = answers.checkpoints.as_ref() else {
        return Vec::new();
    };
    let Some(harm) = harm(evidence, answers) else {
        return Vec::new();
    };
    vec![finding(evidence, found, &harm)]
}

/// Returns whether checkpoints take long, and anything suffers. If so, the waiting is theirs to explain.
pub(super) fn is_harmful(evidence: &Evidence<'_>, answers: &Answers) -> bool {
    harm(evidence, answers).is_some()
}

/// The harm that checkpoints cause.
struct Harm {
    saved_s_per_hour: f64,
    sentences: Vec<String>,
}

fn harm(evidence: &Evidence<'_>, answers: &Answers) -> Option<Harm> {
    let found = answers.checkpoints.as_ref()?;
    let covered_s = found.covered_s(evidence)?;
    if found.longest_s < LONG_S && found.total_s() < SHARE_MIN * covered_s {
        return None;
    }
    if disk_limited::holds_up_syncs(evidence) {
        return None;
    }
    let suffering = [
        journal(evidence),
        reads(evidence),
        operations(evidence, found),
        room(evidence, answers, found),
    ];
    let [journal, reads, operations, room] = suffering.map(Option::unwrap_or_default);
    // Operations wait for the journal, for reads and for room: the same time at a higher level.
    let s_per_s = (journal.s_per_s + reads.s_per_s)
        .max(operations.s_per_s)
        .max(room.s_per_s);
    let saved_s_per_hour = s_per_s * 3600.0;
    (saved_s_per_hour >= NOTICEABLE_S_PER_HOUR).then(|| Harm {
        saved_s_per_hour,
        sentences: [journal, reads, operations, room]
            .into_iter()
            .filter_map(|suffering| suffering.sentence)
            .collect(),
    })
}

/// Returns the rise of a µs counter, s per hour, without the part that is due to long checkpoints. `names` are those that
/// releases have for the counter.
pub(super) fn beyond(evidence: &Evidence<'_>, answers: &Answers, names: &[&str]) -> Option<f64> {
    let series = evidence.status(names)?;
    let us_per_s = series.rate_per_s()? - extra_per_s(evidence, answers, series);
    Some(us_per_s.max(0.0) / 1e6 * 3600.0)
}

/// Returns how much faster a counter of waiting rises because of harmful checkpoints, per second; 0 without
/// any. That part belongs to the checkpoints, so others leave it out.
fn extra_per_s(evidence: &Evidence<'_>, answers: &Answers, series: &Series) -> f64 {
    let found = answers.checkpoints.as_ref();
    let found = found.filter(|_| is_harmful(evidence, answers));
    found.map_or(0.0, |found| {
        extra_in_checkpoints(evidence, found, series, SUFFERS)
    })
}

/// Something that takes longer while checkpoints run.
#[derive(Default)]
struct Suffering {
    /// Extra time per second of all time, s.
    s_per_s: f64,
    sentence: Option<String>,
}

fn journal(evidence: &Evidence<'_>) -> Option<Suffering> {
    let found = evidence.device_use?;
    let mut otherwise = found.journal_otherwise_ns;
    if otherwise.count < CALLS_MIN {
        // Checkpoints ran without a pause: compare with the disk alone.
        let (model, _) = evidence.model()?;
        let sync = model.sync.iter().find(|point| point.writers == 1)?;
        otherwise = Quantiles {
            count: CALLS_MIN,
            mean: sync.latency.p50_ns,
            p99: sync.latency.p99_ns,
            ..Quantiles::default()
        };
    }
    let longest = found
        .checkpoints
        .iter()
        .map(|c| c.longest_journal_sync_ns)
        .max()
        .unwrap_or(0);
    let what = "syncs of the journal";
    suffering(
        evidence,
        what,
        &found.journal_during_ns,
        &otherwise,
        longest,
    )
}

fn reads(evidence: &Evidence<'_>) -> Option<Suffering> {
    let found = evidence.device_use?;
    let longest = found
        .checkpoints
        .iter()
        .map(|c| c.longest_read_ns)
        .max()
        .unwrap_or(0);
    suffering(
        evidence,
        "reads of application threads",
        &found.reads_during_ns,
        &found.reads_otherwise_ns,
        longest,
    )
}

fn suffering(
    evidence: &Evidence<'_>,
    what: &str,
    during: &Quantiles,
    otherwise: &Quantiles,
    longest_ns: u64,
) -> Option<Suffering> {
    if during.count < CALLS_MIN || otherwise.count < CALLS_MIN {
        return None;
    }
    let (slow_ns, usual_ns) = (during.mean as f64, otherwise.mean as f64);
    let seconds = evidence.traced_s()?;
    (slow_ns >= SUFFERS * usual_ns).then(|| Suffering {
        s_per_s: (slow_ns - usual_ns) / 1e9 * during.count as f64 / seconds,
        sentence: Some(format!(
            "Meanwhile {} {what} took {} on average, otherwise {}; the longest {} (trace).",
            during.count,
            duration(slow_ns / 1e9),
            duration(usual_ns / 1e9),
            duration(longest_ns as f64 / 1e9)
        )),
    })
}

/// Compares the server's own latencies of operations.
fn operations(evidence: &Evidence<'_>, found: &CheckpointAnswer) -> Option<Suffering> {
    let (us_during, us_otherwise) = split_by_checkpoints(
        evidence,
        found,
        &["opLatencies.reads.latency", "opLatencies.writes.latency"],
    )?;
    let (during, otherwise) = split_by_checkpoints(
        evidence,
        found,
        &["opLatencies.reads.ops", "opLatencies.writes.ops"],
    )?;
    if during.sum < CALLS_MIN as f64 || otherwise.sum < CALLS_MIN as f64 {
        return None;
    }
    let (slow_us, usual_us) = (us_during.sum / during.sum, us_otherwise.sum / otherwise.sum);
    let seconds = during.seconds + otherwise.seconds;
    (slow_us >= SUFFERS * usual_us).then(|| Suffering {
        s_per_s: (slow_us - usual_us) / 1e6 * during.sum / seconds,
        sentence: Some(format!(
            "Operations took {} on average while one ran, otherwise {} ({:.0} operations, serverStatus).",
            duration(slow_us / 1e6),
            duration(usual_us / 1e6),
            during.sum
        )),
    })
}

/// Compares the time that threads evict, or wait until others have; this also works where operations cannot
/// be compared, because checkpoints leave no pause.
fn room(evidence: &Evidence<'_>, answers: &Answers, found: &CheckpointAnswer) -> Option<Suffering> {
    let waiting = evidence.status(&CACHE_ROOM_US);
    let series = waiting.or_else(|| evidence.status(&EVICTING_US))?;
    let s_per_s = extra_in_checkpoints(evidence, found, series, SUFFERS) / 1e6;
    let suffers = s_per_s > 0.0 && !is_for_reads(evidence, answers);
    suffers.then(|| Suffering {
        s_per_s,
        sentence: Some(format!(
            "Because of them operations waited {} per hour for room in the cache (serverStatus).",
            duration(s_per_s * 3600.0)
        )),
    })
}

/// Says how long checkpoints waited for syncs, if these did not overlap: of several at a time it is no duration.
fn synced(synced_ns: u64, checkpoints_s: f64) -> String {
    let synced_s = synced_ns as f64 / 1e9;
    match synced_s <= checkpoints_s {
        true => format!(" and spent {} in syncs", duration(synced_s)),
        false => String::new(),
    }
}

/// What to do about long checkpoints.
struct Advice {
    sentence: Option<String>,
    command: String,
    risk: &'static str,
}

fn advice(evidence: &Evidence<'_>, found: &CheckpointAnswer) -> Advice {
    if let Some(limit) = &found.dirty_limit {
        return Advice {
            sentence: Some(format!(
                "No more than {} dirty, {:.1} % of the cache, keeps them below {}: {}.",
                format_bytes(limit.bytes),
                limit.percent_of_cache,
                duration(limit.checkpoint_s),
                limit.basis
            )),
            command: engine_option(evidence, &limit.setting),
            risk: LIMIT_RISK,
        };
    }
    match disk_limited::of_writes(evidence) {
        Some(limit) => Advice {
            sentence: Some(format!(
                "A limit, {}, was reached in {} of the seconds, which holds checkpoints up, too.",
                limit.name,
                percent(limit.share)
            )),
            command: String::new(),
            risk: LIMITED_RISK,
        },
        None => Advice {
            sentence: None,
            command: format!("seekscope tune init {}", shell_quoted(evidence.uri())),
            risk: TUNE_RISK,
        },
    }
}

fn finding(evidence: &Evidence<'_>, found: &CheckpointAnswer, harm: &Harm) -> Finding {
    let count = found.checkpoints.len();
    let covered_s = found.covered_s(evidence).unwrap_or(0.0);
    let mut sentences = vec![format!(
        "{count} checkpoint{} ran {} of {}; the longest took {}{} ({}).",
        if count == 1 { "" } else { "s" },
        // The first may have begun before.
        duration(found.total_s().min(covered_s)),
        duration(covered_s),
        if found.longest_is_under_way() {
            "at least "
        } else {
            ""
        },
        duration(found.longest_s),
        found.source
    )];
    sentences.extend(found.disagreement.clone());
    let written: u64 = found.checkpoints.iter().map(|c| c.written_bytes).sum();
    let synced_ns: u64 = found.checkpoints.iter().map(|c| c.sync_ns).sum();
    if written > 0 {
        sentences.push(format!(
            "They wrote {}{} (trace).",
            format_bytes(written),
            synced(synced_ns, found.total_s())
        ));
    }
    sentences.extend(harm.sentences.iter().cloned());
    if let Some(ratio) = found.throughput_ratio.filter(|ratio| *ratio < SLOWED_MAX) {
        sentences.push(format!(
            "Operations per second fell to {} of what they are otherwise (serverStatus).",
            percent(ratio)
        ));
    }
    let others = found.own_share.filter(|own| *own < OWN_SHARE_FEW);
    sentences.extend(others.map(|own| {
        format!(
            "Checkpoints wrote only {} of what went into the data files themselves: most of what their syncs \
             flush had been evicted before and waited in the page cache, and a lower dirty limit of the \
             server does not make that less. The kernel's vm.dirty_background_bytes says when it begins to \
             write such data by itself.",
            percent(own)
        )
    }));
    let Advice {
        sentence,
        command,
        risk,
    } = advice(evidence, found);
    sentences.extend(sentence);
    let saved = harm.saved_s_per_hour;
    Finding {
        id: "checkpoint.long".into(),
        title: format!(
            "Checkpoints take up to {}{} and hold up the rest: {} of waiting per hour",
            duration(found.longest_s),
            match found.longest_is_under_way() {
                true => " and more",
                false => "",
            },
            duration(saved)
        ),
        evidence: sentences,
        gain: Some(saved_per_hour(saved, saved * 0.3, saved)),
        saves_s_per_hour: Some(saved),
        confidence: confidence(evidence),
        risk: risk.into(),
        command,
        ..Finding::default()
    }
}

#[cfg(test)]
mod tests {
    use seekscope_run::FileRole;

    use super::*;
    use crate::testing::{Call, Recording};

    /// Records a checkpoint from second 20 to `until_s`; the journal syncs twenty times a second.
    fn recorded(until_s: u32, slow_s: f64) -> Recording {
        let mut recording = Recording::new();
        let table = recording.file("a.wt", FileRole::Collection, Some("shop.orders"));
        let log = recording.file("journal/WiredTigerLog.1", FileRole::Journal, None);
        let checkpoint = recording.thread("WTCheck.tThread");
        let journal = recording.thread("WTJourn.Flusher");
        for second in 20..until_s {
            recording.write(Call {
                tid: checkpoint,
                file_id: table,
                at_s: f64::from(second),
                offset: 0,
                bytes: 1 << 20,
                latency_s: 0.9,
            });
        }
        for i in 0..1200 {
            let at_s = f64::from(i) / 20.0;
            let slow = (20.0..f64::from(until_s)).contains(&at_s);
            recording.sync(Call {
                tid: journal,
                file_id: log,
                at_s,
                offset: 0,
                bytes: 0,
                latency_s: if slow { slow_s } else { 0.002 },
            });
        }
        recording
    }

    #[test]
    fn ill() {
        let found = recorded(35, 0.04).findings(&DETECTOR);
        // 300 syncs that took 38 ms longer each.
        let saved = found[0].saves_s_per_hour.unwrap();
        assert!(
            (saved / (300.0 * 0.038 * 60.0) - 1.0).abs() < 0.05,
            "{saved}"
        );
        assert_eq!(
            found[0].title,
            "Checkpoints take up to 14.9 s and hold up the rest: 11 min of waiting per hour"
        );
    }

    /// Records a checkpoint that the server counts.
    fn ended_at(to_s: f64, took_s: f64) -> Recording {
        let mut recording = Recording::new();
        let total = "wiredTiger.transaction.transaction checkpoint total time (msecs)";
        recording.values("serverStatus", total, |s| {
            if s < to_s { 0.0 } else { took_s * 1000.0 }
        });
        recording
    }

    #[test]
    fn operations_tell_without_a_trace() {
        let mut recording = ended_at(40.0, 20.0);
        recording.rising("opLatencies.writes.ops", 100.0);
        // 1 ms each; 5 ms from second 20 to 40.
        recording.values("serverStatus", "opLatencies.writes.latency", |s| {
            s * 100_000.0 + (s - 20.0).clamp(0.0, 20.0) * 400_000.0
        });
        let found = recording.findings(&DETECTOR);
        let saved = found[0].saves_s_per_hour.unwrap();
        assert!((saved / (20.0 * 0.4 * 60.0) - 1.0).abs() < 0.1, "{saved}");
    }

    #[test]
    fn healthy() {
        assert_eq!(
            recorded(35, 0.002).findings(&DETECTOR),
            [],
            "nobody suffers"
        );
        assert_eq!(recorded(21, 0.04).findings(&DETECTOR), [], "it is short");
        assert_eq!(Recording::new().findings(&DETECTOR), []);
    }

    #[test]
    fn threads_that_make_room_tell_where_no_pause_is_left() {
        let mut recording = ended_at(59.0, 57.0);
        recording.rising(CACHE_ROOM_US[0], 500_000.0);
        let found = recording.findings(&DETECTOR);
        let saved = found[0].saves_s_per_hour.unwrap();
        assert!((saved / 1800.0 - 1.0).abs() < 0.02, "{saved}");
        let mut between = ended_at(40.0, 20.0);
        between.rising(CACHE_ROOM_US[0], 500_000.0);
        assert_eq!(between.findings(&DETECTOR), [], "they do so anyway");
    }

    #[test]
    fn tracing_ended_early_and_counters_go_on() {
        let mut recording = ended_at(40.0, 20.0);
        recording.document.phases[0].ended_ns = crate::testing::START_NS + 8_000_000_000;
        recording.rising("opLatencies.writes.ops", 100.0);
        recording.values("serverStatus", "opLatencies.writes.latency", |s| {
            s * 100_000.0 + (s - 20.0).clamp(0.0, 20.0) * 400_000.0
        });
        let found = recording.findings(&DETECTOR);
        let saved = found[0].saves_s_per_hour.unwrap();
        assert!((saved / (20.0 * 0.4 * 60.0) - 1.0).abs() < 0.1, "{saved}");
        let ran = "1 checkpoint ran 20.0 s of 60.0 s";
        assert!(
            found[0].evidence[0].starts_with(ran),
            "{}",
            found[0].evidence[0]
        );
    }

    #[test]
    fn a_limit_is_set_only_where_it_is_known() {
        let mut recording = recorded(35, 0.04);
        recording.steady(crate::answers::DIRTY_BYTES, 2e9);
        let command = recording.findings(&DETECTOR).remove(0).command;
        assert!(command.contains("eviction_dirty_trigger=3"), "{command}");
        // 2 % of it is more than was dirty.
        recording.steady(crate::answers::CACHE_BYTES_MAX, 1e12);
        let command = recording.findings(&DETECTOR).remove(0).command;
        assert_eq!(command, "seekscope tune init mongodb://db1:27017/");
    }
}
