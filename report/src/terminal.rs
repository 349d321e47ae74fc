//! A run as plain text for a terminal: what must be known first, the findings, then the same table
//! as in the HTML report.

use seekscope_pattern::FileAnalysis;
use seekscope_run::units::{format_bytes, format_count};
use seekscope_run::{Finding, Outcome, RunDocument};

use crate::ReportInput;
use crate::comparison::{GROUPS, columns};
use crate::numbers::format_share;
use crate::table::Cell;
use crate::text::{align_right, new_table};
use crate::wording;

/// Renders it, `width` characters wide. Control characters in names are shown, not obeyed.
pub fn render(input: &ReportInput<'_>, width: u16) -> String {
    let document = input.document;
    let mut text = String::new();
    let mut paragraph = |lines: &str| {
        text.push_str(lines);
        text.push('\n');
    };
    if document.outcome != Outcome::Ok || wording::has_reservations(document) {
        paragraph(&format!("{}\n", wording::outcome(document)));
    }
    for (number, finding) in document.findings.iter().enumerate() {
        paragraph(&describe(finding, number + 1));
    }
    paragraph(&side_by_side(input, width));
    paragraph(&files(input, width));
    paragraph(&limitations(document));
    visible(text.trim_end()) + "\n"
}

fn describe(finding: &Finding, number: usize) -> String {
    let mut lines = vec![format!("{number}. {} [{}]", finding.title, finding.id)];
    lines.extend(finding.evidence.iter().map(|e| format!("   - {e}")));
    if let Some(gain) = &finding.gain {
        lines.push(format!("   Gain: {}", wording::gain(gain)));
    }
    lines.push(format!(
        "   Confidence: {}. Risk: {}",
        finding.confidence, finding.risk
    ));
    if !finding.command.is_empty() {
        lines.push(format!("   To act on it: {}", finding.command));
    }
    lines.push(String::new());
    lines.join("\n")
}

fn side_by_side(input: &ReportInput<'_>, width: u16) -> String {
    let columns = columns(input);
    let mut table = new_table(width);
    let names = columns.iter().map(|c| c.phase.name.clone());
    table.add_row(std::iter::once(String::new()).chain(names));
    for (heading, rows) in GROUPS {
        table.add_row([heading.to_uppercase()]);
        for row in rows {
            let cells = columns.iter().map(|column| match (row.cell)(column) {
                Cell::Value(text) => text,
                Cell::Missing(why) => format!("({why})"),
            });
            table.add_row(std::iter::once(format!("  {}", row.label)).chain(cells));
        }
    }
    align_right(&mut table, 1..columns.len() + 1);
    format!("{table}\n")
}

/// The busiest files of each phase; the HTML report and `files.parquet` have the others.
fn files(input: &ReportInput<'_>, width: u16) -> String {
    const SHOWN: usize = 5;
    let mut table = new_table(width);
    table.add_row([
        "FILES",
        "reads",
        "bytes",
        "pattern",
        "contiguous",
        "writes",
        "bytes",
    ]);
    for (phase, analysis) in input.document.phases.iter().zip(input.analyses) {
        table.add_row([format!("  {}", phase.name)]);
        for file in analysis.files.iter().take(SHOWN) {
            table.add_row(file_row(input, file));
        }
        if analysis.files.len() > SHOWN {
            table.add_row([format!("    and {} more", analysis.files.len() - SHOWN)]);
        }
    }
    align_right(&mut table, 1..7);
    format!("{table}\n")
}

fn file_row(input: &ReportInput<'_>, file: &FileAnalysis) -> [String; 7] {
    let record = input.file(file.file_id);
    let name = record.map_or_else(
        || format!("file {}", file.file_id),
        |r| r.name().to_string(),
    );
    let namespace = record
        .and_then(|r| r.namespace.as_deref())
        .map(|n| format!(" ({n})"));
    let pattern = file.main_pattern();
    [
        format!("    {name}{}", namespace.unwrap_or_default()),
        format_count(file.reads.calls),
        format_bytes(file.reads.bytes),
        pattern.map_or("unknown", |p| p.kind.name()).to_string(),
        pattern.map_or_else(String::new, |p| format_share(p.contiguous_share)),
        format_count(file.writes.calls),
        format_bytes(file.writes.bytes),
    ]
}

/// What the run could not measure, a paragraph each.
pub(crate) fn limitations(document: &RunDocument) -> String {
    let mut lines = Vec::new();
    for limitation in crate::wording::limitations(document) {
        lines.push(format!(
            "Missing: {}\n  because {}",
            limitation.what, limitation.why
        ));
        if !limitation.remedy.is_empty() {
            lines.push(format!("  remedy: {}", limitation.remedy));
        }
    }
    lines.join("\n")
}

/// Names come from servers and file systems: an escape sequence must not reach the terminal.
/// Control characters become visible; line breaks stay.
pub fn visible(text: &str) -> String {
    text.split('\n')
        .map(crate::escape::visible)
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use seekscope_run::{Limitation, RunDocument};

    #[test]
    fn escape_sequences_are_shown_not_obeyed() {
        let mut document = RunDocument::begin("doctor", Vec::new());
        document.limitations.push(Limitation {
            what: "a\u{1b}[2Jb".into(),
            why: "c\u{202e}d".into(),
            remedy: String::new(),
        });
        let input = ReportInput {
            document: &document,
            files: &[],
            analyses: &[],
            events: &[],
        };
        let text = render(&input, 80);
        assert!(
            !text.contains('\u{1b}') && !text.contains('\u{202e}'),
            "{text}"
        );
        assert!(
            text.contains(r"a\u{1b}[2Jb") && text.contains("Partial run"),
            "{text}"
        );
    }
}
