//! A benchmark as plain text: the verdict first, then what several servers or settings came to, then the
//! numbers of each step.

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
    // What was asked of several servers or settings is which is better: its answer comes before the steps.
    if let Some(variants) = Variants::of(input) {
        let sentences = variants.sentences.iter();
        let sentences: Vec<String> = sentences.map(|said| wrapped(said, width, "")).collect();
        paragraph(&sentences.join("\n"));
        let compared = variants.table.as_ref();
        paragraph(&compared.map_or_else(String::new, |numbers| table_text(numbers, width)));
    }
    let numbers = [
        tables::operations(steps),
        tables::conditions(steps),
        tables::costs(steps),
        tables::storage(steps),
        tables::failures(steps),
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
