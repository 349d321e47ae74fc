//! Builds made-up steps for tests: one second each, so that counts are rates.

use seekscope_run::units::whole;
use seekscope_run::{
    AccessKind, DiskMeasurement, DiskStep, EngineKind, JobFacts, JobOutcome, LatencySummary,
    OperationOutcome, StepGroup,
};

/// A measurement to which steps are added.
#[derive(Default)]
pub(super) struct MadeUp {
    pub(super) measurement: DiskMeasurement,
}

impl MadeUp {
    /// Adds a step of one job with this many operations in its second, half of which took at most `p50_ns`,
    /// 99 % at most three times that, the longest four times. What it read came from the device.
    pub(super) fn step(
        &mut self,
        group: StepGroup,
        name: &str,
        job: JobFacts,
        operations: f64,
        p50_ns: u64,
    ) {
        let count = whole(operations);
        let outcome = OperationOutcome {
            operations: count,
            bytes: count * job.block_bytes,
            latency: LatencySummary {
                count,
                min_ns: p50_ns / 2,
                mean_ns: p50_ns as f64,
                p50_ns,
                p90_ns: p50_ns * 2,
                p99_ns: p50_ns * 3,
                p999_ns: p50_ns * 3,
                max_ns: p50_ns * 4,
            },
            service: None,
        };
        let writes = job.access == AccessKind::Write;
        let none = OperationOutcome::default();
        self.measurement.steps.push(DiskStep {
            group,
            name: name.into(),
            started_ns: 0,
            ended_ns: 1_000_000_000,
            jobs: vec![JobOutcome {
                job,
                elapsed_ns: 1_000_000_000,
                reads: if writes { none } else { outcome },
                writes: if writes { outcome } else { none },
                syncs: none,
                cpu_ns: count * 1000,
                behind: 0,
                engine_notes: Vec::new(),
            }],
            device_read_bytes: Some(if writes { 0 } else { outcome.bytes }),
            io_pressure: None,
            load_1m: 0.0,
        });
    }
}

/// Returns direct random reads.
pub(super) fn random(block_bytes: u64, depth: u32) -> JobFacts {
    JobFacts {
        block_bytes,
        depth,
        ..JobFacts::new(AccessKind::RandRead, EngineKind::Uring)
    }
}

/// Returns buffered reads in order.
pub(super) fn sequential(block_bytes: u64) -> JobFacts {
    JobFacts {
        access: AccessKind::Read,
        engine: EngineKind::Sync,
        direct: false,
        ..random(block_bytes, 1)
    }
}

/// Returns writes with fdatasync.
pub(super) fn commit(block_bytes: u64, writers: u32) -> JobFacts {
    JobFacts {
        access: AccessKind::Write,
        engine: EngineKind::Sync,
        threads: writers,
        sync_each_write: true,
        ..random(block_bytes, 1)
    }
}

/// Returns the generator alone.
pub(super) fn null() -> JobFacts {
    JobFacts {
        engine: EngineKind::Null,
        ..random(4096, 128)
    }
}
