//! Finds small synced writes, alone and beside a burst.

use seekscope_run::{DiskMeasurement, StepGroup};

use super::{Measured, of_group};

/// Returns the small synced writes of a group, by block size and writers, each in the order of the run.
pub(in super::super) fn commits(
    measurement: &DiskMeasurement,
    group: StepGroup,
) -> Vec<Measured<'_>> {
    let mut commits: Vec<Measured<'_>> = of_group(measurement, group).collect();
    commits.sort_by_key(|m| (m.facts().block_bytes, m.in_flight()));
    commits
}

/// Returns the commits that the burst is compared with: the same, but alone.
pub(in super::super) fn alone<'a>(
    measurement: &'a DiskMeasurement,
    in_burst: &Measured<'_>,
) -> Option<Measured<'a>> {
    let candidates: Vec<Measured<'a>> = of_group(measurement, StepGroup::Journal)
        .filter(|m| m.is_alike(in_burst))
        .collect();
    let same_file = candidates
        .iter()
        .find(|m| m.facts().fresh_blocks == in_burst.facts().fresh_blocks);
    same_file.or(candidates.first()).copied()
}
