//! `read-ahead.too-large`: random reads make the disk read bytes that nobody asks for.
//! `read-ahead.too-small`: scans wait for the disk after every small window.
//!
//! Too large: bytes read and never asked for take the disk's time per byte, which whoever reads waits for.
//! Too small: a stream of B bytes in windows of W pays the disk's fixed time L0 once per window, so it
//! could save B L0 (1/W - 1/W'), with W' what streams want; half of it is promised, as the kernel has the
//! next window under way while this one is being used.

use seekscope_pattern::PatternKind;
use seekscope_run::Finding;
use seekscope_run::units::format_bytes;

use super::{Detector, EVENTS_MIN, confidence, saved_per_hour};
use crate::evidence::read_ahead::{RANDOM_KIB, STREAM_KIB, unwanted_bytes};
use crate::evidence::waiting::waited;
use crate::ranking::NOTICEABLE_S_PER_HOUR;
use crate::wording::{duration, percent, shell_quoted, whole};
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &["read-ahead.too-large", "read-ahead.too-small"],
    detect,
};

/// Share of what the disk read that nobody asked for.
const WASTED_SHARE_MIN: f64 = 0.3;

fn detect(evidence: &Evidence<'_>, _: &Answers) -> Vec<Finding> {
    let found = [too_large(evidence), too_small(evidence)];
    found.into_iter().flatten().collect()
}

/// Reads of some files that waited for the disk.
#[derive(Default)]
struct Reads {
    count: f64,
    waiting_s_per_hour: f64,
    device_bytes: f64,
    unwanted_bytes: f64,
}

fn reads(evidence: &Evidence<'_>, wanted: impl Fn(PatternKind) -> bool) -> Option<Reads> {
    let seconds = evidence.traced_s()?;
    let mut sum = Reads::default();
    for file in &evidence.trace?.files {
        let kind = file.reads.pattern.as_ref().map(|pattern| pattern.kind);
        if !kind.is_some_and(&wanted) {
            continue;
        }
        let (count, ns) = waited(file);
        sum.count += count as f64;
        sum.waiting_s_per_hour += ns / 1e9 / seconds * 3600.0;
        sum.device_bytes += file.read_bytes_by_source.device_read_bytes as f64;
        sum.unwanted_bytes += unwanted_bytes(file) as f64;
    }
    (sum.count >= EVENTS_MIN).then_some(sum)
}

fn too_large(evidence: &Evidence<'_>) -> Option<Finding> {
    let kib = evidence
        .device()?
        .read_ahead_kib
        .filter(|kib| *kib > RANDOM_KIB)?;
    let (model, _) = evidence.model()?;
    let random = reads(evidence, |kind| {
        matches!(
            kind,
            PatternKind::Random | PatternKind::Strided | PatternKind::Mixed
        )
    })?;
    let wasted = random.unwanted_bytes / random.device_bytes.max(1.0);
    let extra_ns = model.ns_per_byte * random.unwanted_bytes / random.count;
    let mean_ns = model.l0_ns + model.ns_per_byte * random.device_bytes / random.count;
    let saved = random.waiting_s_per_hour * (extra_ns / mean_ns.max(1.0)).min(1.0);
    if wasted < WASTED_SHARE_MIN || saved < NOTICEABLE_S_PER_HOUR {
        return None;
    }
    Some(Finding {
        id: "read-ahead.too-large".into(),
        title: format!(
            "Read-ahead of {kib} KiB makes random reads bring {} more than they ask for",
            percent(wasted / (1.0 - wasted).max(0.01))
        ),
        evidence: vec![
            format!(
                "{:.0} reads here and there had the disk read {}, of which {} were never asked for (trace).",
                random.count,
                format_bytes(whole(random.device_bytes)),
                format_bytes(whole(random.unwanted_bytes))
            ),
            format!(
                "They waited {} per hour (trace); the unwanted bytes are {} of a read's time (device model).",
                duration(random.waiting_s_per_hour),
                percent(extra_ns / mean_ns)
            ),
        ],
        risk: "Scans get slower with less; try it, and put it back. It is lost at the next boot."
            .into(),
        ..finding(evidence, saved, saved, RANDOM_KIB)
    })
}

fn too_small(evidence: &Evidence<'_>) -> Option<Finding> {
    let kib = evidence
        .device()?
        .read_ahead_kib
        .filter(|kib| *kib < STREAM_KIB)?;
    let (model, _) = evidence.model()?;
    let seconds = evidence.traced_s()?;
    let streamed = reads(evidence, |kind| kind == PatternKind::Sequential)?;
    let per_byte = |kib: u64| 1.0 / (kib.max(4) * 1024) as f64;
    let fixed_ns = streamed.device_bytes * model.l0_ns * (per_byte(kib) - per_byte(STREAM_KIB));
    let most = (fixed_ns / 1e9 / seconds * 3600.0).min(streamed.waiting_s_per_hour);
    let saved = most / 2.0;
    if saved < NOTICEABLE_S_PER_HOUR {
        return None;
    }
    Some(Finding {
        id: "read-ahead.too-small".into(),
        title: format!("Read-ahead of {kib} KiB is too small for scans in order"),
        evidence: vec![format!(
            "{} were read in order in steps of {kib} KiB at most, and {:.0} reads waited {} per hour (trace); \
             each step costs {} (device model).",
            format_bytes(whole(streamed.device_bytes)),
            streamed.count,
            duration(streamed.waiting_s_per_hour),
            duration(model.l0_ns / 1e9)
        )],
        risk: "Random reads that are followed by a neighbour bring more than they need; try it, and put it \
               back. It is lost at the next boot."
            .into(),
        ..finding(evidence, saved, most, STREAM_KIB)
    })
}

fn finding(evidence: &Evidence<'_>, saved: f64, most: f64, kib: u64) -> Finding {
    let disk = evidence
        .device()
        .and_then(|device| device.disk.clone())
        .unwrap_or_default();
    let file = shell_quoted(&format!("/sys/block/{disk}/queue/read_ahead_kb"));
    Finding {
        gain: Some(saved_per_hour(saved, 0.0, most)),
        saves_s_per_hour: Some(saved),
        confidence: confidence(evidence),
        command: if disk.is_empty() {
            String::new()
        } else {
            format!("echo {kib} > {file}")
        },
        subject: disk,
        ..Finding::default()
    }
}

#[cfg(test)]
mod tests {
    use seekscope_run::FileRole;

    use super::*;
    use crate::testing::{Call, Recording, flash, shuffled};

    fn reading(places: Vec<u32>, device_bytes: u32, read_ahead_kib: u64) -> Recording {
        let mut recording = Recording::new();
        let file_id = recording.file("a.wt", FileRole::Collection, Some("shop.orders"));
        let tid = recording.thread("conn1");
        for (i, place) in places.into_iter().enumerate() {
            let call = Call {
                tid,
                file_id,
                at_s: i as f64 * 0.01,
                offset: u64::from(place) * 32_768,
                bytes: 32_768,
                latency_s: 0.008,
            };
            recording.miss_with_read_ahead(call, device_bytes);
        }
        recording.device().read_ahead_kib = Some(read_ahead_kib);
        let mut model = flash(1e-3);
        // 50 MB/s: a byte costs something.
        model.ns_per_byte = 20.0;
        recording.ability(model);
        recording
    }

    fn ids(recording: &Recording) -> Vec<String> {
        recording
            .findings(&DETECTOR)
            .into_iter()
            .map(|f| f.id)
            .collect()
    }

    #[test]
    fn ill() {
        let large = reading(shuffled(5000), 1 << 20, 1024);
        assert_eq!(ids(&large), ["read-ahead.too-large"]);
        let small = reading((0..5000).collect(), 32_768, 32);
        assert_eq!(ids(&small), ["read-ahead.too-small"]);
    }

    #[test]
    fn healthy() {
        assert_eq!(
            ids(&reading(shuffled(5000), 32_768, 1024)),
            [""; 0],
            "no more than asked"
        );
        assert_eq!(ids(&reading((0..5000).collect(), 32_768, 1024)), [""; 0]);
        assert_eq!(
            ids(&reading(shuffled(50), 1 << 20, 1024)),
            [""; 0],
            "a handful"
        );
        assert_eq!(ids(&Recording::new()), [""; 0]);
    }
}
