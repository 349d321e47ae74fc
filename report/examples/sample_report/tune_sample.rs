//! A made-up tuning session: noise and drift, a search with failures, a duel that proves most of a gain.

use std::collections::BTreeMap;

use seekscope_run::tune::{
    Expected, HeatMap, Importance, KnobImportance, Measured, MinimalChange, PairImportance, Share,
    Slice, SlicePoint, TrialPurpose, TrialStatus, TuneDuel, TuneExports, TuneLedger, TuneNoise,
    TuneVerdict, TunedKnob,
};
use seekscope_run::{KnobValue, KnobValues, Outcome, RunDocument, TuneRecord, TuneTrial};
use seekscope_stats::SplitMix64;

use crate::hostile::HOSTILE_NAMES;

const FOUND_PER_S: f64 = 4200.0;
const RUN_MS: u64 = 75_000;
/// Runs before the search, in it, and blocks of the duel.
pub(crate) const BASELINE_RUNS: usize = 8;
pub(crate) const BLOCKS: u32 = 6;

/// The session with `searched` runs in its search.
pub(crate) fn session(searched: usize, hostile: bool) -> RunDocument {
    let mut document = RunDocument::begin(
        "tune",
        ["tune", "local", "--budget", "45m"]
            .map(String::from)
            .into(),
    );
    document.started.realtime_ns = 1_790_000_000_000_000_000;
    document.outcome = Outcome::Ok;
    document.outcome_reason = None;
    document.seed = Some(7);
    let mut maker = Maker {
        rng: SplitMix64::new(7),
        trials: Vec::new(),
        best: None,
    };
    maker.run(searched);
    let mut record = TuneRecord {
        workload: "ycsb:a".into(),
        metric: "throughput".into(),
        unit: "per_s".into(),
        maximise: true,
        constraints: vec!["p99_ms <= 20".into()],
        seed: 7,
        knobs: knobs(),
        left_out: vec![(
            "wiredTigerConcurrentReadTransactions".into(),
            "this version sets it by itself".into(),
        )],
        trials: maker.trials,
        noise: Some(TuneNoise {
            runs: 8,
            coefficient_of_variation: 0.041,
            pair_deviation: 0.05,
            drift_per_hour: Some(-0.012),
            duel_pairs: 24,
            detectable_gain: Some(0.031),
        }),
        best: values(40, 120, "snappy", 500),
        expected: Some(Expected {
            value: 6300.0,
            low: 5900.0,
            high: 6700.0,
        }),
        minimal: Some(MinimalChange {
            values: values(40, 120, "zlib", 500),
            reset: vec!["compressor".into()],
            changed: vec![
                "dirty_trigger".into(),
                "syncdelay".into(),
                "commit_interval".into(),
            ],
            loss: 0.004,
            loss_low: -0.01,
            loss_high: 0.02,
        }),
        duels: duels(),
        recommended: values(40, 120, "zlib", 500),
        verdict: Some(TuneVerdict::Better),
        ledger: TuneLedger {
            prepare_s: 900.0,
            measure_s: 1600.0,
            think_s: 4.0,
            total_s: 2580.0,
        },
        restored: Some(true),
        ..TuneRecord::default()
    };
    learned(&mut record);
    exports(&mut record);
    if hostile {
        make_hostile(&mut record);
    }
    document.tune = Some(record);
    document
}

/// The same, stopped after this many runs.
pub(crate) fn interrupted(runs: usize) -> RunDocument {
    let mut document = session(12, false);
    document.outcome = Outcome::Partial;
    document.outcome_reason = Some("interrupted".into());
    if let Some(record) = &mut document.tune {
        let mut trials = std::mem::take(&mut record.trials);
        trials.truncate(runs);
        *record = TuneRecord {
            workload: record.workload.clone(),
            metric: record.metric.clone(),
            maximise: true,
            knobs: record.knobs.clone(),
            trials,
            ..TuneRecord::default()
        };
    }
    document
}

fn knobs() -> Vec<TunedKnob> {
    let knob =
        |name: &str, baseline: KnobValue, range: &str, [change, risk]: [&str; 2], how: &str| {
            TunedKnob {
                name: name.into(),
                baseline,
                range: range.into(),
                logarithmic: range.contains("logarithmic"),
                change: change.into(),
                risk: risk.into(),
                how: how.into(),
            }
        };
    vec![
        knob(
            "dirty_trigger",
            KnobValue::Integer(20),
            "3 to 80, logarithmic",
            ["R", "P"],
            "wiredTigerEngineRuntimeConfig eviction_dirty_trigger",
        ),
        knob(
            "syncdelay",
            KnobValue::Integer(60),
            "0, 10 to 600",
            ["R", "M"],
            "setParameter syncdelay",
        ),
        knob(
            "compressor",
            KnobValue::Text("zlib".into()),
            "none, snappy, zlib",
            ["L", "P"],
            "start option block_compressor",
        ),
        knob(
            "commit_interval",
            KnobValue::Integer(100),
            "10 to 500",
            ["S", "D"],
            "mongod.conf storage.journal.commitIntervalMs",
        ),
    ]
}

fn values(dirty: i64, syncdelay: i64, compressor: &str, commit: i64) -> KnobValues {
    BTreeMap::from([
        ("dirty_trigger".into(), KnobValue::Integer(dirty)),
        ("syncdelay".into(), KnobValue::Integer(syncdelay)),
        ("compressor".into(), KnobValue::Text(compressor.into())),
        ("commit_interval".into(), KnobValue::Integer(commit)),
    ])
}

fn found() -> KnobValues {
    values(20, 60, "zlib", 100)
}

struct Maker {
    rng: SplitMix64,
    trials: Vec<TuneTrial>,
    best: Option<f64>,
}

impl Maker {
    fn run(&mut self, searched: usize) {
        for _ in 0..BASELINE_RUNS {
            self.trial(TrialPurpose::Baseline, "baseline", "", found(), None);
        }
        for run in 0..searched {
            if run % 9 == 8 {
                self.trial(TrialPurpose::Sentinel, "baseline", "", found(), None);
            }
            let (arm, origin, values) = match run {
                0 => ("", "default", found()),
                1 => ("expert 2018", "preset", values(50, 120, "zlib", 100)),
                _ => ("", "model", self.proposal()),
            };
            self.trial(TrialPurpose::Search, arm, origin, values, None);
        }
        for block in 1..=BLOCKS {
            for (arm, values) in [
                ("best", values(40, 120, "snappy", 500)),
                ("baseline", found()),
                ("minimal", values(40, 120, "zlib", 500)),
                ("expert 2018", values(50, 120, "zlib", 100)),
            ] {
                self.trial(TrialPurpose::Duel, arm, "", values, Some(block));
            }
        }
    }

    fn one_of<T: Copy, const N: usize>(&mut self, choices: [T; N]) -> T {
        choices[usize::try_from(self.rng.below(N as u64)).unwrap_or(0)]
    }

    fn proposal(&mut self) -> KnobValues {
        let dirty = self.one_of([3, 5, 10, 20, 40, 60, 80]);
        let syncdelay = self.one_of([0, 10, 60, 120, 300, 600]);
        let compressor = self.one_of(["none", "snappy", "zlib"]);
        values(dirty, syncdelay, compressor, self.one_of([100, 500]))
    }

    fn trial(
        &mut self,
        purpose: TrialPurpose,
        arm: &str,
        origin: &str,
        values: KnobValues,
        block: Option<u32>,
    ) {
        let index = self.trials.len() as u64;
        let number = |name: &str| values.get(name).and_then(KnobValue::number).unwrap_or(0.0);
        let gain = 1.0
            + 0.35 * (-((number("dirty_trigger") / 40.0).ln().powi(2))).exp()
            + 0.1 * (number("syncdelay") / 120.0).min(1.0);
        let noise = 1.0 + 0.08 * (self.rng.unit_f64() - 0.5) - 0.0002 * index as f64;
        let searching = purpose == TrialPurpose::Search;
        let (status, reason) = match index % 13 {
            11 if searching => (TrialStatus::Failed, "the server did not start within 60 s"),
            5 if searching => (TrialStatus::EndedEarly, ""),
            7 if searching => (TrialStatus::ConstraintMissed, "p99_ms is 31, not <= 20"),
            _ => (TrialStatus::Measured, ""),
        };
        let value = (status != TrialStatus::Failed).then_some(FOUND_PER_S / 1.07 * gain * noise);
        if searching && status == TrialStatus::Measured {
            self.best = value.map(|value| self.best.map_or(value, |best| best.max(value)));
        }
        let spread = 900.0 / (1.0 + index as f64 / 12.0);
        self.trials.push(TuneTrial {
            number: index + 1,
            purpose,
            arm: arm.into(),
            origin: origin.into(),
            block,
            seed: u64::from(block.unwrap_or(0)),
            values,
            status,
            value,
            partial: [None, None],
            noise: 1.0,
            reason: reason.into(),
            figures: BTreeMap::new(),
            started_unix_ms: 1_790_000_000_000 + index * RUN_MS,
            prepare_s: 22.0,
            measure_s: 45.0,
            best_so_far: self.best.filter(|_| searching).map(|value| Expected {
                value,
                low: value - spread,
                high: value + spread,
            }),
        });
    }
}

fn duels() -> Vec<TuneDuel> {
    let duel = |candidate: &str, against: &str, [ratio, low, high]: [f64; 3], promised| TuneDuel {
        candidate: candidate.into(),
        against: against.into(),
        verdict: match low > 1.0 {
            true => TuneVerdict::Better,
            false => TuneVerdict::Unresolved,
        },
        pairs: u64::from(BLOCKS),
        ratio,
        low,
        high,
        deviation: 0.05,
        wilcoxon_p: Some(0.0156),
        holm_p: Some(0.00003),
        promised,
        worst: ratio * 0.93,
        failed: 0,
    };
    vec![
        duel("best", "baseline", [1.44, 1.33, 1.55], Some(1.5)),
        duel("minimal", "baseline", [1.42, 1.31, 1.52], Some(1.49)),
        duel("minimal", "best", [0.99, 0.95, 1.03], None),
        duel("expert 2018", "baseline", [1.36, 1.24, 1.47], None),
    ]
}

fn learned(record: &mut TuneRecord) {
    let share = |share: f64| Share {
        share,
        low: share * 0.7,
        high: (share * 1.4 + 0.01).min(1.0),
    };
    let knob = |knob: &str, alone: f64, distinguishable| KnobImportance {
        knob: knob.into(),
        alone: share(alone),
        total: share(alone * 1.2),
        distinguishable,
    };
    record.importance = Some(Importance {
        knobs: vec![
            knob("dirty_trigger", 0.58, true),
            knob("syncdelay", 0.21, true),
            knob("commit_interval", 0.05, true),
            knob("compressor", 0.01, false),
        ],
        pairs: vec![PairImportance {
            knobs: ["dirty_trigger".into(), "syncdelay".into()],
            together: share(0.08),
        }],
    });
    let dirty = [3, 5, 8, 13, 20, 32, 50, 80].map(KnobValue::Integer);
    let syncdelay = [0, 10, 30, 60, 120, 300, 600].map(KnobValue::Integer);
    let compressors = ["none", "snappy", "zlib"].map(|name| KnobValue::Text(name.into()));
    let slice = |knob: &str, at: &[KnobValue]| Slice {
        knob: knob.into(),
        points: (at.iter().enumerate())
            .map(|(index, at)| {
                let expected = 6000.0 - 150.0 * (index as f64 - 4.0).powi(2);
                SlicePoint {
                    at: at.clone(),
                    expected,
                    low: expected - 300.0,
                    high: expected + 300.0,
                    works: 0.97,
                }
            })
            .collect(),
        measured: (at.iter().enumerate())
            .map(|(index, at)| Measured {
                at: at.clone(),
                value: (index != 1).then_some(5500.0),
            })
            .collect(),
    };
    record.slices = vec![
        slice("dirty_trigger", &dirty),
        slice("syncdelay", &syncdelay),
        slice("compressor", &compressors),
    ];
    record.heat_map = Some(HeatMap {
        knobs: ["dirty_trigger".into(), "syncdelay".into()],
        expected: (0..dirty.len())
            .map(|i| {
                (0..syncdelay.len())
                    .map(|j| 6000.0 - 90.0 * ((i as f64 - 5.0).powi(2) + (j as f64 - 4.0).powi(2)))
                    .collect()
            })
            .collect(),
        at: [dirty.into(), syncdelay.into()],
    });
}

fn exports(record: &mut TuneRecord) {
    record.exports = TuneExports {
        mongod_conf: "storage:\n  journal:\n    commitIntervalMs: 500\n  wiredTiger:\n    engineConfig:\n      configString: \"eviction_dirty_trigger=40\"\n".into(),
        set_parameter: vec!["db.adminCommand({ setParameter: 1, syncdelay: 120 })".into()],
        shell: vec!["echo 128 > /sys/block/sda/queue/read_ahead_kb".into()],
        undo_mongod_conf: "storage:\n  journal:\n    commitIntervalMs: 100\n".into(),
        undo_set_parameter: vec!["db.adminCommand({ setParameter: 1, syncdelay: 60 })".into()],
        undo_shell: vec!["echo 256 > /sys/block/sda/queue/read_ahead_kb".into()],
        risks: vec!["commit_interval: a crash loses up to 500 ms of writes that were not journaled".into()],
    };
}

/// Every text that a file, a server or a script could have written.
fn make_hostile(record: &mut TuneRecord) {
    let name = |i: usize| HOSTILE_NAMES[i % HOSTILE_NAMES.len()].to_string();
    for (index, knob) in record.knobs.iter_mut().enumerate() {
        (knob.range, knob.how, knob.change) = (name(index), name(index + 1), name(index + 2));
    }
    record.knobs.push(TunedKnob {
        name: name(0),
        baseline: KnobValue::Text(name(2)),
        range: "x".repeat(2000),
        logarithmic: true,
        change: name(1),
        risk: "D".into(),
        how: name(3),
    });
    (record.workload, record.metric, record.unit) = (name(0), name(1), name(2));
    record.constraints = vec![name(3), "y".repeat(3000)];
    record.left_out = vec![(name(1), name(2))];
    for (index, trial) in record.trials.iter_mut().enumerate() {
        trial.reason = name(index);
        trial.origin = "preset".into();
        if trial.purpose == TrialPurpose::Search {
            trial.arm = name(index);
        }
        trial
            .values
            .insert(name(0), KnobValue::Text(name(index + 1)));
    }
    for (index, duel) in record.duels.iter_mut().enumerate().skip(2) {
        duel.candidate = name(index);
    }
    record.recommended.insert(name(0), KnobValue::Text(name(3)));
    record.recommended.insert(name(3), KnobValue::Text(name(1)));
    if let Some(minimal) = &mut record.minimal {
        minimal.reset = (0..4).map(name).collect();
    }
    if let Some(importance) = &mut record.importance {
        importance.knobs[0].knob = name(0);
        importance.knobs[3].knob = name(2);
        importance.pairs[0].knobs = [name(1), name(3)];
    }
    for (index, slice) in record.slices.iter_mut().enumerate() {
        slice.knob = name(index);
        slice.points[0].at = KnobValue::Text(name(index));
    }
    if let Some(map) = &mut record.heat_map {
        map.knobs = [name(0), name(3)];
        map.at[0][0] = KnobValue::Text(name(1));
        map.at[1][0] = KnobValue::Text(name(2));
    }
    let exports = &mut record.exports;
    exports.mongod_conf = (0..4).map(name).collect::<Vec<_>>().join("\n");
    exports.set_parameter = (0..4).map(name).collect();
    exports.shell = (0..4).map(name).collect();
    exports.risks = (0..4).map(name).collect();
}
