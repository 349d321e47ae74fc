//! A disk run as plain text: what must be known first, then the numbers, section by section, each
//! with what it means.

use std::fmt::Write as _;

use super::sections::{Section, sections};
use super::{DiskReportInput, reservations, sentences, tables};
use crate::facts::{Fact, device_facts, fact_table, host_facts};
use crate::terminal::{limitations, visible};
use crate::text::{align_right, new_table, table_text, wrapped};

/// These are for the page, where there is room.
const PAGE_ONLY: [&str; 1] = ["percentiles"];

/// Renders it, `width` characters wide. Control characters in names are shown, not obeyed.
pub fn terminal(input: &DiskReportInput<'_>, width: u16) -> String {
    let document = input.document;
    let mut text = String::new();
    let mut paragraph = |lines: &str| {
        text.push_str(lines.trim_end());
        text.push_str("\n\n");
    };
    if !reservations::is_clean(document) {
        paragraph(&wrapped(&reservations::first_line(document), width, ""));
    }
    if let Some(measurement) = input.measurement() {
        paragraph(&glance(&sentences::key_figures(measurement), width));
    }
    for section in sections(input).iter().filter(|s| !is_page_only(input, s)) {
        paragraph(&section_text(section, width));
    }
    let facts = if is_job(input) {
        Vec::new()
    } else {
        facts(input)
    };
    for (heading, facts) in facts {
        if let Some(facts) = facts {
            let known = facts
                .into_iter()
                .filter(|(_, value)| value.is_some())
                .collect();
            paragraph(&table_text(&fact_table(heading, known), width));
        }
    }
    paragraph(&limitations(document));
    visible(text.trim_end()) + "\n"
}

/// What was measured, on what, where.
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

/// A single job is asked for by people who know the host, many times in a row.
fn is_job(input: &DiskReportInput<'_>) -> bool {
    input.measurement().is_some_and(|m| m.profile == "job")
}

/// Seconds of short steps would fill screens; those of a long one are the point of it.
fn is_page_only(input: &DiskReportInput<'_>, section: &Section) -> bool {
    let many_steps = || input.measurement().is_some_and(|m| m.steps.len() > 2);
    PAGE_ONLY.contains(&section.id)
        || (section.id == "seconds" && many_steps())
        || (section.id == "surroundings" && is_job(input))
}

fn glance(figures: &[(&'static str, String)], width: u16) -> String {
    let mut table = new_table(width);
    for (what, value) in figures {
        table.add_row([(*what).to_string(), value.clone()]);
    }
    align_right(&mut table, 1..2);
    table.to_string()
}

fn section_text(section: &Section, width: u16) -> String {
    let mut text = format!("{}\n", section.heading.to_uppercase());
    for table in &section.tables {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", table_text(table, width));
    }
    for (_, sentence) in &section.sentences {
        let _ = writeln!(text, "{}", wrapped(sentence, width, "  "));
    }
    text
}
