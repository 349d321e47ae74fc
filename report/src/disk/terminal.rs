//! Renders a disk run as plain text: what must be known first, then the numbers, section by section, each
//! with its meaning.

use super::sections::{Material, sections};
use super::{DiskReportInput, reservations, sentences, tables};
use crate::facts::{Fact, device_facts, fact_table, host_facts};
use crate::page::{Block, Section, terminal};
use crate::table::Table;

/// Sections shown only on the page, which has more room.
const PAGE_ONLY: [&str; 1] = ["percentiles"];

/// Renders the report, `width` characters wide. Control characters in names are shown, not executed.
pub fn terminal(input: &DiskReportInput<'_>, width: u16) -> String {
    let document = input.document;
    let is_clean = reservations::is_clean(document);
    let mut blocks = Block::sentences((!is_clean).then(|| reservations::first_line(document)));
    blocks.extend(
        input
            .measurement()
            .map(|m| glance(sentences::key_figures(m))),
    );
    let sections = sections(input).into_iter();
    blocks.extend(
        sections
            .filter(|section| !is_page_only(input, section))
            .map(section),
    );
    if !is_job(input) {
        let facts = facts(input).into_iter();
        blocks.extend(facts.filter_map(|(heading, facts)| {
            let known = facts?.into_iter().filter(|(_, value)| value.is_some());
            Some(Block::Table(fact_table(heading, known.collect())))
        }));
    }
    terminal::text(document, &blocks, width)
}

/// Returns what was measured, on what, where.
fn facts(input: &DiskReportInput<'_>) -> Vec<(&'static str, Option<Vec<Fact>>)> {
    let document = input.document;
    vec![
        (
            "MEASURED",
            input.measurement().map(tables::measurement_facts),
        ),
        ("DISK", document.device.as_ref().map(device_facts)),
        ("HOST", document.host.as_ref().map(host_facts)),
    ]
}

/// Returns whether it is a run of a single job. Those are requested by people who know the host, many times in a row.
fn is_job(input: &DiskReportInput<'_>) -> bool {
    input.measurement().is_some_and(|m| m.profile == "job")
}

/// Returns whether the section is for the page only. The seconds of short steps would fill screens; those of a long one
/// are its purpose.
fn is_page_only(input: &DiskReportInput<'_>, section: &Material) -> bool {
    let many_steps = || input.measurement().is_some_and(|m| m.steps.len() > 2);
    PAGE_ONLY.contains(&section.id)
        || (section.id == "seconds" && many_steps())
        || (section.id == "surroundings" && is_job(input))
}

fn glance(figures: Vec<(&'static str, String)>) -> Block {
    let mut table = Table::new(1, &["", ""]);
    for (what, value) in figures {
        table.row([what.into(), value.into()]);
    }
    Block::Table(table)
}

fn section(material: Material) -> Block {
    let mut blocks: Vec<Block> = material.tables.into_iter().map(Block::Table).collect();
    let sentences = material.sentences.into_iter().map(|(_, sentence)| sentence);
    blocks.extend(Block::sentences(sentences));
    Block::Section(Section::new(material.id, material.heading, blocks))
}
