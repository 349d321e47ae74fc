//! A plan or a reordering as plain text.

use seekscope_run::{Outcome, RunDocument};

use super::content::{Part, parts};
use super::sentences;
use crate::terminal::{limitations, visible};
use crate::text::{table_text, wrapped};
use crate::wording;

/// Renders it, `width` characters wide. Control characters in names are shown, not obeyed.
pub fn terminal(document: &RunDocument, width: u16) -> String {
    let mut paragraphs = Vec::new();
    if document.outcome != Outcome::Ok {
        paragraphs.push(wrapped(&wording::outcome(document), width, ""));
    }
    if let Some(record) = &document.reorder {
        let headline = sentences::headline(record);
        paragraphs.extend(headline.map(|text| wrapped(&text, width, "")));
        paragraphs.extend(parts(document, record).iter().map(|part| match part {
            Part::Text(text) => wrapped(text, width, ""),
            Part::Table(table) => table_text(table, width),
        }));
    }
    paragraphs.push(limitations(document));
    let paragraphs = paragraphs.iter().map(|paragraph| paragraph.trim_end());
    let paragraphs: Vec<&str> = paragraphs.filter(|p| !p.is_empty()).collect();
    visible(&paragraphs.join("\n\n")) + "\n"
}
