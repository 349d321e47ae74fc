//! Forms one opinion per run of what the disk does for the examined server, which every answer and finding
//! uses.
//!
//! It is what was measured, if the disk was measured; else what the disk showed while it was watched
//! (`seen.rs`); else a typical disk, in which case that word accompanies every figure. In any case it is
//! bounded by the limits on the server (`limits.rs`), because a scan by the server meets them however fast
//! the disk below is.
//!
//! What a disk of its kind *should* do is another question, which [`Evidence::expected`] answers; only the
//! detector of slow disks uses it.

mod limits;
mod seen;

use seekscope_run::{DeviceFacts, DeviceModel, DiskAbility, FileRole, IoLimit};

use crate::Evidence;
use crate::wording::duration;
use limits::Limits;
use seen::Seen;

/// What is added to the name of a disk whose server reads past the page cache.
pub const DIRECTLY: &str = ", read past the page cache";
/// Fewest direct reads from which anything is concluded.
const DIRECT_READS_MIN: u64 = 100;

/// Returns what the disk can do, and how that is known; `None` if nothing is known of the disk.
pub fn disk_opinion(evidence: &Evidence<'_>) -> Option<DiskAbility> {
    let known = evidence.expected()?;
    let mut opinion = known.clone();
    let mut words = opinion.model.disk.clone();
    if let Some(seen) = Seen::of(evidence, &known.model).filter(|_| !known.measured) {
        seen.apply(&mut opinion.model);
        opinion.seen = true;
        words = format!(
            "the data's disk as seen in this run ({} per read of {:.0} KiB)",
            duration(seen.read_ns / 1e9),
            seen.bytes / 1024.0
        );
        words.extend(assumed(&opinion.model).map(|rates| {
            format!(
                ", at most {rates} per second assumed as of a {}",
                known.model.disk
            )
        }));
    }
    let limits = Limits::of(evidence);
    if let Some(limited) = limits.describe() {
        limits.apply(&mut opinion.model, known.measured, evidence.device());
        opinion.seen = true;
        words = format!("{words}, limited to {limited}");
    }
    opinion.read_directly |= reads_directly(evidence);
    if opinion.read_directly {
        words.push_str(DIRECTLY);
    }
    if opinion.seen {
        opinion.source = match known.measured {
            true => format!("{}; {words}", known.source),
            false => words.clone(),
        };
    }
    opinion.model.disk = words;
    Some(opinion)
}

/// Bounds what a disk can do by the limits that the server's control groups set on its I/O, and says so in the name of
/// the disk, as the opinion of a whole run does. `measured` says whether the model is, or is that of a typical disk.
pub fn limit_by_control_groups(
    model: &mut DeviceModel,
    measured: bool,
    device: Option<&DeviceFacts>,
    limits: &[IoLimit],
) {
    let limits = Limits::named(limits);
    if let Some(limited) = limits.describe() {
        limits.apply(model, measured, device);
        model.disk = format!("{}, limited to {limited}", model.disk);
    }
}

/// Returns whether the server reads its collections and indexes past the page cache (`direct_io=[data]`).
fn reads_directly(evidence: &Evidence<'_>) -> bool {
    let files = evidence.trace.map_or(&[][..], |trace| &trace.files).iter();
    let data =
        files.filter(|file| matches!(file.file.role, FileRole::Collection | FileRole::Index));
    let (direct, all) = data.fold((0, 0), |(direct, all), file| {
        let by = &file.latency_by_outcome;
        let buffered = by.hit_ns.count + by.miss_ns.count + by.waited_ns.count;
        (
            direct + by.direct_ns.count,
            all + by.direct_ns.count + buffered,
        )
    });
    direct >= DIRECT_READS_MIN && direct * 2 > all
}

/// Returns the rates that a typical disk grants, where nothing that was seen speaks against them.
fn assumed(model: &DeviceModel) -> Option<String> {
    let requests = model.iops_bucket.map(|bucket| bucket.per_s);
    let bytes = model.bytes_bucket.map(|bucket| bucket.per_s);
    rates_in_words(requests, bytes)
}

/// Returns "150 read requests and 150 MB"; `None` without either.
fn rates_in_words(requests_per_s: Option<f64>, bytes_per_s: Option<f64>) -> Option<String> {
    let requests = requests_per_s.map(|n| format!("{n:.0} read requests"));
    let bytes = bytes_per_s.map(|n| format!("{:.0} MB", n / 1e6));
    let rates: Vec<String> = [requests, bytes].into_iter().flatten().collect();
    (!rates.is_empty()).then(|| rates.join(" and "))
}

#[cfg(test)]
mod tests;
