//! Defines the contents of a report of `advise`, in order; terminal and HTML show the same.

use seekscope_run::{AdviceRecord, RunDocument};

use super::{commands, sentences, tables};
use crate::escape::visible;
use crate::html::charts::{BarChart, Line, Scale};
use crate::page::{Block, Figure};

/// Returns everything after the headline.
pub(super) fn blocks(document: &RunDocument, advice: &AdviceRecord) -> Vec<Block> {
    let mut blocks = Block::tables([tables::ways(advice)]);
    blocks.extend(Block::sentences(sentences::consequences(advice)));
    blocks.extend(Block::sentences(sentences::others(advice)));
    let lines = commands::commands(document, advice);
    if !lines.is_empty() {
        let lines = lines.iter().map(|line| visible(line)).collect();
        blocks.push(Block::Copy("To do it".into(), lines));
    }
    blocks.extend(Block::tables([tables::queries(advice)]));
    let mut said = vec![tables::collection(advice)];
    said.extend(sentences::trial(advice));
    said.extend(sentences::seconds(advice));
    said.extend(sentences::unused_indexes(advice));
    blocks.extend(Block::sentences(said));
    blocks
}

/// Returns the blocks per query of the ways side by side.
pub(super) fn chart(advice: &AdviceRecord) -> Option<Block> {
    let ways = advice.ways.iter();
    let measured: Vec<_> = ways.filter(|way| way.blocks_per_query.is_some()).collect();
    if measured.len() < 2 {
        return None;
    }
    let blocks = measured.iter().map(|way| way.blocks_per_query).collect();
    let chart = BarChart {
        id: "advise-blocks".into(),
        y: Scale::Count,
        groups: measured.iter().map(|way| visible(&way.name)).collect(),
        series: vec![Line::numbered(0, "blocks per query", blocks)],
    };
    let reading = "Blocks that a query reads of the collection and its indexes when none of them is cached, on \
                   average over all queries. Lower is better.";
    Some(Figure::new("What a query reads", reading).bars(chart))
}
