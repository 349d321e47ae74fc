//! Figures of a stretch of time: file offset over time, and latency over time.
//!
//! Every call is counted into a density grid here, so the first picture is complete whatever the
//! number of calls; the calls themselves go along, or every k-th of them, for zooming in.

mod captions;
mod collector;
mod leaves;
mod markup;

use seekscope_pattern::Axis;
use seekscope_run::FileRecord;
use serde::Serialize;

use crate::escape::{shortened, visible};

pub(crate) use captions::{CaptionSource, latency_sentence, sample_sentence, shape_sentence};
pub(crate) use collector::{Collector, FigureLimits, TimeSpan, byte_axis, latency_axis};
pub(crate) use leaves::LeafCollector;
pub(crate) use markup::figures_of_files;

const MENU_NAME_CHARS: usize = 70;

/// One phase's figures, as the script reads them.
#[derive(Debug, Serialize)]
pub(crate) struct PhaseFigures {
    /// Seconds per unit of the points' time column.
    pub(crate) time_unit_s: f64,
    /// First the file shown at first.
    pub(crate) files: Vec<FileFigures>,
}

/// One file in one phase.
#[derive(Debug, Serialize)]
pub(crate) struct FileFigures {
    /// For the menu.
    pub(super) label: String,
    pub(super) offset: Figure,
    /// `None` where the marks are leaves, which take no time.
    pub(super) latency: Option<Figure>,
    points: PointBlock,
}

/// One density picture.
#[derive(Debug, Serialize)]
pub(crate) struct Figure {
    x: Axis,
    /// Bytes, or the decimal logarithm of nanoseconds.
    y: Axis,
    /// The blob with the counts of reads, then those of writes.
    blob: String,
    pub(super) caption: String,
}

#[derive(Debug, Serialize)]
struct PointBlock {
    blob: String,
    count: usize,
    /// Each point stands for this many calls.
    stride: usize,
}

/// Role, namespace and name, as short as a menu needs them.
pub(crate) fn menu_label(file: &FileRecord) -> String {
    let namespace = file.namespace.as_deref().unwrap_or_default();
    visible(&format!(
        "{} {} {}",
        file.role.name(),
        shortened(namespace, MENU_NAME_CHARS),
        shortened(file.name(), MENU_NAME_CHARS)
    ))
}
