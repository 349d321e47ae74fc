//! Checks read-ahead: what this server's own reads need, and what the present setting costs.
//!
//! There are two losses, both in disk time, and of the server's own reads alone. Too large: bytes that the
//! disk read and nobody requested make each read longer. Too small: a stream in requests of W bytes takes
//! longer than one in the larger requests that suit streams; the loss is less where the kernel already has
//! the next window in flight, so it is an upper bound.

use seekscope_pattern::{FileTrace, PatternKind, TraceAnalysis};
use seekscope_run::DeviceModel;
use seekscope_run::units::format_bytes;

use super::HostAnswer;
use super::disk::queue_file;
use crate::Evidence;
use crate::evidence::ability;
use crate::evidence::read_ahead::{RANDOM_KIB, STREAM_KIB, unwanted_bytes};

/// Linux's default: fine for a mixed pattern.
const MIXED_KIB: u64 = 128;
/// The share of the bytes from which one pattern decides alone.
const DOMINANT_SHARE: f64 = 0.8;
/// Below this loss no change is worthwhile: a thousandth of an hour.
const LOSS_S_PER_HOUR_MIN: f64 = 3.6;
/// Fewest reads that reached the disk; fewer say nothing.
const READS_MIN: u64 = 100;

/// Bytes read from the disk, by the effect of read-ahead on them.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Asked {
    /// Bytes in files that are read in order, forwards.
    streamed: u64,
    /// Bytes in files that are read at random.
    random: u64,
    all: u64,
    /// Bytes read from the disk but never requested.
    unwanted: u64,
    reads: u64,
}

pub(super) fn read_ahead(evidence: &Evidence<'_>) -> Option<HostAnswer> {
    let device = evidence.device()?;
    let kib = device.read_ahead_kib?;
    let traced = evidence
        .trace
        .map(|trace| (trace.reads.calls, Asked::of(trace)));
    let asked = traced
        .filter(|(_, asked)| asked.reads >= READS_MIN)
        .map(|(_, asked)| asked);
    let Some(asked) = asked else {
        return Some(untold(
            kib,
            traced.is_some_and(|(calls, _)| calls >= READS_MIN),
        ));
    };
    let (wants_kib, wants, why) = wanted(&asked);
    let loss = evidence
        .model()
        .and_then(|(model, _)| Some(asked.loss_s(model, kib)? * 3600.0 / evidence.observed_s()?));
    let fits = match loss {
        Some(loss) => loss < LOSS_S_PER_HOUR_MIN,
        None => !asked.is_ill_served(kib),
    };
    Some(HostAnswer {
        setting: "read-ahead".into(),
        has: format!("{kib} KiB"),
        wants: match fits {
            true => format!("{wants}; others cost next to nothing here"),
            false => wants,
        },
        fits,
        why,
        loss_s_per_hour: loss,
        command: match device.disk.as_deref() {
            Some(disk) => format!("echo {wants_kib} > {}", queue_file(disk, "read_ahead_kb")),
            None => String::new(),
        },
    })
}

/// The answer where too few reads reached the disk: because memory served them, or nobody knows.
fn untold(kib: u64, are_served: bool) -> HostAnswer {
    let (wants, why) = match are_served {
        true => (
            "whatever it is".into(),
            "memory served nearly all reads while it was watched (trace)".into(),
        ),
        false => (
            String::new(),
            format!(
                "no trace, or too few reads in it, to tell whether this server reads single documents, which want \
                 {RANDOM_KIB} KiB, or scans, which want up to {STREAM_KIB} KiB"
            ),
        ),
    };
    HostAnswer {
        setting: "read-ahead".into(),
        has: format!("{kib} KiB"),
        wants,
        fits: true,
        why,
        ..HostAnswer::default()
    }
}

fn wanted(asked: &Asked) -> (u64, String, String) {
    let shares = format!(
        "of {} that were read from the disk, {:.0} % were read in order and {:.0} % here and there; {} \
         were read and never asked for (trace)",
        format_bytes(asked.all),
        asked.share(asked.streamed) * 100.0,
        asked.share(asked.random) * 100.0,
        format_bytes(asked.unwanted)
    );
    let kib = match () {
        () if asked.share(asked.streamed) >= DOMINANT_SHARE => STREAM_KIB,
        () if asked.share(asked.random) >= DOMINANT_SHARE => RANDOM_KIB,
        () => MIXED_KIB,
    };
    let wants = match kib {
        STREAM_KIB => format!("{MIXED_KIB} to {STREAM_KIB} KiB"),
        RANDOM_KIB => format!("{RANDOM_KIB} KiB or less"),
        _ => format!("about {MIXED_KIB} KiB"),
    };
    (kib, wants, shares)
}

impl Asked {
    fn of(trace: &TraceAnalysis) -> Self {
        let mut asked = Self::default();
        for file in &trace.files {
            let from_disk = file.read_bytes_by_source.device_read_bytes;
            asked.all += from_disk;
            asked.reads += file.cache.misses;
            asked.unwanted += unwanted(file);
            match file.reads.pattern.as_ref().map(|pattern| pattern.kind) {
                Some(PatternKind::Sequential) => asked.streamed += from_disk,
                Some(PatternKind::Random | PatternKind::Strided | PatternKind::Backward) => {
                    asked.random += from_disk;
                }
                _ => {}
            }
        }
        asked
    }

    fn share(&self, bytes: u64) -> f64 {
        bytes as f64 / self.all.max(1) as f64
    }

    /// Returns the loss over the trace, s; `None` for a model without figures.
    fn loss_s(&self, model: &DeviceModel, kib: u64) -> Option<f64> {
        let reads = self.reads.max(1) as f64;
        let each = |bytes: u64| ability::latency_ns(model, bytes as f64 / reads, 1.0);
        let wanted = self.all.saturating_sub(self.unwanted);
        let unwanted_ns = (each(self.all)? - each(wanted)?) * reads;
        let window_bytes = (kib.max(4) * 1024) as f64;
        let better_bytes = (STREAM_KIB * 1024) as f64;
        let window_ns = |bytes: f64| ability::latency_ns(model, bytes, 1.0);
        let per_byte = window_ns(window_bytes)? / window_bytes;
        let better = window_ns(better_bytes)? / better_bytes;
        let small_ns = self.streamed as f64 * (per_byte - better).max(0.0);
        Some((unwanted_ns.max(0.0) + small_ns) / 1e9)
    }

    /// Judges without a device model: is the window the wrong kind for the pattern that dominates?
    fn is_ill_served(&self, kib: u64) -> bool {
        let wasted = self.share(self.unwanted) > 1.0 - DOMINANT_SHARE;
        let starved = self.share(self.streamed) >= DOMINANT_SHARE && kib < MIXED_KIB;
        wasted || starved
    }
}

/// Returns unwanted bytes; for files that are read in order only by what the disk's own requests show.
fn unwanted(file: &FileTrace) -> u64 {
    let pattern = file.reads.pattern.as_ref();
    let random = pattern.is_some_and(|p| p.kind == PatternKind::Random);
    if random || file.device.reads.calls > 0 {
        unwanted_bytes(file)
    } else {
        0
    }
}
