//! Defines the contents of a report of `advise`, in order; terminal and HTML show the same.

use seekscope_run::{AdviceRecord, RunDocument, StoringWay};

use super::{commands, sentences, since, tables};
use crate::escape::visible;
use crate::html::charts::{BarChart, Line, Scale};
use crate::page::{Block, Figure};

/// Returns the result in one sentence; `None` if nothing was measured.
pub(super) fn headline(advice: &AdviceRecord) -> Option<String> {
    match &advice.since {
        Some(since) => Some(since::headline(advice, since)),
        None => sentences::headline(advice),
    }
}

/// Returns everything after the headline.
pub(super) fn blocks(document: &RunDocument, advice: &AdviceRecord) -> Vec<Block> {
    if let Some(since) = &advice.since {
        return since::blocks(advice, since);
    }
    let mut blocks = Block::sentences(sentences::left_out(advice));
    blocks.extend(Block::tables([tables::ways(advice)]));
    blocks.extend(Block::sentences(sentences::consequences(advice)));
    blocks.extend(Block::sentences(sentences::others(advice)));
    let lines = commands::commands(document, advice);
    if !lines.is_empty() {
        let lines = lines.iter().map(|line| visible(line)).collect();
        blocks.push(Block::Copy("To do it".into(), lines));
    }
    blocks.extend(Block::sentences(sentences::never_compared(advice)));
    blocks.extend(Block::tables([tables::queries(advice)]));
    let mut said = Vec::from_iter(sentences::left_ways(advice));
    said.push(tables::collection(advice));
    said.extend(sentences::trial(advice));
    said.extend(sentences::seconds(advice));
    said.extend(sentences::traced(advice));
    said.extend(sentences::scattered_ids(advice));
    said.extend(sentences::unused_indexes(advice));
    blocks.extend(Block::sentences(said));
    blocks
}

/// Returns the ways side by side: what a query reads, what the queries take per hour, and what is stored.
pub(super) fn charts(advice: &AdviceRecord) -> Vec<Block> {
    let blocks = bars(advice, "blocks per query", Scale::Count, |way| {
        way.blocks_per_query
    });
    let seconds = bars(advice, "seconds per hour", Scale::Count, |way| {
        way.s_per_hour
    });
    let bytes = bars(advice, "bytes per document", Scale::Bytes, |way| {
        way.stored_bytes_per_document
    });
    let figures = [
        blocks.map(|chart| {
            let reading = "Blocks that a query reads of the collection and its indexes when none of them is cached, on \
                           average over all queries. Lower is better.";
            Figure::new("What a query reads", reading).bars(chart)
        }),
        seconds.map(|chart| {
            let reading = "Time that the queries take per hour, with the share of the blocks cached that is cached now. \
                           Lower is better.";
            Figure::new("What the queries take", reading).bars(chart)
        }),
        bytes.map(|chart| {
            let reading = "Bytes of the files for each document of the sample, the indexes included.";
            Figure::new("What a document takes", reading).bars(chart)
        }),
    ];
    figures.into_iter().flatten().collect()
}

/// Returns the bars of one figure of the ways for which it is known, if there are several.
fn bars(
    advice: &AdviceRecord,
    name: &str,
    y: Scale,
    figure: impl Fn(&StoringWay) -> Option<f64>,
) -> Option<BarChart> {
    let known = advice.ways.iter().filter(|way| figure(way).is_some());
    let known: Vec<&StoringWay> = known.collect();
    let values = known.iter().map(|way| figure(way)).collect();
    (known.len() >= 2).then(|| BarChart {
        y_name: Some(name.into()),
        ..BarChart::new(
            format!("advise-{}", name.replace(' ', "-")),
            y,
            known.iter().map(|way| visible(&way.name)).collect(),
            vec![Line::numbered(0, name, values)],
        )
    })
}
