//! A trace as plain text: what of it is missing first, then what stands out, then the numbers.

use super::sections::sections;
use super::{TraceReportInput, outcome, standing_out};
use crate::page::{Block, terminal};

/// Files and threads shown; the page has the others.
const ROWS: usize = 12;
/// These are for the page, where there is room.
const PAGE_ONLY: [&str; 3] = ["latency", "order", "cache"];

/// Renders it, `width` characters wide. Control characters in names are shown, not obeyed.
pub fn terminal(input: &TraceReportInput<'_>, width: u16) -> String {
    let mut blocks = vec![Block::Sentence(outcome::first_line(input))];
    blocks.extend(Block::sentences(standing_out::sentences(input.analysis)));
    let shown = sections(input, ROWS).into_iter();
    blocks.extend(
        shown
            .filter(|section| !PAGE_ONLY.contains(&section.id))
            .map(Block::Section),
    );
    terminal::text(input.document, &blocks, width)
}
