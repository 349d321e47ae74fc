//! `disk.slow`: requests take far longer than this disk, or one of its kind, needs for them, at a load that
//! does not explain it. Extra read time because of long checkpoints is left out.

use seekscope_run::Finding;
use seekscope_stats::Quantiles;

use super::{Detector, EVENTS_MIN, checkpoint, confidence, disk_limited, saved_per_hour};
use crate::answers::{CheckpointAnswer, DeviceLoad, sides_of_checkpoints};
use crate::evidence::ability;
use crate::evidence::waiting::ReadWaiting;
use crate::ranking::NOTICEABLE_S_PER_HOUR;
use crate::wording::duration;
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &["disk.slow"],
    detect,
};

/// Slowdown compared with the measured model; typical disks differ more among themselves.
const SLOWER_THAN_MEASURED: f64 = 3.0;
const SLOWER_THAN_TYPICAL: f64 = 6.0;
/// Extra time beyond the expected, ns: less is noise of the host.
const EXTRA_MIN_NS: f64 = 1e6;
/// A random read that takes this long alone is from a rotating disk, or a volume that is as slow; one from
/// flash takes 0.1 ms, over a network 0.5 to 1 ms.
const ROTATING_NS: f64 = 2e6;
const FLASH_NS: f64 = 0.5e6;

fn detect(evidence: &Evidence<'_>, answers: &Answers) -> Vec<Finding> {
    let Some(load) = answers.device_load.as_ref() else {
        return Vec::new();
    };
    if disk_limited::is_limited(evidence, answers) {
        return Vec::new();
    }
    let Some(reads) = Reads::of(evidence, answers, load) else {
        return Vec::new();
    };
    let found =
        slower_than_expected(evidence, load, &reads).or_else(|| slow_by_nature(evidence, &reads));
    found.into_iter().collect()
}

/// Reads, without the time that long checkpoints add to them.
struct Reads {
    /// Time in the disk, ns.
    disk_ns: Option<f64>,
    waiting: ReadWaiting,
}

impl Reads {
    fn of(evidence: &Evidence<'_>, answers: &Answers, load: &DeviceLoad) -> Option<Self> {
        let mut reads = Self {
            disk_ns: load.read_ns,
            waiting: evidence.read_waiting()?,
        };
        let found = answers.checkpoints.as_ref();
        if let Some(found) = found.filter(|_| checkpoint::is_harmful(evidence, answers)) {
            reads.leave_out(evidence, found);
        }
        Some(reads)
    }

    fn leave_out(&mut self, evidence: &Evidence<'_>, found: &CheckpointAnswer) {
        let disk = disk_sides(evidence, found);
        self.disk_ns = disk.and_then(|(_, otherwise)| {
            (otherwise.count > 0.0).then(|| otherwise.ns / otherwise.count)
        });
        let traced = evidence.device_use.map(|found| {
            (
                Side::of(&found.reads_during_ns),
                Side::of(&found.reads_otherwise_ns),
            )
        });
        let traced = traced.filter(|_| self.waiting.source == "trace");
        let share = traced.or(disk).map_or(0.0, |(during, otherwise)| {
            let as_otherwise = during.count * otherwise.ns / otherwise.count.max(1.0);
            (otherwise.ns + during.ns.min(as_otherwise)) / (during.ns + otherwise.ns).max(1.0)
        });
        self.waiting.s_per_s *= share;
    }
}

/// Reads while checkpoints run, or otherwise.
#[derive(Clone, Copy)]
struct Side {
    count: f64,
    /// Total time.
    ns: f64,
}

impl Side {
    fn of(latency: &Quantiles) -> Self {
        let count = latency.count as f64;
        Self {
            count,
            ns: count * latency.mean as f64,
        }
    }
}

/// Reads of the disk, during checkpoints and otherwise.
fn disk_sides(evidence: &Evidence<'_>, found: &CheckpointAnswer) -> Option<(Side, Side)> {
    let sums = |name| {
        let series = evidence.counters.get("diskstats", name)?;
        let sides = sides_of_checkpoints(evidence, found, series);
        Some(sides.map(|side| side.unwrap_or_default().sum))
    };
    let [count_during, count_otherwise] = sums("reads")?;
    let [ms_during, ms_otherwise] = sums("read_ms")?;
    let side = |count: f64, ms: f64| Side {
        count,
        ns: ms * 1e6,
    };
    Some((
        side(count_during, ms_during),
        side(count_otherwise, ms_otherwise),
    ))
}

fn slower_than_expected(
    evidence: &Evidence<'_>,
    load: &DeviceLoad,
    reads: &Reads,
) -> Option<Finding> {
    let disk = evidence.expected()?;
    let (model, measured) = (&disk.model, disk.measured);
    let seen_ns = reads.disk_ns?;
    if load.reads_per_s * evidence.counted_s()? < EVENTS_MIN {
        return None;
    }
    let bytes = load.read_bytes_per_s / load.reads_per_s;
    let depth = depth_while_busy(evidence, load);
    let expected_ns = ability::latency_ns(model, bytes, depth)?;
    let factor = if measured {
        SLOWER_THAN_MEASURED
    } else {
        SLOWER_THAN_TYPICAL
    };
    if seen_ns < factor * expected_ns || seen_ns - expected_ns < EXTRA_MIN_NS {
        return None;
    }
    let basis = &disk.source;
    let title = format!(
        "The disk is slow: reads take {}, where {} is to be expected",
        duration(seen_ns / 1e9),
        duration(expected_ns / 1e9)
    );
    let sentence = format!(
        "{:.0} reads per second of {:.0} KiB, {depth:.1} requests under way while busy, took {} on average \
         (diskstats); the model ({basis}) says {}.",
        load.reads_per_s,
        bytes / 1024.0,
        duration(seen_ns / 1e9),
        duration(expected_ns / 1e9)
    );
    finding(evidence, reads, title, sentence, expected_ns / seen_ns)
}

/// Returns the mean number of requests in flight while there were any. The mean over all time would be too
/// small, and mistake bursts for slowness.
fn depth_while_busy(evidence: &Evidence<'_>, load: &DeviceLoad) -> f64 {
    let busy = evidence
        .rate("diskstats", "busy_ms")
        .map_or(1.0, |ms| ms / 1000.0);
    (load.queue_depth / busy.clamp(0.001, 1.0)).max(1.0)
}

/// Detects a disk that was measured and is as slow as a rotating one.
fn slow_by_nature(evidence: &Evidence<'_>, reads: &Reads) -> Option<Finding> {
    let (model, measured) = evidence.model()?;
    if !measured || model.l0_ns < ROTATING_NS {
        return None;
    }
    let title = format!(
        "The disk is slow by nature: a random read takes {} even alone",
        duration(model.l0_ns / 1e9)
    );
    let sentence = format!(
        "Measured: {} per random read; flash takes about {} (device model, {}).",
        duration(model.l0_ns / 1e9),
        duration(FLASH_NS / 1e9),
        model.disk
    );
    finding(evidence, reads, title, sentence, FLASH_NS / model.l0_ns)
}

/// Makes the finding; `left` is the share of a read's time that would remain.
fn finding(
    evidence: &Evidence<'_>,
    reads: &Reads,
    title: String,
    sentence: String,
    left: f64,
) -> Option<Finding> {
    let waiting = reads.waiting;
    let saved = waiting.s_per_s * 3600.0 * (1.0 - left);
    let seconds = match waiting.source {
        "trace" => evidence.traced_s(),
        _ => evidence.counted_s(),
    };
    if saved < NOTICEABLE_S_PER_HOUR || waiting.reads_per_s * seconds? < EVENTS_MIN {
        return None;
    }
    Some(Finding {
        id: "disk.slow".into(),
        subject: evidence.device().and_then(|d| d.disk.clone()).unwrap_or_default(),
        title,
        evidence: vec![
            sentence,
            format!(
                "Threads waited {:.2} s per second for reads, {} each ({}).",
                waiting.s_per_s,
                duration(waiting.mean_ns / 1e9),
                waiting.source
            ),
        ],
        gain: Some(saved_per_hour(saved, saved * 0.5, waiting.s_per_s * 3600.0)),
        saves_s_per_hour: Some(saved),
        confidence: confidence(evidence),
        risk: "Measure the disk while the server is idle before it is blamed: neighbours on the same host \
               or volume look the same from here."
            .into(),
        command: super::measure_disk(evidence),
..Finding::default()
})
}

#[cfg(test)]
mod tests {
    use seekscope_run::FileRole;

    use super::*;
    use crate::testing::{Call, Recording, flash, shuffled};

    /// Records 50 reads per second at depth 1.
    fn reading(latency_s: f64, model_read_s: f64) -> Recording {
        let mut recording = Recording::new();
        read(&mut recording, latency_s, latency_s);
        recording.ability(flash(model_read_s));
        recording
    }

    /// The same, but while a checkpoint writes, from second 20 to 35, they take `during_s`.
    fn checkpointing(latency_s: f64, during_s: f64) -> Recording {
        let mut recording = Recording::new();
        read(&mut recording, latency_s, during_s);
        let table = recording.file("b.wt", FileRole::Collection, Some("shop.items"));
        let checkpoint = recording.thread("WTCheck.tThread");
        for i in 0..150 {
            recording.write(Call {
                tid: checkpoint,
                file_id: table,
                at_s: 20.0 + f64::from(i) / 10.0,
                offset: 0,
                bytes: 1 << 20,
                latency_s: 0.09,
            });
        }
        recording.ability(flash(2e-4));
        recording
    }

    fn read(recording: &mut Recording, latency_s: f64, during_s: f64) {
        let file_id = recording.file("a.wt", FileRole::Collection, Some("shop.orders"));
        let tid = recording.thread("conn1");
        for (i, place) in shuffled(3000).into_iter().enumerate() {
            recording.miss(Call {
                tid,
                file_id,
                at_s: i as f64 / 50.0,
                offset: u64::from(place) * 32_768,
                bytes: 32_768,
                latency_s: if (1000..1750).contains(&i) {
                    during_s
                } else {
                    latency_s
                },
            });
        }
        let busy = 50.0 * latency_s * 1000.0;
        let more = 50.0 * (during_s - latency_s) * 1000.0;
        for (name, per_s) in [
            ("reads", 50.0),
            ("writes", 0.0),
            ("read_bytes", 50.0 * 32_768.0),
            ("write_bytes", 0.0),
        ] {
            recording.values("diskstats", name, |s| s * per_s);
        }
        for name in ["read_ms", "queue_ms", "busy_ms"] {
            recording.values("diskstats", name, |s| {
                s * busy + (s - 20.0).clamp(0.0, 15.0) * more
            });
        }
    }

    #[test]
    fn what_checkpoints_add_is_theirs() {
        assert_eq!(checkpointing(3e-4, 0.015).findings(&DETECTOR), []);
        let found = checkpointing(0.012, 0.06).findings(&DETECTOR);
        let title = "The disk is slow: reads take 12.0 ms, where 233 µs is to be expected";
        assert_eq!(found[0].title, title);
        let saved = found[0].saves_s_per_hour.unwrap();
        let without = 50.0 * 0.012 * 3600.0;
        assert!((saved / without - 0.98).abs() < 0.03, "{saved} {without}");
    }

    #[test]
    fn ill() {
        let found = reading(0.012, 2e-4).findings(&DETECTOR);
        let waiting = 50.0 * 0.012 * 3600.0;
        let saved = found[0].saves_s_per_hour.unwrap();
        assert!(
            saved > 0.9 * waiting && saved < waiting,
            "{saved} {waiting}"
        );
        let title = "The disk is slow: reads take 12.0 ms, where 233 µs is to be expected";
        assert_eq!(found[0].title, title);
    }

    #[test]
    fn ill_by_nature() {
        let found = reading(0.007, 0.007).findings(&DETECTOR);
        assert!(found[0].title.contains("by nature"), "{}", found[0].title);
    }

    #[test]
    fn healthy() {
        assert_eq!(reading(3e-4, 2e-4).findings(&DETECTOR), []);
        assert_eq!(Recording::new().findings(&DETECTOR), []);
        let mut unknown = reading(0.012, 2e-4);
        unknown.examination().disk = None;
        assert_eq!(
            unknown.findings(&DETECTOR),
            [],
            "nobody knows what it can do"
        );
    }
}
