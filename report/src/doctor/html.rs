//! Renders an examination as one HTML file.

use seekscope_run::{Finding, RunError, TargetFacts};

use super::sections::sections;
use super::{DoctorReportInput, charts, index_builds, tables, tracks, verdict};
use crate::balancer;
use crate::facts::{Fact, date};
use crate::html::facts::CALLS_SQL;
use crate::html::points::Blobs;
use crate::html::tracks::TrackGroup;
use crate::numbers::counted;
use crate::page::html::report_with;
use crate::page::{
    Block, Content, Data, OutcomeLine, Page, SERVER, Section, disk_and_server,
    server_and_disk_in_words,
};
use crate::trace;
use crate::trace::tables::recording_facts;

/// Renders the report, with one pass over the events and one over the leaves. A million events give a page of
/// less than 3 MB, because it embeds counts and a limited number of points.
///
/// # Errors
/// Returns an error if the events or the leaves cannot be read.
pub fn html(input: &DoctorReportInput<'_>) -> Result<String, RunError> {
    let document = input.document;
    let mut blobs = Blobs::default();
    let figures = charts::build(input, &mut blobs)?;
    let groups = tracks::groups(input, figures.device_seconds.as_ref());
    let mut blocks = vec![findings(input)];
    blocks.extend(index_builds::section(input, figures.builds));
    blocks.push(Block::Contents);
    let mut members = members(input);
    if document.is_of_deployment() {
        // They are what such a page is about.
        blocks.extend(members.take());
    }
    blocks.extend(time_tracks(groups));
    blocks.extend(
        figures
            .trace
            .map(|[files, disks]| trace::html::places(files, disks)),
    );
    blocks.extend(charts::layout_section(input, figures.leaves).or_nothing());
    blocks.extend(sections(input));
    blocks.extend(members);
    blocks.extend(since(input));
    blocks.extend(further(input));
    let verdict = verdict::of(input);
    let page = Page {
        subject: "why the server waits for its disk",
        outcome: OutcomeLine::of(document),
        headline: verdict.state,
        next: verdict.next,
        about: about(input),
        key_figures: Vec::new(),
        blocks,
        measured_on: facts(input),
        data: Some(Data {
            files: vec![
                ("run.json", String::new()),
                ("server.parquet", "counters of server and host".into()),
                ("io.parquet", String::new()),
                ("files.parquet", String::new()),
                ("threads.parquet", "the trace".into()),
                ("layout.parquet", String::new()),
            ],
            sql: CALLS_SQL,
        }),
    };
    Ok(report_with(document, page, &blobs))
}

/// Returns who was examined.
fn about(input: &DoctorReportInput<'_>) -> Vec<String> {
    let of_deployment = input.document.is_of_deployment();
    if let Some(examination) = input.examination().filter(|_| of_deployment) {
        return vec![
            examination.deployment.name().into(),
            format!(
                "{} examined on their host",
                counted(examination.member_runs.len() as u64, "member")
            ),
            format!(
                "{} in all",
                counted(examination.members.len() as u64, "server")
            ),
        ];
    }
    let member = input
        .examination()
        .and_then(|examination| examination.examined());
    let member = member.filter(|member| !member.name.is_empty());
    let member = member.map(|member| format!("{}, {}", member.name, member.state.name()));
    let rest = server_and_disk_in_words(input.document);
    member.into_iter().chain(rest).collect()
}

fn findings(input: &DoctorReportInput<'_>) -> Block {
    let (first, others) = input.findings();
    let mut blocks = vec![match first {
        [] => Block::Note("No finding. The sections below show what was measured.".into()),
        first => Block::Findings(first.to_vec(), 1),
    }];
    blocks.extend(input.missing_user().map(|note| Block::Note(note.into())));
    if !others.is_empty() {
        let count = others.len();
        blocks.push(Block::Note(format!(
            "Further findings stand below the tables: {count}."
        )));
    }
    Block::Section(Section::new("findings", "What to do", blocks))
}

fn time_tracks(groups: Vec<TrackGroup>) -> Option<Block> {
    let tracks = groups
        .into_iter()
        .map(|group| Content::Tracks(group).into());
    Section {
        id: "tracks",
        short: "Tracks",
        heading: "What happened when".into(),
        lead: "Point at a moment, or focus the tracks and press the arrow keys, to read its values in all of \
               them; drag to zoom in, double click or Escape to return."
            .into(),
        blocks: tracks.collect(),
    }
    .or_nothing()
}

fn members(input: &DoctorReportInput<'_>) -> Option<Block> {
    let mut blocks =
        Block::some([tables::members(input).map(|table| Content::Ready(table).into())]);
    blocks.extend(Block::sentences(balancer(input)));
    blocks.extend(Block::tables([tables::shards(input)]));
    Section {
        id: "members",
        short: "Members",
        heading: "Members side by side".into(),
        lead: String::new(),
        blocks,
    }
    .or_nothing()
}

/// Says what the balancer of a cluster did.
fn balancer(input: &DoctorReportInput<'_>) -> Option<String> {
    let cluster = input.examination()?.cluster.as_ref()?;
    let (on, moved) = (cluster.balancer_on, cluster.moved_chunks);
    Some(balancer::sentence(
        on,
        moved,
        "users' collections",
        "the observation",
    ))
}

/// Says whether an earlier run's predictions came true.
fn since(input: &DoctorReportInput<'_>) -> Option<Block> {
    let earlier = input.examination()?.since.as_ref()?;
    let blocks = vec![Block::table_or(
        tables::since(input),
        "Neither run has a finding.",
    )];
    let mut lead = format!(
        "Compared with {} of {}.",
        earlier.run,
        date(earlier.started_realtime_ns)
    );
    if let Some(caution) = earlier.caution() {
        lead = format!("{lead} {caution}");
    }
    let section = Section::new("since", "Since the earlier run", blocks).with_lead(lead);
    Some(Block::Section(section))
}

/// Returns the findings that the first screen had no room for.
fn further(input: &DoctorReportInput<'_>) -> Option<Block> {
    let (first, others) = input.findings();
    let others: &[Finding] = others;
    let blocks = (!others.is_empty()).then(|| Block::Findings(others.to_vec(), first.len() + 1));
    let section = Section {
        short: "Further findings",
        ..Section::new("further", "Further findings", Block::some([blocks]))
    };
    section.or_nothing()
}

fn facts(input: &DoctorReportInput<'_>) -> Vec<(&'static str, Option<Vec<Fact>>)> {
    let document = input.document;
    let recording = charts::trace_input(input).and_then(|trace| recording_facts(&trace));
    let mut facts = disk_and_server(document);
    if document.is_of_deployment() {
        // Each member has a disk and a process of its own, which its own page shows.
        let of_router = |target: &TargetFacts| !target.shards.is_empty();
        let is_told = document.target.as_ref().is_some_and(of_router);
        facts.retain(|(name, _)| is_told && *name == SERVER);
    }
    facts.push(("Examination", tables::examination_facts(input)));
    facts.push(("What it cost", tables::cost(input)));
    facts.extend(recording.map(|recording| ("Trace", Some(recording))));
    facts
}
