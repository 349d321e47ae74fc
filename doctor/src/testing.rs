//! Builds made-up recordings for the tests of detectors and answers: facts, counters, and I/O events that go
//! through the real analysers.
//!
//! A new [`Recording`] is of a healthy, idle server that was observed for a minute; tests add what they need.
//! Times are seconds from the start of the observation.

use seekscope_pattern::{
    AnalysisOptions, DeviceUse, DeviceUseFinder, TraceAnalyser, TraceAnalysis,
};
use seekscope_run::{
    BlockRequest, CacheState, CounterSample, DepthPoint, DeviceFacts, DeviceModel, Disk,
    DiskAbility, ExaminationRecord, FileRecord, FileRole, Finding, HostFacts, HostSettings,
    IoEvent, IoFlags, IoOp, LatencySummary, LayoutFile, LayoutMeasurement, MemberRecord,
    OperationSeen, PathState, Phase, RunDocument, SyncPoint, TargetFacts, ThreadRecord, TraceFacts,
};

use seekscope_stats::SplitMix64;

use crate::detectors::Detector;
use crate::{Answers, Counters, Diagnosis, Evidence, diagnose};

/// When the observation began.
pub(crate) const START_NS: u64 = 1_000_000_000_000;
/// How long the observation took.
pub(crate) const OBSERVED_S: u32 = 60;
pub(crate) const GIB: u64 = 1 << 30;
const PID: u32 = 7;

/// A made-up recording, at first that of a healthy and idle server.
pub(crate) struct Recording {
    /// May be changed freely.
    pub(crate) document: RunDocument,
    files: Vec<FileRecord>,
    threads: Vec<ThreadRecord>,
    events: Vec<IoEvent>,
    samples: Vec<CounterSample>,
}

/// A call of a thread on a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    pub(crate) tid: u32,
    pub(crate) file_id: u32,
    pub(crate) at_s: f64,
    pub(crate) offset: u64,
    pub(crate) bytes: u32,
    pub(crate) latency_s: f64,
}

impl Recording {
    pub(crate) fn new() -> Self {
        let mut document = RunDocument::begin("doctor", Vec::new());
        document.started.monotonic_ns = START_NS;
        document.host = Some(HostFacts {
            kernel: "6.1".into(),
            cpus: 8,
            memory_bytes: 32 * GIB,
            ..HostFacts::default()
        });
        document.device = Some(DeviceFacts {
            path: "/var/lib/mongodb".into(),
            device: "254:0".into(),
            disk: Some("vda".into()),
            disk_device: Some("254:0".into()),
            filesystem: "xfs".into(),
            size_bytes: 1000 * GIB,
            free_bytes: 500 * GIB,
            rotational: Some(false),
            scheduler: Some("none".into()),
            read_ahead_kib: Some(32),
            ..DeviceFacts::default()
        });
        let target = TargetFacts {
            uri: "mongodb://db1:27017/".into(),
            version: "7.0.5".into(),
            product: "mongod".into(),
            pid: Some(PID),
            dbpath: Some("/var/lib/mongodb".into()),
            cache_bytes: Some(8 * GIB),
            ..TargetFacts::default()
        };
        document.target = Some(target.clone());
        document.phases = vec![observed_phase()];
        document.examination = Some(ExaminationRecord {
            asked_ns: u64::from(OBSERVED_S) * 1_000_000_000,
            members: vec![MemberRecord {
                name: "db1:27017".into(),
                target,
                ..MemberRecord::default()
            }],
            host: Some(HostSettings::default()),
            ..ExaminationRecord::default()
        });
        Self {
            document,
            files: Vec::new(),
            threads: Vec::new(),
            events: Vec::new(),
            samples: Vec::new(),
        }
    }

    pub(crate) fn examination(&mut self) -> &mut ExaminationRecord {
        self.document.examination.as_mut().unwrap()
    }

    /// Returns the examined server.
    pub(crate) fn examined(&mut self) -> &mut MemberRecord {
        &mut self.examination().members[0]
    }

    pub(crate) fn host(&mut self) -> &mut HostSettings {
        self.examination().host.as_mut().unwrap()
    }

    pub(crate) fn device(&mut self) -> &mut DeviceFacts {
        self.document.device.as_mut().unwrap()
    }

    /// Sets the measured ability of the disk.
    pub(crate) fn ability(&mut self, model: DeviceModel) {
        self.examination().disk = Some(DiskAbility {
            model,
            measured: true,
            source: "probed during this run".into(),
            ..DiskAbility::default()
        });
    }

    /// Adds a file whose leaves were walked.
    pub(crate) fn layout(&mut self, file: LayoutFile) {
        let layout = self.document.layout.get_or_insert_with(|| {
            let path = "/var/lib/mongodb".into();
            LayoutMeasurement {
                path,
                disk_measured: true,
                ..LayoutMeasurement::default()
            }
        });
        layout.files.push(file);
    }

    /// Adds a file to the trace and returns its number.
    pub(crate) fn file(&mut self, name: &str, role: FileRole, namespace: Option<&str>) -> u32 {
        let file_id = u32::try_from(self.files.len()).unwrap() + 1;
        self.files.push(FileRecord {
            file_id,
            path: format!("/var/lib/mongodb/{name}"),
            path_state: PathState::Known,
            device_major: 254,
            device_minor: 0,
            inode: u64::from(file_id),
            size_bytes: 10 * GIB,
            role,
            namespace: namespace.map(String::from),
            member: None,
        });
        file_id
    }

    /// Adds a thread of the server and returns its number. Names imply roles: "conn1" application,
    /// "WTCheck.tThread" checkpoint, "WTJourn.Flusher" journal, "WT-eviction-1" eviction.
    pub(crate) fn thread(&mut self, name: &str) -> u32 {
        let tid = u32::try_from(self.threads.len()).unwrap() + 100;
        self.threads.push(ThreadRecord {
            tid,
            pid: PID,
            name: name.into(),
        });
        tid
    }

    /// Adds a read that waited for the disk, which read no more than requested.
    pub(crate) fn miss(&mut self, call: Call) {
        self.miss_with_read_ahead(call, call.bytes);
    }

    /// Adds a read for which the disk read `device_bytes`.
    pub(crate) fn miss_with_read_ahead(&mut self, call: Call, device_bytes: u32) {
        let flags = IoFlags::WAITED | IoFlags::DEVICE_READ;
        let event = call.event(IoOp::Pread, flags, device_bytes);
        self.events.push(event);
    }

    /// Adds a read past the page cache.
    pub(crate) fn direct_read(&mut self, call: Call) {
        let flags = IoFlags::WAITED | IoFlags::DIRECT;
        self.events.push(call.event(IoOp::Pread, flags, call.bytes));
    }

    /// Adds a read that the page cache served.
    pub(crate) fn hit(&mut self, call: Call) {
        self.events.push(call.event(IoOp::Pread, 0, 0));
    }

    pub(crate) fn write(&mut self, call: Call) {
        self.events.push(call.event(IoOp::Pwrite, 0, 0));
    }

    /// Adds an `fdatasync`; offset and bytes do not matter.
    pub(crate) fn sync(&mut self, call: Call) {
        let event = call.event(IoOp::Fdatasync, IoFlags::WAITED, 0);
        self.events.push(IoEvent {
            offset: None,
            length: 0,
            result: 0,
            ..event
        });
    }

    /// Adds a request that reached the disk for the file, with its offset in the file.
    pub(crate) fn request(&mut self, op: IoOp, call: Call) {
        let event = call.event(op, IoFlags::SYNCHRONOUS, 0);
        self.events.push(IoEvent {
            request: Some(BlockRequest {
                disk_major: 254,
                disk_minor: 0,
                sector: call.offset / 512,
            }),
            ..event
        });
    }

    /// Sets a counter or gauge from a function of the second, one value a second from 0 to the last.
    pub(crate) fn values(&mut self, source: &str, name: &str, value: impl Fn(f64) -> f64) {
        for second in 0..=OBSERVED_S {
            self.samples.push(CounterSample {
                t_ns: START_NS + u64::from(second) * 1_000_000_000,
                source: source.into(),
                name: name.into(),
                value: value(f64::from(second)),
            });
        }
    }

    /// Returns the counters recorded so far.
    pub(crate) fn counters(&self) -> Counters {
        Counters::new(self.samples.clone())
    }

    /// Records that all of shop.orders was being read in thirty samples of the running operations.
    pub(crate) fn scanning(&mut self) {
        self.examined().operations.push(OperationSeen {
            kind: "query".into(),
            namespace: Some("shop.orders".into()),
            plan: Some("COLLSCAN".into()),
            looks: 30,
            at_once: 1,
            ..OperationSeen::default()
        });
    }

    /// Records that a transaction was open for this long while its client did nothing.
    pub(crate) fn hold_transaction_open(&mut self, seconds: u64) {
        self.examined().operations.push(OperationSeen {
            kind: OperationSeen::IDLE_TRANSACTION.into(),
            running_us: seconds * 1_000_000,
            looks: 20,
            at_once: 1,
            ..OperationSeen::default()
        });
    }

    /// Adds a counter of `serverStatus` that rises evenly.
    pub(crate) fn rising(&mut self, name: &str, per_s: f64) {
        self.values("serverStatus", name, |s| 1000.0 + s * per_s);
    }

    /// Adds a gauge of `serverStatus` that stays constant.
    pub(crate) fn steady(&mut self, name: &str, value: f64) {
        self.values("serverStatus", name, |_| value);
    }

    /// Passes what was recorded to `look`, as detectors see it.
    pub(crate) fn examine<R>(&self, look: impl FnOnce(&Evidence<'_>, &Answers) -> R) -> R {
        let counters = self.counters();
        let trace = self.trace();
        let device_use = trace.as_ref().map(|trace| self.device_use(trace));
        let evidence = Evidence {
            document: &self.document,
            trace: trace.as_ref(),
            device_use: device_use.as_ref(),
            counters: &counters,
        };
        let mut document = self.document.clone();
        if let Some(examination) = &mut document.examination {
            examination.disk_opinion = crate::disk_opinion(&evidence);
        }
        let evidence = Evidence {
            document: &document,
            ..evidence
        };
        look(&evidence, &Answers::of(&evidence))
    }

    /// Returns what one detector finds.
    pub(crate) fn findings(&self, detector: &Detector) -> Vec<Finding> {
        let found = self.examine(|evidence, answers| (detector.detect)(evidence, answers));
        assert!(
            found.iter().all(|f| detector.ids.contains(&f.id.as_str())),
            "an id that was not announced: {found:?}"
        );
        found
    }

    /// Returns what all detectors find.
    pub(crate) fn diagnosis(&self) -> Diagnosis {
        self.examine(|evidence, _| diagnose(evidence))
    }

    /// Returns the trace; without events there was none.
    fn trace(&self) -> Option<TraceAnalysis> {
        let events = self.events_by_end();
        (!events.is_empty()).then(|| {
            let analyser = TraceAnalyser::new(AnalysisOptions::default());
            let mut analyser = analyser.with_files(&self.files);
            for event in &events {
                analyser.push(event);
            }
            analyser.finish(&self.files, &self.threads)
        })
    }

    fn device_use(&self, trace: &TraceAnalysis) -> DeviceUse {
        let mut finder = DeviceUseFinder::new(trace);
        for event in &self.events_by_end() {
            finder.push(event);
        }
        finder.finish()
    }

    /// Returns the events in the order in which a trace holds them.
    fn events_by_end(&self) -> Vec<IoEvent> {
        let mut events = self.events.clone();
        events.sort_by_key(|event| event.t_ns + event.latency_ns);
        events
    }
}

impl Call {
    fn event(self, op: IoOp, flags: u16, device_read_bytes: u32) -> IoEvent {
        IoEvent {
            t_ns: START_NS + nanoseconds(self.at_s),
            pid: PID,
            tid: self.tid,
            file_id: self.file_id,
            op,
            flags: IoFlags(flags),
            offset: Some(self.offset),
            length: self.bytes,
            latency_ns: nanoseconds(self.latency_s),
            result: self.bytes.cast_signed(),
            device_read_bytes,
            request: None,
        }
    }
}

pub(crate) fn observed_phase() -> Phase {
    Phase {
        name: "observed".into(),
        activity: "its own work for 60 s".into(),
        namespace: None,
        disk: Disk::Plain,
        cache: CacheState::AsFound {
            why: "a server at work".into(),
        },
        started_ns: START_NS,
        ended_ns: START_NS + u64::from(OBSERVED_S) * 1_000_000_000,
        index_build: None,
        trace: Some(TraceFacts::default()),
        process_io: None,
    }
}

/// Returns a flash disk: 4 KiB reads take `read_s` one at a time, and up to 32 of them run in parallel.
pub(crate) fn flash(read_s: f64) -> DeviceModel {
    let bytes_per_s = 1e9;
    let depths = [1, 2, 4, 8, 16, 32, 64].map(|depth: u32| {
        let side_by_side = f64::from(depth.min(32));
        DepthPoint {
            block_bytes: 4096,
            depth,
            iops: side_by_side / read_s,
            p50_ns: nanoseconds(read_s * f64::from(depth) / side_by_side),
            p99_ns: nanoseconds(read_s * 2.0 * f64::from(depth) / side_by_side),
        }
    });
    let sync_ns = nanoseconds(read_s * 2.0);
    DeviceModel {
        disk: "xfs on vda".into(),
        direct: true,
        l0_ns: read_s * 1e9,
        ns_per_byte: 1e9 / bytes_per_s,
        depths: depths.into(),
        parallelism: 32,
        sequential_bytes_per_s: bytes_per_s,
        bytes_per_s_max: bytes_per_s,
        buffered_bytes_per_s: bytes_per_s,
        read_ahead_bytes: 32 << 10,
        request_bytes_max: 1 << 20,
        sync: vec![SyncPoint {
            block_bytes: 4096,
            writers: 1,
            per_s: 1e9 / sync_ns as f64,
            latency: LatencySummary {
                p50_ns: sync_ns,
                p99_ns: 2 * sync_ns,
                mean_ns: sync_ns as f64,
                ..LatencySummary::default()
            },
        }],
        ..DeviceModel::default()
    }
}

/// Returns the numbers below `count` in random order.
pub(crate) fn shuffled(count: u32) -> Vec<u32> {
    let mut numbers: Vec<u32> = (0..count).collect();
    let mut rng = SplitMix64::new(7);
    for i in (1..numbers.len()).rev() {
        let other = rng.below(i as u64 + 1);
        numbers.swap(i, usize::try_from(other).unwrap());
    }
    numbers
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "tests"
)]
fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

#[test]
fn what_was_put_in_comes_out() {
    let mut recording = Recording::new();
    let file_id = recording.file("a.wt", FileRole::Collection, Some("shop.orders"));
    let tid = recording.thread("conn1");
    let call = Call {
        tid,
        file_id,
        at_s: 1.0,
        offset: 1 << 20,
        bytes: 32_768,
        latency_s: 0.002,
    };
    recording.miss(call);
    recording.miss_with_read_ahead(call, 131_072);
    recording.hit(call);
    recording.write(call);
    recording.sync(call);
    recording.request(IoOp::BlockRead, call);
    recording.rising("opcounters.query", 5.0);
    recording.steady("connections.current", 3.0);
    recording.ability(flash(1e-4));
    recording.layout(LayoutFile::default());
    recording.device().free_bytes = 1;
    recording.host().numa_nodes = 2;
    recording.examined().lag_s = Some(1.0);
    recording.examine(|evidence, _| {
        let trace = evidence.trace.unwrap();
        assert_eq!((trace.reads.calls, trace.cache.misses), (3, 2));
        assert_eq!((trace.writes.calls, trace.syncs.calls), (1, 1));
        assert_eq!(trace.disks.len(), 1);
        assert_eq!(evidence.observed_s(), Some(60.0));
        let rate = |name| evidence.counters.get("serverStatus", name)?.rate_per_s();
        assert_eq!(rate("opcounters.query"), Some(5.0));
        assert_eq!(rate("connections.current"), Some(0.0));
        assert!(evidence.model().unwrap().1);
        assert_eq!(evidence.layout_files().len(), 1);
    });
    let detector = Detector {
        ids: &["made.up"],
        detect: |_, _| Vec::new(),
    };
    assert_eq!(recording.findings(&detector), []);
    assert!(recording.diagnosis().findings.len() < 100);
}
