//! A layout as plain text: what matters most, all files, and the details of those that were named.

use std::fmt::Write as _;

use seekscope_run::units::{format_bytes, format_count};
use seekscope_run::{LayoutFile, LayoutMoment, Outcome};

use super::{LayoutReportInput, detailed, file_name, sentences, tables};
use crate::facts::fact_table;
use crate::numbers::format_share;
use crate::terminal::{limitations, visible};
use crate::text::{table_text, wrapped};
use crate::wording;

/// Files in the overview; the page has more.
const ROWS: usize = 40;
/// Files with details; the page has more.
const DETAILS: usize = 6;

/// How to draw.
#[derive(Debug, Clone, Copy)]
pub struct TerminalOptions {
    /// Characters per line.
    pub width: u16,
    /// The terminal shows more than ASCII.
    pub unicode: bool,
}

/// Renders it. Control characters in names are shown, not obeyed.
pub fn terminal(input: &LayoutReportInput<'_>, options: TerminalOptions) -> String {
    let width = options.width;
    let mut text = String::new();
    let mut paragraph = |lines: &str| {
        text.push_str(lines.trim_end());
        text.push_str("\n\n");
    };
    let document = input.document;
    if document.outcome != Outcome::Ok || wording::has_reservations(document) {
        paragraph(&wrapped(&wording::outcome(document), width, ""));
    }
    let Some(measurement) = input.measurement() else {
        paragraph("Nothing was measured in this run.");
        return visible(text.trim_end()) + "\n";
    };
    paragraph(&wrapped(
        &sentences::about_directory(measurement),
        width,
        "",
    ));
    let details: Vec<&LayoutFile> = detailed(measurement).take(DETAILS).collect();
    if details.len() != 1 {
        if let Some(headline) = sentences::headline(measurement) {
            paragraph(&wrapped(&headline, width, ""));
        }
        if let Some(table) = tables::overview(input, ROWS) {
            paragraph(&table_text(&table, width));
        }
    }
    for file in details {
        paragraph(&detail(input, file, options));
    }
    if let Some(table) = tables::without_figures(input, ROWS) {
        paragraph(&table_text(&table, width));
    }
    for hint in sentences::hints(measurement) {
        paragraph(&wrapped(&hint, width, ""));
    }
    paragraph(&limitations(document));
    let text = visible(text.trim_end()) + "\n";
    if options.unicode { text } else { ascii(&text) }
}

fn detail(input: &LayoutReportInput<'_>, file: &LayoutFile, options: TerminalOptions) -> String {
    let width = options.width;
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{}", file_name(file));
    let disk_measured = input.measurement().is_some_and(|m| m.disk_measured);
    for sentence in sentences::file_headline(file, disk_measured)
        .into_iter()
        .chain(sentences::about_file(file))
    {
        let _ = writeln!(text, "{}", wrapped(&sentence, width, "  "));
    }
    if let Some(strip) = input.strips.get(&file.file_id).filter(|s| !s.is_empty()) {
        let _ = writeln!(text, "\n{}", boxed(strip, file.file_bytes));
    }
    let facts = fact_table("WHAT IT CONSISTS OF", tables::file_facts(file));
    let _ = writeln!(text, "{}\n", table_text(&facts, width));
    if let Some(order) = &file.order {
        let distributions = [
            tables::run_lengths(order, Some('█')),
            tables::gaps(order, Some('█')),
        ];
        for table in distributions.into_iter().flatten() {
            let _ = writeln!(text, "{}\n", table_text(&table, width));
        }
    }
    text
}

/// The strip with its axes: key order to the right, the end of the file on top.
fn boxed(strip: &[String], file_bytes: u64) -> String {
    let end = format_bytes(file_bytes);
    let margin = end.chars().count().max(1);
    let columns = strip
        .iter()
        .map(|line| line.chars().count())
        .max()
        .unwrap_or(0);
    let last = strip.len() - 1;
    let lines = strip.iter().enumerate().map(|(row, line)| {
        let label = match row {
            0 => end.as_str(),
            row if row == last => "0",
            _ => "",
        };
        format!("  {label:>margin$} │{line:<columns$}│")
    });
    let mut text: Vec<String> = lines.collect();
    let rule: String = std::iter::repeat_n('─', columns).collect();
    text.push(format!("  {:>margin$} └{rule}┘", ""));
    text.push(format!(
        "  {:>margin$}  leaves in key order, from the first key to the last; upwards: where in the file",
        ""
    ));
    text.join("\n") + "\n"
}

/// One line per checkpoint, for `--watch`.
pub fn moment_line(
    file: &LayoutFile,
    moment: &LayoutMoment,
    since_start_s: f64,
    course: &str,
) -> String {
    visible(&format!(
        "{since_start_s:>7.0} s  {}  {}  {} leaves, {} moved, sequential {}, score {:.3}, {} seeks, {} \
         free  {course}",
        file_name(file),
        crate::escape::visible(&moment.checkpoint),
        format_count(moment.leaf_pages),
        format_count(moment.moved_leaf_pages),
        format_share(moment.sequential_share),
        moment.score,
        format_count(moment.seeks),
        format_bytes(moment.free_bytes),
    ))
}

/// What terminals without Unicode show instead. Names keep their own characters.
fn ascii(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '█' => '#',
            '▓' => '+',
            '▒' => ':',
            '░' => '.',
            '│' => '|',
            '─' => '-',
            '└' | '┘' => '+',
            '–' => '-',
            '…' => '.',
            'τ' => 't',
            'ρ' => 'r',
            'µ' => 'u',
            '×' => 'x',
            '▁' => '_',
            '▂' => '.',
            '▃' => '-',
            '▄' => '=',
            '▅' => '+',
            '▆' => '*',
            '▇' => '%',
            c => c,
        })
        .collect()
}
