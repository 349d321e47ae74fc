//! The answers as sections of tables, in the order of the questions.

use super::{DoctorReportInput, memory, tables};
use crate::table::Table;

/// A part of the page that has something to show.
pub(super) struct Section {
    /// Stable: figures and tests name it.
    pub(super) id: &'static str,
    /// What the table of contents calls it.
    pub(super) short: &'static str,
    pub(super) heading: &'static str,
    /// How to read it.
    pub(super) lead: &'static str,
    /// What the numbers say.
    pub(super) sentences: Vec<String>,
    pub(super) tables: Vec<Table>,
}

/// Those that have something to show.
pub(super) fn sections(input: &DoctorReportInput<'_>) -> Vec<Section> {
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
    .filter(|section| !section.tables.is_empty() || !section.sentences.is_empty())
    .collect()
}

fn some(tables: impl IntoIterator<Item = Option<Table>>) -> Vec<Table> {
    tables.into_iter().flatten().collect()
}

fn device(input: &DoctorReportInput<'_>) -> Section {
    Section {
        id: "device",
        short: "Device",
        heading: "Who uses the device",
        lead: "Waiting is the time that threads spent in these calls, s per second of observation: 1 is one \
               thread all the time. Device time is the share of the disk's time that the calls took, by the \
               disk's model.",
        sentences: tables::load_sentences(input),
        tables: some([tables::load(input), tables::users(input)]),
    }
}

fn checkpoints(input: &DoctorReportInput<'_>) -> Section {
    Section {
        id: "checkpoints",
        short: "Checkpoints",
        heading: "What checkpoints cost",
        lead: "",
        sentences: tables::checkpoint_sentences(input),
        tables: some([tables::suffering(input), tables::checkpoints(input)]),
    }
}

fn durations(input: &DoctorReportInput<'_>) -> Section {
    Section {
        id: "durations",
        short: "Durations",
        heading: "How long the big jobs take on this disk",
        lead: "Cold, by one reader, with nothing else going on.",
        sentences: Vec::new(),
        tables: some([tables::durations(input)]),
    }
}

fn space(input: &DoctorReportInput<'_>) -> Section {
    Section {
        id: "space",
        short: "Space",
        heading: "Where the free space is",
        lead: "Free: inside the file, for reuse. What compact gives back is the most it can; a rewrite is a \
               resync or seekscope reorder.",
        sentences: Vec::new(),
        tables: some([tables::space(input)]),
    }
}

fn more_memory(input: &DoctorReportInput<'_>) -> Section {
    Section {
        id: memory::SECTION,
        short: "Memory",
        heading: "What more cache would save",
        lead: "",
        sentences: tables::memory_sentences(input),
        tables: some([tables::memory(input)]),
    }
}

fn host(input: &DoctorReportInput<'_>) -> Section {
    Section {
        id: "host",
        short: "Host",
        heading: "What this host has, and what its load wants",
        lead: "What does not fit comes first.",
        sentences: Vec::new(),
        tables: some([tables::host(input)]),
    }
}

fn server(input: &DoctorReportInput<'_>) -> Section {
    Section {
        id: "server",
        short: "Server",
        heading: "What the server said",
        lead: "",
        sentences: tables::warnings(input),
        tables: some([tables::operations(input), tables::collections(input)]),
    }
}
