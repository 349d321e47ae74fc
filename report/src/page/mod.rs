//! Defines the presentation of a run. A command describes its page as a [`Page`] of [`Block`]s; [`html`]
//! makes the report of it, and [`terminal::text`] shows blocks as plain text. Both show the same words.

mod drawing;
pub mod html;
pub mod terminal;

use seekscope_run::{Finding, RunDocument};

use crate::facts::Fact;
use crate::facts::{device_facts, target_facts};
use crate::table::Table;
use crate::wording;

pub(crate) use drawing::{Content, Figure, Places, PlacesKind};
pub use drawing::{Drawing, latency_curves};

/// A report.
#[derive(Debug)]
pub struct Page {
    /// Subject for the browser's tab: "how the data lies".
    pub subject: &'static str,
    pub outcome: OutcomeLine,
    /// The answer in one sentence.
    pub headline: String,
    /// The recommended action.
    pub next: Option<String>,
    /// What was measured, on what, in a few words each; the date precedes them.
    pub about: Vec<String>,
    /// The few numbers that characterise it, each with its name.
    pub key_figures: Vec<(&'static str, String)>,
    pub blocks: Vec<Block>,
    /// Headings and facts of what was measured on, besides the host; `None` where not recorded.
    pub measured_on: Vec<(&'static str, Option<Vec<Fact>>)>,
    /// Where the numbers are; `None` if only `run.json` has them.
    pub data: Option<Data>,
}

impl Page {
    /// Returns the page of a run that consists of a headline and blocks.
    pub(crate) fn of_blocks(
        document: &RunDocument,
        subject: &'static str,
        headline: String,
        blocks: Vec<Block>,
    ) -> Self {
        Self {
            subject,
            outcome: OutcomeLine::of(document),
            headline,
            next: None,
            about: Vec::new(),
            key_figures: Vec::new(),
            blocks: Section::new("", "", blocks)
                .or_nothing()
                .into_iter()
                .collect(),
            measured_on: disk_and_server(document),
            data: None,
        }
    }
}

/// What must be known before any number is believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutcomeLine {
    /// Word for style sheets and scripts: "ok", "partial", "failed", "invalid", "lossy".
    pub word: &'static str,
    pub sentence: String,
}

impl OutcomeLine {
    /// Returns the line for how the run ended.
    pub fn of(document: &RunDocument) -> Self {
        Self {
            word: wording::outcome_word(document),
            sentence: wording::outcome(document),
        }
    }
}

/// The files of a run that hold its numbers, and how to read them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Data {
    /// Name of each file, with its contents where the name does not say.
    pub files: Vec<(&'static str, String)>,
    /// A query for DuckDB.
    pub sql: &'static str,
}

/// A part of a page.
#[derive(Debug)]
pub enum Block {
    Section(Section),
    /// Blocks under a heading of their own, which a terminal shows unchanged: it may be a name.
    Part(String, Vec<Block>),
    /// A sentence on the meaning of the numbers.
    Sentence(String),
    /// Text in smaller letters.
    Note(String),
    List(Vec<String>),
    Table(Table),
    /// Folded until requested; a terminal has no room for it.
    Folded(Folded),
    /// Blocks side by side, where there is room.
    Beside(Vec<Block>),
    /// Blocks that stay together.
    Group(Vec<Block>),
    /// Findings by rank, with the number of the first.
    Findings(Vec<Finding>, usize),
    /// Lines to be copied unchanged.
    Copy(String, Vec<String>),
    /// A warning that must not be overlooked, with a word for style sheets.
    Warning(&'static str, String),
    /// Links to the sections that have a short name.
    Contents,
    /// Text drawn with characters, for terminals.
    Characters(String),
    Drawing(Drawing),
}

impl Block {
    /// Returns a list of the blocks that exist.
    pub(crate) fn some(blocks: impl IntoIterator<Item = Option<Self>>) -> Vec<Self> {
        blocks.into_iter().flatten().collect()
    }

    /// Returns each as a sentence.
    pub(crate) fn sentences(sentences: impl IntoIterator<Item = String>) -> Vec<Self> {
        sentences.into_iter().map(Self::Sentence).collect()
    }

    /// Returns the tables that exist.
    pub(crate) fn tables(tables: impl IntoIterator<Item = Option<Table>>) -> Vec<Self> {
        tables.into_iter().flatten().map(Self::Table).collect()
    }

    /// Returns the table, or a note if there is none.
    pub(crate) fn table_or(table: Option<Table>, note: &str) -> Self {
        table.map_or_else(|| Self::Note(note.into()), Self::Table)
    }
}

/// A part of a page under a heading.
#[derive(Debug, Default)]
pub struct Section {
    /// A stable id, used by links and tests.
    pub id: &'static str,
    /// Entry in the table of contents; empty if there is none.
    pub short: &'static str,
    pub heading: String,
    /// How to read it.
    pub lead: String,
    pub blocks: Vec<Block>,
}

impl Section {
    /// Creates a section without a lead and without an entry in the table of contents.
    pub fn new(id: &'static str, heading: impl Into<String>, blocks: Vec<Block>) -> Self {
        Self {
            id,
            heading: heading.into(),
            blocks,
            ..Self::default()
        }
    }

    /// Returns the section with an explanation of how to read it.
    #[must_use]
    pub fn with_lead(mut self, lead: impl Into<String>) -> Self {
        self.lead = lead.into();
        self
    }

    /// Returns the section, unless it has nothing to show.
    pub fn or_nothing(self) -> Option<Block> {
        (!self.blocks.is_empty()).then_some(Block::Section(self))
    }
}

/// A folded part.
#[derive(Debug)]
pub struct Folded {
    pub summary: String,
    /// A stable id, where something refers to it.
    pub id: Option<String>,
    pub is_open: bool,
    pub blocks: Vec<Block>,
}

impl Folded {
    /// Creates a closed folded part.
    pub fn closed(summary: impl Into<String>, blocks: Vec<Block>) -> Block {
        Block::Folded(Self {
            summary: summary.into(),
            id: None,
            is_open: false,
            blocks,
        })
    }
}

/// The heading above the facts of the server.
pub(crate) const SERVER: &str = "Server";

/// Returns facts of the disk under the data and of the server.
pub fn disk_and_server(document: &RunDocument) -> Vec<(&'static str, Option<Vec<Fact>>)> {
    vec![
        (
            "Disk under the data",
            document.device.as_ref().map(device_facts),
        ),
        (SERVER, document.target.as_ref().map(target_facts)),
    ]
}

/// Returns product and version, disk and filesystem, where they are known.
pub(crate) fn server_and_disk_in_words(document: &RunDocument) -> Vec<String> {
    let target = document.target.as_ref();
    let target = target.filter(|target| !target.product.is_empty());
    let device = document.device.as_ref();
    let disk = device.and_then(|device| Some((device.disk.as_ref()?, &device.filesystem)));
    [
        target.map(|target| format!("{} {}", target.product, target.version)),
        disk.map(|(disk, filesystem)| format!("{disk}, {filesystem}")),
    ]
    .into_iter()
    .flatten()
    .collect()
}
