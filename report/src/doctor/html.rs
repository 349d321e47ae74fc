//! An examination as one HTML file.

use maud::{Markup, html};
use seekscope_run::RunError;

use super::charts::{self, Figures};
use super::sections::{Section, sections};
use super::{DoctorReportInput, index_builds, memory, tables, tracks, verdict};
use crate::facts::{Fact, date, device_facts, target_facts};
use crate::html::charts::LineChart;
use crate::html::facts::{CALLS_SQL, again, limitations, measured_on};
use crate::html::findings::ranked;
use crate::html::page::{PageData, page};
use crate::html::points::Blobs;
use crate::html::table::{folded, table};
use crate::html::tracks::{TrackGroup, tracks as track_group};
use crate::trace::tables::recording_facts;
use crate::wording;

/// A longer table is folded.
const ROWS_OPEN_MAX: usize = 25;

/// Renders the report, with one pass over the events and one over the leaves. A million events make a
/// page of less than 3 MB: what is embedded are counts, and few enough points.
///
/// # Errors
/// The events or the leaves cannot be read.
pub fn html(input: &DoctorReportInput<'_>) -> Result<String, RunError> {
    let document = input.document;
    let mut blobs = Blobs::default();
    let figures = charts::build(input, &mut blobs)?;
    let groups = tracks::groups(input, figures.device_seconds.as_ref());
    let memory = memory::chart(input);
    let sections = sections(input);
    let members = tables::members(input);
    let body = html! {
        header { (header(input)) }
        main {
            (findings(input))
            (index_builds::section(input, &figures.builds, figures.builds_number()))
            (contents(&figures, &groups, &sections, members.is_some()))
            (time_tracks(&groups))
            (charts::files_section(&figures))
            (charts::layout_section(input, &figures))
            @for section in &sections { (section_block(section, memory.as_ref())) }
            @if let Some(members) = &members {
                section #members { h2 { "Members side by side" } (members) }
            }
            (since(input))
            (further(input))
            (limitations(document))
            (measured_on(document, &facts(input)))
            (again(document, &data_note(), CALLS_SQL))
        }
    };
    let data = PageData {
        phases: figures.phases(),
        lines: memory.into_iter().collect(),
        tracks: groups,
        ..PageData::default()
    };
    let title = format!(
        "seekscope {}: why the server waits for its disk",
        document.command
    );
    Ok(page(&title, body, &data, &blobs))
}

/// How the run ended, the verdict, and what was examined.
fn header(input: &DoctorReportInput<'_>) -> Markup {
    let document = input.document;
    let verdict = verdict::of(input);
    let member = input
        .examination()
        .and_then(|examination| examination.examined());
    html! {
        p.outcome data-outcome=(wording::outcome_word(document)) { bdi { (wording::outcome(document)) } }
        p.brand { "seekscope " (document.command) }
        h1 { bdi { (verdict.state) } }
        @if let Some(next) = &verdict.next { p.verdict { bdi { (next) } } }
        p.meta {
            (date(document.started.realtime_ns))
            @if let Some(member) = member.filter(|member| !member.name.is_empty()) {
                " · " bdi { (member.name) } ", " (member.state.name())
            }
            @if let Some(target) = &document.target {
                @if !target.product.is_empty() { " · " bdi { (target.product) " " (target.version) } }
            }
            @if let Some(device) = &document.device {
                @if let Some(disk) = &device.disk { " · " bdi { (disk) } ", " bdi { (device.filesystem) } }
            }
        }
    }
}

fn findings(input: &DoctorReportInput<'_>) -> Markup {
    let (first, others) = input.findings();
    html! {
        section #findings {
            h2 { "What to do" }
            @if first.is_empty() { p.note { "No finding. The sections below show what was measured." } }
            @else { (ranked(first, 1)) }
            @if !others.is_empty() {
                p.note { a href="#further" { "Further findings" } " stand below the tables: " (others.len()) "." }
            }
        }
    }
}

/// Links to what there is.
fn contents(
    figures: &Figures,
    groups: &[TrackGroup],
    sections: &[Section],
    members: bool,
) -> Markup {
    let mut links: Vec<(&str, &str)> = Vec::new();
    links.extend((!groups.is_empty()).then_some(("tracks", "Tracks")));
    links.extend(figures.trace.is_some().then_some(("figures", "Files")));
    links.extend(figures.leaves.is_some().then_some(("layout", "Layout")));
    links.extend(sections.iter().map(|section| (section.id, section.short)));
    links.extend(members.then_some(("members", "Members")));
    links.extend([("limitations", "Limitations"), ("facts", "Facts")]);
    html! {
        nav.contents aria-label="Sections" {
            @for (id, short) in links { a href={ "#" (id) } { (short) } }
        }
    }
}

fn time_tracks(groups: &[TrackGroup]) -> Markup {
    html! {
        @if !groups.is_empty() {
            section #tracks {
                h2 { "What happened when" }
                p.lead {
                    "Point at a moment, or focus the tracks and press the arrow keys, to read its values in all "
                    "of them; drag to zoom in, double click or Escape to return."
                }
                noscript { p.note { "The figures need scripts; all numbers stand in the tables." } }
                @for group in groups {
                    h3 { (group.heading) }
                    (track_group(group))
                    details { summary { "As numbers" } (table(&group.summary())) }
                }
            }
        }
    }
}

fn section_block(section: &Section, memory: Option<&LineChart>) -> Markup {
    html! {
        section id=(section.id) {
            h2 { (section.heading) }
            @for sentence in &section.sentences { p.meaning { bdi { (sentence) } } }
            @if !section.lead.is_empty() { p.lead { (section.lead) } }
            @match memory.filter(|_| section.id == memory::SECTION) {
                Some(chart) => div.beside {
                    (memory::figure(chart))
                    @for numbers in &section.tables { (folded(numbers, ROWS_OPEN_MAX)) }
                },
                None => @for numbers in &section.tables { (folded(numbers, ROWS_OPEN_MAX)) },
            }
        }
    }
}

/// Whether what an earlier run predicted came true.
fn since(input: &DoctorReportInput<'_>) -> Markup {
    let earlier = input
        .examination()
        .and_then(|examination| examination.since.as_ref());
    html! {
        @if let Some(earlier) = earlier {
            section #since {
                h2 { "Since the earlier run" }
                p.lead { "Compared with " bdi { (earlier.run) } " of " (date(earlier.started_realtime_ns)) "." }
                @match tables::since(input) {
                    Some(changes) => (table(&changes)),
                    None => p.note { "Neither run has a finding." },
                }
            }
        }
    }
}

/// Findings that the first screen had no room for.
fn further(input: &DoctorReportInput<'_>) -> Markup {
    let (first, others) = input.findings();
    html! {
        @if !others.is_empty() {
            section #further {
                h2 { "Further findings" }
                (ranked(others, first.len() + 1))
            }
        }
    }
}

fn facts(input: &DoctorReportInput<'_>) -> Vec<(&'static str, Option<Vec<Fact>>)> {
    let document = input.document;
    let recording = charts::trace_input(input).and_then(|trace| recording_facts(&trace));
    let mut facts = vec![
        (
            "Disk under the data",
            document.device.as_ref().map(device_facts),
        ),
        ("Server", document.target.as_ref().map(target_facts)),
        ("Examination", tables::examination_facts(input)),
        ("What it cost", tables::cost(input)),
    ];
    facts.extend(recording.map(|recording| ("Trace", Some(recording))));
    facts
}

fn data_note() -> Markup {
    html! {
        "All numbers come from " code { "run.json" } ", " code { "server.parquet" } " (counters of server "
        "and host), " code { "io.parquet" } ", " code { "files.parquet" } ", " code { "threads.parquet" }
        " (the trace) and " code { "layout.parquet" } " in the run directory, which holds this report too. "
        "In DuckDB:"
    }
}
