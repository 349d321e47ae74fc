//! Draws figures of a stretch of time: file offset over time, and latency over time.
//!
//! Every call is counted into a density grid here, so the first picture is complete whatever the number of
//! calls; the calls themselves, or every k-th of them, are included for zooming in.

mod captions;
mod collector;
mod leaves;
mod markup;

use seekscope_pattern::Axis;
use seekscope_run::FileRecord;
use serde::Serialize;

use crate::escape::{shortened, visible};

pub(crate) use captions::{CaptionSource, latency_sentence, sample_sentence, shape_of};
pub(crate) use collector::{Collector, FigureLimits, TimeSpan, byte_axis, latency_axis};
pub(crate) use leaves::LeafCollector;
pub(crate) use markup::figures_of_files;

const MENU_NAME_CHARS: usize = 70;

/// One phase's figures, as the script reads them.
#[derive(Debug, Serialize)]
pub(crate) struct PhaseFigures {
    /// Seconds per unit of the points' time column.
    pub(crate) time_unit_s: f64,
    /// Files, beginning with the one shown first.
    pub(crate) files: Vec<FileFigures>,
}

/// One file in one phase.
#[derive(Debug, Serialize)]
pub(crate) struct FileFigures {
    /// Label in the menu.
    pub(super) label: String,
    pub(super) offset: Figure,
    /// `None` if the marks are leaves, which have no latency.
    pub(super) latency: Option<Figure>,
    points: PointBlock,
}

/// One density picture.
#[derive(Debug, Serialize)]
pub(crate) struct Figure {
    x: Axis,
    /// Axis of bytes, or of the decimal logarithm of nanoseconds.
    y: Axis,
    /// Id of the blob with the counts of reads, then those of writes.
    blob: String,
    pub(super) caption: String,
}

#[derive(Debug, Serialize)]
struct PointBlock {
    blob: String,
    count: usize,
    /// Number of calls that each point represents.
    stride: usize,
}

/// Returns role, namespace and name, short enough for a menu.
pub(crate) fn menu_label(file: &FileRecord) -> String {
    let namespace = file.labelled_namespace();
    let name = match namespace {
        Some(_) => file.name().to_string(),
        None => file.labelled_name(),
    };
    visible(&format!(
        "{} {} {}",
        file.role.name(),
        shortened(&namespace.unwrap_or_default(), MENU_NAME_CHARS),
        shortened(&name, MENU_NAME_CHARS)
    ))
}
