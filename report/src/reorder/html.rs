//! Renders a plan or a reordering as one HTML file.

use seekscope_run::RunDocument;

use super::content::blocks;
use super::sentences;
use crate::page::html::report;
use crate::page::{OutcomeLine, Page, Section, disk_and_server};

/// Renders the report.
pub fn html(document: &RunDocument) -> String {
    let record = document.reorder.as_ref();
    let namespace = record.map_or("", |record| record.namespace.as_str());
    let headline = record.and_then(sentences::headline);
    let blocks = record.map_or_else(Vec::new, |record| blocks(document, record));
    let page = Page {
        subject: "order on disk",
        outcome: OutcomeLine::of(document),
        headline: headline.unwrap_or_else(|| format!("Reordering {namespace}")),
        next: None,
        about: Vec::new(),
        key_figures: Vec::new(),
        blocks: Section::new("", "", blocks)
            .or_nothing()
            .into_iter()
            .collect(),
        measured_on: disk_and_server(document),
        data: None,
    };
    report(document, page)
}
