//! Measured steps for the tests of this module.

use seekscope_run::{
    AccessKind, DeviceFacts, DiskStep, EngineKind, JobFacts, JobOutcome, OperationOutcome,
    StepGroup,
};

/// ext4 on vda with the kernel's default read-ahead.
pub(crate) fn disk() -> DeviceFacts {
    DeviceFacts {
        disk: Some("vda".into()),
        filesystem: "ext4".into(),
        read_ahead_kib: Some(128),
        ..DeviceFacts::default()
    }
}

/// A step of a million operations, each of which takes `latency_ns` with `depth` in flight.
pub(crate) fn step(
    group: StepGroup,
    access: AccessKind,
    block_bytes: u64,
    depth: u32,
    latency_ns: f64,
) -> DiskStep {
    let outcome = OperationOutcome {
        operations: 1_000_000,
        bytes: 1_000_000 * block_bytes,
        ..OperationOutcome::default()
    };
    let (reads, writes) = if access.writes() {
        (OperationOutcome::default(), outcome)
    } else {
        (outcome, OperationOutcome::default())
    };
    let job = JobFacts {
        block_bytes,
        direct: group != StepGroup::Order,
        depth,
        sync_each_write: access.writes(),
        ..JobFacts::new(access, EngineKind::Sync)
    };
    #[expect(clippy::cast_possible_truncation, reason = "small enough")]
    let elapsed_ns = (latency_ns * 1e6 / f64::from(depth)).round() as u64;
    DiskStep {
        group,
        name: format!("{block_bytes} at {depth}"),
        started_ns: 0,
        ended_ns: elapsed_ns,
        jobs: vec![JobOutcome {
            job,
            elapsed_ns,
            reads,
            writes,
            syncs: OperationOutcome::default(),
            cpu_ns: 0,
            behind: 0,
            engine_notes: Vec::new(),
        }],
        device_read_bytes: None,
        io_pressure: None,
        load_1m: 0.0,
    }
}
