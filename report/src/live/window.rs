//! Keeps the most recent activity of a running trace in bounded memory: fed with events by the thread that
//! collects them, read a few times a second by the one that draws.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use seekscope_run::{DeviceFacts, FileRecord, IoEvent, IoLayer};

use super::counts::{Counts, Rates};
use super::file_activity::FileActivity;
use super::recent::Recent;
use super::snapshot::{DiskLine, FileLine, LiveSnapshot};
use crate::trace::disk_name;

/// Time is counted in slices; a column of the heat map is one.
pub(super) const SLICE_NS: u64 = 500_000_000;
/// Rates cover the last five seconds, unless requested otherwise.
const RATE_SLICES: u64 = 10;
/// Longest time that a window covers: an hour.
const RATE_SLICES_MAX: u64 = 7_200;
/// Files tracked at a time, about 100 kB each; the one idle longest is replaced.
const FILES_MAX: usize = 128;
/// Names kept, so that a file that becomes busy again still has one.
const NAMES_MAX: usize = 50_000;
const DISKS_MAX: usize = 64;

/// The most recent seconds of a running trace.
#[derive(Debug, Clone)]
pub struct LiveWindow {
    started_ns: u64,
    /// Number of slices that rates, latencies and patterns cover, the current one included.
    rate_slices: u64,
    /// Number of the current slice of time, and the latest moment known, ns.
    slice: u64,
    now_ns: u64,
    events: u64,
    lost: u64,
    total: Recent<Counts>,
    files: HashMap<u32, FileActivity>,
    records: HashMap<u32, FileRecord>,
    disks: BTreeMap<(u32, u32), Recent<Counts>>,
    /// The disk under the data, whose name is shown.
    device: Option<DeviceFacts>,
}

impl LiveWindow {
    /// Creates an empty window for a trace that began at `started_ns` (CLOCK_MONOTONIC).
    pub fn new(started_ns: u64) -> Self {
        Self::with_slices(started_ns, RATE_SLICES)
    }

    /// Creates a window whose rates, latencies and patterns cover the last `span`, and up to half a second
    /// more.
    pub fn over(started_ns: u64, span: Duration) -> Self {
        let slices = span.as_nanos().div_ceil(u128::from(SLICE_NS)) + 1;
        let slices = u64::try_from(slices).map_or(RATE_SLICES_MAX, |n| n.min(RATE_SLICES_MAX));
        Self::with_slices(started_ns, slices)
    }

    fn with_slices(started_ns: u64, rate_slices: u64) -> Self {
        Self {
            started_ns,
            rate_slices,
            slice: 0,
            now_ns: started_ns,
            events: 0,
            lost: 0,
            total: Recent::new(rate_slices),
            files: HashMap::new(),
            records: HashMap::new(),
            disks: BTreeMap::new(),
            device: None,
        }
    }

    /// Names the disk under the data; others have their numbers.
    pub fn on(mut self, device: Option<DeviceFacts>) -> Self {
        self.device = device;
        self
    }

    /// Counts an event at its time of completion.
    pub fn event(&mut self, event: &IoEvent) {
        self.events += 1;
        let ended_ns = event.t_ns.saturating_add(event.latency_ns);
        self.advance(ended_ns);
        let slice = self.slice_of(ended_ns);
        if event.op.layer() == IoLayer::Device {
            self.count_request(slice, event);
            return;
        }
        self.total.at(slice).count(event);
        if !self.files.contains_key(&event.file_id) {
            self.make_room();
        }
        let slices = self.rate_slices;
        let file = self.files.entry(event.file_id);
        let file = file.or_insert_with(|| FileActivity::new(slices));
        file.count(slice, event);
    }

    /// Stores a file's name; the last record with the same id counts.
    pub fn file(&mut self, file: &FileRecord) {
        if self.records.len() < NAMES_MAX || self.records.contains_key(&file.file_id) {
            self.records.insert(file.file_id, file.clone());
        }
    }

    /// Renames all files, once more is known of their contents.
    pub fn rename(&mut self, name: impl FnMut(&mut FileRecord)) {
        self.records.values_mut().for_each(name);
    }

    /// Sets the number of events lost since the trace began.
    pub fn set_lost(&mut self, lost: u64) {
        self.lost = lost;
    }

    /// Returns the number of events counted since the trace began.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Advances to `now_ns`: time passes without events too.
    fn advance(&mut self, now_ns: u64) {
        self.now_ns = self.now_ns.max(now_ns);
        self.slice = self.slice_of(self.now_ns);
    }

    fn slice_of(&self, ns: u64) -> u64 {
        ns.saturating_sub(self.started_ns) / SLICE_NS
    }

    fn count_request(&mut self, slice: u64, event: &IoEvent) {
        let Some(request) = event.request else { return };
        let disk = (request.disk_major, request.disk_minor);
        if self.disks.len() < DISKS_MAX || self.disks.contains_key(&disk) {
            let slices = self.rate_slices;
            let counts = self
                .disks
                .entry(disk)
                .or_insert_with(|| Recent::new(slices));
            counts.at(slice).count(event);
        }
    }

    fn make_room(&mut self) {
        if self.files.len() < FILES_MAX {
            return;
        }
        let idle = self
            .files
            .iter()
            .min_by_key(|(id, file)| (file.last_slice, **id));
        if let Some(id) = idle.map(|(id, _)| *id) {
            self.files.remove(&id);
        }
    }

    fn line(&self, file_id: u32, rates: Rates, first: u64, first_ns: u64) -> Option<FileLine> {
        let file = self.files.get(&file_id)?;
        Some(FileLine {
            file_id,
            record: self.records.get(&file_id).cloned(),
            rates,
            latency_ns: file.latency_ns(first),
            pattern: file.pattern(first_ns),
        })
    }

    #[cfg(test)]
    pub(super) fn files_watched(&self) -> usize {
        self.files.len()
    }

    /// Returns the state at `now_ns`, with the map of the `selected` file, or else of the busiest.
    pub fn snapshot(&mut self, now_ns: u64, selected: Option<u32>) -> LiveSnapshot {
        self.advance(now_ns);
        let first = (self.slice + 1).saturating_sub(self.rate_slices);
        let first_ns = self.started_ns.saturating_add(first * SLICE_NS);
        // Shortly after the start a handful of calls would otherwise be multiplied.
        let span_s = ((self.now_ns - first_ns.min(self.now_ns)) as f64 / 1e9).max(0.5);
        let rates =
            |counts: &Recent<Counts>| Rates::of(counts.since(first).map(|(_, c)| c), span_s);
        let mut busiest: Vec<(u32, Rates)> = self
            .files
            .iter()
            .map(|(id, file)| (*id, rates(&file.counts)))
            .collect();
        busiest.sort_by(|(a_id, a), (b_id, b)| {
            let more_bytes = b.bytes().total_cmp(&a.bytes());
            more_bytes
                .then(b.calls().total_cmp(&a.calls()))
                .then(a_id.cmp(b_id))
        });
        let files: Vec<FileLine> = busiest
            .into_iter()
            .filter_map(|(id, rates)| self.line(id, rates, first, first_ns))
            .collect();
        let shown = selected.filter(|id| self.files.contains_key(id));
        let shown = shown.or_else(|| files.first().map(|file| file.file_id));
        let disks = self.disks.iter().map(|((major, minor), counts)| DiskLine {
            name: disk_name(self.device.as_ref(), *major, *minor),
            rates: rates(counts),
        });
        LiveSnapshot {
            elapsed_ns: self.now_ns - self.started_ns,
            events: self.events,
            lost: self.lost,
            total: rates(&self.total),
            disks: disks.collect(),
            files,
            map: shown.and_then(|id| Some((id, self.files.get(&id)?.heat.clone()))),
            slice: self.slice,
        }
    }
}
