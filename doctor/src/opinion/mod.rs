//! What the disk does for the examined server: one opinion per run, which every answer and finding uses.
//!
//! It is what was measured, where somebody measured the disk; else what the disk showed while it was
//! watched (`seen.rs`); else a typical disk, and that word then stands beside every figure. Whichever it
//! is, limits that hold for the server bound it (`limits.rs`), because a scan by the server meets them
//! however fast the disk below is.
//!
//! What a disk of its kind *should* do is another question: [`Evidence::expected`] answers that one, and
//! only the detector of slow disks asks it.

mod limits;
mod seen;

use seekscope_run::DiskAbility;

use crate::Evidence;
use crate::wording::duration;
use limits::Limits;
use seen::Seen;

/// Returns what the disk can do, and how that is known; `None` where nobody knows what disk there is.
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
    }
    let limits = Limits::of(evidence);
    if let Some(limited) = limits.describe() {
        limits.apply(&mut opinion, evidence.device());
        opinion.seen = true;
        words = format!("{words}, limited to {limited}");
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

#[cfg(test)]
mod tests;
