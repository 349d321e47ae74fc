//! Shows the run's index builds: how long each took, compared with one another, and how the traced ones read
//! their collections, as pictures side by side.

use seekscope_doctor::answers::IndexBuildAnswer;
use seekscope_pattern::{AnalysisOptions, FileTrace, TraceAnalyser};
use seekscope_run::units::{format_bytes, format_count};
use seekscope_run::{CacheState, FileRecord, FileRole, IoEvent, IoLayer, Phase};

use super::DoctorReportInput;
use crate::html::figures::{
    Collector, FigureLimits, PhaseFigures, TimeSpan, byte_axis, latency_axis,
};
use crate::html::points::Blobs;
use crate::layout::sentences::format_s;
use crate::numbers::format_number;
use crate::page::{Block, Content, Places, PlacesKind, Section};
use crate::table::{Cell, Table};
use crate::trace::figures::{PAGE_BYTES, byte_range, file_figures, latency_ranges};

/// The most pictures side by side.
const PICTURES_MAX: usize = 4;

/// Builds within the trace, while events are being counted.
pub(super) struct Pictures<'a> {
    builds: Vec<Picture<'a>>,
    stride: usize,
    seen: usize,
}

/// What one build reads of its collection.
struct Picture<'a> {
    phase: &'a Phase,
    file: &'a FileRecord,
    collector: Collector,
    /// What the words below the picture come from: the trace's own record of the file also includes what others
    /// read of it.
    analyser: TraceAnalyser,
}

impl<'a> Pictures<'a> {
    /// Creates pictures that share the axis of offsets, and that of latencies.
    pub(super) fn new(input: &DoctorReportInput<'a>, limits: &FigureLimits) -> Self {
        let phases = input.document.phases.iter();
        let traced: Vec<(&Phase, &FileTrace)> = phases
            .filter_map(|phase| Some((phase, collection_of(input, phase)?)))
            .take(PICTURES_MAX)
            .collect();
        let files = || traced.iter().map(|(_, file)| *file);
        let ends = files().map(|file| byte_range([&file.reads, &file.writes]).1);
        let offsets = byte_axis(0, ends.max().unwrap_or(0).max(PAGE_BYTES));
        let latencies = latency_axis(latency_ranges(files().flat_map(|f| [&f.reads, &f.writes])));
        let picture = |(phase, file): (&'a Phase, &'a FileTrace)| {
            let time = TimeSpan::new(phase.started_ns, phase.ended_ns);
            Picture {
                phase,
                file: &file.file,
                collector: Collector::new(time, offsets, latencies),
                analyser: TraceAnalyser::new(AnalysisOptions::default()),
            }
        };
        Self {
            stride: limits.stride(input.trace.map_or(0, |trace| trace.events)),
            seen: 0,
            builds: traced.into_iter().map(picture).collect(),
        }
    }

    /// Counts a call, if it is by a build on its collection.
    pub(super) fn count(&mut self, event: &IoEvent) {
        if self.builds.is_empty() || event.op.layer() != IoLayer::File {
            return;
        }
        let keep = self.seen.is_multiple_of(self.stride);
        self.seen += 1;
        for build in &mut self.builds {
            let meanwhile = build.phase.started_ns..build.phase.ended_ns;
            if meanwhile.contains(&event.t_ns) && build.file.file_id == event.file_id {
                build.collector.count(event, keep);
                build.analyser.push(event);
            }
        }
    }

    /// Returns the figures, each with the name of its build.
    pub(super) fn figures(self, blobs: &mut Blobs) -> Vec<(String, PhaseFigures)> {
        let stride = self.stride;
        let builds = self.builds.into_iter().filter_map(|build| {
            let (phase, files) = (build.phase, std::slice::from_ref(build.file));
            let read = build.analyser.finish(files, &[]).files.into_iter().next()?;
            let figures = PhaseFigures {
                time_unit_s: TimeSpan::new(phase.started_ns, phase.ended_ns).unit_s(),
                files: vec![file_figures(phase, &read, build.collector, stride, blobs)],
            };
            Some((phase.name.clone(), figures))
        });
        builds.collect()
    }
}

/// Returns the collection that a build reads, where that was traced.
fn collection_of<'a>(input: &DoctorReportInput<'a>, phase: &Phase) -> Option<&'a FileTrace> {
    let trace = input.trace.filter(|_| phase.index_build.is_some())?;
    let within = phase.started_ns < trace.ended_ns && phase.ended_ns > trace.started_ns;
    let mut files = trace.files.iter().filter(|_| within);
    files.find(|file| {
        file.file.role == FileRole::Collection && file.file.namespace == phase.namespace
    })
}

/// Returns the section; nothing where no index was built.
pub(super) fn section(
    input: &DoctorReportInput<'_>,
    pictures: Vec<(String, PhaseFigures)>,
) -> Option<Block> {
    let builds = &input.answers().index_builds;
    if builds.is_empty() {
        return None;
    }
    let compared = builds.iter().filter(|build| build.against.is_some());
    let mut blocks = Block::sentences(compared.map(IndexBuildAnswer::sentence));
    let mut lead = "";
    if !pictures.is_empty() {
        lead = "Of each build what it asked of its collection, one mark a call. A rising line is a file in order; \
                a cloud is one whose pages lie elsewhere than the scan expects them.";
        let pictures = pictures.into_iter().map(|(name, figures)| Places {
            heading: Some(name),
            what: "File",
            figure_heading: "File offset over time",
            kind: PlacesKind::SinceBuild,
            figures,
            without: "",
        });
        blocks.push(Content::Places(pictures.collect()).into());
    }
    blocks.push(Block::Table(times(builds)));
    let section = Section::new("builds", "Index builds", blocks).with_lead(lead);
    Some(Block::Section(section))
}

/// Returns the builds' times, one after the other on each disk.
fn times(builds: &[IndexBuildAnswer]) -> Table {
    let columns = [
        "collection",
        "index",
        "page cache before",
        "documents",
        "each build",
        "median",
        "times as long",
    ];
    let mut table = Table::new(3, &columns);
    let mut disk = None;
    for build in builds {
        if disk != Some(&build.disk) {
            table.group(build.disk.clone());
            disk = Some(&build.disk);
        }
        let each: Vec<String> = build.build_s.iter().map(|s| format_s(*s)).collect();
        let ratio = build.against.as_ref().map(|against| against.ratio.median);
        table.row([
            build.namespace.clone().into(),
            build.keys.clone().into(),
            Cell::or(build.page_cache_before.as_ref().map(cache), "not known"),
            format_count(build.documents).into(),
            each.join(", ").into(),
            format_s(build.median_s()).into(),
            Cell::or(ratio.map(format_number), "the first here"),
        ]);
    }
    table
}

fn cache(state: &CacheState) -> String {
    match state {
        CacheState::Cold {
            resident_bytes,
            total_bytes,
        } => format!(
            "cold: {} of {} cached",
            format_bytes(*resident_bytes),
            format_bytes(*total_bytes)
        ),
        CacheState::AsFound { .. } => "as found".into(),
    }
}
