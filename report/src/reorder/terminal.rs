//! Renders a plan or a reordering as plain text.

use seekscope_run::RunDocument;

use super::content;
use super::headline::headline;
use crate::page::terminal::text_of_blocks;

/// Renders the report, `width` characters wide. Control characters in names are shown, not executed.
pub fn terminal(document: &RunDocument, width: u16) -> String {
    let record = document.reorder.as_ref();
    let headline = record.and_then(|record| headline(document, record));
    let blocks = record.map_or_else(Vec::new, |record| {
        content::blocks(document, record, headline.as_deref())
    });
    text_of_blocks(document, headline, blocks, width)
}
