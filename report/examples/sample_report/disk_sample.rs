//! A made-up disk run in the shape of a measured one. The same for the same arguments, always.

#![expect(
    clippy::cast_possible_truncation,
    reason = "made-up numbers, all small"
)]

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use seekscope_report::disk::{DiskReportInput, OrderPrediction, SecondPoint, histogram_key};
use seekscope_run::{
    AccessKind, ClockOffset, DeviceFacts, DeviceModel, DirectFacts, DiskStep, Distortion,
    EngineKind, HostFacts, IoLimit, JobFacts, JobOutcome, LatencySummary, OperationOutcome,
    Outcome, ReadAdvice, RunDocument, SizePoint, StepGroup, latency_histogram,
};
use seekscope_stats::SplitMix64;

use crate::hostile::HOSTILE_NAMES;

const START_NS: u64 = 7_000_000_000_000;
const SECOND_NS: u64 = 1_000_000_000;
/// The most latencies drawn for a step, each standing for several operations: more would take time.
const DRAWN_MAX: u64 = 4_000;

/// What the report of a disk run is made from.
pub(crate) struct DiskSample {
    pub(crate) document: RunDocument,
    pub(crate) histograms: BTreeMap<String, Histogram<u64>>,
    pub(crate) seconds: Vec<SecondPoint>,
    pub(crate) predictions: Vec<OrderPrediction>,
}

impl DiskSample {
    pub(crate) fn input(&self) -> DiskReportInput<'_> {
        DiskReportInput {
            document: &self.document,
            histograms: &self.histograms,
            seconds: &self.seconds,
            predictions: &self.predictions,
        }
    }
}

/// One operation of a job as it is to come out: how many per second, and half take less than.
#[derive(Clone, Copy)]
struct Speed {
    per_s: f64,
    p50_ns: f64,
}

const fn speed(per_s: f64, p50_us: f64) -> Speed {
    Speed {
        per_s,
        p50_ns: p50_us * 1e3,
    }
}

/// Makes steps one after another.
struct Maker {
    rng: SplitMix64,
    now_ns: u64,
    sample: DiskSample,
}

/// Everything that the full command measures.
pub(crate) fn disk_run(hostile: bool) -> DiskSample {
    let mut maker = Maker::new();
    maker.ramps();
    maker.sequential();
    maker.orders();
    maker.read_ahead();
    maker.journal();
    maker.mixed_and_mmap();
    maker.generator();
    let mut sample = maker.finish("quick");
    if hostile {
        make_hostile(&mut sample);
    }
    sample
}

/// One job for `seconds`, whose rate falls to a fifth after a third of the time.
pub(crate) fn job_run(seconds: u64) -> DiskSample {
    let mut maker = Maker::new();
    let facts = JobFacts {
        depth: 32,
        ..random_read(4096)
    };
    maker.step(
        StepGroup::Job,
        "job",
        seconds,
        facts,
        speed(3000.0, 9_000.0),
    );
    let mut operations = 0;
    for (second, point) in (0..).zip(&mut maker.sample.seconds) {
        if second > seconds / 3 {
            point.count /= 5;
        }
        operations += point.count;
    }
    if let Some(job) = maker
        .steps()
        .last_mut()
        .and_then(|step| step.jobs.first_mut())
    {
        job.reads.operations = operations;
        job.reads.bytes = operations * job.job.block_bytes;
    }
    let mut sample = maker.finish("job");
    if let Some(step) = sample
        .document
        .disk
        .get_or_insert_default()
        .steps
        .last_mut()
    {
        step.device_read_bytes = step.main().map(|job| job.reads.bytes);
    }
    sample.document.disk.get_or_insert_default().model = None;
    sample
}

fn random_read(block_bytes: u64) -> JobFacts {
    JobFacts {
        block_bytes,
        ..JobFacts::new(AccessKind::RandRead, EngineKind::Uring)
    }
}

fn buffered(access: AccessKind) -> JobFacts {
    JobFacts {
        access,
        engine: EngineKind::Sync,
        direct: false,
        ..random_read(32 << 10)
    }
}

fn commit(block_bytes: u64, writers: u32) -> JobFacts {
    JobFacts {
        access: AccessKind::Write,
        engine: EngineKind::Sync,
        threads: writers,
        sync_each_write: true,
        ..random_read(block_bytes)
    }
}

impl Maker {
    fn new() -> Self {
        let document = RunDocument::begin("disk", vec!["disk".into(), "/var/lib/db".into()]);
        Self {
            rng: SplitMix64::new(11),
            now_ns: START_NS + 2 * SECOND_NS,
            sample: DiskSample {
                document,
                histograms: BTreeMap::new(),
                seconds: Vec::new(),
                predictions: Vec::new(),
            },
        }
    }

    fn ramps(&mut self) {
        // Best rate, depth at which half of it is reached, time of one read.
        for (kib, best, half, alone_us) in [
            (4, 66_000.0, 5.0, 45.0),
            (16, 41_000.0, 5.0, 60.0),
            (32, 24_000.0, 4.0, 86.0),
        ] {
            for power in 0..8u32 {
                let depth = 1 << power;
                let per_s = best * f64::from(depth) / (f64::from(depth) + half);
                let p50_us = f64::max(alone_us, f64::from(depth) * 0.7e6 / per_s);
                let facts = JobFacts {
                    depth,
                    ..random_read(kib << 10)
                };
                let name = format!("randread {kib}k depth {depth}");
                self.step(StepGroup::Ramp, &name, 2, facts, speed(per_s, p50_us));
            }
        }
    }

    fn sequential(&mut self) {
        for (depth, mb) in [(1, 899.0), (8, 977.0)] {
            let facts = JobFacts {
                access: AccessKind::Read,
                depth,
                ..random_read(1 << 20)
            };
            let per_s = mb * 1e6 / f64::from(1 << 20);
            let name = format!("read 1m depth {depth}");
            let speed = speed(per_s, f64::from(depth) * 0.8e6 / per_s);
            self.step(StepGroup::SequentialDirect, &name, 3, facts, speed);
        }
    }

    fn orders(&mut self) {
        let rows = [
            ("order sequential", None, 3_968.0, 4_577.0),
            ("order runs of 64", Some(64), 2_937.0, 3_107.0),
            ("order runs of 8", Some(8), 886.0, 960.0),
            ("order shuffled", Some(1), 151.0, 152.0),
        ];
        for (name, run_blocks, measured, predicted) in rows {
            let access = match run_blocks {
                None => AccessKind::Read,
                Some(_) => AccessKind::RandRead,
            };
            let facts = JobFacts {
                run_blocks,
                ..buffered(access)
            };
            self.step(
                StepGroup::Order,
                name,
                3,
                facts,
                speed(measured, 0.8e6 / measured),
            );
            self.sample.predictions.push(OrderPrediction {
                name: name.into(),
                measured_per_s: measured,
                predicted_per_s: predicted,
            });
        }
    }

    fn read_ahead(&mut self) {
        for (kib, in_order, random) in [
            (8, 610.0, 150.0),
            (128, 4_100.0, 148.0),
            (1024, 9_300.0, 131.0),
            (4096, 9_900.0, 61.0),
        ] {
            for (access, per_s) in [(AccessKind::Read, in_order), (AccessKind::RandRead, random)] {
                let facts = JobFacts {
                    window_bytes: Some(kib << 10),
                    ..buffered(access)
                };
                let name = format!("read-ahead {kib}k {}", access.name());
                self.step(
                    StepGroup::ReadAhead,
                    &name,
                    2,
                    facts,
                    speed(per_s, 0.8e6 / per_s),
                );
            }
        }
    }

    fn journal(&mut self) {
        for (kib, factor) in [(4, 1.0), (16, 1.3)] {
            for (writers, per_s, p50_us) in [(1, 415.0, 840.0), (8, 28_213.0, 135.0)] {
                for file in ["overwrite", "fresh"] {
                    let name = format!("journal {kib}k writers {writers} {file}");
                    let speed = speed(per_s / factor, p50_us * factor);
                    let facts = JobFacts {
                        fresh_blocks: file == "fresh",
                        ..commit(kib << 10, writers)
                    };
                    self.step(StepGroup::Journal, &name, 3, facts, speed);
                }
            }
        }
        let (facts, slow) = (commit(4 << 10, 1), speed(61.0, 9_700.0));
        self.step(
            StepGroup::Checkpoint,
            "journal 4k beside burst",
            5,
            facts,
            slow,
        );
        let burst = JobFacts {
            access: AccessKind::Write,
            sync_every_bytes: Some(1 << 30),
            ..random_read(1 << 20)
        };
        let outcome = self.outcome(
            "journal 4k beside burst",
            "burst",
            5,
            burst,
            speed(310.0, 3e3),
        );
        if let Some(step) = self.steps().last_mut() {
            step.jobs.push(outcome);
        }
    }

    fn mixed_and_mmap(&mut self) {
        let facts = JobFacts {
            access: AccessKind::RandRw,
            read_share: 0.7,
            depth: 64,
            ..random_read(4096)
        };
        self.step(
            StepGroup::Mixed,
            "mixed 70/30",
            4,
            facts,
            speed(21_000.0, 2_100.0),
        );
        let writes = self.operation("mixed 70/30", "write", 4, 4096, speed(9_000.0, 2_900.0));
        if let Some(job) = self
            .steps()
            .last_mut()
            .and_then(|step| step.jobs.first_mut())
        {
            job.writes = writes;
        }
        for (advice, per_s, fetched) in [
            (ReadAdvice::Random, 8_600.0, 1),
            (ReadAdvice::Normal, 32.0, 1600),
        ] {
            let facts = JobFacts {
                engine: EngineKind::Mmap,
                direct: false,
                advice,
                ..random_read(4096)
            };
            let name = format!("mmap {advice:?}");
            self.step(
                StepGroup::Mmap,
                &name,
                4,
                facts,
                speed(per_s, 0.8e6 / per_s),
            );
            if let Some(step) = self.steps().last_mut() {
                step.device_read_bytes = step.device_read_bytes.map(|bytes| bytes * fetched);
            }
        }
    }

    fn generator(&mut self) {
        let facts = JobFacts {
            engine: EngineKind::Null,
            depth: 128,
            ..random_read(4096)
        };
        self.step(
            StepGroup::Generator,
            "generator",
            1,
            facts,
            speed(6_100_000.0, 0.12),
        );
    }

    fn steps(&mut self) -> &mut Vec<DiskStep> {
        &mut self.sample.document.disk.get_or_insert_default().steps
    }

    fn step(&mut self, group: StepGroup, name: &str, seconds: u64, facts: JobFacts, speed: Speed) {
        let operation = if facts.access == AccessKind::Write {
            "write"
        } else {
            "read"
        };
        let job = self.outcome(name, operation, seconds, facts, speed);
        let started_ns = self.now_ns;
        self.now_ns += (seconds + 1) * SECOND_NS;
        let step = DiskStep {
            group,
            name: name.into(),
            started_ns,
            ended_ns: started_ns + seconds * SECOND_NS,
            device_read_bytes: Some(job.reads.bytes),
            jobs: vec![job],
            io_pressure: Some(0.3),
            load_1m: 1.4,
        };
        self.steps().push(step);
    }

    fn outcome(
        &mut self,
        name: &str,
        operation: &str,
        seconds: u64,
        facts: JobFacts,
        speed: Speed,
    ) -> JobOutcome {
        let outcome = self.operation(name, operation, seconds, facts.block_bytes, speed);
        let writes = facts.access == AccessKind::Write;
        let none = OperationOutcome::default();
        let in_flight = f64::from(facts.depth * facts.threads);
        let cpu_ns = match facts.engine {
            EngineKind::Null => 160.0,
            _ => 3_000.0 + 18_000.0 / in_flight,
        };
        JobOutcome {
            reads: if writes { none } else { outcome },
            writes: if writes { outcome } else { none },
            syncs: none,
            job: facts,
            elapsed_ns: seconds * SECOND_NS,
            cpu_ns: outcome.operations * cpu_ns as u64,
            behind: 0,
            engine_notes: Vec::new(),
        }
    }

    /// Draws latencies, and tells them to the histogram and to the seconds.
    fn operation(
        &mut self,
        step: &str,
        operation: &str,
        seconds: u64,
        block_bytes: u64,
        speed: Speed,
    ) -> OperationOutcome {
        let operations = (speed.per_s * seconds as f64) as u64;
        let mut histogram = latency_histogram();
        let drawn = operations.clamp(1, DRAWN_MAX);
        for _ in 0..drawn {
            // A narrow body and a long tail.
            let tail = self.rng.unit_f64().powi(40) * 30.0;
            let ns = speed.p50_ns * (0.85 + 0.3 * self.rng.unit_f64() + tail);
            histogram.saturating_record_n((ns as u64).max(1), operations / drawn);
        }
        let latency = LatencySummary::of(&histogram);
        for second in 0..seconds {
            let jitter = 0.9 + 0.2 * self.rng.unit_f64();
            self.sample.seconds.push(SecondPoint {
                step: step.into(),
                operation: operation.into(),
                t_ns: self.now_ns + second * SECOND_NS,
                duration_ns: SECOND_NS,
                count: (speed.per_s * jitter) as u64,
                p50_ns: latency.p50_ns,
                p99_ns: (latency.p99_ns as f64 * jitter) as u64,
            });
        }
        self.sample
            .histograms
            .insert(histogram_key(step, operation), histogram);
        OperationOutcome {
            operations,
            bytes: operations * block_bytes,
            latency,
            service: None,
        }
    }

    fn finish(mut self, profile: &str) -> DiskSample {
        self.sample.document.ended_ns = Some(self.now_ns);
        let document = &mut self.sample.document;
        describe(document);
        let measurement = document.disk.get_or_insert_default();
        measurement.profile = profile.into();
        measurement.file_bytes = 4 << 30;
        measurement.written_bytes = 5 << 30;
        measurement.clock_read_ns = 24.0;
        measurement.direct = DirectFacts {
            real: true,
            alignment_bytes: 512,
            evidence: "statx gives an alignment of 512 bytes, and a direct read left no page in \
                       memory"
                .into(),
        };
        measurement.surroundings.distortions = vec![Distortion {
            id: "read-ahead-large".into(),
            what: "vda reads 8,192 KiB ahead".into(),
            consequence: "each page fault of a mapping brings megabytes that nobody asked for"
                .into(),
            remedy: "echo 128 > /sys/block/vda/queue/read_ahead_kb".into(),
        }];
        measurement.model = Some(model());
        self.sample
    }
}

fn describe(document: &mut RunDocument) {
    document.outcome = Outcome::Ok;
    document.outcome_reason = None;
    document.started = ClockOffset {
        monotonic_ns: START_NS,
        realtime_ns: 1_700_000_000_000_000_000,
    };
    document.seed = Some(11);
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
        rotational: Some(true),
        scheduler: Some("mq-deadline".into()),
        read_ahead_kib: Some(8192),
        write_cache: Some("write back".into()),
        ..DeviceFacts::default()
    });
}

fn model() -> DeviceModel {
    let size = |kib: u64, mean_us: f64| SizePoint {
        bytes: kib << 10,
        mean_ns: mean_us * 1e3,
        p50_ns: (mean_us * 950.0) as u64,
    };
    DeviceModel {
        disk: "ext4 on vda".into(),
        direct: true,
        l0_ns: 54_000.0,
        ns_per_byte: 0.83,
        fit_error: 0.12,
        sizes: vec![
            size(4, 51.0),
            size(32, 91.0),
            size(128, 160.0),
            size(1024, 925.0),
        ],
        parallelism: 64,
        sequential_bytes_per_s: 977e6,
        buffered_bytes_per_s: 130e6,
        read_ahead_bytes: 8 << 20,
        request_bytes_max: 1 << 20,
        ..DeviceModel::default()
    }
}

/// Every text that a device, a file system or a cgroup could have chosen becomes an attack.
fn make_hostile(sample: &mut DiskSample) {
    let name = |i: usize| HOSTILE_NAMES[i % HOSTILE_NAMES.len()].to_string();
    let document = &mut sample.document;
    if let Some(device) = &mut document.device {
        device.disk = Some(name(1));
        device.filesystem = name(0);
        device.mount_options = name(3);
        device.path = name(2);
        device.scheduler = Some("x".repeat(1000));
    }
    let measurement = document.disk.get_or_insert_default();
    for (i, step) in measurement.steps.iter_mut().enumerate() {
        let hostile = format!("{i} {}", name(i));
        for point in sample
            .seconds
            .iter_mut()
            .filter(|point| point.step == step.name)
        {
            point.step.clone_from(&hostile);
        }
        // The first prediction keeps its name and so belongs to no step: it must be shown as well.
        for prediction in sample.predictions.iter_mut().skip(1) {
            if prediction.name == step.name {
                prediction.name.clone_from(&hostile);
            }
        }
        for operation in ["read", "write"] {
            if let Some(histogram) = sample
                .histograms
                .remove(&histogram_key(&step.name, operation))
            {
                sample
                    .histograms
                    .insert(histogram_key(&hostile, operation), histogram);
            }
        }
        step.name = hostile;
    }
    if let Some(prediction) = sample.predictions.first_mut() {
        prediction.name = name(1);
    }
    measurement.profile = name(0);
    measurement.existing_file = Some(name(1));
    measurement.direct.evidence = name(2);
    measurement.surroundings.distortions = (0..4)
        .map(|i| Distortion {
            id: name(i),
            what: name(i + 1),
            consequence: name(i + 2),
            remedy: name(i + 3),
        })
        .collect();
    measurement.surroundings.io_limits = vec![IoLimit {
        cgroup: name(0),
        device: name(1),
        what: name(3),
        per_s: 150,
    }];
    if let Some(model) = &mut measurement.model {
        model.disk = name(1);
    }
    if let Some(job) = measurement
        .steps
        .first_mut()
        .and_then(|step| step.jobs.first_mut())
    {
        job.engine_notes = vec![name(0)];
    }
    document.arguments = (0..4).map(name).collect();
}
