//! Small synced writes, alone and beside a burst.

use seekscope_run::{DiskMeasurement, DiskStep, StepGroup};

use super::{Measured, of_group};

/// Small synced writes of a group, by block size and writers, each in the order of the run.
pub(in super::super) fn commits(
    measurement: &DiskMeasurement,
    group: StepGroup,
) -> Vec<Measured<'_>> {
    let mut commits: Vec<Measured<'_>> = of_group(measurement, group).collect();
    commits.sort_by_key(|m| (m.facts().block_bytes, m.in_flight()));
    commits
}

/// What journal writes went into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum JournalFile {
    /// It grew with each write.
    Fresh,
    /// Blocks that had been written before.
    WrittenOver,
    Unknown,
}

/// What journal writes went into. Only the step's name tells.
pub(in super::super) fn journal_file(step: &DiskStep) -> JournalFile {
    match &step.name {
        name if name.contains("fresh") => JournalFile::Fresh,
        name if name.contains("overwrite") => JournalFile::WrittenOver,
        _ => JournalFile::Unknown,
    }
}

/// The commits that the burst is compared with: alike, but alone.
pub(in super::super) fn alone<'a>(
    measurement: &'a DiskMeasurement,
    in_burst: &Measured<'_>,
) -> Option<Measured<'a>> {
    let candidates: Vec<Measured<'a>> = of_group(measurement, StepGroup::Journal)
        .filter(|m| m.is_alike(in_burst))
        .collect();
    let same_file = candidates
        .iter()
        .find(|m| journal_file(m.step) == journal_file(in_burst.step));
    same_file.or(candidates.first()).copied()
}
