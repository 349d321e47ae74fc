//! A benchmark as plain text: the verdict first, then the numbers of each step.

use super::{BenchReportInput, labs, sentences, tables};
use crate::terminal::{limitations, visible};
use crate::text::{table_text, wrapped};

/// Renders it, `width` characters wide. Control characters in names are shown, not obeyed.
pub fn terminal(input: &BenchReportInput<'_>, width: u16) -> String {
    let document = input.document;
    let steps = input.steps();
    let mut text = String::new();
    let mut paragraph = |lines: &str| {
        if !lines.trim().is_empty() {
            text.push_str(lines.trim_end());
            text.push_str("\n\n");
        }
    };
    paragraph(&wrapped(&sentences::verdict(document), width, ""));
    if let Some(measurement) = input.measurement() {
        paragraph(&wrapped(&sentences::headline(measurement), width, ""));
    }
    let numbers = [
        tables::operations(steps),
        tables::costs(steps),
        tables::storage(steps),
        tables::failures(steps),
        tables::saturation(input),
        labs::index_builds(input),
        labs::shapes(input),
        labs::growth(input),
        labs::experiments(input),
    ];
    for table in numbers.iter().flatten() {
        paragraph(&table_text(table, width));
    }
    paragraph(&said(input, width));
    paragraph(&limitations(document));
    visible(text.trim_end()) + "\n"
}

/// A paragraph for each step, and what follows from all of them.
fn said(input: &BenchReportInput<'_>, width: u16) -> String {
    let mut paragraphs: Vec<String> = (input.steps().iter())
        .map(|step| sentences::of_step(step).join(" "))
        .collect();
    if let Some(measurement) = input.measurement() {
        paragraphs.extend(measurement.saturation.as_ref().map(sentences::saturation));
        paragraphs.extend(measurement.recommendation.clone());
    }
    let wrapped = paragraphs.iter().map(|text| wrapped(text, width, ""));
    wrapped.collect::<Vec<_>>().join("\n")
}
