//! A made-up examination of index builds: over a fresh and an aged collection, on a plain and on an emulated
//! disk. The same for the same arguments, always.

#![expect(
    clippy::cast_possible_truncation,
    reason = "made-up numbers, all small"
)]

use seekscope_doctor::evidence::Counters;
use seekscope_doctor::{Diagnosis, Evidence, diagnose};
use seekscope_pattern::{AnalysisOptions, TraceAnalyser};
use seekscope_report::doctor::{DoctorReportInput, html};
use seekscope_run::{
    CacheState, ClockOffset, DeviceFacts, Disk, FileRecord, FileRole, Finding, Gain, HostFacts,
    IndexBuild, IoEvent, IoFlags, IoOp, Limitation, Outcome, PathState, Phase, RunDocument,
    RunError, TargetFacts, TraceFacts, TracerCost,
};
use seekscope_stats::SplitMix64;

use crate::hostile::HOSTILE_NAMES;

const START_NS: u64 = 5_000_000_000_000;
const PAUSE_NS: u64 = 1_000_000_000;
const PAGE_BYTES: u64 = 28 * 1024;

/// What a report is made from.
pub(crate) struct BuildsSample {
    pub(crate) document: RunDocument,
    files: Vec<FileRecord>,
    events: Vec<IoEvent>,
}

impl BuildsSample {
    pub(crate) fn html(&self) -> Result<String, RunError> {
        let mut analyser = TraceAnalyser::new(AnalysisOptions::default());
        self.events.iter().for_each(|event| analyser.push(event));
        let trace = analyser.finish(&self.files, &[]);
        let counters = Counters::default();
        let diagnosis = diagnose(&Evidence {
            document: &self.document,
            trace: Some(&trace),
            device_use: None,
            counters: &counters,
        });
        let events = |each: &mut dyn FnMut(&IoEvent)| {
            self.events.iter().for_each(each);
            Ok(())
        };
        html(&DoctorReportInput {
            document: &self.document,
            diagnosis: &Diagnosis {
                findings: self.document.findings.clone(),
                ..diagnosis
            },
            trace: Some(&trace),
            counters: &counters,
            events: &events,
            leaves: &|_| Ok(()),
        })
    }
}

struct PhasePlan {
    name: &'static str,
    aged: bool,
    emulated: bool,
    duration_s: f64,
    share: f64,
}

const PLANS: [PhasePlan; 4] = [
    PhasePlan {
        name: "fresh, plain disk",
        aged: false,
        emulated: false,
        duration_s: 6.2,
        share: 0.2,
    },
    PhasePlan {
        name: "aged, plain disk",
        aged: true,
        emulated: false,
        duration_s: 19.8,
        share: 0.3,
    },
    PhasePlan {
        name: "fresh, emulated hdd",
        aged: false,
        emulated: true,
        duration_s: 14.0,
        share: 0.2,
    },
    PhasePlan {
        name: "aged, emulated hdd",
        aged: true,
        emulated: true,
        duration_s: 71.0,
        share: 0.3,
    },
];

/// A run of about `events` calls.
pub(crate) fn builds(events: u64, hostile: bool) -> BuildsSample {
    let mut rng = SplitMix64::new(7);
    let mut document = document();
    document.phases.push(observed());
    let mut all = Vec::new();
    let mut started_ns = START_NS;
    for plan in &PLANS {
        let count = (events as f64 * plan.share).round() as u64;
        let ended_ns = started_ns + (plan.duration_s * 1e9) as u64;
        let events = phase_events(plan, count, started_ns, &mut rng);
        document
            .phases
            .push(build(plan, started_ns, ended_ns, events.len() as u64));
        all.extend(events);
        started_ns = ended_ns + PAUSE_NS;
    }
    document.ended_ns = Some(started_ns);
    document.phases[0].ended_ns = started_ns;
    if let Some(trace) = &mut document.phases[0].trace {
        (trace.seen, trace.written) = (all.len() as u64, all.len() as u64);
    }
    let mut files = files();
    if hostile {
        make_hostile(&mut document, &mut files);
    }
    BuildsSample {
        document,
        files,
        events: all,
    }
}

fn phase_events(
    plan: &PhasePlan,
    count: u64,
    started_ns: u64,
    rng: &mut SplitMix64,
) -> Vec<IoEvent> {
    let reads = count - count / 10;
    let pages = reads.max(1);
    let step_ns = plan.duration_s * 1e9 / count.max(1) as f64;
    let (collection, index) = if plan.aged { (3, 4) } else { (1, 2) };
    let slow = if plan.emulated { 8.0 } else { 1.0 };
    let mut done = 0;
    (0..count)
        .map(|i| {
            let t_ns = started_ns + (i as f64 * step_ns + rng.unit_f64() * step_ns * 0.5) as u64;
            // Every tenth call writes the index, or now and then the journal.
            if i % 10 == 9 {
                let file_id = if i % 200 == 199 { 5 } else { index };
                let latency_ns = 9_000 + rng.below(30_000);
                return event(t_ns, file_id, IoOp::Pwrite, i / 10 * PAGE_BYTES, latency_ns);
            }
            let page = if plan.aged { rng.below(pages) } else { done };
            done += 1;
            let miss = plan.aged || rng.below(12) == 0;
            let latency_ns = if miss {
                (90_000.0 * slow * (1.0 + 4.0 * rng.unit_f64().powi(12)) * (0.7 + rng.unit_f64()))
                    as u64
            } else {
                2_500 + rng.below(5_000)
            };
            let mut read = event(
                t_ns,
                collection,
                IoOp::Pread,
                4096 + page * PAGE_BYTES,
                latency_ns,
            );
            if miss {
                read.flags = IoFlags(IoFlags::WAITED | IoFlags::DEVICE_READ);
                read.device_read_bytes = read.length;
            }
            read
        })
        .collect()
}

fn event(t_ns: u64, file_id: u32, op: IoOp, offset: u64, latency_ns: u64) -> IoEvent {
    IoEvent {
        t_ns,
        pid: 4100,
        tid: 4107,
        file_id,
        op,
        flags: IoFlags::default(),
        offset: Some(offset),
        length: PAGE_BYTES as u32,
        latency_ns,
        result: PAGE_BYTES as i32,
        device_read_bytes: 0,
        request: None,
    }
}

fn observed() -> Phase {
    Phase {
        name: "observed".into(),
        activity: "index builds {\"i\":1}".into(),
        namespace: None,
        disk: Disk::Plain,
        cache: CacheState::AsFound {
            why: "a server at work".into(),
        },
        started_ns: START_NS,
        ended_ns: 0,
        index_build: None,
        trace: Some(TraceFacts {
            backend: "tp_btf".into(),
            backend_reason: "the kernel has BTF".into(),
            cost: TracerCost {
                ns_per_event: 690.0,
                share_of_server_cpu: 0.0042,
                ..TracerCost::default()
            },
            ..TraceFacts::default()
        }),
        process_io: None,
    }
}

fn build(plan: &PhasePlan, started_ns: u64, ended_ns: u64, events: u64) -> Phase {
    let disk = if plan.emulated {
        Disk::Emulated {
            name: "hdd".into(),
            read_iops: 150,
            read_bytes_per_s: 150_000_000,
        }
    } else {
        Disk::Plain
    };
    let namespace = if plan.aged {
        "aged.orders"
    } else {
        "fresh.orders"
    };
    Phase {
        name: plan.name.into(),
        activity: "index build {\"i\":1}".into(),
        namespace: Some(namespace.into()),
        disk,
        cache: CacheState::Cold {
            resident_bytes: 0,
            total_bytes: events * PAGE_BYTES,
        },
        started_ns,
        ended_ns,
        index_build: Some(IndexBuild {
            keys: "{\"i\":1}".into(),
            name: "i_1".into(),
            documents: 18_000,
            elapsed_ns: ended_ns - started_ns,
            repeats_ns: vec![
                ended_ns - started_ns + 140_000_000,
                ended_ns - started_ns - 90_000_000,
            ],
        }),
        trace: None,
        process_io: None,
    }
}

fn document() -> RunDocument {
    let arguments = ["doctor", "--seed", "7", "--keys", "{\"i\":1}"]
        .map(String::from)
        .to_vec();
    let mut document = RunDocument::begin("doctor", arguments);
    document.outcome = Outcome::Ok;
    document.outcome_reason = None;
    document.started = ClockOffset {
        monotonic_ns: START_NS,
        realtime_ns: 1_700_000_000_000_000_000,
    };
    document.seed = Some(7);
    document.host = Some(HostFacts {
        kernel: "6.1.0".into(),
        cpu_model: "Example CPU".into(),
        cpus: 4,
        memory_bytes: 16 << 30,
        load_1m: 0.4,
        transparent_huge_pages: Some("madvise".into()),
        idle_is_paged_out: false,
    });
    document.device = Some(DeviceFacts {
        path: "/var/lib/db".into(),
        device: "254:1".into(),
        disk: Some("vda".into()),
        filesystem: "ext4".into(),
        mount_options: "rw,relatime".into(),
        size_bytes: 100 << 30,
        free_bytes: 60 << 30,
        rotational: Some(false),
        read_ahead_kib: Some(128),
        ..DeviceFacts::default()
    });
    document.target = Some(TargetFacts {
        uri: "mongodb://127.0.0.1:27017/".into(),
        local: true,
        version: "4.2.2".into(),
        product: "mongod".into(),
        pid: Some(4100),
        dbpath: Some("/var/lib/db".into()),
        cache_bytes: Some(256 << 20),
        ..TargetFacts::default()
    });
    document.limitations = vec![Limitation {
        what: "the scheduler of the disk is not known".into(),
        why: "/sys/dev/block/254:0/queue is not readable".into(),
        remedy: "run on the host, not in a container".into(),
    }];
    document.findings = findings();
    document
}

fn findings() -> Vec<Finding> {
    vec![Finding {
        id: "layout.key-order-lost".into(),
        title: "The collection is stored out of order, so a scan jumps through the file".into(),
        evidence: vec![
            "Reading the aged collection took 5.07 times as long as the fresh one on the emulated hdd.".into(),
            "0.0 % of its reads continue where the last one ended; when fresh it was 100.0 %.".into(),
        ],
        gain: Some(Gain { value: 57.0, low: 51.2, high: 60.9, unit: "s per index build".into() }),
        confidence: "high".into(),
        risk: "rewriting needs free space of the collection's size".into(),
        command: "seekscope reorder shop.orders --apply".into(),
        ..Finding::default()
    }]
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
    vec![
        file(
            1,
            "collection-2--781.wt",
            FileRole::Collection,
            Some("fresh.orders"),
        ),
        file(
            2,
            "index-5--781.wt",
            FileRole::Index,
            Some("fresh.orders/i_1"),
        ),
        file(
            3,
            "collection-7--781.wt",
            FileRole::Collection,
            Some("aged.orders"),
        ),
        file(
            4,
            "index-9--781.wt",
            FileRole::Index,
            Some("aged.orders/i_1"),
        ),
        file(
            5,
            "journal/WiredTigerLog.0000000003",
            FileRole::Journal,
            None,
        ),
    ]
}

/// Every text that a server or a file system could have chosen becomes an attack.
fn make_hostile(document: &mut RunDocument, files: &mut [FileRecord]) {
    let name = |i: usize| HOSTILE_NAMES[i % HOSTILE_NAMES.len()].to_string();
    for (i, file) in files.iter_mut().enumerate() {
        file.path = format!("/var/lib/db/{}", name(i));
        file.namespace = Some(name(i + 1));
    }
    files[0].namespace = Some("x".repeat(1000));
    for (i, phase) in document.phases.iter_mut().enumerate() {
        phase.name = format!("{i} {}", name(i));
        phase.activity = name(i);
    }
    // The file that a build read is known by its name.
    for (phase, file) in document.phases[1..].iter_mut().zip([0, 2, 0, 2]) {
        phase.namespace.clone_from(&files[file].namespace);
    }
    document.arguments = (0..4).map(name).collect();
    for finding in &mut document.findings {
        finding.title = name(1);
        finding.evidence = (0..4).map(name).collect();
        finding.risk = name(2);
        finding.command = name(1);
    }
    document.limitations = vec![Limitation {
        what: name(0),
        why: name(1),
        remedy: name(3),
    }];
    if let Some(target) = &mut document.target {
        target.version = name(1);
        target.uri = name(3);
        target.dbpath = Some(name(0));
    }
}
