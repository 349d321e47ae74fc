//! A session as plain text: the verdict, what proves it, the change and how to take it back, then what
//! the search learned.

use seekscope_run::{Outcome, RunDocument, TuneRecord};

use super::exports::{Block, change, undo};
use super::{duels, runs, sentences, tables};
use crate::terminal::{limitations, visible};
use crate::text::{table_text, wrapped};
use crate::wording;

/// Renders it, `width` characters wide; lines to be copied are never broken. Control characters in names
/// are shown, not obeyed.
pub fn terminal(document: &RunDocument, width: u16) -> String {
    let mut paragraphs = Vec::new();
    match &document.tune {
        Some(record) => {
            paragraphs.push(wrapped(&sentences::headline(document, record), width, ""));
            if document.outcome != Outcome::Ok {
                paragraphs.push(wrapped(&wording::outcome(document), width, ""));
            }
            paragraphs.extend(of_record(record, width));
        }
        None => paragraphs.push(wrapped(&wording::outcome(document), width, "")),
    }
    paragraphs.push(limitations(document));
    let paragraphs = paragraphs.iter().map(|paragraph| paragraph.trim_end());
    let paragraphs: Vec<&str> = paragraphs.filter(|p| !p.is_empty()).collect();
    visible(&paragraphs.join("\n\n")) + "\n"
}

fn of_record(record: &TuneRecord, width: u16) -> Vec<String> {
    let text = |text: Option<String>| text.map(|text| wrapped(&one_line(&text), width, ""));
    let table =
        |table: Option<crate::table::Table>| table.map(|table| table_text(&shown(table), width));
    let head = [
        text((record.restored == Some(false)).then(|| sentences::restored(record).into())),
        text(sentences::durability(record)),
        text(Some(sentences::goal(record))),
        table(duels::table(record)),
        table(duels::tests(record)),
        text(sentences::expected(record)),
        text(record.noise.as_ref().map(sentences::noise)),
        table(tables::change(record)),
        text(sentences::reset(record)),
    ];
    let risks = sentences::risks(record);
    let risks = risks.iter().map(|risk| wrapped(&one_line(risk), width, ""));
    let cautions = sentences::cautions(record);
    let risks = risks.chain((cautions.iter()).map(|said| wrapped(&one_line(said), width, "")));
    let tail = [
        table(tables::importance(record)),
        table(runs::failures(record)),
        table(runs::ledger(record)),
        text((record.restored != Some(false)).then(|| sentences::restored(record).into())),
    ];
    let mut all: Vec<String> = head.into_iter().flatten().collect();
    all.extend(risks);
    all.extend(change(record).iter().chain(&undo(record)).map(block));
    all.extend(tail.into_iter().flatten());
    all
}

fn block(block: &Block) -> String {
    let lines: Vec<String> = block.lines.iter().map(|line| format!("  {line}")).collect();
    format!("{}:\n{}", block.heading, lines.join("\n"))
}

/// A line break in a name is shown: it cannot make a line of its own.
fn one_line(text: &str) -> String {
    crate::escape::visible(text)
}

/// The same for all cells.
fn shown(mut table: crate::table::Table) -> crate::table::Table {
    use crate::table::{Cell, Row};
    for row in &mut table.rows {
        match row {
            Row::Group(text) => *text = one_line(text),
            Row::Cells(cells) => {
                for cell in cells {
                    if let Cell::Value(text) = cell {
                        *text = one_line(text);
                    }
                }
            }
        }
    }
    table
}
