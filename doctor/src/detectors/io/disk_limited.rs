//! `disk.limited`: a ceiling that is not the disk's own holds requests back: a control group's, or the
//! volume's.
//!
//! A ceiling is believed in where it is known and was reached, or where calls wait far longer than the
//! disk takes for their requests while CPUs are free: then something between the two holds them.

use seekscope_run::Finding;

use super::{Detector, EVENTS_MIN, checkpoint, confidence, cpu, saved_per_hour};
use crate::answers::{Ceiling, DeviceLoad, ceiling_reached};
use crate::evidence::ability;
use crate::evidence::waiting::ReadWaiting;
use crate::ranking::NOTICEABLE_S_PER_HOUR;
use crate::wording::{duration, percent};
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &["disk.limited"],
    detect,
};

/// Calls wait this many times as long as the disk takes, and at least so long, ns.
const HELD_BACK: f64 = 8.0;
const HELD_BACK_MIN_NS: f64 = 5e6;
/// Share of the time in which some task waited for a CPU; beyond, calls may wait for that. Where the kernel
/// does not tell, share of the CPUs that the server used.
const CPU_PRESSURE_MAX: f64 = 0.5;
const CPU_USED_MAX: f64 = 0.5;

fn detect(evidence: &Evidence<'_>, answers: &Answers) -> Vec<Finding> {
    let Some(load) = answers.device_load.as_ref() else {
        return Vec::new();
    };
    let found = match ceiling_reached(evidence) {
        Some(ceiling) => at_ceiling(evidence, load, &ceiling),
        None => held_back(evidence, answers, load),
    };
    found.into_iter().collect()
}

/// Is there such a finding?
pub(super) fn is_limited(evidence: &Evidence<'_>, answers: &Answers) -> bool {
    !detect(evidence, answers).is_empty()
}

fn at_ceiling(evidence: &Evidence<'_>, load: &DeviceLoad, ceiling: &Ceiling) -> Option<Finding> {
    let waiting = if ceiling.of_writes {
        sync_waiting(evidence)
    } else {
        evidence.read_waiting()
    }?;
    let free_ns = free_ns(evidence, load, ceiling, &waiting)?;
    let share = (1.0 - free_ns / waiting.mean_ns.max(1.0)).max(0.0);
    let saved = waiting.s_per_s * 3600.0 * share;
    if saved < NOTICEABLE_S_PER_HOUR || waiting.mean_ns < 2.0 * free_ns {
        return None;
    }
    let what = if ceiling.of_writes { "syncs" } else { "reads" };
    Some(Finding {
        id: "disk.limited".into(),
        subject: evidence
            .device()
            .and_then(|d| d.disk.clone())
            .unwrap_or_default(),
        title: format!(
            "A limit, not the disk, holds the server back: {} was reached in {} of the seconds",
            ceiling.name,
            percent(ceiling.share)
        ),
        evidence: vec![
            format!(
                "{:.0} per second were used on average of the {:.0} that it grants.",
                ceiling.used_per_s, ceiling.limit_per_s
            ),
            format!(
                "{what} waited {} on average, {:.2} s per second together ({}); without the limit the disk \
                 takes about {} ({}).",
                duration(waiting.mean_ns / 1e9),
                waiting.s_per_s,
                waiting.source,
                duration(free_ns / 1e9),
                if ceiling.before_disk {
                    "diskstats, device model"
                } else {
                    "device model"
                },
            ),
        ],
        gain: Some(saved_per_hour(saved, saved * 0.5, waiting.s_per_s * 3600.0)),
        saves_s_per_hour: Some(saved),
        confidence: confidence(evidence),
        risk: "Limits are often set for the sake of neighbours, or are what was paid for.".into(),
        command: command(evidence, ceiling),
    })
}

/// What a request would take without the limit, ns.
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
        let (model, _) = evidence.model()?;
        let mut model = model.clone();
        if free_of_buckets {
            (model.iops_bucket, model.bytes_bucket) = (None, None);
            // The table was measured under the limit; a single request was not held back by it.
            model.depths.retain(|point| point.depth == 1);
            return Some(model.l0_ns + model.ns_per_byte * bytes);
        }
        ability::latency_ns(&model, bytes, depth)
    };
    if ceiling.before_disk {
        // The disk is emptier now than it would be.
        return seen_ns.map(|ns| ns.max(of_model(false).unwrap_or(0.0).min(waiting.mean_ns / 2.0)));
    }
    of_model(true)
}

/// Syncs of the journal.
fn sync_waiting(evidence: &Evidence<'_>) -> Option<ReadWaiting> {
    let seconds = evidence.traced_s()?;
    let found = evidence.device_use?;
    let (calls, ns) = [found.journal_during_ns, found.journal_otherwise_ns]
        .iter()
        .fold((0, 0.0), |sum, q| {
            (sum.0 + q.count, sum.1 + q.count as f64 * q.mean as f64)
        });
    (calls as f64 >= EVENTS_MIN).then(|| ReadWaiting {
        reads_per_s: calls as f64 / seconds,
        s_per_s: ns / 1e9 / seconds,
        mean_ns: ns / calls as f64,
        source: "trace",
    })
}

/// A limit that nobody told us of.
fn held_back(evidence: &Evidence<'_>, answers: &Answers, load: &DeviceLoad) -> Option<Finding> {
    let waiting = evidence
        .read_waiting()
        .filter(|waiting| waiting.source == "trace")?;
    let disk_ns = load.read_ns?;
    let reads = waiting.reads_per_s * evidence.traced_s()?;
    let cpu = cpu_pressure(evidence);
    let held = waiting.mean_ns >= HELD_BACK * disk_ns && waiting.mean_ns >= HELD_BACK_MIN_NS;
    let few = reads < EVENTS_MIN || load.reads_per_s * 60.0 < EVENTS_MIN;
    if !held || few || !is_cpu_free(evidence, cpu) {
        return None;
    }
    let most = waiting.s_per_s * 3600.0 * share_beyond_checkpoints(evidence, answers);
    let saved = most * (1.0 - HELD_BACK / 2.0 * disk_ns / waiting.mean_ns);
    (saved >= NOTICEABLE_S_PER_HOUR).then(|| Finding {
        id: "disk.limited".into(),
        subject: evidence.device().and_then(|d| d.disk.clone()).unwrap_or_default(),
        title: format!(
            "Something holds requests back before they reach the disk: reads wait {}, the disk takes {}",
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
                "{:.0} requests of {:.0} KiB reached it per second{}.",
                load.reads_per_s,
                load.read_bytes_per_s / load.reads_per_s.max(1.0) / 1024.0,
                cpu.map_or(String::new(), |share| format!(
                    "; some task waited for a CPU in {} of the time",
                    percent(share)
                ))
            ),
            "That is how a control group's I/O limit shows from inside a container.".into(),
        ],
        gain: Some(saved_per_hour(saved, saved * 0.3, most)),
        saves_s_per_hour: Some(saved),
        confidence: "medium".into(),
        risk: "Limits are often set for the sake of neighbours, or are what was paid for.".into(),
        command: "grep -s . /sys/fs/cgroup/io.max /sys/fs/cgroup/blkio/blkio.throttle.*_device".into(),
    })
}

/// Share of the time in which some task waited for a CPU; `None` where the kernel does not say (pressure
/// has to be asked for at boot on some).
fn cpu_pressure(evidence: &Evidence<'_>) -> Option<f64> {
    Some(evidence.rate("pressure", "cpu.some_us")? / 1e6)
}

/// As far as is known; else nothing is concluded.
fn is_cpu_free(evidence: &Evidence<'_>, pressure: Option<f64>) -> bool {
    match pressure {
        Some(share) => share <= CPU_PRESSURE_MAX,
        None => cpu::busy_share(evidence).is_some_and(|share| share < CPU_USED_MAX),
    }
}

/// Of the waiting for reads, what long checkpoints have no part in.
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

fn command(evidence: &Evidence<'_>, ceiling: &Ceiling) -> String {
    let Some(cgroup) = &ceiling.cgroup else {
        return format!(
            "seekscope disk {}",
            crate::wording::shell_quoted(evidence.device().map_or(".", |d| &d.path))
        );
    };
    let folder = |root: &str| crate::wording::shell_quoted(&format!("{root}{cgroup}"));
    format!(
        "grep -s . {}/io.max {}/blkio.throttle.*_device",
        folder("/sys/fs/cgroup"),
        folder("/sys/fs/cgroup/blkio")
    )
}

#[cfg(test)]
mod tests {
    use seekscope_run::{FileRole, IoLimit};

    use super::*;
    use crate::testing::{Call, Recording, flash, shuffled};

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
        // 8700 reads of 2 ms are beyond the checkpoint or as quick as ever while it runs.
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
