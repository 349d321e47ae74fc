//! Renders a plan or a reordering as one HTML file.

use seekscope_run::RunDocument;

use super::content::blocks;
use super::headline::headline;
use crate::page::Page;
use crate::page::html::report;

/// Renders the report.
pub fn html(document: &RunDocument) -> String {
    let record = document.reorder.as_ref();
    let namespace = record.map_or("", |record| record.namespace.as_str());
    let headline = record.and_then(|record| headline(document, record));
    let blocks = record.map_or_else(Vec::new, |record| {
        blocks(document, record, headline.as_deref())
    });
    let headline = headline.unwrap_or_else(|| format!("Reordering {namespace}"));
    let page = Page::of_blocks(document, "order on disk", headline, blocks);
    report(document, page)
}
