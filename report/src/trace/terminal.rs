//! Renders a trace as plain text: what is missing first, then what stands out, then the numbers.

use super::sections::sections;
use super::standing_out::LeftOut;
use super::{TraceReportInput, outcome, standing_out};
use crate::page::{Block, terminal};

/// The most files and threads shown; the page has the others.
const ROWS: usize = 12;
/// Sections shown only on the page, which has more room.
const PAGE_ONLY: [&str; 3] = ["latency", "order", "cache"];

/// Renders the report, `width` characters wide. Control characters in names are shown, not executed.
pub fn terminal(input: &TraceReportInput<'_>, width: u16) -> String {
    let mut blocks = vec![Block::Sentence(outcome::first_line(input))];
    let left_out = LeftOut::of(input.document);
    blocks.extend(Block::sentences(standing_out::sentences(input, &left_out)));
    let shown = sections(input, ROWS).into_iter();
    blocks.extend(
        shown
            .filter(|section| !PAGE_ONLY.contains(&section.id))
            .map(Block::Section),
    );
    terminal::text(input.document, &blocks, width)
}
