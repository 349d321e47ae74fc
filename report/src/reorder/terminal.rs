//! Renders a plan or a reordering as plain text.

use seekscope_run::{Outcome, RunDocument};

use super::{content, sentences};
use crate::page::{Block, terminal};
use crate::wording;

/// Renders the report, `width` characters wide. Control characters in names are shown, not executed.
pub fn terminal(document: &RunDocument, width: u16) -> String {
    let outcome = (document.outcome != Outcome::Ok).then(|| wording::outcome(document));
    let mut blocks = Block::sentences(outcome);
    if let Some(record) = &document.reorder {
        blocks.extend(Block::sentences(sentences::headline(record)));
        blocks.extend(content::blocks(document, record));
    }
    terminal::text(document, &blocks, width)
}
