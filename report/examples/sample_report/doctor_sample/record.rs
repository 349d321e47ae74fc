//! What the server and its fellows said.

use seekscope_run::examination::{
    CollectionFacts, Deployment, DiskAbility, EarlierRun, ExaminationCost, ExaminationRecord,
    FindingChange, IndexFacts, MemberRecord, MemberState, WorkCompared,
};
use seekscope_run::{Gain, OperationSeen};

use super::{MIB, Naming, SECOND_NS};
use crate::trace_sample::DURATION_NS;

pub(super) fn record(name: &Naming<'_>) -> ExaminationRecord {
    let collection = |nth: usize, namespace: &str, documents: u64| CollectionFacts {
        namespace: name(namespace, nth),
        documents,
        data_bytes: documents * 900,
        storage_bytes: documents * 380,
        in_cache_bytes: Some(documents * 190),
        read_into_cache_bytes: Some(documents * 60),
        indexes: vec![IndexFacts {
            name: name("_id_", 1),
            bytes: documents * 20,
            ..IndexFacts::default()
        }],
        ..CollectionFacts::default()
    };
    ExaminationRecord {
        asked_ns: DURATION_NS,
        deployment: Deployment::ReplicaSet,
        set: None,
        members: vec![MemberRecord {
            name: name("db2.example:27017", 2),
            state: MemberState::Secondary,
            compatibility_version: Some(name("7.0", 3)),
            collections: vec![
                collection(1, "shop.orders", 2_900_000),
                collection(2, "shop.items", 2_500_000),
            ],
            collections_left_out: 214,
            operations: vec![OperationSeen {
                kind: name("command find", 0),
                namespace: Some(name("shop.orders", 1)),
                plan: Some(name("COLLSCAN", 2)),
                running_us: 31_000_000,
                looks: 22,
                at_once: 2,
                ..OperationSeen::default()
            }],
            warnings: vec![name("vm.max_map_count is too low", 1)],
            ..MemberRecord::default()
        }],
        disk: Some(DiskAbility {
            measured: true,
            source: "seekscope-runs/disk-20260101 of 3 days ago".into(),
            ..DiskAbility::default()
        }),
        cost: Some(ExaminationCost {
            client_cpu_ns: 412_000_000,
            kernel_cpu_ns: Some(96_000_000),
            client_peak_rss_bytes: 61 * MIB,
            commands: 148,
            ended_early: None,
        }),
        since: Some(EarlierRun {
            run: name("doctor-20251201-070000", 0),
            started_realtime_ns: 1_699_000_000 * SECOND_NS,
            other_server: None,
            changes: vec![FindingChange {
                id: "read-ahead.too-large".into(),
                subject: name("nvme1n1", 1),
                operations: Vec::new(),
                change: "better".into(),
                before: Some(240.0),
                after: Some(84.0),
                predicted: Some(Gain {
                    value: 160.0,
                    low: 120.0,
                    high: 210.0,
                    unit: "s of waiting per hour".into(),
                }),
                work: Some(WorkCompared {
                    unit: "calls".into(),
                    before_per_s: 610.0,
                    after_per_s: 640.0,
                }),
                verdict: "The prediction held: 156 s per hour were saved.".into(),
            }],
        }),
        ..ExaminationRecord::default()
    }
}
