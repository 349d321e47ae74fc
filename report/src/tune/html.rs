//! Renders a session as one HTML file.

use seekscope_doctor::wording::capitalised;
use seekscope_run::{RunDocument, TuneRecord};

use super::exports::{change, undo};
use super::reading::same_in_all_runs;
use super::runs::TRIALS_SHOWN;
use super::{convergence, duels, forest, importance, pair, response, runs, sentences, tables};
use crate::page::html::report;
use crate::page::{Block, Data, Folded, OutcomeLine, Page, Section, disk_and_server};

/// The most response slices in a page.
const SLICES_DRAWN: usize = 32;

const SQL: &str = "SELECT purpose, arm, status, count(*) AS runs, avg(value) AS mean, \
    stddev(value) / avg(value) AS variation FROM 'trials.parquet' GROUP BY ALL ORDER BY mean DESC;";

/// Renders the report.
pub fn html(document: &RunDocument) -> String {
    let record = document.tune.as_ref();
    let headline = record.map(|record| capitalised(&sentences::headline(document, record)));
    let page = Page {
        subject: "better settings, proven",
        outcome: OutcomeLine::of(document),
        headline: headline.unwrap_or_else(|| "Nothing was tuned in this run".into()),
        next: None,
        about: Vec::new(),
        key_figures: Vec::new(),
        blocks: record.map_or_else(Vec::new, |record| sections(document, record)),
        measured_on: disk_and_server(document),
        data: Some(Data {
            files: vec![
                ("run.json", String::new()),
                ("trials.parquet", "a row for each run".into()),
            ],
            sql: SQL,
        }),
    };
    report(document, page)
}

fn sections(document: &RunDocument, record: &TuneRecord) -> Vec<Block> {
    let noise = record.noise.as_ref().map(sentences::noise);
    let convergence = convergence::figure(record)
        .unwrap_or_else(|| Block::Note("No figure: no run gave a number.".into()));
    let noise =
        noise.map(|noise| Block::Part("Noise and drift".into(), vec![Block::Sentence(noise)]));
    let left_out = tables::left_out(record);
    let left_out = left_out.map(|table| Block::Part("Left out".into(), vec![Block::Table(table)]));
    let mut knobs = vec![Block::table_or(tables::knobs(record), "No knob was tuned.")];
    knobs.extend(Block::sentences(sentences::cautions(record)));
    knobs.extend(left_out);
    let ledger = Block::table_or(runs::ledger(record), "No times were recorded.");
    [
        duel(document, record),
        recommended(document, record),
        Section::new(
            "convergence",
            "How the search went",
            Block::some([Some(convergence), noise]),
        ),
        which_knobs(record),
        responses(record),
        trials(record),
        Section::new("ledger", "Where the time went", vec![ledger]),
        Section::new("knobs", "What was tuned", knobs),
    ]
    .into_iter()
    .filter_map(Section::or_nothing)
    .collect()
}

fn duel(document: &RunDocument, record: &TuneRecord) -> Section {
    let changed =
        sentences::may_be_changed(document, record).then(|| sentences::restored(document, record));
    let pairs = duels::pairs(record);
    let blocks = Block::some([
        changed.map(|text| Block::Warning("changed", text.into())),
        sentences::durability(record).map(|text| Block::Warning("durability", text)),
        sentences::goal(record).map(Block::Sentence),
        forest::figure(record),
        Some(Block::table_or(
            duels::table(record),
            "No duel was fought, so nothing is proven.",
        )),
        duels::tests(record).map(Block::Table),
        pairs.map(|pairs| Folded::closed("Every pair", vec![Block::Table(pairs)])),
        sentences::expected(record).map(Block::Note),
    ]);
    Section::new("duel", "The duel", blocks)
}

fn recommended(document: &RunDocument, record: &TuneRecord) -> Section {
    let mut blocks = vec![Block::table_or(
        tables::change(record),
        "Change nothing: no gain was proven.",
    )];
    blocks.extend(Block::sentences(sentences::reset(record)));
    blocks.extend(Block::sentences(sentences::risks(record)));
    blocks.extend(change(record));
    blocks.extend(undo(record));
    blocks.push(Block::Note(sentences::restored(document, record).into()));
    blocks.extend(sentences::left_database(record).map(Block::Note));
    Section::new("change", "The recommended change", blocks)
}

fn which_knobs(record: &TuneRecord) -> Section {
    const UNKNOWN: &str = "Nothing is known: too little was tried, or what one run showed the others did not bear out.";
    let blocks = Block::some([
        importance::figure(record),
        Some(Block::table_or(tables::importance(record), UNKNOWN)),
    ]);
    Section::new("importance", "Which knobs matter", blocks)
}

fn responses(record: &TuneRecord) -> Section {
    let mut slices = Vec::new();
    let varies = same_in_all_runs(record).is_none();
    let drawn = record.slices.iter().filter(|_| varies);
    for (index, slice) in drawn.take(SLICES_DRAWN).enumerate() {
        let numbers = tables::slice(slice).map(Block::Table);
        let summary = format!("Numbers of {}", slice.knob);
        slices.push(Block::Group(Block::some([
            response::figure(record, index, slice),
            numbers.map(|numbers| Folded::closed(summary, vec![numbers])),
        ])));
    }
    let pair = record.heat_map.as_ref().filter(|_| varies).map(|map| {
        let numbers = tables::heat_map(map).map(Block::Table);
        let blocks = Block::some([
            pair::figure(record, map),
            numbers.map(|numbers| Folded::closed("Numbers of the pair", vec![numbers])),
        ]);
        Block::Part("The pair that does most together".into(), blocks)
    });
    let slices = (!slices.is_empty()).then_some(Block::Beside(slices));
    Section::new(
        "response",
        "What each knob does",
        Block::some([slices, pair]),
    )
    .with_lead(sentences::SEARCH_GUIDES)
}

fn trials(record: &TuneRecord) -> Section {
    let hidden = record.trials.len().saturating_sub(TRIALS_SHOWN);
    let further = format!("{hidden} further runs are in trials.parquet.");
    let blocks = Block::some([
        runs::failures(record).map(Block::Table),
        Some(Block::table_or(runs::trials(record), "Nothing was run.")),
        (hidden > 0).then_some(Block::Note(further)),
    ]);
    Section::new("trials", "Every run", blocks)
}
