//! Renders a page as one HTML file.
//!
//! Figures are drawn by the script that is bundled from `web/`; everything else is markup, so that a browser
//! without scripts still shows all numbers. See `html::shell` for how a page is kept safe.

use maud::{Markup, html};
use seekscope_run::RunDocument;

use super::drawing::{Chart, Content, Figure, Places, PlacesKind};
use super::{Block, Data, Drawing, Folded, Page, Section};
use crate::facts::date;
use crate::html::charts::figure;
use crate::html::facts::{again, limitations, measured_on};
use crate::html::figures::figures_of_files;
use crate::html::findings::ranked;
use crate::html::points::Blobs;
use crate::html::shell::{PageData, shell};
use crate::html::table::{folded, table};
use crate::html::tracks::tracks;

/// The most rows of a table that is not folded.
const ROWS_OPEN_MAX: usize = 40;

/// Renders the report of a run that has no points to zoom into.
pub fn report(document: &RunDocument, page: Page) -> String {
    report_with(document, page, &Blobs::default())
}

/// Renders the report; `blobs` hold the points of its figures.
pub(crate) fn report_with(document: &RunDocument, page: Page, blobs: &Blobs) -> String {
    let title = format!("seekscope {}: {}", document.command, page.subject);
    let header = header(document, &page);
    let mut renderer = Renderer {
        links: links(&page.blocks),
        data: PageData::default(),
    };
    let blocks = renderer.blocks(page.blocks);
    let data = renderer.data;
    let body = html! {
        header { (header) }
        main {
            @if data.has_figures() {
                noscript { p.note { "The figures need JavaScript; all numbers \
                                     are in the tables." } }
            }
            (blocks)
            (limitations(document))
            (measured_on(document, &page.measured_on))
            (again(document, page.data.as_ref().map(whereabouts).as_ref()))
        }
    };
    shell(&title, body, &data, blobs)
}

fn header(document: &RunDocument, page: &Page) -> Markup {
    html! {
        p.outcome data-outcome=(page.outcome.word) { bdi { (page.outcome.sentence) } }
        p.brand { "seekscope " (document.command) }
        h1 { bdi { (page.headline) } }
        @if let Some(next) = &page.next { p.verdict { bdi { (next) } } }
        p.meta {
            (date(document.started.realtime_ns))
            @for about in &page.about { " · " bdi { (about) } }
        }
        @if !page.key_figures.is_empty() {
            dl.key-figures {
                @for (what, value) in &page.key_figures { div { dt { (what) } dd { bdi { (value) } } } }
            }
        }
    }
}

fn whereabouts(data: &Data) -> (Markup, &'static str) {
    let last = data.files.len().saturating_sub(1);
    let sentence = html! {
        "All numbers come from "
        @for (index, (file, holds)) in data.files.iter().enumerate() {
            @if index > 0 { (if index == last { " and " } else { ", " }) }
            code { (file) }
            @if !holds.is_empty() { " (" (holds) ")" }
        }
        " in the run directory, which also holds this report. In DuckDB:"
    };
    (sentence, data.sql)
}

/// Returns ids and short names of the sections that the table of contents lists.
fn links(blocks: &[Block]) -> Vec<(&'static str, &'static str)> {
    let sections = blocks.iter().filter_map(|block| match block {
        Block::Section(section) if !section.short.is_empty() => Some((section.id, section.short)),
        _ => None,
    });
    sections
        .chain([("limitations", "Limitations"), ("facts", "Facts")])
        .collect()
}

struct Renderer {
    links: Vec<(&'static str, &'static str)>,
    /// Data of the figures met so far.
    data: PageData,
}

impl Renderer {
    fn blocks(&mut self, blocks: Vec<Block>) -> Markup {
        let blocks: Vec<Markup> = blocks.into_iter().map(|block| self.block(block)).collect();
        html! { @for block in &blocks { (block) } }
    }

    fn block(&mut self, block: Block) -> Markup {
        match block {
            Block::Section(section) => self.section(section),
            Block::Part(heading, blocks) => {
                let blocks = self.blocks(blocks);
                html! { h3 { bdi { (heading) } } (blocks) }
            }
            Block::Sentence(text) => html! { p.meaning { bdi { (text) } } },
            Block::Note(text) => html! { p.note { bdi { (text) } } },
            Block::List(items) => html! { ul { @for item in &items { li { bdi { (item) } } } } },
            Block::Table(numbers) => folded(&numbers, ROWS_OPEN_MAX),
            Block::Folded(Folded {
                summary,
                id,
                is_open,
                blocks,
            }) => {
                // A long table inside a folded block is not folded itself.
                let blocks = blocks.into_iter().map(|block| match block {
                    Block::Table(numbers) => table(&numbers),
                    block => self.block(block),
                });
                let blocks: Vec<Markup> = blocks.collect();
                html! {
                    details.step[id.is_some()] open[is_open] id=[id] {
                        summary { bdi { (summary) } }
                        @for block in &blocks { (block) }
                    }
                }
            }
            Block::Beside(blocks) => {
                let blocks = self.blocks(blocks);
                html! { div.charts { (blocks) } }
            }
            Block::Group(blocks) => {
                let blocks = self.blocks(blocks);
                html! { div { (blocks) } }
            }
            Block::Findings(findings, first) => ranked(&findings, first),
            Block::Copy(heading, lines) => html! {
                h3 { (heading) }
                // Each line is an element of its own: control characters are made visible, and line breaks between
                // lines would be too.
                pre.command { @for line in &lines { code.copied { (line) } } }
            },
            Block::Warning(word, text) => {
                html! { p.outcome data-outcome=(word) { bdi { (text) } } }
            }
            Block::Contents => html! {
                nav.contents aria-label="Sections" {
                    @for (id, short) in &self.links { a href={ "#" (id) } { (short) } }
                }
            },
            Block::Characters(_) => html! {},
            Block::Drawing(Drawing(content)) => self.drawing(content),
        }
    }

    fn section(&mut self, section: Section) -> Markup {
        let blocks = self.blocks(section.blocks);
        let id = Some(section.id).filter(|id| !id.is_empty());
        html! {
            section id=[id] {
                @if !section.heading.is_empty() { h2 { (section.heading) } }
                @if !section.lead.is_empty() { p.lead { (section.lead) } }
                (blocks)
            }
        }
    }

    fn drawing(&mut self, content: Content) -> Markup {
        match content {
            Content::Figure(words, chart) => self.chart(&words, chart),
            Content::Tracks(group) => {
                let markup = html! {
                    h3 { (group.heading) }
                    (tracks(&group))
                    details { summary { "As numbers" } (table(&group.summary())) }
                };
                self.data.tracks.push(group);
                markup
            }
            Content::Places(all) => {
                let are_calls = all.iter().any(|places| places.kind != PlacesKind::Leaves);
                let all: Vec<Markup> = all.into_iter().map(|places| self.places(places)).collect();
                html! {
                    @if are_calls {
                        p.lead { span.swatch.reads {} " read " span.swatch.writes {} " write" }
                    }
                    div.phases { @for places in &all { (places) } }
                }
            }
            Content::Ready(markup) => markup,
        }
    }

    fn chart(&mut self, words: &Figure, chart: Chart) -> Markup {
        let caption = html! {
            @if let Some(meaning) = &words.meaning { span.meaning { bdi { (meaning) } } " " }
            (words.reading)
        };
        match chart {
            Chart::Lines(chart) => {
                let markup = figure(&chart.id, &words.heading, &chart.lines, &caption);
                self.data.lines.push(chart);
                markup
            }
            Chart::Bars(chart) => {
                let markup = figure(&chart.id, &words.heading, &chart.series, &caption);
                self.data.bars.push(chart);
                markup
            }
            Chart::Heat(chart) => {
                let markup = figure(&chart.id, &words.heading, &[], &caption);
                self.data.heats.push(chart);
                markup
            }
        }
    }

    fn places(&mut self, places: Places) -> Markup {
        let (beginning, marks) = match places.kind {
            PlacesKind::SinceTrace => (Some("trace"), None),
            PlacesKind::SinceBuild => (Some("build"), None),
            PlacesKind::Leaves => (None, Some("leaves")),
        };
        let kind = places.what.to_ascii_lowercase();
        let markup = html! {
            article.phase data-phase=(self.data.phases.len()) data-beginning=[beginning] data-place=(kind)
                data-marks=[marks] {
                @if let Some(heading) = &places.heading { h4 { bdi { (heading) } } }
                @if places.figures.files.is_empty() {
                    p.note { (places.without) }
                } @else {
                    (figures_of_files(places.what, places.figure_heading, &places.figures.files))
                }
            }
        };
        self.data.phases.push(places.figures);
        markup
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::charts::{Line, LineChart, Scale};
    use crate::page::OutcomeLine;
    use crate::table::Table;

    fn page(blocks: Vec<Block>) -> String {
        let document = RunDocument::begin("layout", vec!["seekscope".into(), "layout".into()]);
        let page = Page {
            subject: "how it lies",
            outcome: OutcomeLine::of(&document),
            headline: "<b>\u{202e}".into(),
            next: None,
            about: Vec::new(),
            key_figures: Vec::new(),
            blocks,
            measured_on: Vec::new(),
            data: None,
        };
        report(&document, page)
    }

    fn chart(id: &str) -> Block {
        let line = Line::numbered(0, "line", vec![Some(1.0), None]);
        let chart = LineChart::new(id, (Scale::Value, Scale::Rate), vec![1.0, 2.0], vec![line]);
        Figure::new("Heading", "How to read it.").lines(chart)
    }

    #[test]
    fn each_figure_has_its_place_and_its_numbers_once() {
        let page = page(vec![
            Block::Beside(vec![chart("chart-a")]),
            chart("chart-b"),
        ]);
        for id in ["chart-a", "chart-b"] {
            assert_eq!(page.matches(&format!("id=\"{id}\"")).count(), 1, "{id}");
            assert_eq!(page.matches(&format!("\"id\":\"{id}\"")).count(), 1, "{id}");
        }
        assert_eq!(page.matches("The figures need JavaScript").count(), 1);
    }

    #[test]
    fn a_long_table_is_folded_and_names_do_nothing() {
        let mut table = Table::new(1, &["file", "leaves"]);
        for number in 0..=ROWS_OPEN_MAX {
            table.row(["<i>".into(), number.to_string().into()]);
        }
        let page = page(vec![Block::Table(table)]);
        assert!(page.contains("<summary>All of it (rows: 41)</summary>"));
        assert!(!page.contains("<i>") && !page.contains("<b>") && !page.contains('\u{202e}'));
        assert!(!page.contains("The figures need JavaScript"));
    }

    #[test]
    fn contents_name_the_sections_that_want_it() {
        let short = Section {
            short: "Files",
            ..Section::new("files", "Files by size", vec![Block::Note("none".into())])
        };
        let plain = Section::new("other", "Others", vec![Block::Note("none".into())]);
        let page = page(vec![
            Block::Contents,
            Block::Section(short),
            Block::Section(plain),
        ]);
        let links: Vec<&str> = page
            .split("href=\"#")
            .skip(1)
            .map(|rest| &rest[..5])
            .collect();
        assert_eq!(links, ["files", "limit", "facts"]);
    }
}
