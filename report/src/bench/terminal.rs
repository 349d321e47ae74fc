//! Renders a benchmark as plain text: the verdict first, then the result for several servers or settings,
//! then the numbers of each step.

use super::headline::headline;
use super::variants::Variants;
use super::{BenchReportInput, index_builds, labs, sentences, shard_others, shards, tables};
use crate::page::{Block, terminal};

/// The most steps for which each is described.
const STEPS_TOLD: usize = 6;

/// Renders it, `width` characters wide. Control characters in names are shown, not obeyed.
pub fn terminal(input: &BenchReportInput<'_>, width: u16) -> String {
    let document = input.document;
    let steps = input.steps();
    let headline = input.measurement().map(headline);
    let mut blocks = vec![Block::Sentence(sentences::verdict(document))];
    blocks.extend(headline.map(Block::Sentence));
    // With several servers or settings the question is which is better: its answer comes before the steps.
    if let Some(variants) = Variants::of(input) {
        blocks.extend(Block::sentences(variants.sentences));
        blocks.extend(variants.table.map(Block::Table));
    }
    blocks.extend(Block::sentences(index_builds::sentences(input)));
    blocks.extend(Block::tables([
        tables::operations(steps),
        tables::conditions(steps),
        tables::costs(steps),
        tables::storage(steps),
        shards::spread(input),
        shards::figures(steps),
        tables::failures(steps),
        tables::saturation(input),
        index_builds::times(input),
        index_builds::costs(input),
        index_builds::files(input),
        index_builds::reads(input),
        labs::shapes(input),
        labs::shape_storage(input),
        labs::growth(input),
        labs::experiments(input),
    ]));
    blocks.extend(Block::sentences(
        input
            .measurement()
            .map(shard_others::sentences)
            .unwrap_or_default(),
    ));
    blocks.extend(Block::sentences(shards::router(input)));
    blocks.extend(Block::sentences(said(input)));
    terminal::text(document, &blocks, width)
}

/// Returns a paragraph for each step, and what follows from all of them. With many steps only those that must
/// not be overlooked.
fn said(input: &BenchReportInput<'_>) -> Vec<String> {
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
    paragraphs
}
