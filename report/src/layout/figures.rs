//! Draws key order against place in the file: one pass over the leaves counts every one of them into a grid
//! and keeps a sample for zooming in.

use std::collections::HashMap;

use seekscope_run::units::format_count;
use seekscope_run::{LayoutFile, RunError};

use super::{LayoutReportInput, detailed, file_name, sentences};
use crate::escape::shortened;
use crate::html::figures::{FigureLimits, LeafCollector, PhaseFigures};
use crate::html::points::Blobs;

const MENU_NAME_CHARS: usize = 70;

/// Counts all leaves of the files that are shown.
pub(crate) fn build(
    input: &LayoutReportInput<'_>,
    limits: &FigureLimits,
    blobs: &mut Blobs,
) -> Result<PhaseFigures, RunError> {
    let shown = shown(input, limits.files);
    let leaves = shown
        .iter()
        .fold(0u64, |sum, f| sum.saturating_add(f.leaf_pages));
    let stride = limits.stride(leaves);
    let slot_of: HashMap<u32, usize> = (shown.iter().enumerate())
        .map(|(slot, file)| (file.file_id, slot))
        .collect();
    let new = |file: &&LayoutFile| LeafCollector::new(file.leaf_pages, file.file_bytes, stride);
    let mut collectors: Vec<LeafCollector> = shown.iter().map(new).collect();
    (input.leaves)(&mut |leaf| {
        let slot = slot_of.get(&leaf.file_id);
        if let Some(collector) = slot.and_then(|&slot| collectors.get_mut(slot)) {
            collector.count(leaf);
        }
    })?;
    let is_for_typical_disk = input.measurement().is_some_and(|m| m.is_for_typical_disk());
    let files = shown.iter().zip(collectors).map(|(file, collector)| {
        let label = shortened(&file_name(file), MENU_NAME_CHARS);
        collector.figures(label, caption(file, is_for_typical_disk, stride), blobs)
    });
    Ok(PhaseFigures {
        // The position in key order takes the place of time.
        time_unit_s: 1.0,
        files: files.collect(),
    })
}

/// Returns named files first, then those with most to gain.
fn shown<'a>(input: &LayoutReportInput<'a>, files_max: usize) -> Vec<&'a LayoutFile> {
    let Some(measurement) = input.measurement() else {
        return Vec::new();
    };
    let mut files: Vec<&LayoutFile> = detailed(measurement).collect();
    let others = measurement.files.iter();
    let missing: Vec<&LayoutFile> = others
        .filter(|file| !files.iter().any(|f| f.file_id == file.file_id))
        .collect();
    files.extend(missing);
    files.retain(|file| file.leaf_pages > 0);
    files.truncate(files_max);
    files
}

fn caption(file: &LayoutFile, is_for_typical_disk: bool, stride: usize) -> String {
    let mut text = sentences::file_headline(file, is_for_typical_disk).unwrap_or_default();
    text.push_str(
        " A rising line is a file in order, noise is a shuffled file, and several lines are ranges \
         that were loaded side by side.",
    );
    if stride > 1 {
        let count = format_count(stride as u64);
        text.push_str(&format!(" When zoomed in, one leaf in {count} is shown."));
    }
    text
}
