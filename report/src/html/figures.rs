//! The figures of each phase: file offset over time, and latency over time.
//!
//! Every call is counted into a density grid here, so the first picture is complete whatever the
//! number of calls; the calls themselves go along, or every k-th of them, for zooming in.

mod captions;
mod collector;
mod leaves;
mod markup;

use std::collections::HashMap;

use seekscope_pattern::{Axis, FileAnalysis, PhaseAnalysis, events_of};
use seekscope_run::{FileRecord, IoEvent, Phase};
use serde::Serialize;

use super::points::Blobs;
use crate::ReportInput;
use crate::escape::{shortened, visible};

pub(crate) use captions::{CaptionSource, latency_sentence, sample_sentence, shape_sentence};
pub(crate) use collector::{Collector, FigureLimits, TimeSpan, byte_axis, latency_axis};
pub(crate) use leaves::LeafCollector;
pub(crate) use markup::figures_of_files;
pub(super) use markup::section;

/// Files with a figure per phase; the table of files has the others.
const FILES_PER_PHASE: usize = FigureLimits::ALONE.files;
const MENU_NAME_CHARS: usize = 70;
const PAGE_BYTES: u64 = 4096;

/// One phase's figures, as the script reads them.
#[derive(Serialize)]
pub(crate) struct PhaseFigures {
    /// Seconds per unit of the points' time column.
    pub(crate) time_unit_s: f64,
    /// First the file shown at first.
    pub(crate) files: Vec<FileFigures>,
}

/// One file in one phase.
#[derive(Serialize)]
pub(crate) struct FileFigures {
    /// For the menu.
    pub(super) label: String,
    pub(super) offset: Figure,
    /// `None` where the marks are leaves, which take no time.
    pub(super) latency: Option<Figure>,
    points: PointBlock,
}

/// One density picture.
#[derive(Serialize)]
pub(crate) struct Figure {
    x: Axis,
    /// Bytes, or the decimal logarithm of nanoseconds.
    y: Axis,
    /// The blob with the counts of reads, then those of writes.
    blob: String,
    pub(super) caption: String,
}

#[derive(Serialize)]
struct PointBlock {
    blob: String,
    count: usize,
    /// Each point stands for this many calls.
    stride: usize,
}

/// The parts of a phase that the figures need, beside each other.
struct PhaseSource<'a> {
    phase: &'a Phase,
    analysis: &'a PhaseAnalysis,
    events: &'a [IoEvent],
}

/// Builds the figures of every phase; a phase without events has none.
pub(super) fn build(input: &ReportInput<'_>, blobs: &mut Blobs) -> Vec<PhaseFigures> {
    let sources: Vec<Option<PhaseSource<'_>>> = input
        .document
        .phases
        .iter()
        .enumerate()
        .map(|(index, phase)| {
            let analysis = input.analyses.get(index)?;
            Some(PhaseSource {
                phase,
                analysis,
                events: events_of(phase, input.events),
            })
        })
        .collect();
    let events: usize = sources.iter().flatten().map(|s| s.events.len()).sum();
    let stride = FigureLimits::ALONE.stride(events as u64);
    let analyses = || sources.iter().flatten().map(|source| source.analysis);
    let shared = SharedAxes {
        // The same for the first picture of every phase, so that they can be compared.
        busiest_offset: offset_axis(analyses().filter_map(|a| a.main_file(input.files))),
        latency: latency_axis(latency_ranges(analyses())),
    };
    sources
        .iter()
        .map(|source| match source {
            Some(source) => phase_figures(input, source, &shared, stride, blobs),
            None => PhaseFigures {
                time_unit_s: 0.0,
                files: Vec::new(),
            },
        })
        .collect()
}

struct SharedAxes {
    busiest_offset: Axis,
    latency: Axis,
}

fn offset_axis<'a>(files: impl Iterator<Item = &'a FileAnalysis>) -> Axis {
    let end = |file: &FileAnalysis| {
        let patterns = [&file.read_pattern, &file.write_pattern];
        patterns
            .into_iter()
            .flatten()
            .map(|pattern| pattern.last_byte)
            .max()
    };
    let high = files.filter_map(end).max().unwrap_or(0).max(PAGE_BYTES);
    byte_axis(0, high)
}

/// Shortest and longest of each phase's reads and writes, ns.
fn latency_ranges<'a>(
    analyses: impl Iterator<Item = &'a PhaseAnalysis>,
) -> impl Iterator<Item = (u64, u64)> {
    let calls = analyses.flat_map(|a| [&a.reads, &a.writes]);
    calls
        .filter(|calls| calls.calls > 0)
        .map(|calls| (calls.latency_ns.min, calls.latency_ns.max))
}

fn phase_figures(
    input: &ReportInput<'_>,
    source: &PhaseSource<'_>,
    shared: &SharedAxes,
    stride: usize,
    blobs: &mut Blobs,
) -> PhaseFigures {
    let phase = source.phase;
    let time = TimeSpan::new(phase.started_ns, phase.ended_ns);
    let shown = shown_files(source.analysis, input.files);
    let mut collectors: Vec<Collector> = Vec::with_capacity(shown.len());
    let mut slot_of: HashMap<u32, usize> = HashMap::new();
    for (slot, file) in shown.iter().enumerate() {
        let offset = if slot == 0 {
            shared.busiest_offset
        } else {
            offset_axis(std::iter::once(*file))
        };
        slot_of.insert(file.file_id, slot);
        collectors.push(Collector::new(time, offset, shared.latency));
    }
    for (index, event) in source.events.iter().enumerate() {
        let slot = slot_of.get(&event.file_id);
        let Some(collector) = slot.and_then(|&slot| collectors.get_mut(slot)) else {
            continue;
        };
        collector.count(event, index.is_multiple_of(stride));
    }
    let files = shown
        .iter()
        .zip(collectors)
        .map(|(file, collector)| file_figures(input, phase, file, collector, stride, blobs));
    PhaseFigures {
        time_unit_s: time.unit_s(),
        files: files.collect(),
    }
}

/// The main file first, then the others in the order of the analysis.
fn shown_files<'a>(analysis: &'a PhaseAnalysis, records: &[FileRecord]) -> Vec<&'a FileAnalysis> {
    let busiest = analysis.main_file(records);
    let others = analysis
        .files
        .iter()
        .filter(|file| busiest.is_none_or(|b| b.file_id != file.file_id));
    busiest
        .into_iter()
        .chain(others)
        .take(FILES_PER_PHASE)
        .collect()
}

fn file_figures(
    input: &ReportInput<'_>,
    phase: &Phase,
    file: &FileAnalysis,
    collector: Collector,
    stride: usize,
    blobs: &mut Blobs,
) -> FileFigures {
    let record = input.file(file.file_id);
    let text = captions::CaptionSource {
        phase,
        file,
        record,
        stride,
        points: collector.points(),
        unknown_offsets: collector.unknown_offsets(),
    };
    let captions = [text.offset(), text.latency()].map(|caption| visible(&caption));
    collector.figures(menu_label(file.file_id, record), captions, stride, blobs)
}

/// Role, namespace and name, as short as a menu needs them.
pub(crate) fn menu_label(file_id: u32, record: Option<&FileRecord>) -> String {
    let name = record.map_or_else(|| format!("file {file_id}"), |r| r.name().to_string());
    let role = record.map_or("other", |r| r.role.name());
    let namespace = record
        .and_then(|r| r.namespace.as_deref())
        .unwrap_or_default();
    visible(&format!(
        "{role} {} {}",
        shortened(namespace, MENU_NAME_CHARS),
        shortened(&name, MENU_NAME_CHARS)
    ))
}

#[cfg(test)]
mod tests {
    use seekscope_pattern::Transfers;

    use super::*;

    #[test]
    fn the_main_file_comes_first() {
        let file = |file_id, bytes| FileAnalysis {
            file_id,
            reads: Transfers {
                calls: 1,
                bytes,
                ..Transfers::default()
            },
            writes: Transfers::default(),
            cache: seekscope_pattern::CacheCounts::default(),
            read_pattern: None,
            write_pattern: None,
        };
        let analysis = PhaseAnalysis {
            files: vec![file(1, 9), file(2, 9), file(3, 5)],
            ..PhaseAnalysis::default()
        };
        let records = [FileRecord {
            file_id: 3,
            path: "/data/c.wt".into(),
            path_state: seekscope_run::PathState::Known,
            device_major: 0,
            device_minor: 0,
            inode: 1,
            size_bytes: 0,
            role: seekscope_run::FileRole::Collection,
            namespace: None,
        }];
        let ids: Vec<u32> = shown_files(&analysis, &records)
            .iter()
            .map(|f| f.file_id)
            .collect();
        assert_eq!(
            ids,
            [3, 1, 2],
            "the collection, although others were read more"
        );
    }
}
