//! Arranges the answers as sections of tables, in the order of the questions.

use super::{DoctorReportInput, memory, tables};
use crate::page::{Block, Section};
use crate::table::Table;

/// Returns the sections that have something to show.
pub(super) fn sections(input: &DoctorReportInput<'_>) -> Vec<Block> {
    [
        device(input),
        checkpoints(input),
        durations(input),
        space(input),
        more_memory(input),
        host(input),
        server(input),
    ]
    .into_iter()
    .filter_map(Section::or_nothing)
    .collect()
}

/// Returns the conclusions, then the numbers.
fn told(sentences: Vec<String>, tables: impl IntoIterator<Item = Option<Table>>) -> Vec<Block> {
    let mut blocks = Block::sentences(sentences);
    blocks.extend(Block::tables(tables));
    blocks
}

fn device(input: &DoctorReportInput<'_>) -> Section {
    Section {
        id: "device",
        short: "Device",
        heading: "Who uses the device".into(),
        lead: "Waiting is the time that threads spent in these calls, s per second of observation: 1 is one \
               thread all the time. Device time is the share of the disk's time that the calls took, by the \
               disk's model.".into(),
        blocks: told(tables::load_sentences(input), [tables::load(input), tables::users(input)]),
    }
}

fn checkpoints(input: &DoctorReportInput<'_>) -> Section {
    Section {
        id: "checkpoints",
        short: "Checkpoints",
        heading: "What checkpoints cost".into(),
        lead: String::new(),
        blocks: told(
            tables::checkpoint_sentences(input),
            [tables::suffering(input), tables::checkpoints(input)],
        ),
    }
}

fn durations(input: &DoctorReportInput<'_>) -> Section {
    Section {
        id: "durations",
        short: "Durations",
        heading: "How long the big jobs take on this disk".into(),
        lead: "Cold, by one reader, with nothing else going on.".into(),
        blocks: told(Vec::new(), [tables::durations(input)]),
    }
}

fn space(input: &DoctorReportInput<'_>) -> Section {
    Section {
        id: "space",
        short: "Space",
        heading: "Where the free space is".into(),
        lead: "Free: inside the file, for reuse. What compact gives back is the most it can; a rewrite is a \
               resync or seekscope reorder.".into(),
        blocks: told(Vec::new(), [tables::space(input)]),
    }
}

fn more_memory(input: &DoctorReportInput<'_>) -> Section {
    let mut blocks = Block::sentences(tables::memory_sentences(input));
    let table = tables::memory(input).map(Block::Table);
    let beside: Vec<Block> = memory::figure(input).into_iter().chain(table).collect();
    blocks.extend((!beside.is_empty()).then_some(Block::Beside(beside)));
    Section {
        id: "memory",
        short: "Memory",
        heading: "What more cache would save".into(),
        lead: String::new(),
        blocks,
    }
}

fn host(input: &DoctorReportInput<'_>) -> Section {
    Section {
        id: "host",
        short: "Host",
        heading: "What this host has, and what its load wants".into(),
        lead: "What does not fit comes first.".into(),
        blocks: told(Vec::new(), [tables::host(input)]),
    }
}

fn server(input: &DoctorReportInput<'_>) -> Section {
    Section {
        id: "server",
        short: "Server",
        heading: "What the server said".into(),
        lead: String::new(),
        blocks: told(
            tables::warnings(input),
            [tables::operations(input), tables::collections(input)],
        ),
    }
}
