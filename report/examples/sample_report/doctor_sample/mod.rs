//! A made-up examination: a shuffled collection, a cache that is too small, long checkpoints, a member
//! that differs. Around the made-up trace and layout of the other samples.

mod answers;
mod counters;
mod findings;
mod record;

use seekscope_doctor::Diagnosis;
use seekscope_doctor::evidence::Counters;
use seekscope_report::doctor::{DoctorReportInput, first_screen, html};
use seekscope_run::{
    DeviceFacts, HostFacts, IoEvent, LeafRecord, Limitation, RunError, TargetFacts,
};

use crate::hostile::HOSTILE_NAMES;
use crate::layout_sample::{self, LayoutSample};
use crate::trace_sample::{self, TraceSample};

const SECOND_NS: u64 = 1_000_000_000;
const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;
/// Leaves of each made-up collection.
const LEAVES: u64 = 30_000;
/// When checkpoints began and how long they took, s.
const CHECKPOINTS: [(u64, u64); 3] = [(4, 5), (24, 7), (45, 6)];

/// The text itself, or a hostile one with that number instead.
type Naming<'a> = dyn Fn(&str, usize) -> String + 'a;

/// Everything that an examination leaves behind.
pub(crate) struct DoctorSample {
    pub(crate) trace: TraceSample,
    layout: LayoutSample,
    counters: Counters,
    diagnosis: Diagnosis,
}

impl DoctorSample {
    fn with_input<T>(&self, render: impl FnOnce(&DoctorReportInput<'_>) -> T) -> T {
        let analysis = self.trace.analysis();
        let events = |each: &mut dyn FnMut(&IoEvent)| {
            self.trace.events.iter().for_each(each);
            Ok(())
        };
        let leaves = |each: &mut dyn FnMut(&LeafRecord)| {
            self.layout.leaves.iter().for_each(each);
            Ok(())
        };
        render(&DoctorReportInput {
            document: &self.trace.document,
            diagnosis: &self.diagnosis,
            trace: Some(&analysis),
            counters: &self.counters,
            events: &events,
            leaves: &leaves,
        })
    }

    pub(crate) fn html(&self) -> Result<String, RunError> {
        self.with_input(html)
    }

    pub(crate) fn terminal(&self, width: u16) -> String {
        self.with_input(|input| first_screen(input, width))
    }
}

/// An examination with a trace of about `calls` calls.
pub(crate) fn examination(calls: u64, hostile: bool) -> DoctorSample {
    let name = |plain: &str, nth: usize| match hostile {
        true => HOSTILE_NAMES[nth % HOSTILE_NAMES.len()].to_string(),
        false => plain.to_string(),
    };
    let name: &Naming<'_> = &name;
    let mut trace = trace_sample::trace(calls, hostile);
    let layout = layout_sample::layout(LEAVES, false, hostile);
    let document = &mut trace.document;
    document.command = "doctor".into();
    if !hostile {
        let arguments = ["doctor", "mongodb://db2.example:27017", "--for", "60s"];
        document.arguments = arguments.map(String::from).to_vec();
    }
    document.layout.clone_from(&layout.document.layout);
    document.examination = Some(record::record(name));
    document.target = Some(TargetFacts {
        uri: "mongodb://db2.example:27017".into(),
        version: name("7.0.14", 1),
        product: name("mongod", 0),
        pid: Some(4100),
        dbpath: Some("/var/lib/db".into()),
        cache_bytes: Some(4 * GIB),
        ..TargetFacts::default()
    });
    document.device = Some(device(name));
    document.host = Some(HostFacts {
        kernel: "6.12.0".into(),
        cpu_model: "made-up CPU".into(),
        cpus: 8,
        memory_bytes: 16 * GIB,
        load_1m: 3.2,
        transparent_huge_pages: Some("always".into()),
        idle_is_paged_out: false,
    });
    document.limitations = vec![Limitation {
        what: name("io_uring", 2),
        why: name("the server does not use it", 0),
        remedy: String::new(),
    }];
    DoctorSample {
        trace,
        layout,
        counters: Counters::new(counters::counters()),
        diagnosis: Diagnosis {
            findings: findings::findings(name),
            answers: answers::answers(name),
        },
    }
}

fn device(name: &Naming<'_>) -> DeviceFacts {
    DeviceFacts {
        path: "/var/lib/db".into(),
        disk: Some(name("nvme1n1", 1)),
        filesystem: "xfs".into(),
        mount_options: "rw,noatime".into(),
        size_bytes: 500 * GIB,
        free_bytes: 120 * GIB,
        scheduler: Some("mq-deadline".into()),
        read_ahead_kib: Some(128),
        ..DeviceFacts::default()
    }
}
