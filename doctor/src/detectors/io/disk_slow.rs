//! `disk.slow`: requests take far longer than this disk, or such a disk, needs for them, at a load that
//! does not explain it.

use seekscope_run::Finding;

use super::{Detector, EVENTS_MIN, confidence, disk_limited, saved_per_hour};
use crate::answers::DeviceLoad;
use crate::evidence::ability;
use crate::ranking::NOTICEABLE_S_PER_HOUR;
use crate::wording::{duration, shell_quoted};
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &["disk.slow"],
    detect,
};

/// Times as long as the measured model says; typical disks differ more among themselves.
const SLOWER_THAN_MEASURED: f64 = 3.0;
const SLOWER_THAN_TYPICAL: f64 = 6.0;
/// Beyond what is expected, ns: less is noise of the host.
const EXTRA_MIN_NS: f64 = 1e6;
/// A random read that takes this long alone is one of a rotating disk, or of a volume that is as slow; one
/// of flash takes 0.1 ms, behind a network 0.5 to 1 ms.
const ROTATING_NS: f64 = 2e6;
const FLASH_NS: f64 = 0.5e6;

fn detect(evidence: &Evidence<'_>, answers: &Answers) -> Vec<Finding> {
    let Some(load) = answers.device_load.as_ref() else {
        return Vec::new();
    };
    if disk_limited::is_limited(evidence, answers) {
        return Vec::new();
    }
    let found = slower_than_expected(evidence, load).or_else(|| slow_by_nature(evidence));
    found.into_iter().collect()
}

fn slower_than_expected(evidence: &Evidence<'_>, load: &DeviceLoad) -> Option<Finding> {
    let (model, measured) = evidence.model()?;
    let seen_ns = load.read_ns?;
    if load.reads_per_s * evidence.observed_s()? < EVENTS_MIN {
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
    let basis = evidence.examination()?.disk.as_ref()?.source.clone();
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
    finding(evidence, title, sentence, expected_ns / seen_ns)
}

/// Requests under way at once while there were any. Over all time the mean would be too small, and take
/// bursts for slowness.
fn depth_while_busy(evidence: &Evidence<'_>, load: &DeviceLoad) -> f64 {
    let busy = evidence
        .rate("diskstats", "busy_ms")
        .map_or(1.0, |ms| ms / 1000.0);
    (load.queue_depth / busy.clamp(0.001, 1.0)).max(1.0)
}

/// Measured, and as slow as a rotating disk.
fn slow_by_nature(evidence: &Evidence<'_>) -> Option<Finding> {
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
    finding(evidence, title, sentence, FLASH_NS / model.l0_ns)
}

/// `left`: share of a read's time that would be left.
fn finding(evidence: &Evidence<'_>, title: String, sentence: String, left: f64) -> Option<Finding> {
    let waiting = evidence.read_waiting()?;
    let saved = waiting.s_per_s * 3600.0 * (1.0 - left);
    if saved < NOTICEABLE_S_PER_HOUR || waiting.reads_per_s * evidence.observed_s()? < EVENTS_MIN {
        return None;
    }
    let path = evidence.device().map_or(".", |device| &device.path);
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
        command: format!("seekscope disk {}", shell_quoted(path)),
    })
}

#[cfg(test)]
mod tests {
    use seekscope_run::FileRole;

    use super::*;
    use crate::testing::{Call, Recording, flash, shuffled};

    /// 50 reads per second at depth 1.
    fn reading(latency_s: f64, model_read_s: f64) -> Recording {
        let mut recording = Recording::new();
        let file_id = recording.file("a.wt", FileRole::Collection, Some("shop.orders"));
        let tid = recording.thread("conn1");
        for (i, place) in shuffled(3000).into_iter().enumerate() {
            recording.miss(Call {
                tid,
                file_id,
                at_s: i as f64 / 50.0,
                offset: u64::from(place) * 32_768,
                bytes: 32_768,
                latency_s,
            });
        }
        let busy = 50.0 * latency_s * 1000.0;
        for (name, per_s) in [
            ("reads", 50.0),
            ("writes", 0.0),
            ("read_bytes", 50.0 * 32_768.0),
            ("write_bytes", 0.0),
            ("read_ms", busy),
            ("queue_ms", busy),
            ("busy_ms", busy),
        ] {
            recording.values("diskstats", name, |s| s * per_s);
        }
        recording.ability(flash(model_read_s));
        recording
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
