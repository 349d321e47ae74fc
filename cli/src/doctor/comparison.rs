//! `fresh` against `aged` on the same disk: the measured facts that findings and tables speak of.

use seekscope_pattern::{AccessPattern, FileAnalysis, PhaseAnalysis};
use seekscope_run::{Disk, FileRecord, Phase};
use seekscope_stats::{PairedRatio, median, paired_ratio};
use serde::Serialize;

/// A phase with what was found in its events.
#[derive(Clone, Copy)]
pub struct Analysed<'a> {
    pub phase: &'a Phase,
    pub analysis: &'a PhaseAnalysis,
    pub files: &'a [FileRecord],
}

impl<'a> Analysed<'a> {
    /// The file the phase is about.
    pub fn main_file(&self) -> Option<(&'a FileRecord, &'a FileAnalysis)> {
        let file = self.analysis.main_file(self.files)?;
        Some((self.files.iter().find(|r| r.file_id == file.file_id)?, file))
    }

    /// How that file was read.
    pub fn main_pattern(&self) -> Option<&'a AccessPattern> {
        self.main_file()?.1.read_pattern.as_ref()
    }

    /// Build times in seconds, one per repetition.
    pub fn build_seconds(&self) -> Vec<f64> {
        let build = self.phase.index_build.iter();
        build
            .flat_map(|b| b.all_elapsed_ns())
            .map(|ns| ns as f64 / 1e9)
            .collect()
    }

    /// Events were recorded and none was lost.
    pub fn fully_traced(&self) -> bool {
        self.phase
            .trace
            .as_ref()
            .is_some_and(|t| !t.truncated && t.lost == 0 && t.written > 0)
    }
}

/// The same index built on both collections on one disk.
#[derive(Debug, Clone, Serialize)]
pub struct Comparison {
    #[serde(skip)]
    pub disk: Disk,
    #[serde(rename = "disk")]
    pub disk_label: String,
    /// Medians over the repetitions, s.
    pub fresh_s: f64,
    pub aged_s: f64,
    /// aged / fresh over the pairs.
    pub ratio: PairedRatio,
    /// aged - fresh over the pairs, s: lowest and highest.
    pub difference_s_low: f64,
    pub difference_s_high: f64,
}

/// Every disk on which both variants were built, in order of the phases.
pub fn compare(phases: &[Analysed<'_>]) -> Vec<Comparison> {
    let fresh = phases.iter().filter(|p| p.phase.variant == "fresh");
    fresh
        .filter_map(|fresh| {
            let disk = &fresh.phase.disk;
            let aged = phases
                .iter()
                .find(|p| p.phase.variant == "aged" && p.phase.disk == *disk)?;
            let (fresh_s, aged_s) = (fresh.build_seconds(), aged.build_seconds());
            let pairs: Vec<(f64, f64)> = fresh_s
                .iter()
                .copied()
                .zip(aged_s.iter().copied())
                .collect();
            let differences = || pairs.iter().map(|(fresh, aged)| aged - fresh);
            Some(Comparison {
                disk: disk.clone(),
                disk_label: disk.label(),
                fresh_s: median(&fresh_s)?,
                aged_s: median(&aged_s)?,
                ratio: paired_ratio(&pairs, 1)?,
                difference_s_low: differences().fold(f64::INFINITY, f64::min),
                difference_s_high: differences().fold(f64::NEG_INFINITY, f64::max),
            })
        })
        .collect()
}
