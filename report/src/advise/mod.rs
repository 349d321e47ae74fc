//! Reports `advise`: the queries on a collection, the ways of storing it that were tried, and which is advised.
//!
//! Works from a run's [`seekscope_run::AdviceRecord`]. Read `sentences.rs` first (the advice), then `content.rs` (its
//! order on the page).

mod commands;
mod content;
mod sentences;
mod since;
mod tables;

use seekscope_run::RunDocument;

use crate::page::Page;
use crate::page::html::report;
use crate::page::terminal::text_of_blocks;

/// Renders the report.
pub fn html(document: &RunDocument) -> String {
    let advice = document.advice.as_ref();
    let headline = advice.and_then(content::headline);
    let blocks = advice.map_or_else(Vec::new, |advice| {
        let mut blocks = content::charts(advice);
        blocks.extend(content::blocks(document, advice));
        blocks
    });
    let headline = headline.unwrap_or_else(|| "No way of storing was compared".into());
    let subject = "how the documents should be stored";
    let page = Page::of_blocks(document, subject, headline, blocks);
    report(document, page)
}

/// Renders the report as plain text, `width` characters wide. Control characters in names are shown, not executed.
pub fn terminal(document: &RunDocument, width: u16) -> String {
    let advice = document.advice.as_ref();
    let headline = advice.and_then(content::headline);
    let blocks = advice.map_or_else(Vec::new, |advice| content::blocks(document, advice));
    text_of_blocks(document, headline, blocks, width)
}
