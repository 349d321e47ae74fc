//! A trace as one HTML file.

use maud::{Markup, html};
use seekscope_run::RunError;
use seekscope_run::units::{format_bytes, format_count, format_ns};

use super::names::hit_share;
use super::sections::{Section, sections};
use super::{TraceReportInput, charts, figures, latencies, outcome, standing_out};
use crate::facts::{date, device_facts, target_facts};
use crate::html::charts::{LineChart, figure};
use crate::html::facts::{CALLS_SQL, again, limitations, measured_on};
use crate::html::figures::{FigureLimits, PhaseFigures, figures_of_files};
use crate::html::page::{PageData, page};
use crate::html::points::Blobs;
use crate::html::table::folded;
use crate::numbers::{format_rate, format_share};

/// Rows of files and threads; a server with ten thousand collections would make the page useless.
const ROWS_MAX: usize = 100;
/// A longer table is folded.
const ROWS_OPEN_MAX: usize = 25;

/// Renders the report, with one pass over the events.
///
/// # Errors
/// The events cannot be read.
pub fn html(input: &TraceReportInput<'_>) -> Result<String, RunError> {
    let document = input.document;
    let mut blobs = Blobs::default();
    let figures = figures::build(input, &FigureLimits::ALONE, &mut blobs)?;
    let lines: Vec<LineChart> = figures
        .latencies
        .chart()
        .into_iter()
        .chain(charts::build(input))
        .collect();
    let body = html! {
        header { (header(input)) }
        main {
            (findings(input))
            (plots(&figures.files, &figures.disks))
            @for section in &sections(input, ROWS_MAX) { (section_block(section, &lines)) }
            (limitations(document))
            (measured_on(document, &[
                ("Disk under the data", document.device.as_ref().map(device_facts)),
                ("Server", document.target.as_ref().map(target_facts)),
            ]))
            (again(document, &data_note(input), CALLS_SQL))
        }
    };
    let phases = vec![figures.files, figures.disks];
    let data = PageData {
        phases,
        lines,
        ..PageData::default()
    };
    let title = format!("seekscope {}: what was read and written", document.command);
    Ok(page(&title, body, &data, &blobs))
}

/// First line, headline and the few numbers that describe the trace.
fn header(input: &TraceReportInput<'_>) -> Markup {
    let document = input.document;
    html! {
        p.outcome data-outcome=(outcome::word(input)) { (outcome::first_line(input)) }
        p.brand { "seekscope " (document.command) }
        h1 {
            @match standing_out::headline(input.analysis) {
                Some(headline) => bdi { (headline) },
                None => "What was read and written",
            }
        }
        p.meta {
            (date(document.started.realtime_ns))
            @if let Some(phase) = input.phase() {
                @if !phase.activity.is_empty() { " · " bdi { (phase.activity) } }
            }
            @if let Some(trace) = input.trace() {
                " · " bdi { (trace.backend) }
                @for filter in &trace.filters { " · " bdi { (filter) } }
            }
        }
        dl.key-figures {
            @for (what, value) in key_figures(input) {
                div { dt { (what) } dd { (value) } }
            }
        }
    }
}

fn key_figures(input: &TraceReportInput<'_>) -> Vec<(&'static str, String)> {
    let analysis = input.analysis;
    let seconds = (input.duration_ns() as f64 / 1e9).max(1e-9);
    let (reads, writes) = (&analysis.reads, &analysis.writes);
    let per_s = |calls: u64| format_rate(calls as f64 / seconds);
    let mut figures = vec![
        ("reads per second", per_s(reads.calls)),
        ("read", format_bytes(reads.bytes)),
    ];
    if reads.calls > 0 {
        figures.push(("median read", format_ns(reads.latency_ns.p50)));
        figures.push(("99 % of the reads within", format_ns(reads.latency_ns.p99)));
    }
    if let Some(share) = hit_share(&analysis.cache) {
        figures.push(("of the reads from the page cache", format_share(share)));
    }
    figures.push(("writes per second", per_s(writes.calls)));
    figures.push(("written", format_bytes(writes.bytes)));
    figures
}

fn findings(input: &TraceReportInput<'_>) -> Markup {
    let sentences = standing_out::sentences(input.analysis);
    html! {
        section #standing-out {
            h2 { "What stands out" }
            @if sentences.is_empty() { p.note { "Nothing: there were hardly any calls." } }
            @else { ul { @for sentence in &sentences { li { bdi { (sentence) } } } } }
        }
    }
}

/// Files beside disks, each with a menu.
pub(crate) fn plots(files: &PhaseFigures, disks: &PhaseFigures) -> Markup {
    html! {
        section #figures {
            h2 { "What was asked for, and when" }
            p.lead {
                "Each mark is a call, or a request of a disk. Drag over a figure to zoom in, double "
                "click to return; arrow keys move a zoomed figure. "
                span.swatch.reads {} " read " span.swatch.writes {} " write. "
                "Where marks are too many to tell apart, shading shows how many there are (logarithmic)."
            }
            noscript { p.note { "The figures need scripts; all numbers stand in the tables." } }
            div.phases {
                (plot_pair(0, "What processes asked of files", "File", "File offset over time", files))
                (plot_pair(1, "What the disk was asked for", "Disk", "Place on the disk over time", disks))
            }
        }
    }
}

fn plot_pair(
    index: usize,
    heading: &str,
    what: &str,
    figure_heading: &str,
    figures: &PhaseFigures,
) -> Markup {
    let place = what.to_ascii_lowercase();
    html! {
        article.phase data-phase=(index) data-beginning="trace" data-place=(place) {
            h4 { (heading) }
            @if figures.files.is_empty() {
                p.note { "No figure: no such event is in the trace; see what was traced, below." }
            } @else {
                (figures_of_files(what, figure_heading, &figures.files))
            }
        }
    }
}

/// Which figures stand in which section: id, heading, how to read it.
const FIGURES: [(&str, &str, &str, &str); 5] = [
    (
        "latency",
        latencies::ID,
        "Latency by percentile",
        "Each step to the right on the axis looks at a share of the calls ten times smaller and slower.",
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
        "Different bytes read in each slice of time, whole pages, within about 7 %.",
    ),
    (
        "cache",
        charts::GROWTH,
        "Growth of the working set",
        "Different bytes read since the trace began: a line that goes level has come round.",
    ),
    (
        "cache",
        charts::CACHE,
        "Page reads that a cache would miss",
        "By its size, all files together. First reads of a page are missed by any cache.",
    ),
];

fn section_block(section: &Section, lines: &[LineChart]) -> Markup {
    let drawn: Vec<_> = FIGURES
        .iter()
        .filter(|(place, ..)| *place == section.id)
        .filter_map(|(_, id, heading, caption)| {
            Some((
                heading,
                caption,
                lines.iter().find(|chart| chart.id == *id)?,
            ))
        })
        .collect();
    html! {
        section id=(section.id) {
            h2 { (section.heading) }
            @if !section.lead.is_empty() { p.lead { (section.lead) } }
            @if !drawn.is_empty() {
                div.charts {
                    @for (heading, caption, chart) in drawn {
                        (figure(&chart.id, heading, &chart.lines, &html! { (caption) }))
                    }
                }
            }
            @for numbers in &section.tables {
                (folded(numbers, ROWS_OPEN_MAX))
            }
        }
    }
}

fn data_note(input: &TraceReportInput<'_>) -> Markup {
    html! {
        "All numbers come from " code { "run.json" } ", " code { "files.parquet" } ", "
        code { "threads.parquet" } " and " code { "io.parquet" }
        " in the run directory, which holds this report too: "
        (format_count(input.analysis.events)) " events, one a row. DuckDB and pandas open them as "
        "they are. In DuckDB:"
    }
}
