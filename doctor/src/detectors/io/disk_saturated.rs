//! `disk.saturated`: the load is near what the disk can do, and requests queue.
//!
//! A saturated disk is the effect of what loads it: what order, cache or a limit would save is credited to
//! them; see `ranking.rs`.

use seekscope_run::Finding;
use seekscope_run::units::{format_bytes, whole};

use super::{Detector, EVENTS_MIN, confidence, disk_limited, saved_per_hour};
use crate::answers::{DeviceUser, ceiling_reached};
use crate::evidence::ability;
use crate::ranking::NOTICEABLE_S_PER_HOUR;
use crate::wording::{duration, percent};
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &["disk.saturated"],
    detect,
};

/// The share of the disk's capability from which queues grow without bound when arrivals are irregular.
const SATURATED: f64 = 0.8;
/// Requests take this many times as long as they would alone.
const QUEUED: f64 = 1.5;
/// A disk that has requests in less than this share of the time is not full, whatever is assumed of it.
const IDLE: f64 = 0.1;
/// Number of users that are named.
const NAMED: usize = 3;
/// Below this share of the disk's bytes the examined server is not what loads it.
pub(super) const OWN_SHARE: f64 = 0.5;
/// End of a title.
pub(super) const BY_OTHERS: &str = ", mostly by other processes than this server";
/// Lists the processes that have read and written most since they began.
pub(super) const WHO_ELSE: &str =
    "grep -H '_bytes' /proc/[0-9]*/io | grep -v cancelled | sort -n -t ' ' -k 2 | tail -20";

fn detect(evidence: &Evidence<'_>, answers: &Answers) -> Vec<Finding> {
    let found = if disk_limited::is_limited(evidence, answers) || is_spared(evidence) {
        None
    } else {
        judge(evidence, answers)
    };
    found.into_iter().collect()
}

/// Returns whether the disk is spared most of what threads want to read, because a control group is at its limit, or
/// was seen to be idle.
fn is_spared(evidence: &Evidence<'_>) -> bool {
    let ceiling = ceiling_reached(evidence);
    let busy_ms = evidence.rate("diskstats", "busy_ms");
    ceiling.is_some_and(|ceiling| ceiling.before_disk && !ceiling.of_writes)
        || busy_ms.is_some_and(|busy_ms| busy_ms < IDLE * 1000.0)
}

fn judge(evidence: &Evidence<'_>, answers: &Answers) -> Option<Finding> {
    let load = answers.device_load.as_ref()?;
    let (utilisation, able) = (load.utilisation?, load.able_requests_per_s?);
    let requests_per_s = load.reads_per_s + load.writes_per_s;
    if utilisation < SATURATED || requests_per_s * evidence.observed_s()? < EVENTS_MIN {
        return None;
    }
    let model = evidence.disk_beyond_limits()?;
    let alone_ns = ability::latency_ns(&model, load.request_bytes(), 1.0)?;
    let waiting = evidence.read_waiting()?;
    // Calls may also wait for what holds them back before they reach the disk.
    let queued_ns = load.read_ns.unwrap_or(waiting.mean_ns);
    let saved = waiting.s_per_s * 3600.0 * (1.0 - alone_ns / queued_ns.max(alone_ns));
    if queued_ns < QUEUED * alone_ns || saved < NOTICEABLE_S_PER_HOUR {
        return None;
    }
    let others_share = load.server_share.map(|own| 1.0 - own);
    let others_share = others_share.filter(|share| *share > 1.0 - OWN_SHARE);
    let by = match (others_share, answers.device_users.first()) {
        (Some(_), _) => BY_OTHERS.into(),
        (None, Some(user)) => format!(", mostly by {}", user.describe()),
        (None, None) => String::new(),
    };
    let mut sentences = vec![
        format!(
            "{requests_per_s:.0} requests per second of {} on average; able: {able:.0} of that size \
             (diskstats, device model {}).",
            format_bytes(whole(load.request_bytes())),
            load.ability_basis
        ),
        format!(
            "Reads took {} on average, alone {}; {:.1} requests were under way (diskstats).",
            duration(queued_ns / 1e9),
            duration(alone_ns / 1e9),
            load.queue_depth
        ),
    ];
    sentences.extend(others_share.map(|share| {
        let of_others = whole(share * (load.read_bytes_per_s + load.write_bytes_per_s));
        format!(
            "{} of the bytes, {} per second, are not this server's (/proc/PID/io, diskstats).",
            percent(share),
            format_bytes(of_others)
        )
    }));
    sentences.extend(answers.device_users.iter().take(NAMED).map(describe));
    Some(Finding {
        id: "disk.saturated".into(),
        subject: evidence
            .device()
            .and_then(|d| d.disk.clone())
            .unwrap_or_default(),
        title: format!(
            "The disk is at {} of what it can do{by}",
            percent(utilisation)
        ),
        evidence: sentences,
        gain: Some(saved_per_hour(saved, saved * 0.5, waiting.s_per_s * 3600.0)),
        saves_s_per_hour: Some(saved),
        confidence: confidence(evidence),
        risk: match others_share {
            Some(_) => {
                "What others do there may be needed, such as a backup; moving it, or limiting it with a control \
                 group, takes nothing from the server. The command lists bytes since each process began, as root: \
                 run it twice to see which grow."
            }
            None => {
                "A faster disk costs money; first see whether the work that fills it need be done."
            }
        }
        .into(),
        command: match others_share {
            Some(_) => WHO_ELSE.into(),
            None => super::measure_disk(evidence),
        },
        ..Finding::default()
    })
}

fn describe(user: &DeviceUser) -> String {
    let pattern = user.pattern.map_or("unknown", |pattern| pattern.name());
    format!(
        "{}: {:.2} s of waiting per second, {} per second, {pattern} ({}).",
        user.describe(),
        user.waiting_s_per_s,
        format_bytes(whole(user.device_bytes_per_s)),
        user.source()
    )
}

#[cfg(test)]
mod tests {
    use seekscope_run::{FileRole, IoLimit};

    use super::*;
    use crate::testing::{Call, Recording, flash, shuffled};

    fn reading(per_s: u32, latency_s: f64) -> Recording {
        read(per_s, latency_s, latency_s)
    }

    /// Records `per_s` reads of 4 KiB, of whose time the disk takes a part; it serves 320 of them at most.
    fn read(per_s: u32, latency_s: f64, disk_s: f64) -> Recording {
        let mut recording = Recording::new();
        let file_id = recording.file("a.wt", FileRole::Collection, Some("shop.orders"));
        let tid = recording.thread("conn1");
        for (i, place) in shuffled(per_s * 60).into_iter().enumerate() {
            recording.miss(Call {
                tid,
                file_id,
                at_s: i as f64 / f64::from(per_s),
                offset: u64::from(place) * 4096,
                bytes: 4096,
                latency_s,
            });
        }
        let per_s = f64::from(per_s);
        for (name, rate) in [
            ("reads", per_s),
            ("writes", 0.0),
            ("read_bytes", per_s * 4096.0),
            ("write_bytes", 0.0),
            ("read_ms", per_s * disk_s * 1000.0),
            ("queue_ms", per_s * disk_s * 1000.0),
        ] {
            recording.values("diskstats", name, |s| s * rate);
        }
        recording.ability(flash(0.1));
        recording
    }

    #[test]
    fn ill() {
        let found = reading(300, 0.4).findings(&DETECTOR);
        let title = "The disk is at 94 % of what it can do, mostly by reads of shop.orders by \
                     application threads";
        assert_eq!(found[0].title, title);
        let saved = found[0].saves_s_per_hour.unwrap();
        assert!(
            (saved / (300.0 * 0.3 * 3600.0) - 1.0).abs() < 0.01,
            "{saved}"
        );
    }

    /// A regression: what calls waited behind a limit was told as the disk's own time, and the disk as full.
    #[test]
    fn calls_that_wait_before_the_disk_do_not_fill_it() {
        let mut recording = read(300, 0.4, 0.1);
        assert_eq!(recording.findings(&DETECTOR), [], "nothing queues in it");
        recording = reading(300, 0.4);
        recording.values("diskstats", "busy_ms", |s| s * 40.0);
        assert_eq!(recording.findings(&DETECTOR), [], "it is idle");
        recording = reading(300, 0.4);
        recording.values("diskstats", "busy_ms", |s| s * 1000.0);
        assert_eq!(recording.findings(&DETECTOR).len(), 1);
        recording.values("diskstats", "reads_merged", |_| 0.0);
        recording.host().surroundings.io_limits.push(IoLimit {
            cgroup: "/db".into(),
            device: "254:0".into(),
            what: "read IOPS".into(),
            per_s: 310,
        });
        assert_eq!(recording.findings(&DETECTOR), [], "it may not read more");
    }

    #[test]
    fn a_neighbour_that_fills_the_disk_is_not_the_server() {
        let mut recording = reading(300, 0.4);
        for (name, rate) in [("read_bytes", 10.0 * 4096.0), ("write_bytes", 0.0)] {
            recording.values("process", name, |s| s * rate);
        }
        let found = recording.findings(&DETECTOR);
        let title =
            "The disk is at 94 % of what it can do, mostly by other processes than this server";
        assert_eq!(found[0].title, title);
        assert!(
            found[0].evidence[2].starts_with("97 % of the bytes"),
            "{:?}",
            found[0].evidence
        );
        assert_eq!(found[0].command, WHO_ELSE);
    }

    #[test]
    fn healthy() {
        assert_eq!(
            reading(50, 0.1).findings(&DETECTOR),
            [],
            "a sixth of its ability"
        );
        assert_eq!(reading(300, 0.1).findings(&DETECTOR), [], "nothing queues");
        assert_eq!(Recording::new().findings(&DETECTOR), []);
    }
}
