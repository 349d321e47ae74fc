//! Renders a benchmark as one HTML file.

use seekscope_run::BenchStep;

use super::headline::headline;
use super::variants::{self, Variants};
use super::{
    BenchReportInput, charts, heat, index_builds, labs, sentences, shard_others, shards, tables,
};
use crate::html::charts::{BarChart, LineChart};
use crate::html::points::Blobs;
use crate::page::html::report_with;
use crate::page::{
    Block, Data, Figure, Folded, OutcomeLine, Page, Section, disk_and_server,
    server_and_disk_in_words,
};
use crate::table::Table;

/// The most steps with figures; the tables contain the others.
const STEPS_DRAWN: usize = 24;
/// The most steps for which all figures are open at once.
const STEPS_OPEN: usize = 3;

const SQL: &str = "SELECT step, operation, (t_ns - min(t_ns) OVER ()) / 1e9 AS second, \
    (count - errors) * 1e9 / duration_ns AS per_s FROM 'intervals.parquet' ORDER BY t_ns;";

/// Renders the report.
pub fn html(input: &BenchReportInput<'_>) -> String {
    let document = input.document;
    let mut blobs = Blobs::default();
    let sections = [
        Variants::of(input).map_or_else(Section::default, variants_section),
        numbers(input),
        saturation(input),
        builds(input),
        schema(input),
        steps(input, &mut blobs),
        settings(input),
    ];
    let headline = input.measurement().map(headline);
    let page = Page {
        subject: "what the server did, and what it cost",
        outcome: OutcomeLine {
            word: sentences::outcome_word(document),
            sentence: sentences::verdict(document),
        },
        headline: headline.unwrap_or_else(|| "Nothing was measured in this run".into()),
        next: None,
        about: server_and_disk_in_words(document),
        key_figures: Vec::new(),
        blocks: sections
            .into_iter()
            .filter_map(Section::or_nothing)
            .collect(),
        measured_on: disk_and_server(document),
        data: Some(Data {
            files: vec![
                ("run.json", String::new()),
                (
                    "intervals.parquet",
                    "a row for each second of each operation".into(),
                ),
                (
                    "latency.hlog",
                    "a distribution for each, in HdrHistogram's log format".into(),
                ),
                ("server.parquet", "counters of server and host".into()),
            ],
            sql: SQL,
        }),
    };
    report_with(document, page, &blobs)
}

/// Returns all steps as numbers.
fn numbers(input: &BenchReportInput<'_>) -> Section {
    let all = input.steps();
    let headed = |heading: &str, numbers: Option<Table>| {
        Some(Block::Part(heading.into(), vec![Block::Table(numbers?)]))
    };
    let blocks = Block::some([
        Some(Block::table_or(
            tables::operations(all),
            "No operation was measured.",
        )),
        headed("How it was driven", tables::conditions(all)),
        headed("What it cost", tables::costs(all)),
        headed("What the data take", tables::storage(all)),
        headed("Documents by shard", shards::spread(input)),
        by_shard(input),
        router(input),
        headed("Failures", tables::failures(all)),
    ]);
    Section::new("numbers", "Operations", blocks).with_lead(lead(all))
}

/// Says how to read the table of operations: of what is in it alone.
fn lead(steps: &[BenchStep]) -> String {
    let mut operations = steps.iter().flat_map(|step| &step.operations).peekable();
    if operations.peek().is_none() {
        return String::new();
    }
    let has_schedule = operations.any(|operation| operation.response.is_some());
    let response = match has_schedule {
        true => ", response time from its scheduled start",
        false => "",
    };
    let margins = match tables::has_margins(steps) {
        true => " ± is the 95 % interval of the rate (batch means: seconds depend on one another).",
        false => "",
    };
    format!(
        "Service time counts from sending a request{response}. Percentiles stand where enough operations speak of \
         them.{margins}"
    )
}

/// Returns what each shard did, and what of it was done for others.
fn by_shard(input: &BenchReportInput<'_>) -> Option<Block> {
    let mut blocks = vec![Block::Table(shards::figures(input.steps())?)];
    let of_others = input.measurement().map(shard_others::sentences);
    blocks.extend(Block::sentences(of_others.unwrap_or_default()));
    Some(Block::Part("What each shard did".into(), blocks))
}

fn router(input: &BenchReportInput<'_>) -> Option<Block> {
    let said = Block::sentences(shards::router(input));
    (!said.is_empty()).then(|| Block::Part("What the router adds".into(), said))
}

fn variants_section(variants: Variants) -> Section {
    let mut blocks = Block::sentences(variants.sentences);
    blocks.extend(variants.table.map(Block::Table));
    blocks.push(Block::Beside(
        variants.charts.into_iter().map(bars).collect(),
    ));
    Section::new("variants", "Variants beside one another", blocks)
}

fn bars(chart: BarChart) -> Block {
    let (heading, reading) = match chart.id.as_str() {
        variants::THROUGHPUT => (
            "Transactions per second by workload",
            "Whiskers: 95 % intervals, over repetitions where there are several.",
        ),
        _ => (
            "Size on disk",
            "Data files and indexes after the variant's last step.",
        ),
    };
    Figure::new(heading, reading).bars(chart)
}

fn saturation(input: &BenchReportInput<'_>) -> Section {
    const HEADING: &str = "Response time by operations per second";
    let found = input.measurement().and_then(|m| m.saturation.as_ref());
    let drawn = |chart: LineChart| {
        Figure::new(
            HEADING,
            "Response time by load; the ring marks the maximum.",
        )
        .lines(chart)
    };
    let Some(found) = found else {
        return Section::default();
    };
    let blocks = Block::some([
        Some(Block::Sentence(sentences::saturation(found))),
        charts::saturation(input).map(drawn),
        tables::saturation(input).map(Block::Table),
    ]);
    Section::new("saturation", "Load and latency", blocks)
}

fn builds(input: &BenchReportInput<'_>) -> Section {
    const IN_ORDER: &str = "\"In order\" is the share of steps that lead at most 128 KiB forward: from one leaf to the \
                            next as a scan reads them, or from one read to the next.";
    let mut blocks = Block::sentences(index_builds::sentences(input));
    blocks.extend(Block::tables([
        index_builds::times(input),
        index_builds::costs(input),
    ]));
    let looked_at = [index_builds::files(input), index_builds::reads(input)];
    if looked_at.iter().any(Option::is_some) {
        blocks.push(Block::Sentence(IN_ORDER.into()));
        blocks.extend(Block::tables(looked_at));
    }
    Section::new("index-builds", "Index builds", blocks)
        .with_lead("p99 is of the other load's response before, during and after each build.")
}

fn schema(input: &BenchReportInput<'_>) -> Section {
    const READING: &str = "Samples inserted per second while the data grew, by samples so far.";
    let Some(shapes) = labs::shapes(input) else {
        return Section::default();
    };
    let recommendation = input.measurement().and_then(|m| m.recommendation.clone());
    let growth = charts::growth(input);
    let mut blocks = Block::some([
        recommendation.map(Block::Sentence),
        growth.map(|chart| Figure::new("Insert rate as the data grew", READING).lines(chart)),
    ]);
    blocks.extend(Block::tables([
        Some(shapes),
        labs::shape_storage(input),
        labs::growth(input),
        labs::experiments(input),
    ]));
    Section::new("schema", "Ways of storing the same samples", blocks)
}

fn steps(input: &BenchReportInput<'_>, blobs: &mut Blobs) -> Section {
    const HEAT: &str = "All requests of each second by how long they took, by response time where there is a \
        schedule; darker: more (logarithmic). Warm-up included.";
    let all = input.steps();
    let drawn = all.len().min(STEPS_DRAWN);
    let mut blocks = Vec::new();
    for (index, step) in all.iter().take(drawn).enumerate() {
        let figures = charts::of_step(input, index, step).into_iter();
        let mut figures: Vec<Block> = figures
            .map(|drawn| Figure::new(drawn.heading, drawn.caption).lines(drawn.chart))
            .collect();
        let heat = heat::of_step(input, index, step, blobs);
        figures.extend(
            heat.map(|heat| Figure::new("Latency over time, every request", HEAT).heat(heat)),
        );
        let mut told = Block::sentences(sentences::of_step(step));
        told.push(Block::Beside(figures));
        blocks.push(Block::Folded(Folded {
            summary: tables::step_name(step),
            id: Some(format!("step-{index}")),
            is_open: drawn <= STEPS_OPEN,
            blocks: told,
        }));
    }
    if all.len() > drawn {
        let further = all.len() - drawn;
        blocks.push(Block::Note(format!(
            "{further} further steps have no figures here; the tables and files have them."
        )));
    }
    Section::new("steps", "Step by step", blocks)
}

fn settings(input: &BenchReportInput<'_>) -> Section {
    let mut numbers = Table::new(2, &["setting", "value"]);
    for (name, value) in input.measurement().iter().flat_map(|m| &m.settings) {
        numbers.row([name.as_str().into(), value.as_str().into()]);
    }
    let blocks = Block::tables([numbers.or_nothing()]);
    Section::new("settings", "Settings as resolved", blocks)
}
