//! A benchmark as plain text: the verdict first, then the numbers of each step.

use super::variants::Variants;
use super::{BenchReportInput, labs, sentences, tables};
use crate::terminal::{limitations, visible};
use crate::text::{table_text, wrapped};

/// Up to so many steps each is spoken of.
const STEPS_TOLD: usize = 6;

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
    let variants = Variants::of(input);
    let numbers = [
        tables::operations(steps),
        tables::conditions(steps),
        tables::costs(steps),
        tables::storage(steps),
        tables::failures(steps),
        variants.as_ref().and_then(|v| v.table.clone()),
        tables::saturation(input),
        labs::index_builds(input),
        labs::index_build_costs(input),
        labs::shapes(input),
        labs::shape_storage(input),
        labs::growth(input),
        labs::experiments(input),
    ];
    for table in numbers.iter().flatten() {
        paragraph(&table_text(table, width));
    }
    for sentence in variants.iter().flat_map(|v| &v.sentences) {
        paragraph(&wrapped(sentence, width, ""));
    }
    paragraph(&said(input, width));
    paragraph(&limitations(document));
    visible(text.trim_end()) + "\n"
}

/// A paragraph for each step, and what follows from all of them. Of many steps those alone that must not
/// be overlooked.
fn said(input: &BenchReportInput<'_>, width: u16) -> String {
    let all = input.steps();
    let mut paragraphs: Vec<String> = all
        .iter()
        .filter(|step| all.len() <= STEPS_TOLD || sentences::is_doubtful(step))
        .map(|step| sentences::of_step(step).join(" "))
        .collect();
    if let Some(measurement) = input.measurement() {
        paragraphs.extend(measurement.saturation.as_ref().map(sentences::saturation));
        paragraphs.extend(measurement.recommendation.clone());
    }
    let wrapped = paragraphs.iter().map(|text| wrapped(text, width, ""));
    wrapped.collect::<Vec<_>>().join("\n")
}
