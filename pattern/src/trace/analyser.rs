//! The one pass over the events of a trace.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use seekscope_run::{
    BlockRequest, FileRecord, FileRole, IoEvent, IoLayer, PathState, ThreadRecord,
};

use super::calls::{CacheCounter, CallCounter};
use super::depth::Depth;
use super::disk_counter::DiskCounter;
use super::file::FileCounter;
use super::options::AnalysisOptions;
use super::reorder::Reorder;
use super::result::{FileTrace, FilesBeyond, TraceAnalysis};
use super::reuse::ReuseTracker;
use super::threads::Threads;

/// Pages that the re-use distances over all files are followed for.
const REUSE_PAGES_MAX: usize = 16_384;

/// Slices of all files together before slices become twice as long.
const FILE_SLICES_MAX: usize = 65_536;

/// Disks with figures of their own; requests of later ones are left out of `disks`.
const DISKS_MAX: usize = 256;

/// Takes the events of a trace one by one and keeps counts, sketches and samples of bounded size.
pub struct TraceAnalyser {
    options: AnalysisOptions,
    reorder: Reorder,
    events: u64,
    /// Start of the first event handed out, end of the last.
    span_ns: Option<(u64, u64)>,
    slice_ns: u64,
    file_slices: usize,
    file_slices_max: usize,
    calls: CallCounter,
    cache: CacheCounter,
    depth: Depth,
    reuse: ReuseTracker,
    files: HashMap<u32, FileCounter>,
    files_beyond: FilesBeyond,
    threads: Threads,
    disks: BTreeMap<(u32, u32), DiskCounter>,
}

impl TraceAnalyser {
    /// An analyser without events.
    pub fn new(options: AnalysisOptions) -> Self {
        let exact_max = options.exact_values_max;
        Self {
            options,
            reorder: Reorder::new(options.reorder_events),
            events: 0,
            span_ns: None,
            slice_ns: options.slice_ns.max(1),
            file_slices: 0,
            file_slices_max: FILE_SLICES_MAX,
            calls: CallCounter::new(exact_max),
            cache: CacheCounter::new(exact_max),
            depth: Depth::default(),
            reuse: ReuseTracker::new(REUSE_PAGES_MAX),
            files: HashMap::new(),
            files_beyond: FilesBeyond::default(),
            threads: Threads::new(exact_max),
            disks: BTreeMap::new(),
        }
    }

    /// The next event, in the order in which a run keeps them: that of completion.
    pub fn push(&mut self, event: &IoEvent) {
        self.events += 1;
        for due in self.reorder.push(*event) {
            self.count(&due);
        }
    }

    /// The figures. Files and threads without a record get an empty name.
    pub fn finish(mut self, files: &[FileRecord], threads: &[ThreadRecord]) -> TraceAnalysis {
        for due in self.reorder.finish() {
            self.count(&due);
        }
        let records: HashMap<u32, &FileRecord> = files.iter().map(|f| (f.file_id, f)).collect();
        let (started_ns, ended_ns) = self.span_ns.unwrap_or_default();
        let files = self.finish_files(&records, started_ns);
        let (threads, roles) = self.threads.finish(&records, threads);
        TraceAnalysis {
            started_ns,
            ended_ns,
            events: self.events,
            late_events: self.reorder.late(),
            slice_ns: self.slice_ns,
            reads: self.calls.reads.transfers(),
            writes: self.calls.writes.transfers(),
            syncs: self.calls.syncs.sync_calls(),
            cache: self.cache.counts(),
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
        let mut files: Vec<FileTrace> = self
            .files
            .drain()
            .map(|(id, file)| file.finish(record(id), started_ns, self.slice_ns))
            .collect();
        files.sort_by_key(|f| {
            let (reads, writes) = (&f.reads.transfers, &f.writes.transfers);
            (Reverse(reads.bytes), Reverse(writes.bytes), f.file.file_id)
        });
        files
    }

    /// The next event in order of start.
    fn count(&mut self, event: &IoEvent) {
        let end_ns = event.t_ns.saturating_add(event.latency_ns);
        let (started_ns, ended_ns) = self.span_ns.unwrap_or((event.t_ns, end_ns));
        self.span_ns = Some((started_ns, ended_ns.max(end_ns)));
        match (event.op.layer(), event.request) {
            (IoLayer::File, _) => self.count_call(event, started_ns),
            (IoLayer::Device, request) => self.count_request(event, request),
        }
    }

    fn count_call(&mut self, event: &IoEvent, started_ns: u64) {
        self.calls.add(event);
        self.threads.add(event);
        if event.op.is_read() {
            self.cache.add(event);
        }
        if event.op.is_read() || event.op.is_write() {
            self.depth.add(event.t_ns, event.latency_ns);
        }
        let slice = self.slice_at(event.t_ns.saturating_sub(started_ns));
        let Some(file) = known_file(&mut self.files, event.file_id, &self.options) else {
            self.files_beyond.calls += 1;
            self.files_beyond.bytes += event.bytes();
            return;
        };
        let before = file.slices().count();
        file.add_call(event, slice, &mut self.reuse);
        self.file_slices += file.slices().count() - before;
    }

    fn count_request(&mut self, event: &IoEvent, request: Option<BlockRequest>) {
        if event.offset.is_some()
            && let Some(file) = known_file(&mut self.files, event.file_id, &self.options)
        {
            file.add_request(event);
        }
        // A request without a place (a damaged record) is on no disk.
        let Some(request) = request else {
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

    /// The slice that is `elapsed_ns` into the trace, after making slices longer if need be.
    fn slice_at(&mut self, elapsed_ns: u64) -> u64 {
        let slices_max = self.options.slices_max.max(1) as u64;
        while elapsed_ns / self.slice_ns >= slices_max && self.slice_ns < u64::MAX {
            self.double_slices();
        }
        if self.file_slices > self.file_slices_max {
            self.double_slices();
            // With more files than that, one slice per file has to be allowed.
            self.file_slices_max = FILE_SLICES_MAX.max(self.file_slices.saturating_mul(2));
        }
        elapsed_ns / self.slice_ns
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
    files: &'a mut HashMap<u32, FileCounter>,
    file_id: u32,
    options: &AnalysisOptions,
) -> Option<&'a mut FileCounter> {
    if files.len() >= options.files_max && !files.contains_key(&file_id) {
        return None;
    }
    let exact_max = options.exact_values_max;
    Some(
        files
            .entry(file_id)
            .or_insert_with(|| FileCounter::new(exact_max)),
    )
}

/// For an event whose file was not recorded.
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
    }
}
