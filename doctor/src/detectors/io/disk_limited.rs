//! `disk.limited`: a limit that is not the disk's own holds requests back: a control group's, or the
//! volume's.
//!
//! A limit is reported where it is known and was reached, or where calls wait far longer than the disk takes
//! for their requests while CPUs are free: then something between the two holds them back.

use seekscope_run::units::{format_bytes, format_count, whole};
use seekscope_run::{Finding, IoLimit};

use super::disk_saturated::{BY_OTHERS, OWN_SHARE, WHO_ELSE};
use super::{Detector, are_enough, checkpoint, confidence, saved_per_hour};
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

/// Is there such a finding?
pub(super) fn is_limited(evidence: &Evidence<'_>, answers: &Answers) -> bool {
    !detect(evidence, answers).is_empty()
}

/// Is there such a finding, of a limit of writes? Then room in the cache is waited for because of it.
pub(super) fn limits_writes(evidence: &Evidence<'_>, answers: &Answers) -> bool {
    ceiling_reached(evidence).is_some_and(|ceiling| ceiling.of_writes)
        && is_limited(evidence, answers)
}

/// Returns the limit on writes that was reached most of the time, if there is one: checkpoints take long because of it,
/// too.
pub(super) fn of_writes(evidence: &Evidence<'_>) -> Option<Ceiling> {
    ceiling_reached(evidence).filter(|ceiling| ceiling.of_writes && ceiling.share >= MOST)
}

/// Is there such a limit while writes wait for syncs? Then they are held up by it, checkpoints or not.
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
    let free_ns = free_ns(evidence, load, ceiling, &waiting)?;
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
        sentence: format!(
            "{seen}; without the limit the disk takes about {} ({}).",
            duration(free_ns / 1e9),
            if ceiling.before_disk {
                "diskstats, device model"
            } else {
                "device model"
            },
        ),
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
        let whose = match ceiling.cgroup {
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
        risk: "Limits are often set for the sake of neighbours, or are what was paid for.".into(),
        command: match others_share {
            Some(_) => WHO_ELSE.into(),
            None => command(evidence, ceiling),
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
        .cgroup
        .as_ref()
        .and_then(|_| evidence.rate("cgroup", bytes));
    let all = of_group.or_else(|| evidence.rate("diskstats", bytes))?;
    let own = evidence.rate("process", bytes)?;
    let others_share = 1.0 - own / all.max(1.0);
    (others_share > 1.0 - OWN_SHARE).then_some(others_share)
}

/// Returns the time that a request would take without the limit, ns.
fn free_ns(
    evidence: &Evidence<'_>,
    load: &DeviceLoad,
    ceiling: &Ceiling,
    waiting: &ReadWaiting,
) -> Option<f64> {
    let seen_ns = if ceiling.of_writes {
        load.write_ns
    } else {
        load.read_ns
    };
    let depth = waiting.s_per_s.clamp(1.0, 1024.0);
    let bytes = load.request_bytes();
    let of_model = |free_of_buckets: bool| {
        // The opinion includes the control group's limits; those found by measuring stay.
        let mut model = evidence.disk_beyond_limits()?;
        if free_of_buckets {
            (model.iops_bucket, model.bytes_bucket) = (None, None);
            // The table was measured under the limit; a single request was not held back by it.
            model.depths.retain(|point| point.depth == 1);
            return Some(model.l0_ns + model.ns_per_byte * bytes);
        }
        ability::latency_ns(&model, bytes, depth)
    };
    if ceiling.before_disk {
        // The disk is less busy now than it would be without the limit.
        return seen_ns.map(|ns| ns.max(of_model(false).unwrap_or(0.0).min(waiting.mean_ns / 2.0)));
    }
    of_model(true)
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
        risk: "Limits are often set for the sake of neighbours, or are what was paid for.".into(),
        command: known.map_or_else(
            || limits_of_process(evidence),
            |limit| limits_of_group(&limit.cgroup),
        ),
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

/// Returns a command that shows the limits of the control groups that the server is in, whichever these are: none of
/// them was seen to be reached.
fn limits_of_process(evidence: &Evidence<'_>) -> String {
    let pid = evidence.examined().and_then(|member| member.target.pid);
    let process = pid.map_or("self".into(), |pid| pid.to_string());
    format!(
        "for group in $(cut -d: -f3 /proc/{process}/cgroup | sort -u); do grep -s . /sys/fs/cgroup$group/io.max \
         /sys/fs/cgroup/blkio$group/blkio.throttle.*_device; done; true"
    )
}

fn command(evidence: &Evidence<'_>, ceiling: &Ceiling) -> String {
    match &ceiling.cgroup {
        Some(cgroup) => limits_of_group(cgroup),
        None => super::measure_disk(evidence),
    }
}

/// Returns a command that shows the limits of one control group.
fn limits_of_group(cgroup: &str) -> String {
    let folder = |root: &str| crate::wording::shell_quoted(&format!("{root}{cgroup}"));
    format!(
        "grep -s . {}/io.max {}/blkio.throttle.*_device || true",
        folder("/sys/fs/cgroup"),
        folder("/sys/fs/cgroup/blkio")
    )
}

#[cfg(test)]
mod tests {
    use seekscope_run::{FileRole, IoLimit};

    use super::*;
    use crate::detectors::io::application_eviction::PAGES;
    use crate::testing::{Call, OBSERVED_S, Recording, START_NS, flash, shuffled};

    /// 145 reads per second that take `latency_s`, of which the disk takes 0.2 ms.
    fn reading(latency_s: f64) -> Recording {
        let mut recording = Recording::new();
        let file_id = recording.file("a.wt", FileRole::Collection, Some("shop.orders"));
        let tid = recording.thread("conn1");
        for (i, place) in shuffled(8700).into_iter().enumerate() {
            recording.miss(Call {
                tid,
                file_id,
                at_s: i as f64 / 145.0,
                offset: u64::from(place) * 32_768,
                bytes: 32_768,
                latency_s,
            });
        }
        for (name, per_s) in [
            ("reads", 145.0),
            ("reads_merged", 0.0),
            ("writes", 0.0),
            ("read_bytes", 145.0 * 32_768.0),
            ("write_bytes", 0.0),
            ("read_ms", 29.0),
            ("write_ms", 0.0),
            ("queue_ms", 29.0),
        ] {
            recording.values("diskstats", name, |s| s * per_s);
        }
        recording.values("process", "cpu_ns", |s| s * 0.2e9);
        recording.ability(flash(1e-4));
        recording
    }

    fn limit(recording: &mut Recording, per_s: u64) {
        recording.host().surroundings.io_limits.push(IoLimit {
            cgroup: "/db".into(),
            device: "254:0".into(),
            what: "read IOPS".into(),
            per_s,
        });
    }

    #[test]
    fn ill_by_a_known_limit() {
        let mut recording = reading(0.05);
        limit(&mut recording, 150);
        let found = recording.findings(&DETECTOR);
        let waiting = 145.0 * 0.05 * 3600.0;
        let saved = found[0].saves_s_per_hour.unwrap();
        assert!(
            saved > 0.98 * waiting && saved < waiting,
            "{saved} {waiting}"
        );
        assert!(
            found[0].title.contains("read IOPS 150/s"),
            "{}",
            found[0].title
        );
        assert_eq!(found[0].confidence, "high");
    }

    /// A neighbour in the group reads nearly all that it may.
    #[test]
    fn ill_by_a_limit_that_others_use_up() {
        let mut recording = reading(0.05);
        limit(&mut recording, 150);
        recording.values("cgroup", "reads", |s| s * 148.0);
        recording.values("cgroup", "read_bytes", |s| s * 148.0 * 32_768.0);
        recording.values("process", "read_bytes", |s| s * 2.0 * 32_768.0);
        let found = recording.findings(&DETECTOR);
        assert!(found[0].title.ends_with(BY_OTHERS), "{found:?}");
        assert_eq!(found[0].command, WHO_ELSE);
        recording.values("process", "read_bytes", |s| s * 140.0 * 32_768.0);
        let found = recording.findings(&DETECTOR);
        assert!(!found[0].title.contains("other processes"), "{found:?}");
    }

    /// A group that writes 15 MB/s all the time, as many as it may, while two threads make room in the cache.
    fn writing() -> Recording {
        let mut recording = at_its_limit();
        recording.rising(EVICTING_US[0], 2e6);
        recording.rising(PAGES[0], 90.0);
        recording
    }

    /// A group that writes 15 MB/s all the time, as many as it may.
    fn at_its_limit() -> Recording {
        let mut recording = Recording::new();
        for (name, per_s) in [
            ("reads", 0.0),
            ("writes", 300.0),
            ("read_bytes", 0.0),
            ("write_bytes", 15e6),
            ("read_ms", 0.0),
            ("write_ms", 60.0),
            ("queue_ms", 60.0),
        ] {
            recording.values("diskstats", name, |s| s * per_s);
        }
        recording.ability(flash(1e-4));
        recording.host().surroundings.io_limits.push(IoLimit {
            cgroup: "/db".into(),
            device: "254:0".into(),
            what: "write bytes/s".into(),
            per_s: 15_000_000,
        });
        recording
    }

    #[test]
    fn a_limit_of_writes_is_why_room_in_the_cache_is_waited_for() {
        let found = writing().diagnosis().findings;
        assert_eq!(found[0].id, "disk.limited", "{found:#?}");
        assert!(
            found[0].evidence[1].contains("2.0 h per hour"),
            "{found:#?}"
        );
        assert!((found[0].saves_s_per_hour.unwrap() - 7200.0).abs() < 1.0);
        let eviction = "eviction.by-application-threads";
        assert!(found.iter().all(|finding| finding.id != eviction));
        let mut unlimited = writing();
        unlimited.host().surroundings.io_limits.clear();
        let found = unlimited.diagnosis().findings;
        assert_eq!(found[0].id, eviction, "{found:#?}");
    }

    /// The slower a disk, the fewer syncs there are: at 12 writes a second one takes a third of a second.
    #[test]
    fn a_few_syncs_that_fill_the_time_are_enough() {
        let mut recording = at_its_limit();
        recording.rising("wiredTiger.log.log sync operations", 1.2);
        recording.rising("wiredTiger.log.log sync time duration (usecs)", 980_000.0);
        recording.rising("opLatencies.writes.ops", 1.2);
        recording.rising("opLatencies.writes.latency", 990_000.0);
        let found = recording.diagnosis().findings;
        assert_eq!(found[0].id, "disk.limited", "{found:#?}");
        assert!(found[0].saves_s_per_hour.unwrap() > 3000.0, "{found:#?}");
        let mut unlimited = recording;
        unlimited.host().surroundings.io_limits.clear();
        let found = unlimited.diagnosis().findings;
        assert_eq!(found[0].id, "journal.slow-sync", "{found:#?}");
        assert!(found.iter().all(|f| f.id != "disk.not-the-problem"));
    }

    /// A regression: in a watch of three seconds the limit, which was known, was to be searched for.
    #[test]
    fn ill_by_a_known_limit_in_a_short_watch() {
        let short = |per_s: u64| {
            let mut recording = reading(0.05);
            limit(&mut recording, per_s);
            recording.examine(|evidence, _| {
                let mut counters = evidence.counters.clone();
                counters.forget_before(START_NS + u64::from(OBSERVED_S - 3) * 1_000_000_000);
                let evidence = Evidence {
                    counters: &counters,
                    ..*evidence
                };
                detect(&evidence, &Answers::of(&evidence)).remove(0)
            })
        };
        let reached = short(150);
        let title = "cgroup /db read IOPS 150/s was reached in 97 % of the seconds";
        assert!(reached.title.ends_with(title), "{reached:?}");
        let near = short(200);
        assert!(near.title.contains("Something holds"), "{near:?}");
        let known = "The limit that is known, cgroup /db read IOPS 200/s, was not seen";
        assert!(near.evidence[2].starts_with(known), "{near:?}");
        assert!(
            near.command
                .starts_with("grep -s . /sys/fs/cgroup/db/io.max")
        );
    }

    #[test]
    fn ill_by_a_limit_that_hides() {
        let found = reading(0.05).findings(&DETECTOR);
        assert_eq!((found.len(), found[0].confidence.as_str()), (1, "medium"));
        let mut busy = reading(0.05);
        busy.values("pressure", "cpu.some_us", |s| s * 900_000.0);
        assert_eq!(busy.findings(&DETECTOR), [], "it may be the CPU");
    }

    #[test]
    fn without_pressure_the_cpus_in_use_tell() {
        let free = reading(0.05).findings(&DETECTOR);
        assert!(!free[0].evidence[1].contains("CPU"), "{free:?}");
        let mut busy = reading(0.05);
        busy.document.host.as_mut().unwrap().cpus = 0;
        assert_eq!(busy.findings(&DETECTOR), [], "nobody knows");
        busy.document.host.as_mut().unwrap().cpus = 8;
        busy.host().surroundings.cpu_quota = Some(0.3);
        assert_eq!(busy.findings(&DETECTOR), [], "it may be the CPU");
        let mut told = reading(0.05);
        told.values("pressure", "cpu.some_us", |s| s * 20_000.0);
        let sentence = &told.findings(&DETECTOR)[0].evidence[1];
        assert!(sentence.contains("a CPU in 2.0 % of"), "{sentence}");
    }

    #[test]
    fn waiting_during_long_checkpoints_is_theirs() {
        let mut recording = reading(0.002);
        let file_id = recording.file("b.wt", FileRole::Collection, Some("shop.items"));
        let tid = recording.thread("conn2");
        let checkpoint = recording.thread("WTCheck.tThread");
        for i in 0..200 {
            let call = Call {
                tid: checkpoint,
                file_id,
                at_s: 20.0 + f64::from(i) / 10.0,
                offset: u64::try_from(i).unwrap() << 20,
                bytes: 1 << 20,
                latency_s: 0.09,
            };
            recording.write(call);
            for reader in 0..10_u64 {
                recording.miss(Call {
                    tid,
                    offset: call.offset + (reader << 32),
                    bytes: 32_768,
                    latency_s: 0.3,
                    ..call
                });
            }
        }
        let saved = recording.findings(&DETECTOR)[0].saves_s_per_hour.unwrap();
        // 8700 reads of 2 ms are outside the checkpoint or as quick as ever while it runs.
        assert!(saved <= 8700.0 * 0.002 * 60.0, "{saved}");
    }

    #[test]
    fn healthy() {
        let mut far = reading(0.0003);
        limit(&mut far, 3000);
        assert_eq!(far.findings(&DETECTOR), []);
        let mut near_but_quick = reading(0.0003);
        limit(&mut near_but_quick, 150);
        assert_eq!(
            near_but_quick.findings(&DETECTOR),
            [],
            "nobody waits for it"
        );
        assert_eq!(Recording::new().findings(&DETECTOR), []);
    }
}
