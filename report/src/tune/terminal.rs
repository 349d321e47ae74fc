//! Renders a session as plain text: the verdict, what proves it, the change and how to undo it, then what the
//! search learned.

use seekscope_run::{Outcome, RunDocument, TuneRecord};

use super::exports::{change, undo};
use super::{duels, runs, sentences, tables};
use crate::page::{Block, terminal};
use crate::wording;

/// Renders the report, `width` characters wide; lines to be copied are never broken. Control characters in
/// names are shown, not executed.
pub fn terminal(document: &RunDocument, width: u16) -> String {
    let record = document.tune.as_ref();
    let headline = record.map(|record| sentences::headline(document, record));
    let is_told = record.is_some() && document.outcome == Outcome::Ok;
    let outcome = (!is_told).then(|| wording::outcome(document));
    let mut blocks = Block::sentences(headline.into_iter().chain(outcome));
    blocks.extend(
        record
            .into_iter()
            .flat_map(|record| of_record(document, record)),
    );
    terminal::text(document, &blocks, width)
}

fn of_record(document: &RunDocument, record: &TuneRecord) -> Vec<Block> {
    let restored = || Block::Sentence(sentences::restored(document, record).into());
    let is_changed = sentences::may_be_changed(document, record);
    let mut blocks = Block::some([
        is_changed.then(restored),
        sentences::durability(record).map(Block::Sentence),
        sentences::goal(record).map(Block::Sentence),
        duels::table(record).map(Block::Table),
        duels::tests(record).map(Block::Table),
        sentences::expected(record).map(Block::Sentence),
        record
            .noise
            .as_ref()
            .map(sentences::noise)
            .map(Block::Sentence),
        tables::change(record).map(Block::Table),
        sentences::reset(record).map(Block::Sentence),
        sentences::left_database(record).map(Block::Sentence),
    ]);
    blocks.extend(Block::sentences(sentences::risks(record)));
    blocks.extend(Block::sentences(sentences::cautions(record)));
    blocks.extend(change(record));
    blocks.extend(undo(record));
    blocks.extend(Block::tables([
        tables::importance(record),
        runs::failures(record),
        runs::ledger(record),
    ]));
    blocks.extend((!is_changed).then(restored));
    blocks
}
