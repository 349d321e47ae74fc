//! Draws the figures of files, disks and leaves: those of the reports of a trace and of a layout, reduced so
//! that one page has room for all.

use std::cell::RefCell;
use std::collections::HashMap;

use seekscope_run::{IoEvent, RunError};

use super::DoctorReportInput;
use super::index_builds::Pictures;
use super::tracks::DeviceSeconds;
use crate::html::figures::{FigureLimits, PhaseFigures};
use crate::html::points::Blobs;
use crate::layout::{self, LayoutReportInput};
use crate::page::{Block, Section};
use crate::trace::{self, TraceReportInput};

/// With 600 by 300 cells of counts for each figure, the page stays below 3 MB.
const CALLS: FigureLimits = FigureLimits {
    files: 6,
    disks: 2,
    points: 80_000,
};
const LEAVES: FigureLimits = FigureLimits {
    files: 4,
    disks: 0,
    points: 20_000,
};
/// Rows of the table of layouts.
const ROWS_MAX: usize = 25;

/// The figures from the passes over events and leaves.
pub(super) struct Figures {
    /// Figures of files and of disks.
    pub(super) trace: Option<[PhaseFigures; 2]>,
    pub(super) leaves: Option<PhaseFigures>,
    /// Figures of index builds, each with its name.
    pub(super) builds: Vec<(String, PhaseFigures)>,
    /// Requests of disks, second by second, where the kernel's counters of the disk are missing.
    pub(super) device_seconds: Option<DeviceSeconds>,
}

/// Returns what the trace's own report is made from.
pub(super) fn trace_input<'a>(input: &DoctorReportInput<'a>) -> Option<TraceReportInput<'a>> {
    Some(TraceReportInput {
        document: input.document,
        analysis: input.trace?,
        events: input.events,
    })
}

/// Counts all events and leaves, and builds the figures.
pub(super) fn build(input: &DoctorReportInput<'_>, blobs: &mut Blobs) -> Result<Figures, RunError> {
    let pictures = Pictures::new(input, &CALLS);
    let (trace, device_seconds, builds) = match trace_input(input) {
        Some(trace) => {
            let (figures, seconds, builds) = of_trace(&trace, pictures, blobs)?;
            (Some(figures), Some(seconds), builds)
        }
        None => (None, None, Vec::new()),
    };
    let strips = HashMap::new();
    let leaves = match layout_input(input, &strips) {
        Some(layout) => Some(layout::figures::build(&layout, &LEAVES, blobs)?),
        None => None,
    };
    Ok(Figures {
        trace,
        leaves: leaves.filter(|leaves| !leaves.files.is_empty()),
        device_seconds,
        builds,
    })
}

/// The figures of files and disks, requests by second, and the figures of index builds.
type OfTrace = (
    [PhaseFigures; 2],
    DeviceSeconds,
    Vec<(String, PhaseFigures)>,
);

fn of_trace(
    trace: &TraceReportInput<'_>,
    pictures: Pictures<'_>,
    blobs: &mut Blobs,
) -> Result<OfTrace, RunError> {
    let seconds = RefCell::new(DeviceSeconds::default());
    let pictures = RefCell::new(pictures);
    // One pass serves all figures: a second one would read and decompress the file again.
    let events = |each: &mut dyn FnMut(&IoEvent)| {
        (trace.events)(&mut |event| {
            seconds.borrow_mut().count(event);
            pictures.borrow_mut().count(event);
            each(event);
        })
    };
    let counted = TraceReportInput {
        events: &events,
        ..*trace
    };
    let figures = trace::figures::build(&counted, &CALLS, blobs)?;
    let builds = pictures.into_inner().figures(blobs);
    Ok(([figures.files, figures.disks], seconds.into_inner(), builds))
}

fn layout_input<'a>(
    input: &DoctorReportInput<'a>,
    strips: &'a HashMap<u32, Vec<String>>,
) -> Option<LayoutReportInput<'a>> {
    input.document.layout.as_ref()?;
    Some(LayoutReportInput {
        document: input.document,
        strips,
        leaves: input.leaves,
    })
}

/// Shows key order against place in the file, and what scans pay for it.
pub(super) fn layout_section(
    input: &DoctorReportInput<'_>,
    leaves: Option<PhaseFigures>,
) -> Section {
    let strips = HashMap::new();
    let layout = layout_input(input, &strips);
    let overview = layout.and_then(|layout| layout::tables::overview(&layout, ROWS_MAX));
    let blocks = Block::some([leaves.map(layout::html::leaves), overview.map(Block::Table)]);
    Section {
        id: "layout",
        short: "Layout",
        heading: "How the data lies".into(),
        lead: "A scan goes from left to right: a rising line is a file in order, noise a shuffled one. Score: the \
               share of avoidable seeks that are avoided. Per seek: how much a scan reads between two seeks. Then \
               the predicted cold scan by one reader."
            .into(),
        blocks,
    }
}
