//! A made-up trace: random reads of one collection, a scan of another beside it, an index that is
//! written, a journal that is synced, and the requests that a disk got from all of that.

#![expect(
    clippy::cast_possible_truncation,
    reason = "made-up numbers, all small"
)]

use seekscope_pattern::{AnalysisOptions, TraceAnalyser, TraceAnalysis};
use seekscope_report::trace::{TraceReportInput, html, terminal};
use seekscope_run::{
    BlockRequest, CacheState, ClockOffset, Disk, FileRecord, FileRole, IoEvent, IoFlags, IoOp,
    Outcome, PathState, Phase, RunDocument, RunError, ThreadRecord, TraceCoverage, TraceFacts,
    TracerCost,
};
use seekscope_stats::SplitMix64;

use crate::hostile::HOSTILE_NAMES;

pub(crate) const START_NS: u64 = 5_000_000_000_000;
pub(crate) const DURATION_NS: u64 = 60_000_000_000;
const BLOCK_BYTES: u64 = 32_768;
/// Blocks of the collection that is read at random; the first tenth is hot.
const RANDOM_BLOCKS: u64 = 20_000;
const PID: u32 = 4100;

const RANDOM: u32 = 1;
const SCANNED: u32 = 2;
const INDEX: u32 = 3;
const JOURNAL: u32 = 4;
const UNKNOWN: u32 = 5;

const CONNECTION: u32 = 4107;
const SCANNER: u32 = 4108;
const CHECKPOINT: u32 = 4110;
const LOGGER: u32 = 4111;

/// Everything that a trace leaves behind.
pub(crate) struct TraceSample {
    pub(crate) document: RunDocument,
    pub(crate) files: Vec<FileRecord>,
    pub(crate) threads: Vec<ThreadRecord>,
    pub(crate) events: Vec<IoEvent>,
}

impl TraceSample {
    pub(crate) fn analysis(&self) -> TraceAnalysis {
        let mut analyser = TraceAnalyser::new(AnalysisOptions::default());
        self.events.iter().for_each(|event| analyser.push(event));
        analyser.finish(&self.files, &self.threads)
    }

    /// Calls `render` with all that a report is made from.
    fn with_input<T>(&self, render: impl FnOnce(&TraceReportInput<'_>) -> T) -> T {
        let analysis = self.analysis();
        let events = |each: &mut dyn FnMut(&IoEvent)| {
            self.events.iter().for_each(each);
            Ok(())
        };
        render(&TraceReportInput {
            document: &self.document,
            analysis: &analysis,
            events: &events,
        })
    }

    pub(crate) fn html(&self) -> Result<String, RunError> {
        self.with_input(html)
    }

    pub(crate) fn terminal(&self, width: u16) -> String {
        self.with_input(|input| terminal(input, width))
    }
}

/// A trace of about `calls` calls, and their requests.
pub(crate) fn trace(calls: u64, hostile: bool) -> TraceSample {
    let mut rng = SplitMix64::new(11);
    let mut events = Vec::new();
    let step_ns = DURATION_NS / calls.max(1);
    let mut scanned = 0;
    let mut written = 0;
    for i in 0..calls {
        let t_ns = START_NS + i * step_ns + rng.below(step_ns / 2 + 1);
        match i % 20 {
            0..=11 => random_read(t_ns, &mut rng, &mut events),
            // The scan begins in the middle of the trace.
            12..=16 if i > calls / 2 => {
                scan(t_ns, scanned, &mut events);
                scanned += 1;
            }
            12..=16 => random_read(t_ns, &mut rng, &mut events),
            17 | 18 => {
                let mut write = call(t_ns, CHECKPOINT, INDEX, IoOp::Pwrite, written * BLOCK_BYTES);
                write.latency_ns = 15_000 + rng.below(20_000);
                events.push(write);
                written += 1;
            }
            _ => commit(t_ns, i, &mut rng, &mut events),
        }
    }
    // Recorded in the order of completion.
    events.sort_by_key(|event| event.t_ns + event.latency_ns);
    let mut sample = TraceSample {
        document: document(events.len() as u64),
        files: files(),
        threads: threads(),
        events,
    };
    if hostile {
        make_hostile(&mut sample);
    }
    sample
}

/// Half of them in the hot tenth, which the page cache mostly has.
fn random_read(t_ns: u64, rng: &mut SplitMix64, events: &mut Vec<IoEvent>) {
    let hot = rng.below(2) == 0;
    let block = rng.below(if hot {
        RANDOM_BLOCKS / 10
    } else {
        RANDOM_BLOCKS
    });
    let mut read = call(t_ns, CONNECTION, RANDOM, IoOp::Pread, block * BLOCK_BYTES);
    if hot && rng.below(10) > 0 {
        read.latency_ns = 4_000 + rng.below(3_000);
    } else {
        let request_ns = 80_000 + (rng.unit_f64().powi(8) * 2e6) as u64 + rng.below(60_000);
        read.flags = IoFlags(IoFlags::WAITED | IoFlags::DEVICE_READ);
        read.device_read_bytes = BLOCK_BYTES as u32;
        read.latency_ns = request_ns + 9_000;
        let sector = 2_000_000 + block * BLOCK_BYTES / 512;
        events.push(request(&read, IoOp::BlockRead, sector, request_ns));
    }
    events.push(read);
}

/// Adds a read of a scan in order, with four blocks to a request that is sent ahead.
fn scan(t_ns: u64, block: u64, events: &mut Vec<IoEvent>) {
    let mut read = call(t_ns, SCANNER, SCANNED, IoOp::Pread, block * BLOCK_BYTES);
    read.latency_ns = 6_000;
    if block.is_multiple_of(4) {
        read.flags = IoFlags(IoFlags::DEVICE_READ);
        read.device_read_bytes = 4 * BLOCK_BYTES as u32;
        let sector = 9_000_000 + block * BLOCK_BYTES / 512;
        let mut ahead = request(&read, IoOp::BlockRead, sector, 210_000);
        ahead.length = 4 * BLOCK_BYTES as u32;
        ahead.result = 4 * BLOCK_BYTES as i32;
        ahead.flags = IoFlags(IoFlags::READ_AHEAD);
        events.push(ahead);
    }
    events.push(read);
}

fn commit(t_ns: u64, number: u64, rng: &mut SplitMix64, events: &mut Vec<IoEvent>) {
    let mut write = call(t_ns, LOGGER, JOURNAL, IoOp::Pwrite, number * 512);
    (write.length, write.result, write.latency_ns) = (512, 512, 12_000);
    events.push(write);
    let mut sync = call(t_ns + 13_000, LOGGER, JOURNAL, IoOp::Fdatasync, 0);
    (sync.offset, sync.length, sync.result) = (None, 0, 0);
    sync.latency_ns = 900_000 + rng.below(400_000);
    let sector = 50_000 + number;
    let mut flushed = request(&write, IoOp::BlockWrite, sector, 700_000);
    flushed.t_ns = sync.t_ns;
    events.push(flushed);
    events.push(sync);
    if number.is_multiple_of(200) {
        let mut unknown = call(t_ns, CONNECTION, UNKNOWN, IoOp::Read, 0);
        unknown.offset = None;
        events.push(unknown);
    }
}

fn call(t_ns: u64, tid: u32, file_id: u32, op: IoOp, offset: u64) -> IoEvent {
    IoEvent {
        t_ns,
        pid: PID,
        tid,
        file_id,
        op,
        flags: IoFlags::default(),
        offset: Some(offset),
        length: BLOCK_BYTES as u32,
        latency_ns: 5_000,
        result: BLOCK_BYTES as i32,
        device_read_bytes: 0,
        request: None,
    }
}

/// What `caller` made of the disk.
fn request(caller: &IoEvent, op: IoOp, sector: u64, latency_ns: u64) -> IoEvent {
    IoEvent {
        t_ns: caller.t_ns + 3_000,
        op,
        flags: IoFlags(IoFlags::SYNCHRONOUS),
        latency_ns,
        device_read_bytes: 0,
        request: Some(BlockRequest {
            disk_major: 254,
            disk_minor: 0,
            sector,
        }),
        ..*caller
    }
}

fn files() -> Vec<FileRecord> {
    let file = |file_id: u32, name: &str, role, namespace: Option<&str>| FileRecord {
        file_id,
        path: format!("/var/lib/db/{name}"),
        path_state: PathState::Known,
        device_major: 254,
        device_minor: 1,
        inode: u64::from(file_id) + 100,
        size_bytes: 0,
        role,
        namespace: namespace.map(String::from),
        member: None,
    };
    let mut files = vec![
        file(
            RANDOM,
            "collection-7--781.wt",
            FileRole::Collection,
            Some("shop.orders"),
        ),
        file(
            SCANNED,
            "collection-2--781.wt",
            FileRole::Collection,
            Some("shop.log"),
        ),
        file(
            INDEX,
            "index-9--781.wt",
            FileRole::Index,
            Some("shop.orders/i_1"),
        ),
        file(
            JOURNAL,
            "journal/WiredTigerLog.0000000003",
            FileRole::Journal,
            None,
        ),
        file(UNKNOWN, "inode 17 on 254:1", FileRole::Other, None),
    ];
    if let Some(last) = files.last_mut() {
        last.path = "inode 17 on 254:1".into();
        last.path_state = PathState::Unresolved;
    }
    files
}

fn threads() -> Vec<ThreadRecord> {
    let names = [
        (CONNECTION, "conn12"),
        (SCANNER, "conn13"),
        (CHECKPOINT, "WTCheck.tThread"),
        (LOGGER, "JournalFlusher"),
    ];
    let thread = |(tid, name): (u32, &str)| ThreadRecord {
        tid,
        pid: PID,
        name: name.into(),
    };
    names.map(thread).to_vec()
}

fn document(events: u64) -> RunDocument {
    let arguments = ["trace", "-p", "4100", "--for", "60s"]
        .map(String::from)
        .to_vec();
    let mut document = RunDocument::begin("trace", arguments);
    document.outcome = Outcome::Ok;
    document.outcome_reason = None;
    document.started = ClockOffset {
        monotonic_ns: START_NS,
        realtime_ns: 1_700_000_000_000_000_000,
    };
    document.ended_ns = Some(START_NS + DURATION_NS);
    let coverage = |group: &str, covered, how: &str| TraceCoverage {
        group: group.into(),
        covered,
        how: how.into(),
    };
    // Enough to matter.
    let lost = events / 50;
    document.phases.push(Phase {
        name: "trace".into(),
        activity: "mongod (process 4100), its own work for 60 s".into(),
        namespace: None,
        disk: Disk::Plain,
        cache: CacheState::AsFound {
            why: "the server was running".into(),
        },
        started_ns: START_NS,
        ended_ns: START_NS + DURATION_NS,
        index_build: None,
        trace: Some(TraceFacts {
            backend: "tp_btf".into(),
            backend_reason: "the kernel has BTF".into(),
            seen: events + lost,
            written: events,
            lost,
            lost_ring_full: lost,
            coverage: vec![
                coverage(
                    "read and write calls",
                    true,
                    "tp_btf/sys_enter, tp_btf/sys_exit",
                ),
                coverage(
                    "block requests",
                    true,
                    "tp_btf/block_rq_issue, tp_btf/block_rq_complete",
                ),
                coverage("io_uring", false, "not asked for"),
            ],
            filters: vec!["directory /var/lib/db".into()],
            cost: TracerCost {
                ns_per_event: 410.0,
                share_of_server_cpu: 0.0031,
                ..TracerCost::default()
            },
            ..TraceFacts::default()
        }),
        process_io: None,
    });
    document
}

/// Every text that a server, a process or a file system could have chosen becomes an attack.
fn make_hostile(sample: &mut TraceSample) {
    let name = |i: usize| HOSTILE_NAMES[i % HOSTILE_NAMES.len()].to_string();
    for (i, file) in sample.files.iter_mut().enumerate() {
        file.path = format!("/var/lib/db/{}", name(i));
        file.namespace = Some(name(i + 1));
    }
    sample.files[0].namespace = Some("x".repeat(1000));
    for (i, thread) in sample.threads.iter_mut().enumerate() {
        thread.name = name(i);
    }
    sample.document.arguments = (0..4).map(name).collect();
    for phase in &mut sample.document.phases {
        phase.activity = name(1);
        if let Some(trace) = &mut phase.trace {
            trace.backend = name(1);
            trace.backend_reason = name(0);
            trace.filters = (0..4).map(name).collect();
            trace.coverage[0].group = name(1);
            trace.coverage[1].how = name(0);
        }
    }
}
