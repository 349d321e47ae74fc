//! Reports how leaf pages are laid out: how far each collection and index has drifted from disk order, and
//! what a scan pays for it.
//!
//! Works from a run's [`LayoutMeasurement`] and its leaves, which are never held in memory: figures count
//! them into grids. Read [`sentences`] first (the text on each file); terminal and HTML show the same
//! sentences and tables.

mod charts;
mod comparison;
pub(crate) mod figures;
pub(crate) mod html;
pub mod sentences;
pub(crate) mod tables;
mod terminal;

use std::collections::HashMap;

use seekscope_run::{
    DataState, LayoutFile, LayoutMeasurement, LeafRecord, RunDocument, RunError, labelled,
};

use crate::escape::visible;

pub use comparison::{LayoutComparison, PairedFiles, comparison_terminal};
pub use html::html;
pub use terminal::{TerminalOptions, moment_line, terminal};

/// Passes every leaf of the run to the given function, file by file, in key order.
pub type LeafPass<'a> = dyn Fn(&mut dyn FnMut(&LeafRecord)) -> Result<(), RunError> + 'a;

/// Everything the report of a layout is made from.
#[derive(Clone, Copy)]
pub struct LayoutReportInput<'a> {
    pub document: &'a RunDocument,
    /// Strips by file: key order from left to right, the end of the file on top, in block characters; see
    /// `seekscope_layout::strip`. Shown for files whose details are shown.
    pub strips: &'a HashMap<u32, Vec<String>>,
    /// Called once, by [`html()`] only.
    pub leaves: &'a LeafPass<'a>,
}

impl<'a> LayoutReportInput<'a> {
    /// Returns what was found; `None` for a run that ended before anything was.
    fn measurement(&self) -> Option<&'a LayoutMeasurement> {
        self.document.layout.as_ref()
    }

    fn files(&self) -> &'a [LayoutFile] {
        self.measurement().map_or(&[], |m| &m.files)
    }
}

/// Returns the files whose details are shown: those that were named, and a lone one.
pub fn detailed(measurement: &LayoutMeasurement) -> impl Iterator<Item = &LayoutFile> {
    let wanted = !measurement.named.is_empty() || measurement.state == DataState::LoneFile;
    let files = measurement.files.iter().filter(move |_| wanted);
    files.filter(|file| file.not_measured.is_none())
}

/// Returns `shop.orders`, `shop.orders/customer_1`, or the file's name where there is no namespace, with the member in
/// front where there may be several. Control characters are made visible.
pub fn file_name(file: &LayoutFile) -> String {
    visible(&labelled(file.member.as_deref(), &own_name(file)))
}

fn own_name(file: &LayoutFile) -> String {
    match (&file.namespace, &file.index) {
        (Some(namespace), Some(index)) => format!("{namespace}/{index}"),
        (Some(namespace), None) => namespace.clone(),
        (None, _) => file.file.clone(),
    }
}

/// Returns the share of the file that is free for reuse.
fn free_share(file: &LayoutFile) -> f64 {
    file.free_bytes as f64 / file.file_bytes.max(1) as f64
}
