//! The single pass over the events of a trace.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

use seekscope_run::{FileRecord, FileRole, IoEvent, IoLayer, PathState, ThreadRecord};

use super::calls::CallCounter;
use super::depth::Depth;
use super::disk_counter::DiskCounter;
use super::file::{FileCounter, pages};
use super::hash::{NumberMap, page_hash};
use super::options::AnalysisOptions;
use super::reorder::Reorder;
use super::result::{FileTrace, FilesBeyond, TraceAnalysis};
use super::reuse::ReuseTracker;
use super::threads::Threads;
use crate::CacheCounts;
use crate::access::Access;

/// The most pages that are followed for the re-use distances over all files.
const REUSE_PAGES_MAX: usize = 16_384;

/// The most slices of all files together before slices become twice as long.
const FILE_SLICES_MAX: usize = 65_536;

/// The most disks with figures of their own; requests of later ones are left out of `disks`.
const DISKS_MAX: usize = 256;

/// Takes the events of a trace one by one and keeps counts, sketches and samples of bounded size.
pub struct TraceAnalyser {
    options: AnalysisOptions,
    reorder: Reorder,
    events: u64,
    latencies_cut_off: u64,
    /// Start of the first event handed out, and end of the last.
    span_ns: Option<(u64, u64)>,
    slice_ns: u64,
    file_slices: usize,
    file_slices_max: usize,
    calls: CallCounter,
    cache: CacheCounts,
    depth: Depth,
    reuse: ReuseTracker,
    /// Files whose reads are not those of the server's cache.
    beside_cache: HashSet<u32>,
    files: NumberMap<u32, Box<FileCounter>>,
    files_beyond: FilesBeyond,
    threads: Threads,
    disks: BTreeMap<(u32, u32), DiskCounter>,
}

impl TraceAnalyser {
    /// Returns an analyser without events.
    pub fn new(options: AnalysisOptions) -> Self {
        let exact_max = options.exact_values_max;
        Self {
            options,
            reorder: Reorder::new(options.reorder_events),
            events: 0,
            latencies_cut_off: 0,
            span_ns: None,
            slice_ns: options.slice_ns.max(1),
            file_slices: 0,
            file_slices_max: FILE_SLICES_MAX,
            calls: CallCounter::new(exact_max),
            cache: CacheCounts::default(),
            depth: Depth::default(),
            reuse: ReuseTracker::new(REUSE_PAGES_MAX, 0),
            beside_cache: HashSet::new(),
            files: NumberMap::default(),
            files_beyond: FilesBeyond::default(),
            threads: Threads::new(exact_max),
            disks: BTreeMap::new(),
        }
    }

    /// Leaves the temporary files among these out of the re-use distances of the whole trace, as no cache of the server
    /// would have served their reads.
    pub fn with_files(mut self, files: &[FileRecord]) -> Self {
        let temporary = files.iter().filter(|file| file.is_temporary());
        self.beside_cache = temporary.map(|file| file.file_id).collect();
        self
    }

    /// Takes the next event, in the order in which a run keeps them: that of completion.
    pub fn push(&mut self, event: &IoEvent) {
        self.events += 1;
        self.latencies_cut_off += u64::from(event.is_cut_off());
        let due = self.reorder.push(*event);
        self.count(&due);
    }

    /// Returns the figures. Files and threads without a record get an empty name.
    pub fn finish(mut self, files: &[FileRecord], threads: &[ThreadRecord]) -> TraceAnalysis {
        let due = self.reorder.finish();
        self.count(&due);
        let records: HashMap<u32, &FileRecord> = files.iter().map(|f| (f.file_id, f)).collect();
        let (started_ns, ended_ns) = self.span_ns.unwrap_or_default();
        let files = self.finish_files(&records, started_ns);
        let (threads, roles) = self.threads.finish(&records, threads);
        TraceAnalysis {
            started_ns,
            ended_ns,
            events: self.events,
            late_events: self.reorder.late(),
            latencies_cut_off: self.latencies_cut_off,
            slice_ns: self.slice_ns,
            reads: self.calls.reads.transfers(),
            writes: self.calls.writes.transfers(),
            syncs: self.calls.syncs.sync_calls(),
            cache: self.cache,
            queue_depth: self.depth.finish(),
            reuse: self.reuse.finish(),
            files,
            files_beyond: self.files_beyond,
            threads,
            roles,
            disks: self
                .disks
                .iter()
                .map(|(&(major, minor), disk)| disk.finish(major, minor))
                .collect(),
        }
    }

    fn finish_files(
        &mut self,
        records: &HashMap<u32, &FileRecord>,
        started_ns: u64,
    ) -> Vec<FileTrace> {
        let record = |id| {
            records
                .get(&id)
                .map_or_else(|| nameless(id), |&r| r.clone())
        };
        let requests_recorded = !self.disks.is_empty();
        let mut files: Vec<FileTrace> = self
            .files
            .drain()
            .map(|(id, file)| file.finish(record(id), started_ns, self.slice_ns, requests_recorded))
            .collect();
        files.sort_by_key(|f| {
            let (reads, writes) = (&f.reads.transfers, &f.writes.transfers);
            (Reverse(reads.bytes), Reverse(writes.bytes), f.file.file_id)
        });
        files
    }

    /// Counts the next events in order of start. Anything that concerns only one file is counted
    /// file by file afterwards, because a file's state then stays in the processor's cache.
    fn count(&mut self, due: &[IoEvent]) {
        for event in due {
            self.count_in_all(event);
        }
        let mut by_file: Vec<(u32, usize)> = due
            .iter()
            .enumerate()
            .map(|(place, event)| (event.file_id, place))
            .collect();
        by_file.sort_unstable();
        for same in by_file.chunk_by(|a, b| a.0 == b.0) {
            self.count_in_file(same[0].0, same.iter().map(|&(_, place)| &due[place]));
        }
        if self.file_slices > self.file_slices_max {
            self.double_slices();
            // With more files than that, each file must be allowed one slice.
            self.file_slices_max = FILE_SLICES_MAX.max(self.file_slices.saturating_mul(2));
        }
    }

    fn count_in_all(&mut self, event: &IoEvent) {
        let end_ns = event.t_ns.saturating_add(event.latency_ns);
        let (started_ns, ended_ns) = self.span_ns.unwrap_or((event.t_ns, end_ns));
        self.span_ns = Some((started_ns, ended_ns.max(end_ns)));
        self.make_room_for(event.t_ns.saturating_sub(started_ns));
        if event.op.layer() == IoLayer::Device {
            self.count_in_disk(event);
            return;
        }
        self.calls.add(event);
        self.threads.add(event);
        self.cache.add(event);
        if event.op.is_read() || event.op.is_write() {
            self.depth.add(event.t_ns, event.latency_ns);
        }
        let is_of_cache = event.op.is_read() && !self.beside_cache.contains(&event.file_id);
        if let Some(access) = Access::of(event).filter(|_| is_of_cache) {
            for page in pages(access) {
                self.reuse.reference(page_hash(event.file_id, page));
            }
        }
    }

    /// Counts events of one file.
    fn count_in_file<'a>(&mut self, file_id: u32, events: impl Iterator<Item = &'a IoEvent>) {
        let (started_ns, _) = self.span_ns.unwrap_or_default();
        let slices_max = self.options.slices_max.max(1) as u64;
        for event in events {
            let of_disk = event.op.layer() == IoLayer::Device;
            if of_disk && event.offset.is_none() {
                continue;
            }
            let Some(file) = known_file(&mut self.files, file_id, &self.options) else {
                if !of_disk {
                    self.files_beyond.calls += 1;
                    self.files_beyond.bytes += event.bytes();
                }
                continue;
            };
            if of_disk {
                file.add_request(event);
                continue;
            }
            // A damaged time may lie beyond even the longest slice.
            let slice = event.t_ns.saturating_sub(started_ns) / self.slice_ns;
            let before = file.slices().count();
            file.add_call(event, slice.min(slices_max - 1));
            self.file_slices += file.slices().count() - before;
        }
    }

    fn count_in_disk(&mut self, event: &IoEvent) {
        // A request without a place (a damaged record) belongs to no disk.
        let Some(request) = event.request else {
            return;
        };
        let disk = (request.disk_major, request.disk_minor);
        if self.disks.len() < DISKS_MAX || self.disks.contains_key(&disk) {
            let exact_max = self.options.exact_values_max;
            self.disks
                .entry(disk)
                .or_insert_with(|| DiskCounter::new(exact_max))
                .add(event, request);
        }
    }

    /// Lengthens slices until one of them contains the time `elapsed_ns` after the trace's start.
    fn make_room_for(&mut self, elapsed_ns: u64) {
        let slices_max = self.options.slices_max.max(1) as u64;
        while elapsed_ns / self.slice_ns >= slices_max && self.slice_ns < u64::MAX {
            self.double_slices();
        }
    }

    fn double_slices(&mut self) {
        self.slice_ns = self.slice_ns.saturating_mul(2);
        self.file_slices = 0;
        for file in self.files.values_mut() {
            file.slices_mut().halve();
            self.file_slices += file.slices().count();
        }
    }
}

fn known_file<'a>(
    files: &'a mut NumberMap<u32, Box<FileCounter>>,
    file_id: u32,
    options: &AnalysisOptions,
) -> Option<&'a mut FileCounter> {
    if files.len() >= options.files_max && !files.contains_key(&file_id) {
        return None;
    }
    let rank = files.len();
    let new = || Box::new(FileCounter::new(options.exact_values_max, rank));
    Some(files.entry(file_id).or_insert_with(new))
}

/// Returns a record for an event whose file was not recorded.
fn nameless(file_id: u32) -> FileRecord {
    FileRecord {
        file_id,
        path: String::new(),
        path_state: PathState::Unresolved,
        device_major: 0,
        device_minor: 0,
        inode: 0,
        size_bytes: 0,
        role: FileRole::Other,
        namespace: None,
        member: None,
    }
}
