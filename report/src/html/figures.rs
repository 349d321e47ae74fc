//! The figures of each phase: file offset over time, and latency over time.
//!
//! Every call is counted into a density grid here, so the first picture is complete whatever the
//! number of calls; the calls themselves go along, up to [`POINTS_MAX`], for zooming in.

mod captions;
mod markup;

use std::collections::HashMap;

use seekscope_pattern::{Axis, DensityGrid, FileAnalysis, PhaseAnalysis, events_of};
use seekscope_run::{FileRecord, IoEvent, Phase};
use serde::Serialize;

use super::points::{Blobs, PointColumns, push_counts};
use crate::ReportInput;
use crate::escape::{shortened, visible};

pub(super) use markup::section;

/// Points embedded per run; beyond it every k-th is.
const POINTS_MAX: usize = 1_000_000;
/// Files with a figure per phase; the table of files has the others.
const FILES_PER_PHASE: usize = 12;
/// About a cell per two screen pixels of a figure half a window wide.
const GRID_COLUMNS: usize = 600;
const GRID_ROWS: usize = 300;
const MENU_NAME_CHARS: usize = 70;
const PAGE_BYTES: u64 = 4096;

/// One phase's figures, as the script reads them.
#[derive(Serialize)]
pub(crate) struct PhaseFigures {
    /// Seconds per unit of the points' time column.
    time_unit_s: f64,
    /// First the file shown at first.
    pub(super) files: Vec<FileFigures>,
}

/// One file in one phase.
#[derive(Serialize)]
pub(crate) struct FileFigures {
    /// For the menu.
    pub(super) label: String,
    pub(super) offset: Figure,
    pub(super) latency: Figure,
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
    let stride = events.div_ceil(POINTS_MAX).max(1);
    let analyses = || sources.iter().flatten().map(|source| source.analysis);
    let shared = SharedAxes {
        // The same for the first picture of every phase, so that they can be compared.
        busiest_offset: offset_axis(analyses().filter_map(|a| a.main_file(input.files))),
        latency: latency_axis(analyses()),
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
    Axis {
        low: 0.0,
        high: high as f64,
        bins: GRID_ROWS,
    }
}

/// Whole decades around all latencies of the run.
fn latency_axis<'a>(analyses: impl Iterator<Item = &'a PhaseAnalysis>) -> Axis {
    let (mut low, mut high) = (f64::INFINITY, 0.0f64);
    for calls in analyses
        .flat_map(|a| [&a.reads, &a.writes])
        .filter(|calls| calls.calls > 0)
    {
        low = low.min(log10_ns(calls.latency_ns.min));
        high = high.max(log10_ns(calls.latency_ns.max));
    }
    let low = if low.is_finite() { low.floor() } else { 0.0 };
    Axis {
        low,
        high: high.ceil().max(low + 1.0),
        bins: GRID_ROWS,
    }
}

fn log10_ns(latency_ns: u64) -> f64 {
    (latency_ns.max(1) as f64).log10()
}

/// The grids and points of one file, while events are being counted.
struct FileCollector {
    offset: [DensityGrid; 2],
    latency: [DensityGrid; 2],
    points: PointColumns,
    unknown_offsets: u64,
}

impl FileCollector {
    fn new(time: Axis, offset: Axis, latency: Axis) -> Self {
        let pair = |y| [DensityGrid::new(time, y), DensityGrid::new(time, y)];
        Self {
            offset: pair(offset),
            latency: pair(latency),
            points: PointColumns::default(),
            unknown_offsets: 0,
        }
    }

    fn count(&mut self, seconds: f64, event: &IoEvent) {
        let direction = usize::from(!event.op.is_read());
        match event.offset {
            Some(offset) => self.offset[direction].add(seconds, offset as f64),
            None => self.unknown_offsets += 1,
        }
        self.latency[direction].add(seconds, log10_ns(event.latency_ns));
    }
}

fn figure(grids: &[DensityGrid; 2], caption: String, blobs: &mut Blobs) -> Figure {
    let [reads, writes] = grids;
    let mut bytes = Vec::with_capacity(reads.counts.len() + writes.counts.len());
    push_counts(&mut bytes, &reads.counts);
    push_counts(&mut bytes, &writes.counts);
    Figure {
        x: reads.x,
        y: reads.y,
        blob: blobs.add(&bytes),
        caption,
    }
}

fn phase_figures(
    input: &ReportInput<'_>,
    source: &PhaseSource<'_>,
    shared: &SharedAxes,
    stride: usize,
    blobs: &mut Blobs,
) -> PhaseFigures {
    let phase = source.phase;
    let duration_ns = phase.ended_ns.saturating_sub(phase.started_ns).max(1);
    // Microseconds, unless the phase is longer than 71 minutes and 32 bits would overflow.
    let unit_ns = duration_ns.div_ceil(u64::from(u32::MAX)).max(1000);
    let time = Axis {
        low: 0.0,
        high: duration_ns as f64 / 1e9,
        bins: GRID_COLUMNS,
    };
    let shown = shown_files(source.analysis, input.files);
    let mut collectors: Vec<FileCollector> = Vec::with_capacity(shown.len());
    let mut slot_of: HashMap<u32, usize> = HashMap::new();
    for (slot, file) in shown.iter().enumerate() {
        let offset = if slot == 0 {
            shared.busiest_offset
        } else {
            offset_axis(std::iter::once(*file))
        };
        slot_of.insert(file.file_id, slot);
        collectors.push(FileCollector::new(time, offset, shared.latency));
    }
    for (index, event) in source.events.iter().enumerate() {
        let slot = slot_of.get(&event.file_id);
        let Some(collector) = slot.and_then(|&slot| collectors.get_mut(slot)) else {
            continue;
        };
        let since_start_ns = event.t_ns.saturating_sub(phase.started_ns);
        collector.count(since_start_ns as f64 / 1e9, event);
        if index.is_multiple_of(stride) {
            collector.points.push(since_start_ns / unit_ns, event);
        }
    }
    let files = shown
        .iter()
        .zip(collectors)
        .map(|(file, collector)| file_figures(input, phase, file, collector, stride, blobs));
    PhaseFigures {
        time_unit_s: unit_ns as f64 / 1e9,
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
    collector: FileCollector,
    stride: usize,
    blobs: &mut Blobs,
) -> FileFigures {
    let record = input.file(file.file_id);
    let text = captions::CaptionSource {
        phase,
        file,
        record,
        stride,
        points: collector.points.len(),
        unknown_offsets: collector.unknown_offsets,
    };
    let name = record.map_or_else(
        || format!("file {}", file.file_id),
        |r| r.name().to_string(),
    );
    let role = record.map_or("other", |r| r.role.name());
    let namespace = record
        .and_then(|r| r.namespace.as_deref())
        .unwrap_or_default();
    let label = format!(
        "{role} {} {}",
        shortened(namespace, MENU_NAME_CHARS),
        shortened(&name, MENU_NAME_CHARS)
    );
    FileFigures {
        label: visible(&label),
        offset: figure(&collector.offset, visible(&text.offset()), blobs),
        latency: figure(&collector.latency, visible(&text.latency()), blobs),
        points: PointBlock {
            count: collector.points.len(),
            stride,
            blob: blobs.add(&collector.points.encode()),
        },
    }
}

#[cfg(test)]
mod tests {
    use seekscope_pattern::Transfers;
    use seekscope_stats::Quantiles;

    use super::*;

    fn analysis(min: u64, max: u64) -> PhaseAnalysis {
        let latency_ns = Quantiles::of(&mut [min, max]);
        PhaseAnalysis {
            reads: Transfers {
                calls: 2,
                latency_ns,
                ..Transfers::default()
            },
            ..PhaseAnalysis::default()
        }
    }

    #[test]
    fn latency_axis_spans_whole_decades() {
        let axis = latency_axis([analysis(700, 20_000), analysis(3_000, 9_000_000)].iter());
        assert_eq!((axis.low, axis.high), (2.0, 7.0));
        let nothing = latency_axis([PhaseAnalysis::default()].iter());
        assert_eq!((nothing.low, nothing.high), (0.0, 1.0));
        let alike = latency_axis([analysis(1000, 1000)].iter());
        assert_eq!((alike.low, alike.high), (3.0, 4.0));
    }

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
