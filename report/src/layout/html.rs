//! Renders a layout as one HTML file.

use seekscope_run::units::{format_bytes, format_count};
use seekscope_run::{LayoutFile, RunError};

use super::{LayoutReportInput, charts, detailed, figures, file_name, sentences, tables};
use crate::facts::fact_table;
use crate::html::charts::BarChart;
use crate::html::figures::{FigureLimits, PhaseFigures};
use crate::html::points::Blobs;
use crate::numbers::format_share;
use crate::page::html::report_with;
use crate::page::{
    Block, Content, Data, Figure, Folded, OutcomeLine, Page, Places, PlacesKind, Section,
    disk_and_server,
};

/// The most rows; a server with ten thousand collections would make the page useless.
const ROWS_MAX: usize = 500;
const DETAILS_MAX: usize = 20;

const SQL: &str = "SELECT path, count(*) AS leaves, avg(CASE WHEN gap = 0 THEN 1.0 ELSE 0.0 END) AS \
    contiguous FROM (SELECT file_id, lead(\"offset\") OVER (PARTITION BY file_id ORDER BY ordinal) - \
    \"offset\" - length AS gap FROM 'layout.parquet') JOIN 'files.parquet' USING (file_id) GROUP BY path;";

/// Renders the report, with one pass over the leaves.
///
/// # Errors
/// Returns an error if the leaves cannot be read.
pub fn html(input: &LayoutReportInput<'_>) -> Result<String, RunError> {
    let document = input.document;
    let measurement = input.measurement();
    let mut blobs = Blobs::default();
    let places = figures::build(input, &FigureLimits::ALONE, &mut blobs)?;
    let hints = measurement.map_or_else(Vec::new, sentences::hints);
    let mut blocks: Vec<Block> = hints.into_iter().map(Block::Note).collect();
    if !document.findings.is_empty() {
        let findings = Block::Findings(document.findings.clone(), 1);
        blocks.push(Block::Section(Section::new(
            "findings",
            "What to do",
            vec![findings],
        )));
    }
    let sections = [
        files(input),
        plot(places),
        history(input),
        distributions(input),
        details(input),
    ];
    blocks.extend(sections.into_iter().filter_map(Section::or_nothing));
    let headline = measurement.and_then(sentences::headline);
    let page = Page {
        subject: "how the data lies on disk",
        outcome: OutcomeLine::of(document),
        headline: headline.unwrap_or_else(|| "No data was found".into()),
        next: None,
        about: measurement
            .map(sentences::about_directory)
            .into_iter()
            .collect(),
        key_figures: measurement.map_or_else(Vec::new, |m| key_figures(&m.files)),
        blocks,
        measured_on: disk_and_server(document),
        data: Some(Data {
            files: vec![
                ("run.json", String::new()),
                ("files.parquet", String::new()),
                (
                    "layout.parquet",
                    "a row for each leaf page, in key order".into(),
                ),
            ],
            sql: SQL,
        }),
    };
    Ok(report_with(document, page, &blobs))
}

fn key_figures(files: &[LayoutFile]) -> Vec<(&'static str, String)> {
    let sum = |of: fn(&LayoutFile) -> u64| files.iter().fold(0u64, |s, f| s.saturating_add(of(f)));
    let (bytes, read) = (sum(|f| f.file_bytes), sum(|f| f.bytes_read));
    vec![
        (
            if files.len() == 1 { "file" } else { "files" },
            format_count(files.len() as u64),
        ),
        ("in all", format_bytes(bytes)),
        ("leaf pages", format_count(sum(|f| f.leaf_pages))),
        ("free for reuse", format_bytes(sum(|f| f.free_bytes))),
        (
            "of the bytes were read for this examination",
            format_share(read as f64 / bytes.max(1) as f64),
        ),
    ]
}

fn files(input: &LayoutReportInput<'_>) -> Section {
    let blocks = Block::tables([
        tables::overview(input, ROWS_MAX),
        tables::without_figures(input, ROWS_MAX),
    ]);
    Section::new("files", "Collections and indexes", blocks).with_lead(
        "Files for which order would save a scan most come first. Score: the share of the \
         avoidable seeks that are avoided (1: in order, 0: random). Per seek: how much a scan \
         reads between two seeks. Free: the space that the file can reuse. The last columns show \
         the predicted duration of a cold scan by one reader.",
    )
}

fn plot(places: PhaseFigures) -> Section {
    let section = |block| Section::new("figures", "Where the leaves lie", vec![block]);
    if places.files.is_empty() {
        return section(Block::Note(
            "There is no figure because no file has leaf pages.".into(),
        ));
    }
    section(leaves(places)).with_lead(
        "A scan goes from left to right. Drag over the figure to zoom in, double-click to return; \
         the arrow keys move a zoomed figure. Where there are too many marks to tell apart, the \
         shading shows their number (logarithmic).",
    )
}

/// Returns the figure whose marks are leaf pages.
pub(crate) fn leaves(figures: PhaseFigures) -> Block {
    let places = Places {
        heading: None,
        what: "File",
        figure_heading: "Place in the file by key order",
        kind: PlacesKind::Leaves,
        figures,
        without: "",
    };
    Content::Places(vec![places]).into()
}

fn history(input: &LayoutReportInput<'_>) -> Section {
    const READING: &str = "Share of the steps from leaf to leaf that continue where the last one \
        ended, at each checkpoint.";
    let chart = charts::history(input);
    let drawn = chart.map(|chart| Figure::new("Sequential share", READING).lines(chart));
    let blocks = drawn.map(|chart| Block::Beside(vec![chart]));
    Section::new("history", "How the order changed", Block::some([blocks]))
}

fn distributions(input: &LayoutReportInput<'_>) -> Section {
    const RUNS: &str = "A run is a sequence of leaves without gaps. Each bar counts the runs from \
        its length up to twice that length.";
    const GAPS: &str = "From the end of a leaf to the beginning of the next one in key order, in \
        both directions. Each bar counts the steps from its distance up to twice that distance.";
    let drawn = |chart: Option<BarChart>, heading: &str, reading: &str| {
        chart.map(|chart| Figure::new(heading, reading).bars(chart))
    };
    let charts = Block::some([
        drawn(charts::runs(input), "Runs by length", RUNS),
        drawn(charts::gaps(input), "Steps by distance", GAPS),
    ]);
    let blocks = (!charts.is_empty()).then_some(Block::Beside(charts));
    Section::new("distributions", "Runs and gaps", Block::some([blocks]))
}

fn details(input: &LayoutReportInput<'_>) -> Section {
    let named = input.measurement().into_iter().flat_map(detailed);
    let files = named.take(DETAILS_MAX).map(file_details);
    Section::new("details", "In detail", files.collect())
}

fn file_details(file: &LayoutFile) -> Block {
    let order = file.order.as_ref();
    let distributions = [
        order.and_then(|order| tables::run_lengths(order, None)),
        order.and_then(|order| tables::gaps(order, None)),
    ];
    let facts = fact_table("what it consists of", tables::file_facts(file));
    let mut blocks = Block::sentences(sentences::about_file(file));
    blocks.push(Block::Table(facts));
    blocks.extend(distributions.into_iter().flatten().map(|numbers| {
        let summary = format!("{}: as numbers", numbers.columns[0]);
        Folded::closed(summary, vec![Block::Table(numbers)])
    }));
    Block::Part(file_name(file), blocks)
}
