//! A disk run as one HTML file.

use maud::{Markup, html};
use seekscope_run::RunDocument;

use super::figures::{self, Figure};
use super::sections::{Section, sections};
use super::{DiskReportInput, reservations, sentences, tables};
use crate::facts::{date, device_facts};
use crate::html::charts::{BarChart, figure};
use crate::html::facts::{again, limitations, measured_on};
use crate::html::page::{PageData, page};
use crate::html::points::Blobs;
use crate::html::table::table;
use crate::table::Table;

const SQL: &str = "SELECT step, operation, (t_ns - min(t_ns) OVER ()) / 1e9 AS second, \
    count * 1e9 / duration_ns AS per_s FROM 'intervals.parquet' ORDER BY t_ns;";

/// Renders the report.
pub fn html(input: &DiskReportInput<'_>) -> String {
    let lines = figures::lines(input);
    let orders = figures::orders(input);
    let document = input.document;
    let body = html! {
        header { (header(input)) }
        main {
            @if !lines.is_empty() || orders.is_some() {
                noscript { p.note { "The figures need scripts; all numbers stand in the tables." } }
            }
            @for section in &sections(input) { (section_block(section, &lines, orders.as_ref())) }
            (steps(input))
            (limitations(document))
            (measured_on(document, &[
                ("Disk", document.device.as_ref().map(device_facts)),
                ("Measurement", input.measurement().map(tables::measurement_facts)),
            ]))
            (again(document, &data_note(), SQL))
        }
    };
    let data = PageData {
        lines: lines.into_iter().map(|figure| figure.chart).collect(),
        bars: orders.into_iter().collect(),
        ..PageData::default()
    };
    page(&title(document), body, &data, &Blobs::default())
}

fn title(document: &RunDocument) -> String {
    format!(
        "seekscope {}: what this disk can do for a database",
        document.command
    )
}

/// First line, headline and the few numbers that describe the disk.
fn header(input: &DiskReportInput<'_>) -> Markup {
    let document = input.document;
    let measurement = input.measurement();
    let headline = measurement.and_then(sentences::headline);
    html! {
        p.outcome data-outcome=(reservations::outcome_word(document)) {
            (reservations::first_line(document))
        }
        p.brand { "seekscope " (document.command) }
        h1 {
            @match headline {
                Some(headline) => bdi { (headline) },
                None => "Nothing was measured in this run",
            }
        }
        p.meta {
            (date(document.started.realtime_ns))
            @if let Some(device) = &document.device {
                @if let Some(disk) = &device.disk { " · " bdi { (disk) } }
                " · " bdi { (device.filesystem) }
            }
            @if let Some(measurement) = measurement { " · profile " bdi { (measurement.profile) } }
        }
        @if let Some(measurement) = measurement {
            dl.key-figures {
                @for (what, value) in sentences::key_figures(measurement) {
                    div { dt { (what) } dd { (value) } }
                }
            }
        }
    }
}

/// Figures side by side, each with the sentence that is about it; the tables; the other sentences.
fn section_block(section: &Section, lines: &[Figure], orders: Option<&BarChart>) -> Markup {
    let figures: Vec<&Figure> = lines.iter().filter(|f| f.section == section.id).collect();
    let orders = orders.filter(|_| section.id == "order");
    let drawn = |key: &str| {
        figures.iter().any(|f| f.sentence == key) || (orders.is_some() && key == "order_gain")
    };
    let others: Vec<&str> = (section.sentences.iter())
        .filter(|(key, _)| !drawn(key))
        .map(|(_, sentence)| sentence.as_str())
        .collect();
    html! {
        section id=(section.id) {
            h2 { (section.heading) }
            @if !figures.is_empty() || orders.is_some() {
                div.charts {
                    @for figure in &figures { (line_figure(section, figure)) }
                    @if let Some(orders) = orders {
                        (figure(
                            &orders.id,
                            "Blocks per second by order",
                            &orders.series,
                            &caption(section, "Cold reads through the page cache.", "order_gain"),
                        ))
                    }
                }
            }
            @for numbers in &section.tables {
                @if section.id == "seconds" { (folded("All of it as numbers", numbers)) }
                @else { (table(numbers)) }
            }
            @for sentence in others { p.meaning { bdi { (sentence) } } }
        }
    }
}

fn line_figure(section: &Section, drawn: &Figure) -> Markup {
    let caption = caption(section, drawn.reading, drawn.sentence);
    figure(&drawn.chart.id, drawn.heading, &drawn.chart.lines, &caption)
}

/// What it means first, then how to read it.
fn caption(section: &Section, reading: &str, key: &str) -> Markup {
    let sentence = section.sentences.iter().find(|(name, _)| *name == key);
    html! {
        @if let Some((_, sentence)) = sentence { span.meaning { bdi { (sentence) } } " " }
        (reading)
    }
}

fn steps(input: &DiskReportInput<'_>) -> Markup {
    let Some(steps) = tables::all_steps(input) else {
        return html! {};
    };
    html! {
        section #steps {
            h2 { "All steps" }
            p.lead {
                "In the order in which they ran, each with the job that the numbers are of first. "
                "I/O pressure is the share of the time in which some task on the host waited."
            }
            (folded("All of them", &steps))
        }
    }
}

/// A table so long that it would push all else away.
fn folded(summary: &str, numbers: &Table) -> Markup {
    html! {
        details {
            summary { (summary) " (rows: " (numbers.rows.len()) ")" }
            (table(numbers))
        }
    }
}

fn data_note() -> Markup {
    html! {
        "All numbers come from " code { "run.json" } ", " code { "intervals.parquet" }
        " (a row for each second of each step) and " code { "latency.hlog" }
        " (whole distributions, in HdrHistogram's log format) in the run directory, which holds this "
        "report too. In DuckDB:"
    }
}
