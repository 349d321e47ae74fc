//! Renders a disk run as one HTML file.

use super::figures::{self, Figure};
use super::sections::{Material, sections};
use super::{DiskReportInput, reservations, sentences, tables};
use crate::facts::device_facts;
use crate::html::charts::BarChart;
use crate::page::html::report;
use crate::page::{self, Block, Data, OutcomeLine, Page, Section};

const SQL: &str = "SELECT step, operation, (t_ns - min(t_ns) OVER ()) / 1e9 AS second, \
    count * 1e9 / duration_ns AS per_s FROM 'intervals.parquet' ORDER BY t_ns;";

/// Renders the report.
pub fn html(input: &DiskReportInput<'_>) -> String {
    let document = input.document;
    let measurement = input.measurement();
    let mut figures = figures::lines(input);
    let mut orders = figures::orders(input);
    let materials = sections(input).into_iter();
    let mut blocks: Vec<Block> = materials
        .map(|material| section(material, &mut figures, &mut orders))
        .collect();
    blocks.extend(steps(input));
    let headline = measurement.and_then(sentences::headline);
    let page = Page {
        subject: "what this disk can do for a database",
        outcome: OutcomeLine {
            word: reservations::outcome_word(document),
            sentence: reservations::first_line(document),
        },
        headline: headline.unwrap_or_else(|| "Nothing was measured in this run".into()),
        next: None,
        about: about(input),
        key_figures: measurement.map_or_else(Vec::new, sentences::key_figures),
        blocks,
        measured_on: vec![
            ("Disk", document.device.as_ref().map(device_facts)),
            ("Measurement", measurement.map(tables::measurement_facts)),
        ],
        data: Some(Data {
            files: vec![
                ("run.json", String::new()),
                (
                    "intervals.parquet",
                    "a row for each second of each step".into(),
                ),
                (
                    "latency.hlog",
                    "whole distributions, in HdrHistogram's log format".into(),
                ),
            ],
            sql: SQL,
        }),
    };
    report(document, page)
}

fn about(input: &DiskReportInput<'_>) -> Vec<String> {
    let device = input.document.device.as_ref();
    let disk = device.and_then(|device| device.disk.clone());
    let filesystem = device.map(|device| device.filesystem.clone());
    let profile = input
        .measurement()
        .map(|measurement| format!("profile {}", measurement.profile));
    [disk, filesystem, profile].into_iter().flatten().collect()
}

/// Returns a section: figures side by side, each with its sentence; the tables; the other sentences.
fn section(material: Material, figures: &mut Vec<Figure>, orders: &mut Option<BarChart>) -> Block {
    let Material {
        id,
        heading,
        tables,
        mut sentences,
    } = material;
    let mut take = |key: &str| {
        let at = sentences.iter().position(|(name, _)| *name == key)?;
        Some(sentences.remove(at).1)
    };
    let mut drawn: Vec<Block> = figures
        .extract_if(.., |figure| figure.section == id)
        .map(|figure| {
            page::Figure::new(figure.heading, figure.reading)
                .meaning(take(figure.sentence))
                .lines(figure.chart)
        })
        .collect();
    if id == "order" {
        drawn.extend(orders.take().map(|chart| {
            page::Figure::new(
                "Blocks per second by order",
                "Cold reads through the page cache.",
            )
            .meaning(take("order_gain"))
            .bars(chart)
        }));
    }
    let mut blocks = Vec::new();
    blocks.extend((!drawn.is_empty()).then_some(Block::Beside(drawn)));
    blocks.extend(tables.into_iter().map(Block::Table));
    blocks.extend(Block::sentences(
        sentences.into_iter().map(|(_, text)| text),
    ));
    Block::Section(Section::new(id, heading, blocks))
}

fn steps(input: &DiskReportInput<'_>) -> Option<Block> {
    let steps = tables::all_steps(input)?;
    let section = Section::new("steps", "All steps", vec![Block::Table(steps)]).with_lead(
        "In the order in which they ran; the job that each figure belongs to comes first. I/O \
         pressure is the share of the time in which at least one task on the host waited for I/O.",
    );
    Some(Block::Section(section))
}
