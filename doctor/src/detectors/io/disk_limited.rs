//! `disk.limited`: a limit that is not the disk's own holds requests back: a control group's, or the
//! volume's.
//!
//! A limit is reported where it is known and was reached, or where calls wait far longer than the disk takes
//! for their requests while CPUs are free: then something between the two holds them back.

mod lift;

use seekscope_pattern::FileTrace;
use seekscope_run::units::{format_bytes, format_count, whole};
use seekscope_run::{Finding, IoLimit};
use seekscope_stats::Quantiles;

use super::disk_saturated::{BY_OTHERS, OWN_SHARE, WHO_ELSE};
use super::{Detector, EVENTS_MIN, are_enough, checkpoint, confidence, saved_per_hour};
use crate::answers::{Ceiling, DeviceLoad, ceiling_reached, limit_in_words};
use crate::evidence::ability;
use crate::evidence::held_back::{HELD_BACK, HeldBack};
use crate::evidence::is_job;
use crate::evidence::waiting::{CACHE_ROOM_US, EVICTING_US, ReadWaiting};
use crate::ranking::NOTICEABLE_S_PER_HOUR;
use crate::wording::{duration, percent};
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &["disk.limited"],
    detect,
};

/// Share of the waiting from which on the file is named, and of the seconds in which a limit was reached from which on it
/// is why checkpoints take long.
const MOST: f64 = 0.5;
/// Where the mean of calls is this many times their median, the quicker half was not held back.
const SKEWED: f64 = 4.0;
/// Two times are alike if one is less than this many times the other.
const ALIKE: f64 = 1.5;

fn detect(evidence: &Evidence<'_>, answers: &Answers) -> Vec<Finding> {
    let Some(load) = answers.device_load.as_ref() else {
        return Vec::new();
    };
    let found = match ceiling_reached(evidence) {
        Some(ceiling) => at_ceiling(evidence, answers, load, &ceiling),
        None => held_back(evidence, answers, load),
    };
    found.into_iter().collect()
}

/// Returns whether there is such a finding.
pub(super) fn is_limited(evidence: &Evidence<'_>, answers: &Answers) -> bool {
    !detect(evidence, answers).is_empty()
}

/// Returns whether there is such a finding, of a limit on writes. If so, room in the cache is waited for because of it.
pub(super) fn limits_writes(evidence: &Evidence<'_>, answers: &Answers) -> bool {
    ceiling_reached(evidence).is_some_and(|ceiling| ceiling.of_writes)
        && is_limited(evidence, answers)
}

/// Returns the limit on writes that was reached most of the time, if there is one: checkpoints take long because of it,
/// too.
pub(super) fn of_writes(evidence: &Evidence<'_>) -> Option<Ceiling> {
    ceiling_reached(evidence).filter(|ceiling| ceiling.of_writes && ceiling.share >= MOST)
}

/// Returns whether there is such a limit while writes wait for syncs. If so, they are held up by it, checkpoints or
/// not.
pub(super) fn holds_up_syncs(evidence: &Evidence<'_>) -> bool {
    of_writes(evidence).is_some() && evidence.writes_wait_for_syncs()
}

/// The waiting that a limit causes.
struct Waiting {
    most_s_per_hour: f64,
    saved_s_per_hour: f64,
    sentence: String,
}

/// Returns the waiting of calls that take much longer than they would without the limit.
fn of_calls(
    evidence: &Evidence<'_>,
    answers: &Answers,
    load: &DeviceLoad,
    ceiling: &Ceiling,
) -> Option<Waiting> {
    let (waiting, most_s_per_hour) = match ceiling.of_writes {
        true => (sync_waiting(evidence)?, evidence.sync_waiting_s_per_hour()?),
        false => {
            let waiting = evidence.read_waiting()?;
            (waiting, waiting.s_per_s * 3600.0)
        }
    };
    let (free_ns, without_limit) = without_limit(evidence, load, ceiling, &waiting)?;
    let share = (1.0 - free_ns / waiting.mean_ns.max(1.0)).max(0.0);
    let (mean, source) = (duration(waiting.mean_ns / 1e9), waiting.source);
    let waited = format!("{:.2} s per second together", most_s_per_hour / 3600.0);
    let seen = match ceiling.of_writes {
        true => format!(
            "Syncs of the journal took {mean} on average ({source}), and writes waited {waited} for them"
        ),
        false => format!(
            "{} reads per second were not served from memory and waited {mean} on average, {waited} ({source}){}",
            format_count(whole(waiting.reads_per_s)),
            mostly_of(answers, &waiting).unwrap_or_default()
        ),
    };
    (waiting.mean_ns >= 2.0 * free_ns).then(|| Waiting {
        most_s_per_hour,
        saved_s_per_hour: most_s_per_hour * share,
        sentence: format!("{seen}; {without_limit}."),
    })
}

/// Names the file that most of the waiting for reads is about, as the end of a sentence.
fn mostly_of(answers: &Answers, waiting: &ReadWaiting) -> Option<String> {
    let mut users = answers.device_users.iter();
    let first = users.find(|user| !user.writes)?;
    let share = first.waiting_s_per_s / waiting.s_per_s.max(1e-9);
    let name = first.namespace.as_deref()?;
    (share >= MOST).then(|| format!(", {} of that for {name}", percent(share.min(1.0))))
}

/// Returns the waiting for room in the cache, which is there when changed pages are written.
fn of_room(evidence: &Evidence<'_>, answers: &Answers, ceiling: &Ceiling) -> Option<Waiting> {
    let s_per_hour = [&CACHE_ROOM_US, &EVICTING_US]
        .into_iter()
        .filter_map(|names| checkpoint::beyond(evidence, answers, names))
        .reduce(f64::max)?;
    let is_it = ceiling.of_writes && s_per_hour >= NOTICEABLE_S_PER_HOUR;
    is_it.then(|| Waiting {
        most_s_per_hour: s_per_hour,
        saved_s_per_hour: s_per_hour * ceiling.busy_share,
        sentence: format!(
            "Operations waited {} per hour for room in the cache, or made it themselves: changed pages have to be \
             written for it (serverStatus).",
            duration(s_per_hour)
        ),
    })
}

fn at_ceiling(
    evidence: &Evidence<'_>,
    answers: &Answers,
    load: &DeviceLoad,
    ceiling: &Ceiling,
) -> Option<Finding> {
    let waiting = [
        of_calls(evidence, answers, load, ceiling),
        of_room(evidence, answers, ceiling),
    ];
    let mut waiting: Vec<Waiting> = waiting.into_iter().flatten().collect();
    waiting.sort_by(|a, b| b.saved_s_per_hour.total_cmp(&a.saved_s_per_hour));
    let saved: f64 = waiting.iter().map(|waiting| waiting.saved_s_per_hour).sum();
    let most: f64 = waiting.iter().map(|waiting| waiting.most_s_per_hour).sum();
    if saved < NOTICEABLE_S_PER_HOUR {
        return None;
    }
    let rates = [ceiling.used_per_s, ceiling.limit_per_s].map(|per_s| match ceiling.in_bytes {
        true => format_bytes(whole(per_s)),
        false => format!("{per_s:.0}"),
    });
    let [used, granted] = rates;
    let mut sentences = vec![format!(
        "{used} per second were used on average of the {granted} that it grants."
    )];
    sentences.extend(waiting.into_iter().map(|waiting| waiting.sentence));
    let others_share = others_share(evidence, ceiling);
    sentences.extend(others_share.map(|share| {
        let whose = match ceiling.limit {
            Some(_) => "of the bytes that count against it",
            None => "of the disk's bytes",
        };
        format!(
            "{} {whose} are not this server's (/proc/PID/io).",
            percent(share)
        )
    }));
    sentences.extend(built_meanwhile(evidence));
    let by = others_share.map_or("", |_| BY_OTHERS);
    Some(Finding {
        id: "disk.limited".into(),
        subject: evidence
            .device()
            .and_then(|d| d.disk.clone())
            .unwrap_or_default(),
        title: format!(
            "A limit, not the disk, holds the server back: {} was reached in {} of the seconds{by}",
            ceiling.name,
            percent(ceiling.share)
        ),
        evidence: sentences,
        gain: Some(saved_per_hour(saved, saved * 0.5, most)),
        saves_s_per_hour: Some(saved),
        confidence: confidence(evidence),
        risk: match ceiling.limit {
            Some(_) => lift::RISK,
            None => lift::RISK_OF_VOLUME,
        }
        .into(),
        command: match others_share {
            Some(_) => WHO_ELSE.into(),
            None => lift::command(evidence, ceiling),
        },
        ..Finding::default()
    })
}

/// Says that a job ran which has ended, so that what was waited in that time is not waited every hour.
fn built_meanwhile(evidence: &Evidence<'_>) -> Option<String> {
    let mut operations = evidence.examined()?.operations.iter();
    let ended = operations.find(|operation| is_job(operation) && operation.has_ended())?;
    let on = ended.namespace.as_deref();
    Some(format!(
        "A job of the server ({}{}) ran meanwhile and has ended: what waited for it is counted, and is not saved again \
         in every hour.",
        ended.kind,
        on.map_or(String::new(), |on| format!(" on {on}"))
    ))
}

/// Returns the share of what uses the limit up that is not the server's, if that is most of it.
fn others_share(evidence: &Evidence<'_>, ceiling: &Ceiling) -> Option<f64> {
    let bytes = match ceiling.of_writes {
        true => "write_bytes",
        false => "read_bytes",
    };
    let of_group = ceiling
        .limit
        .as_ref()
        .and_then(|_| evidence.rate("cgroup", bytes));
    let all = of_group.or_else(|| evidence.rate("diskstats", bytes))?;
    let own = evidence.rate("process", bytes)?;
    let others_share = 1.0 - own / all.max(1.0);
    (others_share > 1.0 - OWN_SHARE).then_some(others_share)
}

/// Returns what a call would take without the limit, ns, and says by what: by the calls that the limit did not hold
/// back, if there are enough of them; else by what the disk takes for its requests, which says little of a sync.
fn without_limit(
    evidence: &Evidence<'_>,
    load: &DeviceLoad,
    ceiling: &Ceiling,
    waiting: &ReadWaiting,
) -> Option<(f64, String)> {
    let quicker = median_ns(evidence, ceiling).filter(|_| ceiling.before_disk);
    if let Some(ns) = quicker.filter(|ns| ns * SKEWED <= waiting.mean_ns) {
        let told = format!(
            "half of them took at most {}, which is about what the disk takes for one that the limit does not hold back \
             (trace)",
            duration(ns / 1e9)
        );
        return Some((ns, told));
    }
    let of_model = of_model(evidence, load, ceiling, waiting);
    match ceiling.before_disk {
        true => by_requests(load, ceiling, waiting, of_model),
        false => of_model.map(|ns| {
            let told = format!(
                "without the limit the disk is expected to take about {} (device model)",
                duration(ns / 1e9)
            );
            (ns, told)
        }),
    }
}

/// Returns the same by the requests that reach the disk: as it was seen to serve them, and as its model expects.
fn by_requests(
    load: &DeviceLoad,
    ceiling: &Ceiling,
    waiting: &ReadWaiting,
    of_model: Option<f64>,
) -> Option<(f64, String)> {
    let (seen_ns, of_syncs) = match ceiling.of_writes {
        true => (load.write_ns?, "; a sync may be several of them"),
        false => (load.read_ns?, ""),
    };
    // The disk is less busy now than it would be without the limit.
    let model_ns = of_model.map_or(seen_ns, |ns| ns.min(waiting.mean_ns / 2.0));
    let [least, most] = [seen_ns.min(model_ns), seen_ns.max(model_ns)];
    let most_in_words = duration(most / 1e9);
    let range = match most < least * ALIKE {
        true => format!("some {most_in_words}"),
        false => format!("between {} and {most_in_words}", duration(least / 1e9)),
    };
    let told = format!(
        "a request that has reached the disk takes it {range}{of_syncs} (diskstats, device model)"
    );
    Some((most, told))
}

/// Returns what half of the calls took at most that the limit may hold back, ns: of the file that has most of the reads,
/// or of the journal's syncs; `None` without a trace of enough.
fn median_ns(evidence: &Evidence<'_>, ceiling: &Ceiling) -> Option<f64> {
    let found: Vec<Quantiles> = match ceiling.of_writes {
        true => {
            let found = evidence.device_use?;
            vec![found.journal_during_ns, found.journal_otherwise_ns]
        }
        false => {
            let waiting = |file: &FileTrace| {
                let by = &file.latency_by_outcome;
                [by.miss_ns, by.waited_ns, by.direct_ns]
            };
            evidence.trace?.files.iter().flat_map(waiting).collect()
        }
    };
    let most = found.into_iter().max_by_key(|calls| calls.count)?;
    (most.count as f64 >= EVENTS_MIN).then_some(most.p50 as f64)
}

/// Returns what a request takes without the limit by the device's model, ns.
fn of_model(
    evidence: &Evidence<'_>,
    load: &DeviceLoad,
    ceiling: &Ceiling,
    waiting: &ReadWaiting,
) -> Option<f64> {
    let depth = waiting.s_per_s.clamp(1.0, 1024.0);
    let bytes = load.request_bytes();
    // The opinion includes the control group's limits; those found by measuring stay.
    let mut model = evidence.disk_beyond_limits()?;
    if ceiling.before_disk {
        return ability::latency_ns(&model, bytes, depth);
    }
    // The table was measured under the limit; a single request was not held back by it.
    (model.iops_bucket, model.bytes_bucket) = (None, None);
    Some(model.l0_ns + model.ns_per_byte * bytes)
}

/// Returns the waiting for journal syncs, as far as anybody can have waited for them.
fn sync_waiting(evidence: &Evidence<'_>) -> Option<ReadWaiting> {
    let syncs = evidence.syncs()?;
    let most_s_per_s = evidence.sync_waiting_s_per_hour()? / 3600.0;
    are_enough(&syncs).then(|| ReadWaiting {
        reads_per_s: syncs.per_s(),
        s_per_s: syncs.s_per_s().min(most_s_per_s),
        mean_ns: syncs.mean_ns,
        source: syncs.source,
    })
}

/// Detects a limit that is not reported anywhere.
fn held_back(evidence: &Evidence<'_>, answers: &Answers, load: &DeviceLoad) -> Option<Finding> {
    let HeldBack {
        waiting,
        reads,
        disk_ns,
        requests_per_s,
        cpu_pressure,
    } = HeldBack::of(evidence)?;
    let most = waiting.s_per_s * 3600.0 * share_beyond_checkpoints(evidence, answers);
    let saved = most * (1.0 - HELD_BACK / 2.0 * disk_ns / waiting.mean_ns);
    let known = known_limit(evidence);
    (saved >= NOTICEABLE_S_PER_HOUR).then(|| Finding {
        id: "disk.limited".into(),
        subject: evidence.device().and_then(|d| d.disk.clone()).unwrap_or_default(),
        title: format!(
            "Something holds requests back before they reach the disk: a read from the disk takes {}, of which the disk \
             itself takes {}",
            duration(waiting.mean_ns / 1e9),
            duration(disk_ns / 1e9)
        ),
        evidence: vec![
            format!(
                "{reads:.0} reads waited {} on average (trace), while the disk served its requests in {} \
                 (diskstats).",
                duration(waiting.mean_ns / 1e9),
                duration(disk_ns / 1e9)
            ),
            format!(
                "{requests_per_s:.0} requests of {:.0} KiB reached it per second{}.",
                load.read_bytes_per_s / requests_per_s / 1024.0,
                cpu_pressure.map_or(String::new(), |share| format!(
                    "; some task waited for a CPU in {} of the time",
                    percent(share)
                ))
            ),
            match known {
                Some(limit) => format!(
                    "The limit that is known, {}, was not seen to be reached; it may hold back short bursts.",
                    limit_in_words(limit)
                ),
                None => "That is how a control group's I/O limit shows from inside a container.".into(),
            },
        ],
        gain: Some(saved_per_hour(saved, saved * 0.3, most)),
        saves_s_per_hour: Some(saved),
        confidence: "medium".into(),
        risk: lift::RISK.into(),
        command: known.map_or_else(|| lift::limits_of_process(evidence), lift::of_group),
        ..Finding::default()
    })
}

/// Returns the limit of reads that was found in the server's control groups; the tightest of requests, else of bytes.
fn known_limit<'a>(evidence: &Evidence<'a>) -> Option<&'a IoLimit> {
    let limits = &evidence.host_settings()?.surroundings.io_limits;
    let tightest = |what: &str| {
        let of_it = limits.iter().filter(|limit| limit.what == what);
        of_it.min_by_key(|limit| limit.per_s)
    };
    tightest("read IOPS").or_else(|| tightest("read bytes/s"))
}

/// Returns the share of the waiting for reads that is not due to long checkpoints.
fn share_beyond_checkpoints(evidence: &Evidence<'_>, answers: &Answers) -> f64 {
    let Some(found) = evidence
        .device_use
        .filter(|_| checkpoint::is_harmful(evidence, answers))
    else {
        return 1.0;
    };
    let sides = [found.reads_otherwise_ns, found.reads_during_ns];
    let [otherwise, during] = sides.map(|reads| reads.count as f64 * reads.mean as f64);
    if otherwise + during > 0.0 {
        otherwise / (otherwise + during)
    } else {
        1.0
    }
}

#[cfg(test)]
mod tests;
