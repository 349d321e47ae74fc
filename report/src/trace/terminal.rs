//! A trace as plain text: what of it is missing first, then what stands out, then the numbers.

use std::fmt::Write as _;

use super::sections::{Section, sections};
use super::{TraceReportInput, outcome, standing_out};
use crate::terminal::{limitations, visible};
use crate::text::{table_text, wrapped};

/// Files and threads shown; the page has the others.
const ROWS: usize = 12;
/// These are for the page, where there is room.
const PAGE_ONLY: [&str; 3] = ["latency", "order", "cache"];

/// Renders it, `width` characters wide. Control characters in names are shown, not obeyed.
pub fn terminal(input: &TraceReportInput<'_>, width: u16) -> String {
    let mut text = String::new();
    let mut paragraph = |lines: &str| {
        text.push_str(lines.trim_end());
        text.push_str("\n\n");
    };
    paragraph(&wrapped(&outcome::first_line(input), width, ""));
    for sentence in standing_out::sentences(input.analysis) {
        paragraph(&wrapped(&sentence, width, "  "));
    }
    let shown = sections(input, ROWS);
    for section in shown.iter().filter(|s| !PAGE_ONLY.contains(&s.id)) {
        paragraph(&section_text(section, width));
    }
    paragraph(&limitations(input.document));
    visible(text.trim_end()) + "\n"
}

fn section_text(section: &Section, width: u16) -> String {
    let mut text = format!("{}\n", section.heading.to_uppercase());
    for table in &section.tables {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}\n", table_text(table, width));
    }
    text
}
