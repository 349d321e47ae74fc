//! A made-up benchmark in the shape of a measured one. The same for the same arguments, always.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "made-up numbers, all small"
)]

use hdrhistogram::Histogram;
use seekscope_report::bench::records::{BenchRecords, Clock, LatencyKey, LatencySecond};
use seekscope_report::bench::{BenchReportInput, html, terminal};
use seekscope_run::{
    Arrivals, BenchIndexBuild, BenchMeasurement, BenchStep, Confirmation, CounterSample, Interval,
    LatencySummary, LoadPoint, OperationResult, Outcome, RateVerdict, RunDocument, Saturation,
    SchemaShape, Steady, StorageFacts, Verification, latency_histogram,
};
use seekscope_stats::{SplitMix64, batch_means};

use crate::hostile::HOSTILE_NAMES;

const START_NS: u64 = 7_000_000_000_000;
const SECOND_NS: u64 = 1_000_000_000;
/// Latencies drawn for each second and operation, each standing for several.
const DRAWN: u64 = 200;
/// A warm-up's length, s.
const WARM_UP_S: u64 = 10;

/// What the report of a benchmark is made from.
pub(crate) struct BenchSample {
    pub(crate) document: RunDocument,
    pub(crate) records: BenchRecords,
}

impl BenchSample {
    pub(crate) fn input(&self) -> BenchReportInput<'_> {
        BenchReportInput {
            document: &self.document,
            records: &self.records,
        }
    }

    pub(crate) fn html(&self) -> String {
        html(&self.input())
    }

    pub(crate) fn terminal(&self, width: u16) -> String {
        terminal(&self.input(), width)
    }
}

/// A step as it is to come out.
#[derive(Clone)]
pub(crate) struct Wanted {
    pub(crate) name: String,
    pub(crate) workload: String,
    pub(crate) variant: String,
    pub(crate) kind: &'static str,
    pub(crate) repetition: u32,
    pub(crate) operations: Vec<String>,
    /// The rate of each operation.
    pub(crate) per_s: f64,
    pub(crate) p50_us: f64,
    pub(crate) seconds: u64,
    pub(crate) open_loop: bool,
    /// The server stood still from then on, for 4 s.
    pub(crate) stall_at_s: Option<u64>,
}

impl Wanted {
    pub(crate) fn run(name: &str, per_s: f64, seconds: u64) -> Self {
        Self {
            name: name.into(),
            workload: "ycsb-a".into(),
            variant: String::new(),
            kind: "run",
            repetition: 1,
            operations: vec!["READ".into(), "UPDATE".into()],
            per_s,
            p50_us: 400.0,
            seconds,
            open_loop: false,
            stall_at_s: None,
        }
    }
}

/// Adds steps one after another.
pub(crate) struct Maker {
    sample: BenchSample,
    rng: SplitMix64,
    now_ns: u64,
}

impl Maker {
    pub(crate) fn new(seed: u64) -> Self {
        let mut document = RunDocument::begin("bench", vec!["bench".into(), "ycsb".into()]);
        document.started.monotonic_ns = START_NS;
        document.started.realtime_ns = 1_790_000_000 * SECOND_NS;
        document.outcome = Outcome::Ok;
        document.outcome_reason = None;
        document.bench = Some(BenchMeasurement {
            workload: "ycsb-a".into(),
            edition: "corrected".into(),
            database: "seekscope_bench".into(),
            settings: [("recordcount", "200000"), ("seed", "7")]
                .map(|(k, v)| (k.to_string(), v.to_string()))
                .into(),
            ..BenchMeasurement::default()
        });
        Self {
            sample: BenchSample {
                document,
                records: BenchRecords::default(),
            },
            rng: SplitMix64::new(seed),
            now_ns: START_NS,
        }
    }

    pub(crate) fn finish(self) -> BenchSample {
        self.sample
    }

    pub(crate) fn measurement(&mut self) -> &mut BenchMeasurement {
        self.sample
            .document
            .bench
            .get_or_insert_with(BenchMeasurement::default)
    }

    /// Standard normal (Box and Muller).
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.rng.unit_f64()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.rng.unit_f64()).cos()
    }

    pub(crate) fn step(&mut self, wanted: &Wanted) -> &mut BenchStep {
        let started_ns = self.now_ns;
        let warm_up_ended_ns =
            (wanted.seconds > 3 * WARM_UP_S).then_some(started_ns + WARM_UP_S * SECOND_NS);
        let mut operations = Vec::new();
        for operation in &wanted.operations {
            operations.push(self.operation(wanted, operation, started_ns, warm_up_ended_ns));
        }
        self.counters(wanted, started_ns);
        self.now_ns += (wanted.seconds + 2) * SECOND_NS;
        let requests: u64 = operations.iter().map(|op| op.count).sum();
        let documents = 200_000;
        let step = BenchStep {
            name: wanted.name.clone(),
            kind: wanted.kind.into(),
            workload: wanted.workload.clone(),
            variant: wanted.variant.clone(),
            repetition: wanted.repetition,
            arrivals: if wanted.open_loop {
                Arrivals::Poisson {
                    per_s: 2.0 * wanted.per_s,
                }
            } else {
                Arrivals::Closed
            },
            in_flight: 8,
            started_ns,
            ended_ns: started_ns + wanted.seconds * SECOND_NS,
            warm_up_ended_ns,
            steady: Some(Steady {
                steady: Some(true),
                how: "throughput changed by +0.3 % from first to last".into(),
            }),
            requests,
            transactions: requests,
            throughput_per_s: operations.iter().map(|op| op.per_s).sum(),
            throughput_interval: None,
            operations,
            client_cpu_ns: requests * 17_000,
            client_rss_bytes: 12 << 20,
            server_cpu_ns: Some(requests * 95_000),
            server_read_bytes: Some(requests * 300),
            server_write_bytes: Some(requests * 2_000),
            storage_after: Some(StorageFacts {
                documents,
                data_bytes: documents * 1168,
                storage_bytes: documents * 1250,
                index_bytes: documents * 60,
                directory_bytes: None,
            }),
            verification: Some(Verification {
                expected: Some(documents),
                counted: Some(documents),
                sampled: 1000,
                ..Verification::default()
            }),
            ..BenchStep::default()
        };
        let steps = &mut self.measurement().steps;
        steps.push(step);
        let last = steps.len() - 1;
        &mut steps[last]
    }

    fn operation(
        &mut self,
        wanted: &Wanted,
        name: &str,
        started_ns: u64,
        warm_up_ended_ns: Option<u64>,
    ) -> OperationResult {
        let key = |clock| LatencyKey {
            step: wanted.name.clone(),
            operation: name.into(),
            clock,
        };
        let clocks = if wanted.open_loop {
            vec![Clock::Service, Clock::Response]
        } else {
            vec![Clock::Service]
        };
        let (mut noise, mut counted, mut rates) = (self.normal(), 0, Vec::new());
        for second in 0..wanted.seconds {
            let t_ns = started_ns + second * SECOND_NS;
            noise = 0.5 * noise + 0.75f64.sqrt() * self.normal();
            let stalled = wanted
                .stall_at_s
                .is_some_and(|at| (at..at + 4).contains(&second));
            let warming = if warm_up_ended_ns.is_some_and(|end| t_ns < end) {
                0.6
            } else {
                1.0
            };
            let per_s = if stalled {
                0.0
            } else {
                wanted.per_s * warming * (1.0 + 0.05 * noise)
            };
            let count = per_s.max(0.0) as u64;
            let after_stall = wanted.stall_at_s.is_some_and(|at| second == at + 4);
            let mut summaries = Vec::new();
            for &clock in &clocks {
                let waited_ns = if after_stall && clock == Clock::Response {
                    4e9
                } else {
                    0.0
                };
                let histogram = self.latencies(count, wanted.p50_us * 1e3 / warming, waited_ns);
                summaries.push(LatencySummary::of(&histogram));
                let counts = warm_up_ended_ns.is_none_or(|end| t_ns >= end);
                self.record(key(clock), t_ns, &histogram, counts);
            }
            if warm_up_ended_ns.is_none_or(|end| t_ns >= end) {
                counted += count;
                rates.push(count as f64);
            }
            self.sample.records.intervals.push(Interval {
                step: wanted.name.clone(),
                operation: name.into(),
                t_ns,
                duration_ns: SECOND_NS,
                count,
                errors: 0,
                bytes: count * 1200,
                latency: summaries[0],
                response: summaries.get(1).copied(),
            });
        }
        let summary = |clock| {
            self.sample
                .records
                .histograms
                .get(&key(clock))
                .map(LatencySummary::of)
        };
        OperationResult {
            name: name.into(),
            count: counted,
            documents: counted,
            bytes: counted * 1200,
            per_s: counted as f64 / rates.len().max(1) as f64,
            per_s_interval: batch_means(&rates).map(|mean| mean.interval(0.05)),
            service: summary(Clock::Service).unwrap_or_default(),
            response: summary(Clock::Response),
            ..OperationResult::default()
        }
    }

    /// Returns `count` latencies around a median, each of which had waited for up to `waited_ns` before.
    fn latencies(&mut self, count: u64, p50_ns: f64, waited_ns: f64) -> Histogram<u64> {
        let mut histogram = latency_histogram();
        let drawn = DRAWN.min(count);
        for _ in 0..drawn {
            let service_ns = p50_ns * (0.6 * self.normal()).exp();
            let ns = service_ns + waited_ns * self.rng.unit_f64();
            histogram.saturating_record_n(ns as u64, count / drawn);
        }
        histogram
    }

    fn record(&mut self, key: LatencyKey, t_ns: u64, histogram: &Histogram<u64>, counts: bool) {
        if histogram.is_empty() {
            return;
        }
        let records = &mut self.sample.records;
        let second = LatencySecond::new(t_ns, SECOND_NS, histogram);
        records.seconds.entry(key.clone()).or_default().push(second);
        if counts {
            let sum = records
                .histograms
                .entry(key)
                .or_insert_with(latency_histogram);
            // Histograms of the same bounds can be added.
            let _ = sum.add(histogram);
        }
    }

    /// A cache that fills, a checkpoint every 20 s, CPUs in use.
    fn counters(&mut self, wanted: &Wanted, started_ns: u64) {
        for second in 0..=wanted.seconds {
            let t_ns = started_ns + second * SECOND_NS;
            let seconds = second as f64;
            let checkpoint = if second % 20 >= 17 { 1.0 } else { 0.0 };
            let rows = [
                (
                    "serverStatus",
                    "wiredTiger.cache.bytes currently in the cache",
                    3e8 + 1e6 * seconds,
                ),
                (
                    "serverStatus",
                    "wiredTiger.cache.tracked dirty bytes in the cache",
                    1e6 * (second % 20) as f64,
                ),
                (
                    "serverStatus",
                    "wiredTiger.transaction.transaction checkpoint currently running",
                    checkpoint,
                ),
                ("process", "cpu_ns", 0.7e9 * seconds),
                ("client", "cpu_ns", 0.1e9 * seconds),
                ("process", "write_bytes", 2e6 * seconds),
                ("diskstats", "write_bytes", 3e6 * seconds),
                ("pressure", "io.some_us", 2e5 * seconds),
            ];
            for (source, name, value) in rows {
                self.sample.records.counters.push(CounterSample {
                    t_ns,
                    source: source.into(),
                    name: name.into(),
                    value,
                });
            }
        }
    }
}

/// A load, an open-loop run with a stall, three repetitions of two variants, a search for the maximum,
/// index builds and a schema lab.
pub(crate) fn bench_run(seconds: u64, hostile: bool) -> BenchSample {
    let mut maker = Maker::new(1);
    let load = Wanted {
        kind: "load",
        operations: vec!["INSERT".into()],
        ..Wanted::run("load", 4000.0, seconds)
    };
    maker.step(&load);
    let open = Wanted {
        open_loop: true,
        stall_at_s: Some(seconds / 2),
        operations: if hostile {
            HOSTILE_NAMES.iter().map(ToString::to_string).collect()
        } else {
            vec!["READ".into(), "UPDATE".into()]
        },
        ..Wanted::run("open loop", 1000.0, seconds)
    };
    let step = maker.step(&open);
    step.failures = vec![(
        step.operations[0].name.clone(),
        if hostile {
            HOSTILE_NAMES[0]
        } else {
            "connection lost"
        }
        .into(),
        3,
        if hostile {
            HOSTILE_NAMES[1]
        } else {
            "connection reset by peer"
        }
        .into(),
    )];
    for repetition in 1..=4 {
        for (variant, ratio) in [
            ("block_compressor=none", 1.0),
            ("block_compressor=zlib", 0.8),
        ] {
            maker.step(&Wanted {
                variant: variant.into(),
                workload: "ycsb-c".into(),
                repetition,
                operations: vec!["READ".into()],
                ..Wanted::run(&format!("{variant} {repetition}"), 2000.0 * ratio, 12)
            });
        }
    }
    labs(maker.measurement(), hostile);
    maker.finish()
}

fn labs(measurement: &mut BenchMeasurement, hostile: bool) {
    let latency = |us: u64| LatencySummary {
        count: 60_000,
        min_ns: us * 300,
        mean_ns: us as f64 * 1e3,
        p50_ns: us * 1000,
        p90_ns: us * 2000,
        p99_ns: us * 5000,
        p999_ns: us * 9000,
        max_ns: us * 20_000,
    };
    let point = |per_s: f64, us: u64, missed: &[&str]| LoadPoint {
        step: format!("probe {per_s}"),
        offered_per_s: per_s,
        achieved_per_s: per_s * 0.999,
        response: Some(latency(us)),
        server_cpu_ns_per_operation: Some(91_000.0),
        missed: missed.iter().map(ToString::to_string).collect(),
        untold: None,
    };
    measurement.saturation = Some(Saturation {
        objective: "p99=20ms".into(),
        points: vec![
            point(1000.0, 400, &[]),
            point(2000.0, 600, &[]),
            point(4000.0, 1900, &[]),
            point(8000.0, 30_000, &["p99 is 150 ms"]),
        ],
        maximum_per_s: Some(4000.0),
        missed_from_per_s: Some(8000.0),
        untold_from_per_s: None,
        confirmed: true,
        confirmations: vec![Confirmation {
            per_s: 4000.0,
            verdict: RateVerdict::Met,
        }],
        others_cpu_share: Some(0.02),
    });
    measurement.index_builds = vec![BenchIndexBuild {
        kind: if hostile {
            HOSTILE_NAMES[0].into()
        } else {
            "int".into()
        },
        keys: r#"{"randomInt":1}"#.into(),
        repetition: 1,
        documents: 1_000_000,
        elapsed_ns: 3_200_000_000,
        keys_per_s: 312_500.0,
        index_bytes: Some(14 << 20),
        foreground_p99_ns: Some([2_000_000, 9_000_000, 2_100_000].map(Some)),
        verified: Some(true),
        ..BenchIndexBuild::default()
    }];
    let shape = |name: &str, start: f64, end: f64| SchemaShape {
        name: name.into(),
        index: r#"{"metric":1,"client":1,"date":1}"#.into(),
        samples: 1_000_000,
        insert_per_s: (1..=10)
            .map(|i| (i * 100_000, start + (end - start) * (i - 1) as f64 / 9.0))
            .collect(),
        year_read_ns: vec![900_000_000, 1_000_000_000, 1_100_000_000],
        reads_per_query: Some(812.0),
        read_bytes_per_query: Some(26e6),
        storage: Some(StorageFacts {
            documents: 1_000_000,
            data_bytes: 90_000_000,
            storage_bytes: 30_000_000,
            index_bytes: 20_000_000,
            directory_bytes: None,
        }),
        ..SchemaShape::default()
    };
    measurement.shapes = vec![
        shape("one document per sample", 30_000.0, 12_000.0),
        shape("one document per month", 28_000.0, 27_000.0),
    ];
    measurement.recommendation =
        Some("One document per month: a year is read with 12 reads instead of 812.".into());
}
