//! `read-ahead.too-large`: random reads make the disk read bytes that nobody requests.
//! `read-ahead.too-small`: scans wait for the disk after every small window.
//!
//! Too large: bytes read and never requested make a read longer, by the disk's time for them; by nothing
//! where requests are limited and not bytes. Too small: a stream of B bytes in windows of W takes B / W times
//! the disk's time for such a window, and could use larger ones; half of the difference is promised, because
//! the kernel reads the next window while this one is being used.

use seekscope_pattern::PatternKind;
use seekscope_run::units::{format_bytes, whole};
use seekscope_run::{DeviceModel, Finding};

use super::{Detector, EVENTS_MIN, confidence, saved_per_hour};
use crate::evidence::ability;
use crate::evidence::read_ahead::{RANDOM_KIB, STREAM_KIB, unwanted_bytes};
use crate::evidence::waiting::waited;
use crate::ranking::NOTICEABLE_S_PER_HOUR;
use crate::wording::{duration, percent, shell_quoted};
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &["read-ahead.too-large", "read-ahead.too-small"],
    detect,
};

/// Share of the disk's reads that nobody requested.
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
    let mean_ns = ability::latency_ns(model, random.device_bytes / random.count, 1.0)?;
    let wanted_bytes = (random.device_bytes - random.unwanted_bytes).max(0.0);
    let extra_ns = mean_ns - ability::latency_ns(model, wanted_bytes / random.count, 1.0)?;
    let saved = random.waiting_s_per_hour * (extra_ns / mean_ns.max(1.0)).clamp(0.0, 1.0);
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
    let (has, wants) = (window_ns(model, kib)?, window_ns(model, STREAM_KIB)?);
    let per_byte = |ns: f64, kib: u64| ns / (kib * 1024) as f64;
    let extra_ns = streamed.device_bytes * (per_byte(has, kib) - per_byte(wants, STREAM_KIB));
    let most = (extra_ns.max(0.0) / 1e9 / seconds * 3600.0).min(streamed.waiting_s_per_hour);
    let saved = most / 2.0;
    if saved < NOTICEABLE_S_PER_HOUR {
        return None;
    }
    Some(Finding {
        id: "read-ahead.too-small".into(),
        title: format!("Read-ahead of {kib} KiB is too small for scans in order"),
        evidence: vec![format!(
            "{} were read in order in steps of {kib} KiB at most, and {:.0} reads waited {} per hour (trace); \
             each step takes {} (device model).",
            format_bytes(whole(streamed.device_bytes)),
            streamed.count,
            duration(streamed.waiting_s_per_hour),
            duration(has / 1e9)
        )],
        risk: "Random reads that are followed by a neighbour bring more than they need; try it, and put it \
               back. It is lost at the next boot."
            .into(),
        ..finding(evidence, saved, most, STREAM_KIB)
    })
}

/// Returns the time of one request for a window, ns; none is larger than the disk accepts.
fn window_ns(model: &DeviceModel, kib: u64) -> Option<f64> {
    let bytes = (kib.max(4) * 1024) as f64;
    let most = match model.request_bytes_max {
        0 => bytes,
        most => bytes.min(most as f64),
    };
    Some(ability::latency_ns(model, most, 1.0)? * bytes / most)
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
    use seekscope_run::{FileRole, IoOp};

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
        // At 50 MB/s each byte takes noticeable time.
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

    /// Backups and other programs read on the same disk, and the server's files too.
    #[test]
    fn what_others_read_is_not_the_servers() {
        let mut recording = reading(shuffled(5000), 32_768, 1024);
        let file_id = recording.file("backup.tar", FileRole::Other, None);
        let request = |file_id, i: u32| Call {
            tid: 1,
            file_id,
            at_s: f64::from(i) * 0.01,
            offset: u64::from(i) << 20,
            bytes: 1 << 20,
            latency_s: 0.001,
        };
        for i in 0..3000 {
            recording.request(IoOp::BlockRead, request(file_id, i));
            // Outside what the server reads.
            recording.request(IoOp::BlockRead, request(1, 1000 + i));
        }
        assert_eq!(ids(&recording), [""; 0]);
        let answer = recording.examine(|_, answers| answers.host[0].clone());
        assert_eq!(answer.setting, "read-ahead");
        assert!(answer.fits && !answer.why.contains("GiB"), "{answer:?}");
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
