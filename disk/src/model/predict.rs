//! Predicts what a list of accesses would cost on a device, by discrete-event simulation.
//!
//! Each stream is a closed loop. A buffered read goes through the page cache, the read-ahead of its
//! stream's open file, and the device; it waits only for the pages it needs, while read-ahead goes
//! on beside it. The CPU's part is three numbers, the cost of a cached read per byte, that of a
//! miss, and that of a byte in folios of the largest size; streams do not compete for CPUs. Buffered writes are free, as write-back is not simulated.
//!
//! Memory: that of the simulated cache (see `page_cache`) and an index of 8 bytes per access.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::ops::Range;

use seekscope_run::DeviceModel;
use serde::Serialize;

use super::access::{Access, Operation};
use super::classes::{ClassCost, Classes};
use super::device::Device;
use super::idle_memory::{in_between, windows_bytes};
use super::page_cache::{PAGE_BYTES, PageCache};
use super::pieces::{Piece, place};
use super::read_ahead::{Limits, Mark, ReadAhead, Window};

/// The state of the host on which the accesses are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PredictOptions {
    /// Size of the page cache shared by all files, bytes.
    pub cache_bytes: u64,
    /// Sizes of files, bytes; for other files, the end of the last access counts. Read-ahead stops
    /// at the end of a file.
    pub file_bytes: HashMap<u32, u64>,
    /// File and byte range of what is cached at the beginning, the least recently used first.
    pub cached: Vec<(u32, Range<u64>)>,
    /// The pieces in which files lie on the device, ascending by file offset. A file that is not
    /// listed is contiguous.
    pub pieces: HashMap<u32, Vec<Piece>>,
    /// Whether the host pages out idle memory (`seekscope_run::HostFacts::pages_out_idle_memory`):
    /// pages that were read ahead may be gone before they are wanted.
    pub idle_is_paged_out: bool,
}

impl PredictOptions {
    /// Returns a cold cache that may take three quarters of the memory, with the rest for programs.
    pub fn with_memory(memory_bytes: u64) -> Self {
        Self {
            cache_bytes: memory_bytes / 4 * 3,
            file_bytes: HashMap::new(),
            cached: Vec::new(),
            pieces: HashMap::new(),
            idle_is_paged_out: false,
        }
    }
}

/// The predicted cost of the accesses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Prediction {
    /// Time from the beginning to the last completion, including think times.
    pub elapsed_ns: u64,
    /// The time if everything read ahead stays in memory until it is wanted, and the time if
    /// nothing does. They differ if the host pages out idle memory; `elapsed_ns` is then in the
    /// middle.
    pub elapsed_low_ns: u64,
    pub elapsed_high_ns: u64,
    /// Requests sent to the device, including read-ahead.
    pub device_requests: u64,
    pub device_bytes: u64,
    /// Bytes of reads that were in the page cache, or on their way into it.
    pub cached_bytes: u64,
    pub by_class: Vec<ClassCost>,
    /// What the prediction leaves out, in sentences for people.
    pub unmodelled: Vec<String>,
}

/// Predicts what the accesses cost on the device. The order within each stream counts; streams run
/// concurrently. Any model gives some answer, and a nonsensical one a nonsensical answer: it may
/// come from a foreign file. The time to simulate an access grows with its length, so it should not
/// be longer than [`CALL_BYTES_MAX`](super::CALL_BYTES_MAX).
pub fn predict(model: &DeviceModel, accesses: &[Access], options: &PredictOptions) -> Prediction {
    let simulated = |options: &PredictOptions| {
        let mut simulation = Simulation::new(model, accesses, options);
        simulation.run();
        simulation.finish()
    };
    let kept = simulated(options);
    if !options.idle_is_paged_out {
        return kept;
    }
    let lost = simulated(&PredictOptions {
        cache_bytes: options.cache_bytes.min(windows_bytes(model, accesses)),
        ..options.clone()
    });
    in_between(kept, &lost)
}

/// The remaining part of a read in progress.
struct Progress {
    issued_ns: u64,
    pages: Range<u64>,
    /// The number of its pages that it had to fetch itself.
    missed_pages: u64,
}

struct Stream {
    /// Indices in the list of accesses, the next of which is at `next`.
    accesses: Vec<usize>,
    next: usize,
    read: Option<Progress>,
    /// The stream's own open files.
    open_files: HashMap<u32, ReadAhead>,
}

/// Pages being read.
struct Pending {
    file: u32,
    pages: Range<u64>,
    ready_ns: u64,
}

struct Simulation<'a> {
    model: &'a DeviceModel,
    accesses: &'a [Access],
    pieces: &'a HashMap<u32, Vec<Piece>>,
    limits: Limits,
    file_pages: HashMap<u32, u64>,
    device: Device,
    cache: PageCache,
    pending: Vec<Pending>,
    streams: Vec<Stream>,
    /// When each stream continues.
    agenda: BinaryHeap<Reverse<(u64, usize)>>,
    classes: Classes,
    elapsed_ns: u64,
    cached_bytes: u64,
    free_writes: u64,
    unknown_syncs: u64,
}

fn pages_of(offset: u64, length: u64) -> Range<u64> {
    offset / PAGE_BYTES..offset.saturating_add(length).div_ceil(PAGE_BYTES)
}

/// Returns the number of pages of each file that the options name or an access touches.
fn file_pages(accesses: &[Access], options: &PredictOptions) -> HashMap<u32, u64> {
    let mut pages: HashMap<u32, u64> = HashMap::new();
    for access in accesses {
        let end = pages_of(access.offset, access.length).end;
        let known = pages.entry(access.file).or_default();
        *known = end.max(*known);
    }
    for (&file, &bytes) in &options.file_bytes {
        let known = pages.entry(file).or_default();
        *known = bytes.div_ceil(PAGE_BYTES).max(*known);
    }
    pages
}

fn streams_of(accesses: &[Access]) -> Vec<Stream> {
    let mut places: HashMap<u32, usize> = HashMap::new();
    let mut streams: Vec<Stream> = Vec::new();
    for (at, access) in accesses.iter().enumerate() {
        let place = *places.entry(access.stream).or_insert_with(|| {
            streams.push(Stream {
                accesses: Vec::new(),
                next: 0,
                read: None,
                open_files: HashMap::new(),
            });
            streams.len() - 1
        });
        streams[place].accesses.push(at);
    }
    streams
}

impl<'a> Simulation<'a> {
    fn new(model: &'a DeviceModel, accesses: &'a [Access], options: &'a PredictOptions) -> Self {
        let mut cache = PageCache::new(options.cache_bytes);
        for (file, bytes) in &options.cached {
            cache.insert(
                *file,
                &pages_of(bytes.start, bytes.end.saturating_sub(bytes.start)),
            );
        }
        let device = Device::new(model);
        let mut simulation = Self {
            model,
            accesses,
            pieces: &options.pieces,
            limits: Limits::of(model),
            file_pages: file_pages(accesses, options),
            device,
            cache,
            pending: Vec::new(),
            streams: streams_of(accesses),
            agenda: BinaryHeap::new(),
            classes: Classes::default(),
            elapsed_ns: 0,
            cached_bytes: 0,
            free_writes: 0,
            unknown_syncs: 0,
        };
        for stream in 0..simulation.streams.len() {
            simulation.schedule(stream, 0);
        }
        simulation
    }

    fn run(&mut self) {
        while let Some(Reverse((now_ns, stream))) = self.agenda.pop() {
            self.advance(stream, now_ns);
        }
    }

    /// Schedules the stream's next access, if there is one.
    fn schedule(&mut self, stream: usize, free_ns: u64) {
        let Stream { accesses, next, .. } = &self.streams[stream];
        if let Some(&at) = accesses.get(*next) {
            let issue_ns = free_ns.saturating_add(self.accesses[at].think_ns);
            self.agenda.push(Reverse((issue_ns, stream)));
        }
    }

    /// Issues the stream's next access, or continues the present one.
    fn advance(&mut self, stream: usize, now_ns: u64) {
        let state = &mut self.streams[stream];
        let Some(&at) = state.accesses.get(state.next) else {
            return;
        };
        let access = &self.accesses[at];
        if access.operation == Operation::Read && !access.direct {
            let progress = state.read.take().unwrap_or_else(|| Progress {
                issued_ns: now_ns,
                pages: pages_of(access.offset, access.length),
                missed_pages: 0,
            });
            self.buffered_read(stream, access, progress, now_ns);
        } else {
            let done_ns = match access.operation {
                Operation::Read => self.direct(access, now_ns),
                Operation::Write => self.write(access, now_ns),
                Operation::SyncedWrite => self.synced_write(access, now_ns),
            };
            self.complete(stream, access, now_ns, done_ns);
        }
    }

    fn complete(&mut self, stream: usize, access: &Access, issued_ns: u64, done_ns: u64) {
        self.classes
            .completed(access, done_ns.saturating_sub(issued_ns));
        self.elapsed_ns = self.elapsed_ns.max(done_ns);
        self.streams[stream].next += 1;
        self.schedule(stream, done_ns);
    }

    fn direct(&mut self, access: &Access, now_ns: u64) -> u64 {
        let requests = self.device.split(access.offset, access.length);
        requests.fold(now_ns, |done_ns, request| {
            done_ns.max(self.device.request(now_ns, access.file, &request))
        })
    }

    /// Makes a write. A direct write takes as long as a read of its size; a buffered one takes no
    /// time, and leaves its pages in the cache.
    fn write(&mut self, access: &Access, now_ns: u64) -> u64 {
        if access.direct {
            return self.direct(access, now_ns);
        }
        self.free_writes += 1;
        let pages = pages_of(access.offset, access.length);
        self.cache.insert(access.file, &pages);
        now_ns
    }

    /// Returns when a synced write completes. It takes the mean of the journal measurement with the
    /// nearest block size, with one writer if there is one.
    fn synced_write(&mut self, access: &Access, now_ns: u64) -> u64 {
        let distance = |bytes: u64| (bytes as f64 / access.length.max(1) as f64).ln().abs();
        let nearest = self.model.sync.iter().min_by(|a, b| {
            distance(a.block_bytes)
                .total_cmp(&distance(b.block_bytes))
                .then(a.writers.cmp(&b.writers))
        });
        match nearest {
            Some(point) => now_ns.saturating_add(whole_ns(point.latency.mean_ns)),
            None => {
                self.unknown_syncs += 1;
                self.direct(access, now_ns)
            }
        }
    }

    /// Delivers pages until the read is complete or must wait for some.
    fn buffered_read(
        &mut self,
        stream: usize,
        access: &Access,
        mut progress: Progress,
        now_ns: u64,
    ) {
        let mut now_ns = now_ns;
        while !progress.pages.is_empty() {
            let delivered = self.next_batch(stream, access.file, &mut progress, &mut now_ns);
            progress.pages.start = delivered.end;
            let ready_ns = self.ready_ns(access.file, &delivered, now_ns);
            if ready_ns > now_ns {
                self.streams[stream].read = Some(progress);
                self.agenda.push(Reverse((ready_ns, stream)));
                return;
            }
        }
        self.finish_read(stream, access, &progress, now_ns);
    }

    /// Returns the pages that the read can have next, already fetched or on their way: up to the
    /// next marked folio, which starts read-ahead before it is waited for, or the next missing
    /// page.
    fn next_batch(
        &mut self,
        stream: usize,
        file: u32,
        progress: &mut Progress,
        now_ns: &mut u64,
    ) -> Range<u64> {
        let at = progress.pages.start;
        let missing = self.cache.first_missing(file, &progress.pages);
        if missing == Some(at) {
            progress.missed_pages += self.read_missing(stream, file, &progress.pages, now_ns);
            // Delivers nothing yet, unless the page was evicted at once by its own read-ahead.
            let evicted = self.cache.first_missing(file, &(at..at + 1)).is_some();
            return at..at + u64::from(evicted);
        }
        let limit = missing.unwrap_or(progress.pages.end);
        match self.cache.first_mark(file, &(at..limit)) {
            Some(folio) if folio.start <= at => {
                let wanted = progress.pages.end - folio.start;
                self.read_marked(stream, file, folio, wanted, now_ns);
                at..limit.min(folio.start + folio.pages)
            }
            Some(folio) => at..folio.start,
            None => at..limit,
        }
    }

    /// Handles a read whose first page is missing. Returns how many of its pages this fetches.
    fn read_missing(
        &mut self,
        stream: usize,
        file: u32,
        wanted: &Range<u64>,
        now_ns: &mut u64,
    ) -> u64 {
        let cache = &self.cache;
        let read_ahead = self.streams[stream].open_files.entry(file).or_default();
        let pages = wanted.end - wanted.start;
        let window = read_ahead.missing(wanted.start, pages, self.limits, |max| {
            cache.cached_before(file, wanted.start, max)
        });
        *now_ns = now_ns.saturating_add(whole_ns(self.model.miss_ns));
        let fetched = self.fetch(file, window, now_ns);
        let of_the_read =
            |range: &Range<u64>| range.end.min(wanted.end).saturating_sub(range.start);
        fetched.iter().map(of_the_read).sum()
    }

    /// Handles a read that reaches a marked folio.
    fn read_marked(
        &mut self,
        stream: usize,
        file: u32,
        folio: Mark,
        wanted: u64,
        now_ns: &mut u64,
    ) {
        self.cache.clear_mark(file, folio);
        let cache = &self.cache;
        let read_ahead = self.streams[stream].open_files.entry(file).or_default();
        let window = read_ahead.marked(folio, wanted, self.limits, |max| {
            cache.cached_from(file, folio.start + 1, max)
        });
        if let Some(window) = window {
            self.fetch(file, window, now_ns);
        }
    }

    /// Adds to the cache the part of the window that is not cached and lies in the file, which
    /// takes the stream some time, and sends requests for it. Returns that part.
    fn fetch(&mut self, file: u32, window: Window, now_ns: &mut u64) -> Vec<Range<u64>> {
        let file_end = self.file_pages.get(&file).copied().unwrap_or(0);
        let pages = window.start..(window.start + window.pages).min(file_end);
        let cached = self.cache.first_cached(file, &pages);
        let gives_up = cached.and_then(|cached| window.gives_up_folios(pages.end, cached));
        let fetched = self.cache.insert(file, &pages);
        let new_pages = fetched.iter().map(|range| range.end - range.start).sum();
        *now_ns = now_ns.saturating_add(self.caching_ns(new_pages, window.order));
        for pages in &fetched {
            let cut = gives_up.map_or(pages.end, |page| page.clamp(pages.start, pages.end));
            self.send(file, pages.start..cut, *now_ns);
            self.send(file, cut..pages.end, *now_ns);
        }
        let is_new = |mark: &Mark| fetched.iter().any(|range| range.contains(&mark.start));
        if let Some(mark) = window.mark.filter(is_new) {
            let single = gives_up == Some(mark.start);
            let pages = if single { 1 } else { mark.pages };
            self.cache.set_mark(file, Mark { pages, ..mark });
        }
        fetched
    }

    /// Sends requests for pages of a file, at least one for each of its pieces.
    fn send(&mut self, file: u32, pages: Range<u64>, now_ns: u64) {
        let pieces = self.pieces.get(&file).map_or(&[][..], Vec::as_slice);
        let byte = |page: u64| page.saturating_mul(PAGE_BYTES);
        let mut left = byte(pages.start)..byte(pages.end);
        while !left.is_empty() {
            let placed = place(file, pieces, &left);
            let length = placed.end - left.start;
            for request in self.device.split(placed.offset, length) {
                let ready_ns = self.device.request(now_ns, placed.space, &request);
                let in_file = |offset: u64| left.start + (offset - placed.offset);
                self.pending.push(Pending {
                    file,
                    pages: in_file(request.start) / PAGE_BYTES
                        ..in_file(request.end).div_ceil(PAGE_BYTES),
                    ready_ns,
                });
            }
            left.start = placed.end;
        }
    }

    /// Returns the time that the stream spends on new pages of the cache before it requests them.
    fn caching_ns(&self, pages: u64, order: u32) -> u64 {
        if order == 0 || order < self.limits.order_max() {
            return 0;
        }
        whole_ns(self.model.stream_ns_per_byte * (pages * PAGE_BYTES) as f64)
    }

    /// Returns when the last of the pages arrives; now, if all are there.
    fn ready_ns(&mut self, file: u32, pages: &Range<u64>, now_ns: u64) -> u64 {
        self.pending.retain(|pending| pending.ready_ns > now_ns);
        let overlaps =
            |p: &&Pending| p.file == file && p.pages.start < pages.end && p.pages.end > pages.start;
        let awaited = self.pending.iter().filter(overlaps);
        awaited.map(|p| p.ready_ns).max().unwrap_or(now_ns)
    }

    fn finish_read(&mut self, stream: usize, access: &Access, progress: &Progress, now_ns: u64) {
        let end = access.offset.saturating_add(access.length);
        self.cache
            .touch(access.file, &pages_of(access.offset, access.length));
        let read_ahead = self.streams[stream]
            .open_files
            .entry(access.file)
            .or_default();
        read_ahead.read_until(end / PAGE_BYTES);
        let missed_bytes = progress.missed_pages * PAGE_BYTES;
        self.cached_bytes = self
            .cached_bytes
            .saturating_add(access.length.saturating_sub(missed_bytes));
        let copied_ns = whole_ns(self.model.cached_ns_per_byte * access.length as f64);
        let done_ns = now_ns.saturating_add(copied_ns);
        self.complete(stream, access, progress.issued_ns, done_ns);
    }

    fn finish(self) -> Prediction {
        let mut unmodelled = Vec::new();
        if self.free_writes > 0 {
            unmodelled.push(format!(
                "{} buffered writes count as free: when the kernel writes them back is not predicted",
                self.free_writes
            ));
        }
        if self.unknown_syncs > 0 {
            unmodelled.push(format!(
                "{} synced writes count as reads of their size: the model has no sync measurement",
                self.unknown_syncs
            ));
        }
        Prediction {
            elapsed_ns: self.elapsed_ns,
            elapsed_low_ns: self.elapsed_ns,
            elapsed_high_ns: self.elapsed_ns,
            device_requests: self.device.requests,
            device_bytes: self.device.bytes,
            cached_bytes: self.cached_bytes,
            by_class: self.classes.finish(),
            unmodelled,
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "saturates: ns of a non-negative finite time, or of a nonsensical model"
)]
pub(super) fn whole_ns(ns: f64) -> u64 {
    ns.ceil() as u64
}

#[cfg(test)]
mod tests;
