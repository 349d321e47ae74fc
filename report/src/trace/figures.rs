//! Draws offset over time and latency over time, for the busiest files and for each disk: one pass over the
//! events counts every one of them into a grid and keeps a sample for zooming in.

use std::collections::HashMap;

use seekscope_pattern::{DirectionTrace, DiskTrace, FileTrace};
use seekscope_run::{FileRecord, IoEvent, IoLayer, Phase, RunError};

use super::TraceReportInput;
use super::latencies::Latencies;
use super::names::{FileNames, disk_name};
use crate::escape::visible;
use crate::html::figures::{
    CaptionSource, Collector, FigureLimits, FileFigures, PhaseFigures, TimeSpan, byte_axis,
    latency_axis, latency_sentence, menu_label, sample_sentence, shape_of,
};
use crate::html::points::Blobs;
use crate::numbers::counted;

pub(crate) const PAGE_BYTES: u64 = 4096;
const SECTOR_BYTES: u64 = 512;

/// The figures from the pass over the events.
pub(crate) struct Figures {
    /// Figures of files.
    pub(crate) files: PhaseFigures,
    /// Figures of disks; empty without requests.
    pub(crate) disks: PhaseFigures,
    pub(super) latencies: Latencies,
}

/// Counts all events and builds the figures.
pub(crate) fn build(
    input: &TraceReportInput<'_>,
    limits: &FigureLimits,
    blobs: &mut Blobs,
) -> Result<Figures, RunError> {
    let mut pass = Pass::new(input, limits);
    (input.events)(&mut |event| pass.count(event))?;
    let analysis = input.analysis;
    let files = pass
        .files
        .collectors
        .into_iter()
        .zip(shown_files(input, limits));
    let disks = pass.disks.collectors.into_iter().zip(&analysis.disks);
    let stride = pass.stride;
    let figures = |files| PhaseFigures {
        time_unit_s: pass.time.unit_s(),
        files,
    };
    let phase = input.phase();
    let names = FileNames::of(analysis);
    Ok(Figures {
        files: figures(
            files
                .filter_map(|(c, file)| {
                    let label = label(&names, &file.file);
                    Some(labelled_figures(label, phase?, file, c, stride, blobs))
                })
                .collect(),
        ),
        disks: figures(
            disks
                .map(|(c, disk)| {
                    let name = disk_name(input.document.device.as_ref(), disk.major, disk.minor);
                    disk_figures(&name, disk, c, stride, blobs)
                })
                .collect(),
        ),
        latencies: pass.latencies,
    })
}

/// Returns the files that were read or written, busiest first.
fn shown_files<'a>(
    input: &TraceReportInput<'a>,
    limits: &FigureLimits,
) -> impl Iterator<Item = &'a FileTrace> + use<'a> {
    let moved = |file: &&FileTrace| file.reads.transfers.calls + file.writes.transfers.calls > 0;
    input.analysis.files.iter().filter(moved).take(limits.files)
}

/// Collectors with their keys.
struct Collectors<K> {
    slot_of: HashMap<K, usize>,
    collectors: Vec<Collector>,
}

impl<K: std::hash::Hash + Eq> Collectors<K> {
    fn of(keyed: impl Iterator<Item = (K, Collector)>) -> Self {
        let mut this = Self {
            slot_of: HashMap::new(),
            collectors: Vec::new(),
        };
        for (key, collector) in keyed {
            this.slot_of.insert(key, this.collectors.len());
            this.collectors.push(collector);
        }
        this
    }

    fn get(&mut self, key: &K) -> Option<&mut Collector> {
        self.collectors.get_mut(*self.slot_of.get(key)?)
    }
}

struct Pass {
    time: TimeSpan,
    stride: usize,
    seen: usize,
    files: Collectors<u32>,
    disks: Collectors<(u32, u32)>,
    latencies: Latencies,
}

impl Pass {
    fn new(input: &TraceReportInput<'_>, limits: &FigureLimits) -> Self {
        let analysis = input.analysis;
        let time = TimeSpan::new(analysis.started_ns, analysis.ended_ns);
        let calls = latency_axis(latency_ranges(
            shown_files(input, limits).flat_map(|f| [&f.reads, &f.writes]),
        ));
        let requests = latency_axis(latency_ranges(
            analysis.disks.iter().flat_map(|d| [&d.reads, &d.writes]),
        ));
        let files = shown_files(input, limits).map(|file| {
            let (_, high) = byte_range([&file.reads, &file.writes]);
            let offsets = byte_axis(0, high.max(PAGE_BYTES));
            (file.file.file_id, Collector::new(time, offsets, calls))
        });
        let disks = analysis.disks.iter().take(limits.disks).map(|disk| {
            // A disk is large and a database on it small.
            let (low, high) = byte_range([&disk.reads, &disk.writes]);
            let places = byte_axis(low, high.max(low + PAGE_BYTES));
            (
                (disk.major, disk.minor),
                Collector::new(time, places, requests),
            )
        });
        Self {
            time,
            stride: limits.stride(analysis.events),
            seen: 0,
            files: Collectors::of(files),
            disks: Collectors::of(disks),
            latencies: Latencies::new(),
        }
    }

    fn count(&mut self, event: &IoEvent) {
        let keep = self.seen.is_multiple_of(self.stride);
        self.seen += 1;
        self.latencies.count(event);
        if event.op.layer() == IoLayer::File {
            if let Some(file) = self.files.get(&event.file_id) {
                file.count(event, keep);
            }
            return;
        }
        let Some(request) = event.request else { return };
        if let Some(disk) = self.disks.get(&(request.disk_major, request.disk_minor)) {
            let place = request.sector.saturating_mul(SECTOR_BYTES);
            disk.count(
                &IoEvent {
                    offset: Some(place),
                    ..*event
                },
                keep,
            );
        }
    }
}

pub(crate) fn latency_ranges<'a>(
    directions: impl Iterator<Item = &'a DirectionTrace>,
) -> impl Iterator<Item = (u64, u64)> {
    directions
        .map(|direction| &direction.transfers.latency_ns)
        .filter(|latency_ns| latency_ns.count > 0)
        .map(|latency_ns| (latency_ns.min, latency_ns.max))
}

/// Returns lowest offset and highest end.
pub(crate) fn byte_range(directions: [&DirectionTrace; 2]) -> (u64, u64) {
    let patterns = || directions.into_iter().filter_map(|d| d.pattern.as_ref());
    let low = patterns().map(|p| p.first_byte).min();
    let high = patterns().map(|p| p.last_byte).max();
    (low.unwrap_or(0), high.unwrap_or(0))
}

/// Returns the figures of one file with their captions.
pub(crate) fn file_figures(
    phase: &Phase,
    file: &FileTrace,
    collector: Collector,
    stride: usize,
    blobs: &mut Blobs,
) -> FileFigures {
    labelled_figures(
        menu_label(&file.file),
        phase,
        file,
        collector,
        stride,
        blobs,
    )
}

/// Returns the label in the menu, with the folder if another file has the same name.
fn label(names: &FileNames, file: &FileRecord) -> String {
    match names.has_folder(file) {
        true => visible(&format!("{} {}", file.role.name(), names.short_name(file))),
        false => menu_label(file),
    }
}

fn labelled_figures(
    label: String,
    phase: &Phase,
    file: &FileTrace,
    collector: Collector,
    stride: usize,
    blobs: &mut Blobs,
) -> FileFigures {
    let text = CaptionSource {
        phase,
        file,
        stride,
        points: collector.points(),
        unknown_offsets: collector.unknown_offsets(),
    };
    let captions = [text.offset(), text.latency()].map(|caption| visible(&caption));
    collector.figures(label, captions, stride, blobs)
}

fn disk_figures(
    name: &str,
    disk: &DiskTrace,
    collector: Collector,
    stride: usize,
    blobs: &mut Blobs,
) -> FileFigures {
    let sample = sample_sentence(stride, collector.points());
    let (reads, writes) = (&disk.reads.transfers, &disk.writes.transfers);
    let mut offset = format!(
        "{} and {}. ",
        counted(reads.calls, "read request"),
        counted(writes.calls, "write request")
    );
    offset.push_str(&shape_of([&disk.reads, &disk.writes]).unwrap_or_default());
    let mut latency = "From issue to completion.".to_string();
    for (calls, word) in [(reads, "reads"), (writes, "writes")] {
        latency.push_str(&latency_sentence(calls, word));
    }
    let captions = [offset + &sample, latency + &sample];
    collector.figures(visible(name), captions, stride, blobs)
}
