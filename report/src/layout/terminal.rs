//! Renders a layout as plain text: what matters most, all files, and the details of those that were named.

use seekscope_run::units::{format_bytes, format_count};
use seekscope_run::{LayoutFile, LayoutMeasurement, LayoutMoment, Outcome};

use super::{LayoutReportInput, detailed, file_name, sentences, tables};
use crate::facts::fact_table;
use crate::numbers::format_share;
use crate::page::{self, Block};
use crate::terminal::visible;
use crate::wording;

/// The most files in the overview; the page has more.
const ROWS: usize = 40;
/// The most files with details; the page has more.
const DETAILS: usize = 6;

/// How to draw.
#[derive(Debug, Clone, Copy)]
pub struct TerminalOptions {
    /// Characters per line.
    pub width: u16,
    /// True if the terminal shows more than ASCII.
    pub unicode: bool,
}

/// Renders the report. Control characters in names are shown, not executed.
pub fn terminal(input: &LayoutReportInput<'_>, options: TerminalOptions) -> String {
    let document = input.document;
    let is_clean = document.outcome == Outcome::Ok && !wording::has_reservations(document);
    let mut blocks = Block::sentences((!is_clean).then(|| wording::outcome(document)));
    match input.measurement() {
        Some(measurement) => blocks.extend(measured(input, measurement)),
        None => blocks.push(Block::Sentence("Nothing was measured in this run.".into())),
    }
    let text = page::terminal::text(document, &blocks, options.width);
    if options.unicode { text } else { ascii(&text) }
}

fn measured(input: &LayoutReportInput<'_>, measurement: &LayoutMeasurement) -> Vec<Block> {
    let mut blocks = vec![Block::Sentence(sentences::about_directory(measurement))];
    let details: Vec<&LayoutFile> = detailed(measurement).take(DETAILS).collect();
    if details.len() != 1 {
        blocks.extend(Block::sentences(sentences::headline(measurement)));
        blocks.extend(Block::tables([tables::overview(input, ROWS)]));
    }
    blocks.extend(details.into_iter().map(|file| detail(input, file)));
    blocks.extend(Block::tables([tables::without_figures(input, ROWS)]));
    blocks.extend(Block::sentences(sentences::hints(measurement)));
    blocks
}

fn detail(input: &LayoutReportInput<'_>, file: &LayoutFile) -> Block {
    let is_for_typical_disk = input.measurement().is_some_and(|m| m.is_for_typical_disk());
    let headline = sentences::file_headline(file, is_for_typical_disk);
    let mut blocks = Block::sentences(headline.into_iter().chain(sentences::about_file(file)));
    let strip = input
        .strips
        .get(&file.file_id)
        .filter(|strip| !strip.is_empty());
    blocks.extend(strip.map(|strip| Block::Characters(boxed(strip, file.file_bytes))));
    blocks.push(Block::Table(fact_table(
        "WHAT IT CONSISTS OF",
        tables::file_facts(file),
    )));
    if let Some(order) = &file.order {
        blocks.extend(Block::tables([
            tables::run_lengths(order, Some('█')),
            tables::gaps(order, Some('█')),
        ]));
    }
    Block::Part(file_name(file), blocks)
}

/// Returns the strip with its axes: key order to the right, the end of the file on top.
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

/// Returns one line per checkpoint, for `--watch`.
pub fn moment_line(
    file: &LayoutFile,
    moment: &LayoutMoment,
    since_start_s: f64,
    course: &str,
) -> String {
    let order = match moment.leaf_pages {
        // An order needs two.
        0 => "no leaves".into(),
        1 => format!("1 leaf, {} moved", format_count(moment.moved_leaf_pages)),
        leaves => format!(
            "{} leaves, {} moved, sequential {}, score {:.3}, {} seeks",
            format_count(leaves),
            format_count(moment.moved_leaf_pages),
            format_share(moment.sequential_share),
            moment.score,
            format_count(moment.seeks)
        ),
    };
    visible(&format!(
        "{since_start_s:>7.0} s  {}  {}  {order}, {} free  {course}",
        file_name(file),
        crate::escape::visible(&moment.checkpoint),
        format_bytes(moment.free_bytes),
    ))
}

/// Returns the replacement for terminals without Unicode. Names keep their own characters.
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
