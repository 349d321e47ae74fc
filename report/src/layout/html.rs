//! A layout as one HTML file.

use maud::{Markup, html};
use seekscope_run::units::{format_bytes, format_count};
use seekscope_run::{Finding, LayoutFile, RunError};

use super::{LayoutReportInput, charts, detailed, figures, file_name, sentences, tables};
use crate::facts::{date, device_facts, fact_table, target_facts};
use crate::html::charts::{LineChart, figure};
use crate::html::facts::{again, limitations, measured_on};
use crate::html::figures::{FigureLimits, PhaseFigures, figures_of_files};
use crate::html::findings::block;
use crate::html::page::{PageData, page};
use crate::html::points::Blobs;
use crate::html::table::{folded, table};
use crate::numbers::format_share;
use crate::wording;

/// A server with ten thousand collections would make the page useless.
const ROWS_MAX: usize = 500;
/// A longer table is folded.
const ROWS_OPEN_MAX: usize = 40;
const DETAILS_MAX: usize = 20;

const SQL: &str = "SELECT path, count(*) AS leaves, avg(CASE WHEN gap = 0 THEN 1.0 ELSE 0.0 END) AS \
    contiguous FROM (SELECT file_id, lead(\"offset\") OVER (PARTITION BY file_id ORDER BY ordinal) - \
    \"offset\" - length AS gap FROM 'layout.parquet') JOIN 'files.parquet' USING (file_id) GROUP BY path;";

/// Renders the report, with one pass over the leaves.
///
/// # Errors
/// The leaves cannot be read.
pub fn html(input: &LayoutReportInput<'_>) -> Result<String, RunError> {
    let document = input.document;
    let mut blobs = Blobs::default();
    let places = figures::build(input, &FigureLimits::ALONE, &mut blobs)?;
    let lines = charts::build(input);
    let body = html! {
        header { (header(input)) }
        main {
            (findings(&document.findings))
            (files(input))
            (plot(&places))
            (history(&lines))
            (distributions(&lines))
            (details(input))
            (limitations(document))
            (measured_on(document, &[
                ("Disk under the data", document.device.as_ref().map(device_facts)),
                ("Server", document.target.as_ref().map(target_facts)),
            ]))
            (again(document, &data_note(), SQL))
        }
    };
    let data = PageData {
        phases: vec![places],
        lines,
        ..PageData::default()
    };
    let title = format!("seekscope {}: how the data lies", document.command);
    Ok(page(&title, body, &data, &blobs))
}

/// First line, headline and the few numbers that describe the directory.
fn header(input: &LayoutReportInput<'_>) -> Markup {
    let document = input.document;
    let measurement = input.measurement();
    html! {
        p.outcome data-outcome=(wording::outcome_word(document)) { (wording::outcome(document)) }
        p.brand { "seekscope " (document.command) }
        h1 {
            @match measurement.and_then(sentences::headline) {
                Some(headline) => bdi { (headline) },
                None => "No data was found",
            }
        }
        @if let Some(measurement) = measurement {
            p.meta {
                (date(document.started.realtime_ns))
                " · " bdi { (sentences::about_directory(measurement)) }
            }
            dl.key-figures {
                @for (what, value) in key_figures(&measurement.files) {
                    div { dt { (what) } dd { (value) } }
                }
            }
            @for hint in sentences::hints(measurement) { p.note { bdi { (hint) } } }
        }
    }
}

fn key_figures(files: &[LayoutFile]) -> Vec<(&'static str, String)> {
    let sum = |of: fn(&LayoutFile) -> u64| files.iter().fold(0u64, |s, f| s.saturating_add(of(f)));
    let (bytes, read) = (sum(|f| f.file_bytes), sum(|f| f.bytes_read));
    vec![
        ("files", format_count(files.len() as u64)),
        ("in all", format_bytes(bytes)),
        ("leaf pages", format_count(sum(|f| f.leaf_pages))),
        ("free for reuse", format_bytes(sum(|f| f.free_bytes))),
        (
            "of the bytes were read to find this out",
            format_share(read as f64 / bytes.max(1) as f64),
        ),
    ]
}

fn findings(findings: &[Finding]) -> Markup {
    html! {
        @if !findings.is_empty() {
            section #findings {
                h2 { "What to do" }
                @for finding in findings { (block(finding)) }
            }
        }
    }
}

fn files(input: &LayoutReportInput<'_>) -> Markup {
    html! {
        section #files {
            h2 { "Collections and indexes" }
            p.lead {
                "What order would save a scan most comes first. Score: the share of avoidable seeks that "
                "are avoided, 1 in order, 0 random. Per seek: how much a scan reads between two seeks. "
                "Free: what the file can reuse. Then the predicted cold scan by one reader."
            }
            @if let Some(overview) = tables::overview(input, ROWS_MAX) { (folded(&overview, ROWS_OPEN_MAX)) }
            @if let Some(others) = tables::without_figures(input, ROWS_MAX) { (folded(&others, ROWS_OPEN_MAX)) }
        }
    }
}

fn plot(places: &PhaseFigures) -> Markup {
    html! {
        section #figures {
            h2 { "Where the leaves lie" }
            @if places.files.is_empty() {
                p.note { "No figure: no file has leaves." }
            } @else {
                p.lead {
                    "A scan goes from left to right. Drag over the figure to zoom in, double click to "
                    "return; arrow keys move a zoomed figure. Where marks are too many to tell apart, "
                    "shading shows how many there are (logarithmic)."
                }
                noscript { p.note { "The figure needs scripts; all numbers stand in the tables." } }
                (leaf_figure(0, places))
            }
        }
    }
}

/// The figure of the phase with this number, whose marks are leaf pages.
pub(crate) fn leaf_figure(index: usize, places: &PhaseFigures) -> Markup {
    html! {
        div.phases {
            article.phase data-phase=(index) data-marks="leaves" {
                (figures_of_files("File", "Place in the file by key order", &places.files))
            }
        }
    }
}

fn history(lines: &[LineChart]) -> Markup {
    let caption = html! {
        "Share of the steps from leaf to leaf that go on where the last one ended, at each checkpoint."
    };
    html! {
        @if let Some(chart) = lines.iter().find(|chart| chart.id == charts::HISTORY) {
            section #history {
                h2 { "How the order went on" }
                div.charts { (figure(&chart.id, "Sequential share", &chart.lines, &caption)) }
            }
        }
    }
}

fn distributions(lines: &[LineChart]) -> Markup {
    let plans = [
        (
            charts::RUNS,
            "Runs by length",
            "A run is a stretch of leaves without any gap.",
        ),
        (
            charts::GAPS,
            "Steps by distance",
            "From the end of a leaf to the beginning of the next in key order, in both directions. \
             Leftmost: no gap.",
        ),
    ];
    let drawn: Vec<_> = plans
        .iter()
        .filter_map(|plan| Some((plan, lines.iter().find(|chart| chart.id == plan.0)?)))
        .collect();
    html! {
        @if !drawn.is_empty() {
            section #distributions {
                h2 { "Runs and gaps" }
                div.charts {
                    @for ((_, heading, caption), chart) in drawn {
                        (figure(&chart.id, heading, &chart.lines, &html! { (caption) }))
                    }
                }
            }
        }
    }
}

fn details(input: &LayoutReportInput<'_>) -> Markup {
    let named: Vec<&LayoutFile> = input
        .measurement()
        .map_or_else(Vec::new, |m| detailed(m).take(DETAILS_MAX).collect());
    html! {
        @if !named.is_empty() {
            section #details {
                h2 { "In detail" }
                @for file in named { (file_details(file)) }
            }
        }
    }
}

fn file_details(file: &LayoutFile) -> Markup {
    let order = file.order.as_ref();
    let distributions = [
        order.and_then(|order| tables::run_lengths(order, None)),
        order.and_then(|order| tables::gaps(order, None)),
    ];
    html! {
        h3 { bdi { (file_name(file)) } }
        @for sentence in sentences::about_file(file) { p.meaning { bdi { (sentence) } } }
        (table(&fact_table("what it consists of", tables::file_facts(file))))
        @for numbers in distributions.iter().flatten() {
            details { summary { (numbers.columns[0]) ": as numbers" } (table(numbers)) }
        }
    }
}

fn data_note() -> Markup {
    html! {
        "All numbers come from " code { "run.json" } ", " code { "files.parquet" } " and "
        code { "layout.parquet" } " (a row for each leaf page, in key order) in the run directory, "
        "which holds this report too. In DuckDB:"
    }
}
