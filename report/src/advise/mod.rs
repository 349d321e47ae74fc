//! Reports `advise`: the queries on a collection, the ways of storing it that were tried, and which is advised.
//!
//! Works from a run's [`seekscope_run::AdviceRecord`]. Read `sentences.rs` first (the advice), then `content.rs` (its
//! order on the page).

mod commands;
mod content;
mod sentences;
mod tables;

use seekscope_run::{Outcome, RunDocument};

use crate::page::html::report;
use crate::page::{Block, OutcomeLine, Page, Section, disk_and_server, terminal as plain};
use crate::wording;

/// Renders the report.
pub fn html(document: &RunDocument) -> String {
    let advice = document.advice.as_ref();
    let headline = advice.and_then(sentences::headline);
    let blocks = advice.map_or_else(Vec::new, |advice| {
        let mut blocks: Vec<Block> = content::chart(advice).into_iter().collect();
        blocks.extend(content::blocks(document, advice));
        blocks
    });
    let page = Page {
        subject: "how the documents should be stored",
        outcome: OutcomeLine::of(document),
        headline: headline.unwrap_or_else(|| "No way of storing was compared".into()),
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

/// Renders the report as plain text, `width` characters wide. Control characters in names are shown, not executed.
pub fn terminal(document: &RunDocument, width: u16) -> String {
    let outcome = (document.outcome != Outcome::Ok).then(|| wording::outcome(document));
    let mut blocks = Block::sentences(outcome);
    if let Some(advice) = &document.advice {
        blocks.extend(Block::sentences(sentences::headline(advice)));
        blocks.extend(content::blocks(document, advice));
    }
    plain::text(document, &blocks, width)
}
