//! Renders a trace as one HTML file.

use seekscope_run::RunError;
use seekscope_run::units::{format_bytes, format_count, format_ns};

use super::names::hit_share;
use super::sections::sections;
use super::standing_out::LeftOut;
use super::{TraceReportInput, charts, figures, latencies, outcome, standing_out};
use crate::html::charts::LineChart;
use crate::html::facts::CALLS_SQL;
use crate::html::figures::{FigureLimits, PhaseFigures};
use crate::html::points::Blobs;
use crate::numbers::{format_rate, format_share};
use crate::page::html::report_with;
use crate::page::{
    Block, Content, Data, Figure, OutcomeLine, Page, Places, PlacesKind, Section, disk_and_server,
};

/// The most rows of files and threads; a server with ten thousand collections would make the page useless.
const ROWS_MAX: usize = 100;

/// Renders the report, with one pass over the events.
///
/// # Errors
/// Returns an error if the events cannot be read.
pub fn html(input: &TraceReportInput<'_>) -> Result<String, RunError> {
    let document = input.document;
    let mut blobs = Blobs::default();
    let figures = figures::build(input, &FigureLimits::ALONE, &mut blobs)?;
    let mut lines: Vec<LineChart> = figures.latencies.chart().into_iter().collect();
    lines.extend(charts::build(input));
    let mut blocks = vec![
        standing_out_section(input),
        places(figures.files, figures.disks),
    ];
    for mut section in sections(input, ROWS_MAX) {
        let drawn = drawn(section.id, &mut lines);
        section.blocks.splice(..0, drawn);
        blocks.push(Block::Section(section));
    }
    let headline = standing_out::headline(input, &LeftOut::of(input.document));
    let page = Page {
        subject: "what was read and written",
        outcome: OutcomeLine {
            word: outcome::word(input),
            sentence: outcome::first_line(input),
        },
        headline: headline.unwrap_or_else(|| "What was read and written".into()),
        next: None,
        about: about(input),
        key_figures: key_figures(input),
        blocks,
        measured_on: disk_and_server(document),
        data: Some(Data {
            files: vec![
                ("run.json", String::new()),
                ("files.parquet", String::new()),
                ("threads.parquet", String::new()),
                (
                    "io.parquet",
                    format!(
                        "{} events, one per row",
                        format_count(input.analysis.events)
                    ),
                ),
            ],
            sql: CALLS_SQL,
        }),
    };
    Ok(report_with(document, page, &blobs))
}

/// Returns what was done, and how it was recorded.
fn about(input: &TraceReportInput<'_>) -> Vec<String> {
    let activity = input.phase().map(|phase| phase.activity.clone());
    let recorded = input.trace().map(|trace| {
        let backend = std::iter::once(trace.backend.clone());
        backend.chain(trace.filters.iter().cloned())
    });
    let activity = activity.filter(|activity| !activity.is_empty());
    activity
        .into_iter()
        .chain(recorded.into_iter().flatten())
        .collect()
}

fn key_figures(input: &TraceReportInput<'_>) -> Vec<(&'static str, String)> {
    let analysis = input.analysis;
    // A flight recorder has only the last events.
    let is_whole = input.trace().is_some_and(|trace| trace.overwritten == 0);
    let during_ns = match is_whole {
        true => input.watched_ns(),
        false => input.duration_ns(),
    };
    let seconds = (during_ns as f64 / 1e9).max(1e-9);
    let (reads, writes) = (&analysis.reads, &analysis.writes);
    let per_s = |calls: u64| format_rate(calls as f64 / seconds);
    let mut figures = vec![
        ("reads per second", per_s(reads.calls)),
        ("read", format_bytes(reads.bytes)),
    ];
    if reads.calls > 0 {
        figures.push(("median read", format_ns(reads.latency_ns.p50)));
        figures.push(("99th percentile of reads", format_ns(reads.latency_ns.p99)));
    }
    if let Some(share) = hit_share(&analysis.cache) {
        figures.push(("of the reads from the page cache", format_share(share)));
    }
    figures.push(("writes per second", per_s(writes.calls)));
    figures.push(("written", format_bytes(writes.bytes)));
    figures
}

fn standing_out_section(input: &TraceReportInput<'_>) -> Block {
    let sentences = standing_out::sentences(input, &LeftOut::of(input.document));
    let block = match sentences.is_empty() {
        true => Block::Note("Nothing stands out because there were hardly any calls.".into()),
        false => Block::List(sentences),
    };
    Block::Section(Section::new("standing-out", "What stands out", vec![block]))
}

/// Returns files beside disks, each with a menu.
pub(crate) fn places(files: PhaseFigures, disks: PhaseFigures) -> Block {
    let places = |what, heading: &str, figure_heading, figures| Places {
        heading: Some(heading.into()),
        what,
        figure_heading,
        kind: PlacesKind::SinceTrace,
        figures,
        without: "There is no figure because the trace contains no such event; see below \
                  for what was traced.",
    };
    let both = vec![
        places(
            "File",
            "Calls of processes on files",
            "File offset over time",
            files,
        ),
        places(
            "Disk",
            "Requests to the disk",
            "Place on the disk over time",
            disks,
        ),
    ];
    let blocks = vec![Content::Places(both).into()];
    let section = Section {
        short: "Files",
        ..Section::new("figures", "Calls and requests over time", blocks)
    };
    let section = section.with_lead(
        "Each mark is a call, or a request to a disk. Drag over a figure to zoom in, double-click \
         to return; the arrow keys move a zoomed figure. Where there are too many marks to tell \
         apart, the shading shows their number (logarithmic).",
    );
    Block::Section(section)
}

/// The figures of each section: id, heading, how to read it.
const FIGURES: [(&str, &str, &str, &str); 5] = [
    (
        "latency",
        latencies::ID,
        "Latency by percentile",
        "Each step to the right on the axis covers a share of the calls that is ten \
         times smaller and slower.",
    ),
    (
        "files",
        charts::RATES,
        "Calls over time",
        "All files together.",
    ),
    (
        "cache",
        charts::WORKING_SET,
        "Working set",
        "Distinct bytes read in each slice of time, in whole pages, accurate to about 7 %.",
    ),
    (
        "cache",
        charts::GROWTH,
        "Growth of the working set",
        "Distinct bytes read since the trace began: once the line is level, the same \
         data is read again.",
    ),
    (
        "cache",
        charts::CACHE,
        "Page reads that a cache would miss",
        "By cache size, all files together. The first read of a page misses in any cache.",
    ),
];

/// Returns the figures of a section, if they have anything to draw.
fn drawn(section: &str, lines: &mut Vec<LineChart>) -> Option<Block> {
    let planned = FIGURES.iter().filter(|(place, ..)| *place == section);
    let figures: Vec<Block> = planned
        .filter_map(|(_, id, heading, reading)| {
            let at = lines.iter().position(|chart| chart.id == *id)?;
            Some(Figure::new(*heading, *reading).lines(lines.remove(at)))
        })
        .collect();
    (!figures.is_empty()).then_some(Block::Beside(figures))
}
