use seekscope_run::{
    ExaminationRecord, HostSettings, LayoutFile, LayoutMeasurement, PredictedScan,
};

use super::*;
use crate::Answers;
use crate::answers::WorkAnswer;

fn key_order(subject: &str) -> Finding {
    Finding {
        id: "layout.key-order-lost".into(),
        subject: subject.into(),
        gain: Some(Gain {
            value: 28.0,
            low: 20.0,
            high: 30.0,
            unit: "s per cold scan".into(),
        }),
        ..Finding::default()
    }
}

/// A run in which a scan of shop.orders is predicted to take `scan_s`.
fn run(scan_s: Option<f64>, findings: Vec<Finding>) -> (RunDocument, Diagnosis) {
    let mut document = RunDocument::begin("doctor", Vec::new());
    document.examination = Some(ExaminationRecord {
        host: Some(HostSettings::default()),
        ..ExaminationRecord::default()
    });
    document.layout = scan_s.map(|now_s| LayoutMeasurement {
        files: vec![LayoutFile {
            namespace: Some("shop.orders".into()),
            predicted_scan: Some(PredictedScan {
                now_s,
                ..PredictedScan::default()
            }),
            ..LayoutFile::default()
        }],
        ..LayoutMeasurement::default()
    });
    let answers = Answers::default();
    (document, Diagnosis { findings, answers })
}

type Run = (RunDocument, Diagnosis);

/// The same with this many operations per second, all of which write, and pages read.
fn at_load(
    (mut document, mut diagnosis): Run,
    operations_per_s: f64,
    pages_read_per_s: f64,
) -> Run {
    document.phases = vec![crate::testing::observed_phase()];
    diagnosis.answers.work = Some(WorkAnswer {
        operations_per_s: Some(operations_per_s),
        writes_per_s: Some(operations_per_s),
        pages_read_per_s: Some(pages_read_per_s),
        read_calls_per_s: None,
    });
    (document, diagnosis)
}

fn waiting(id: &str, saves: f64) -> Finding {
    Finding {
        id: id.into(),
        saves_s_per_hour: Some(saves),
        gain: Some(Gain {
            value: 50.0,
            low: 40.0,
            high: 60.0,
            unit: "s of waiting per hour".into(),
        }),
        ..Finding::default()
    }
}

/// The same with so much waiting for reads, s per hour.
fn with_waited((document, mut diagnosis): Run, reads: f64) -> Run {
    diagnosis.answers.waited.reads = reads;
    (document, diagnosis)
}

fn changes(
    before: &(RunDocument, Diagnosis),
    after: &(RunDocument, Diagnosis),
) -> Vec<FindingChange> {
    compare(
        Examined {
            document: &before.0,
            diagnosis: &before.1,
        },
        Examined {
            document: &after.0,
            diagnosis: &after.1,
        },
    )
}

#[test]
fn a_prediction_that_came_true() {
    let before = run(Some(31.0), vec![key_order("shop.orders")]);
    let found = changes(&before, &run(Some(3.0), Vec::new()));
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].change, "gone");
    assert_eq!((found[0].before, found[0].after), (Some(31.0), Some(3.0)));
    assert_eq!(
        found[0].verdict,
        "as predicted: saved 28.0 s per cold scan, predicted 20.0 to 30.0"
    );
    let found = changes(&before, &run(Some(15.0), vec![key_order("shop.orders")]));
    assert_eq!(found[0].change, "better");
    assert!(
        found[0].verdict.starts_with("less than predicted"),
        "{}",
        found[0].verdict
    );
    let found = changes(&before, &run(Some(60.0), vec![key_order("shop.orders")]));
    assert_eq!(found[0].change, "worse");
    assert!(
        found[0].verdict.starts_with("it became worse"),
        "{}",
        found[0].verdict
    );
}

#[test]
fn what_was_not_looked_at_is_not_gone() {
    let before = run(Some(31.0), vec![key_order("shop.orders")]);
    let found = changes(&before, &run(None, Vec::new()));
    assert_eq!(
        (found[0].change.as_str(), found[0].after),
        ("unknown", None)
    );
}

#[test]
fn noise_is_no_change() {
    let before = run(Some(31.0), vec![key_order("shop.orders")]);
    let found = changes(&before, &run(Some(30.0), vec![key_order("shop.orders")]));
    assert_eq!(found[0].change, "same");
    assert!(found[0].verdict.starts_with("nothing changed"));
}

/// A regression: a server that did nothing was certified "gone: as predicted".
#[test]
fn an_idle_server_proves_nothing() {
    for id in [
        "disk.limited",
        "cache.too-small",
        "journal.slow-sync",
        "tickets.exhausted",
    ] {
        let before = at_load(run(None, vec![waiting(id, 55.0)]), 500.0, 148.0);
        let found = changes(&before, &at_load(run(None, Vec::new()), 0.0, 0.0));
        assert_eq!(
            (found[0].change.as_str(), found[0].after),
            ("unknown", None)
        );
        let verdict = &found[0].verdict;
        assert!(
            verdict.starts_with("cannot be told: the server had less to do"),
            "{verdict}"
        );
        assert!(verdict.contains(" per second then, 0 now"), "{verdict}");
        let mut unknown = at_load(run(None, Vec::new()), 500.0, 148.0);
        unknown.1.answers.work = None;
        let untold = changes(&before, &unknown);
        assert_eq!(untold[0].change, "unknown", "its work is not known");
    }
    // Checkpoints of a server that writes nothing are short.
    let long = |median_s: f64| {
        let mut run = run(None, vec![waiting("checkpoint.long", 55.0)]);
        run.1.findings[0].gain = None;
        run.1.answers.checkpoints = Some(crate::answers::CheckpointAnswer {
            median_s,
            ..Default::default()
        });
        run
    };
    let before = at_load(long(19.0), 500.0, 0.0);
    let idle = changes(&before, &at_load(long(0.1), 2.0, 0.0));
    assert_eq!(idle[0].change, "unknown");
    let like = changes(&before, &at_load(long(2.0), 450.0, 0.0));
    assert_eq!(
        (like[0].change.as_str(), like[0].after),
        ("better", Some(2.0))
    );
}

#[test]
fn what_the_load_cannot_explain_is_told() {
    let limited = |waited_s| {
        let run = run(None, vec![waiting("disk.limited", 55.0)]);
        with_waited(run, waited_s)
    };
    let change = |after: Run| {
        let before = at_load(limited(55.0), 500.0, 150.0);
        changes(&before, &after).remove(0)
    };
    let gone_at_ten_times = change(at_load(run(None, Vec::new()), 5000.0, 1500.0));
    assert_eq!(
        (gone_at_ten_times.change.as_str(), gone_at_ten_times.after),
        ("gone", Some(0.0))
    );
    assert_eq!(
        gone_at_ten_times.verdict,
        "as predicted: saved 55.0 s of waiting per hour, predicted 40.0 to 60.0, for the work of \
         then (150 reads past the cache per second then, 1500 now)"
    );
    let more_at_ten_times = change(at_load(limited(400.0), 5000.0, 1500.0));
    assert_eq!(more_at_ten_times.change, "better", "less per read");
    let worse_at_ten_times = change(at_load(limited(9000.0), 5000.0, 1500.0));
    assert_eq!(
        worse_at_ten_times.change, "unknown",
        "a queue grows with the load"
    );
    let worse_at_a_tenth = change(at_load(limited(55.0), 50.0, 15.0));
    assert_eq!(
        (worse_at_a_tenth.change.as_str(), worse_at_a_tenth.after),
        ("worse", Some(550.0))
    );
    // The cache serves what the disk had to: that says nothing of the disk.
    let no_reads = change(at_load(run(None, Vec::new()), 500.0, 3.0));
    assert_eq!(no_reads.change, "unknown");
}

#[test]
fn waiting_is_compared_under_like_loads() {
    let scheduler = |saves: f64| Finding {
        gain: Some(Gain {
            unit: "s per hour".into(),
            ..waiting("", 0.0).gain.unwrap()
        }),
        ..waiting("scheduler.unfit", saves)
    };
    let before = at_load(run(None, vec![scheduler(55.0)]), 100.0, 100.0);
    let found = changes(&before, &at_load(run(None, Vec::new()), 110.0, 90.0));
    assert_eq!((found[0].before, found[0].after), (Some(55.0), None));
    assert_eq!(found[0].change, "gone", "a setting is as it is");
    assert!(
        found[0].verdict.starts_with("cannot be told"),
        "what it saved was not measured: {}",
        found[0].verdict
    );
    let idle = changes(&before, &at_load(run(None, Vec::new()), 0.0, 0.0));
    assert_eq!(idle[0].change, "gone", "a setting is as it is");
    assert!(idle[0].verdict.starts_with("cannot be told"), "{idle:?}");
    let old = || Finding {
        id: "server.old-settings".into(),
        ..Finding::default()
    };
    let before = at_load(run(None, vec![old()]), 100.0, 100.0);
    let idle = changes(&before, &at_load(run(None, vec![old()]), 0.0, 0.0));
    assert_eq!(
        (idle[0].change.as_str(), idle[0].verdict.as_str()),
        ("same", "nothing was predicted")
    );
}

/// A regression: what had been predicted was told as what was saved.
#[test]
fn what_was_saved_is_measured() {
    let too_small = |waited_s: f64| {
        let run = run(None, vec![waiting("cache.too-small", 55.0)]);
        at_load(with_waited(run, waited_s), 100.0, 100.0)
    };
    let well = at_load(with_waited(run(None, Vec::new()), 180.0), 100.0, 1.0);
    let found = changes(&too_small(200.0), &well).remove(0);
    assert_eq!((found.before, found.after), (Some(200.0), Some(180.0)));
    assert!(
        found
            .verdict
            .starts_with("less than predicted: saved 20.0 s"),
        "{}",
        found.verdict
    );
    // Another finding may explain it now, and no less is waited.
    let grown = at_load(with_waited(run(None, Vec::new()), 300.0), 100.0, 100.0);
    let found = changes(&too_small(200.0), &grown).remove(0);
    assert_eq!(found.change, "worse", "{found:?}");
}

/// A regression: such a finding has seconds and no interval, and nothing was said to have been predicted.
#[test]
fn time_of_operations_that_an_index_saves_is_compared() {
    let scanning_by = |finding: Vec<Finding>, writing_s: u64, operations: Option<u64>| {
        let mut run = at_load(run(None, finding), 100.0, 100.0);
        let mut member = seekscope_run::MemberRecord::default();
        member.collections.push(seekscope_run::CollectionFacts {
            namespace: "shop.orders".into(),
            reading_ns: Some(0),
            writing_ns: Some(writing_s * 1_000_000_000),
            operations,
            ..Default::default()
        });
        run.0.examination.as_mut().unwrap().members.push(member);
        run
    };
    let scanning = |finding, writing_s| scanning_by(finding, writing_s, None);
    let named = Finding {
        id: "query.collection-scan".into(),
        subject: "shop.orders".into(),
        saves_s_per_hour: Some(1_000.0),
        ..Finding::default()
    };
    let before = scanning(vec![named.clone()], 18);
    let found = changes(&before, &scanning(Vec::new(), 1)).remove(0);
    assert_eq!(found.change, "gone");
    assert!(
        found.verdict.starts_with("as predicted: saved 1"),
        "{}",
        found.verdict
    );
    // Other operations go on, and those on the collection do or do not.
    let before_by = scanning_by(vec![named.clone()], 18, Some(600));
    let found = changes(&before_by, &scanning_by(Vec::new(), 1, Some(500))).remove(0);
    assert_eq!(found.change, "gone");
    let found = changes(&before_by, &scanning_by(Vec::new(), 0, Some(0))).remove(0);
    assert_eq!(found.change, "unknown");
    assert!(
        found
            .verdict
            .contains("operations on the collection per second then, 0 now"),
        "{}",
        found.verdict
    );
    // Caught no more, and counted all the same.
    let unnamed = Finding {
        subject: String::new(),
        ..named
    };
    let found = changes(&before, &scanning(vec![unnamed], 18)).remove(0);
    assert_eq!(found.change, "unknown", "{}", found.verdict);
}

/// A regression: a file whose scans were predicted for a faster disk was said to be in order.
#[test]
fn order_is_told_by_the_file_and_not_by_the_disk() {
    let lying = |findings: Vec<Finding>, share: f64, disk: &str| {
        let mut run = run(Some(3.0), findings);
        let layout = run.0.layout.as_mut().unwrap();
        layout.predicted_for = disk.into();
        layout.files[0].order = Some(seekscope_run::ScanOrder {
            sequential_share: share,
            ..Default::default()
        });
        run
    };
    let before = lying(vec![key_order("shop.orders")], 0.2, "slow");
    let same = changes(&before, &lying(Vec::new(), 0.2, "fast")).remove(0);
    assert_eq!(same.change, "unknown", "{}", same.verdict);
    let mended = changes(&before, &lying(Vec::new(), 0.97, "fast")).remove(0);
    assert_eq!(mended.change, "gone", "{}", mended.verdict);
}

#[test]
fn waiting_for_a_file_is_compared_by_the_calls_on_it() {
    let user = |calls_per_s: f64| crate::answers::DeviceUser {
        path: "a.wt".into(),
        role: seekscope_run::FileRole::Collection,
        namespace: Some("shop.orders".into()),
        thread_role: seekscope_pattern::ThreadRole::Application,
        writes: false,
        calls_per_s,
        bytes_per_s: 0.0,
        device_bytes_per_s: 0.0,
        waiting_s_per_s: calls_per_s / 1000.0,
        device_time_share: None,
        pattern: None,
        sequential_share: None,
        p50_ns: 0,
        p99_ns: 0,
    };
    let of = |id: &str| Finding {
        id: id.into(),
        subject: "shop.orders".into(),
        ..waiting(id, 55.0)
    };
    let with_calls = |finding: Finding, scan_s: f64, calls_per_s: Option<f64>| {
        let mut run = run(Some(scan_s), vec![finding]);
        run.1.answers.device_users = calls_per_s.map(user).into_iter().collect();
        at_load(run, 100.0, 100.0)
    };
    // The same calls, each as slow: nothing changed, however few they are.
    let before = with_calls(of("layout.key-order-lost"), 30.0, Some(100.0));
    let found = changes(
        &before,
        &with_calls(of("layout.key-order-lost"), 30.0, Some(20.0)),
    );
    assert_eq!(
        (found[0].before, found[0].after),
        (Some(360.0), Some(360.0))
    );
    assert_eq!(found[0].change, "same");
    // With as many calls, the calls decide; without any, the layout does.
    let as_many = with_calls(of("layout.key-order-lost"), 3.0, Some(90.0));
    let found = changes(&before, &as_many);
    assert_eq!(
        (found[0].after, found[0].change.as_str()),
        (Some(360.0), "same")
    );
    let found = changes(&before, &with_calls(of("layout.key-order-lost"), 3.0, None));
    assert_eq!(
        (found[0].after, found[0].change.as_str()),
        (Some(36.0), "better")
    );
    // An index is meant to reduce calls.
    let before = with_calls(of("query.collection-scan"), 30.0, Some(100.0));
    let found = changes(
        &before,
        &with_calls(of("query.collection-scan"), 30.0, Some(85.0)),
    );
    assert_eq!(found[0].before, Some(360.0));
    assert!(
        found[0].verdict.starts_with("as predicted"),
        "{}",
        found[0].verdict
    );
    let found = changes(
        &before,
        &with_calls(of("query.collection-scan"), 30.0, None),
    );
    assert_eq!(found[0].after, Some(0.0), "nobody reads it any more");
}

/// A regression: a run without load was compared with itself, and a finding that has no figure was "unknown".
#[test]
fn what_has_no_figure_and_is_found_again_is_the_same() {
    let tuning = || Finding {
        id: "settings.worth-tuning".into(),
        ..Finding::default()
    };
    let idle = at_load(run(None, vec![tuning()]), 0.3, 0.0);
    let found = changes(&idle, &idle).remove(0);
    assert_eq!(
        (found.change.as_str(), found.verdict.as_str()),
        ("same", "nothing was predicted")
    );
}

#[test]
fn new_ones_come_last() {
    let mut nothing = key_order("");
    nothing.id = NOTHING_WRONG.into();
    let before = run(Some(31.0), vec![key_order("shop.orders"), nothing]);
    let after = run(
        Some(31.0),
        vec![key_order("shop.items"), key_order("shop.orders")],
    );
    let found = changes(&before, &after);
    let list: Vec<(&str, &str)> = found
        .iter()
        .map(|change| (change.subject.as_str(), change.change.as_str()))
        .collect();
    assert_eq!(list, [("shop.orders", "same"), ("shop.items", "new")]);
}

#[test]
fn of_two_idle_runs_nothing_is_told() {
    let cache = Finding {
        id: "cache.too-small".into(),
        saves_s_per_hour: Some(2_900.0),
        ..Finding::default()
    };
    let earlier = at_load(run(None, vec![cache]), 0.0, 0.0);
    let now = at_load(run(None, Vec::new()), 0.0, 0.0);
    let told = changes(&earlier, &now).remove(0);
    assert_eq!(told.change, "unknown", "{told:?}");
    assert!(told.verdict.contains("is not counted"), "{told:?}");
}

#[test]
fn scans_predicted_for_different_disks_are_not_compared() {
    let on = |disk: &str, scan_s, findings| {
        let (mut document, diagnosis) = at_load(run(Some(scan_s), findings), 0.0, 0.0);
        document.layout.as_mut().unwrap().predicted_for = disk.into();
        (document, diagnosis)
    };
    let earlier = on("as seen", 2.0, vec![key_order("shop.orders")]);
    let told = |disk: &str| {
        let told = changes(&earlier, &on(disk, 5.0, Vec::new())).remove(0);
        !told.verdict.starts_with("cannot be told: its scans")
    };
    assert!(told("as seen"));
    assert!(!told("a typical cloud volume"));
}

/// Two findings that explain the waiting for reads, of which one was acted on.
#[test]
fn what_was_saved_is_told_once() {
    let of = |findings, waited| with_waited(at_load(run(None, findings), 100.0, 50.0), waited);
    let (memory, cache) = (
        waiting("memory.short", 400.0),
        waiting("cache.too-small", 200.0),
    );
    let before = of(vec![cache.clone(), memory.clone()], 600.0);
    let after = of(vec![cache], 150.0);
    let found = changes(&before, &after);
    assert_eq!(
        (&*found[0].id, &*found[0].change),
        ("cache.too-small", "unknown")
    );
    assert!(
        found[0]
            .verdict
            .contains("the same waiting as memory.short"),
        "{}",
        found[0].verdict
    );
    assert_eq!((&*found[1].change, found[1].after), ("gone", Some(150.0)));
    assert!(
        found[1].verdict.contains("saved 450"),
        "{}",
        found[1].verdict
    );
    let both_gone = changes(&of(vec![memory], 600.0), &of(Vec::new(), 150.0));
    assert!(both_gone[0].verdict.contains("saved 450"));
}

/// A regression: scans that were only stopped were certified as what an index had saved.
#[test]
fn what_was_not_acted_on_is_not_the_remedy() {
    let with = |cache_bytes: u64, indexes: &[&str], findings: Vec<Finding>| {
        let mut one = at_load(run(None, findings), 500.0, 148.0);
        let mut member = seekscope_run::MemberRecord::default();
        member.target.cache_bytes = Some(cache_bytes);
        let indexes = indexes.iter().map(|keys| seekscope_run::IndexFacts {
            keys: (*keys).into(),
            ..seekscope_run::IndexFacts::default()
        });
        member.collections = vec![seekscope_run::CollectionFacts {
            namespace: "shop.orders".into(),
            indexes: indexes.collect(),
            ..seekscope_run::CollectionFacts::default()
        }];
        one.0.examination.as_mut().unwrap().members = vec![member];
        one
    };
    let scan = || Finding {
        subject: "shop.orders".into(),
        ..waiting("query.collection-scan", 55.0)
    };
    let id = r#"{ "_id": 1 }"#;
    let before = with(
        1 << 28,
        &[id],
        vec![scan(), waiting("cache.too-small", 55.0)],
    );
    let verdicts = |now: &Run| -> Vec<String> {
        let found = changes(&before, now);
        found.into_iter().map(|change| change.verdict).collect()
    };
    for verdict in verdicts(&with(1 << 28, &[id], Vec::new())) {
        assert!(
            verdict.contains("it is what is asked of the server that changed"),
            "{verdict}"
        );
    }
    for verdict in verdicts(&with(1 << 30, &[id, r#"{ "by": 1 }"#], Vec::new())) {
        assert!(!verdict.contains("it is what is asked"), "{verdict}");
    }
}

/// A regression: of a limit that still stood "gone, as predicted" was said once nobody wrote any more.
#[test]
fn a_limit_that_still_stands_was_no_remedy() {
    let limited = |per_s: u64, findings: Vec<Finding>| {
        let mut one = at_load(run(None, findings), 500.0, 148.0);
        let examination = one.0.examination.as_mut().unwrap();
        examination.members = vec![seekscope_run::MemberRecord::default()];
        let surroundings = &mut examination.host.as_mut().unwrap().surroundings;
        surroundings.io_limits = vec![seekscope_run::IoLimit {
            cgroup: "/db".into(),
            device: "8:0".into(),
            what: "write IOPS".into(),
            per_s,
        }];
        one
    };
    let before = limited(50, vec![waiting("disk.limited", 3570.0)]);
    let verdict = |per_s: u64| {
        changes(&before, &limited(per_s, Vec::new()))
            .remove(0)
            .verdict
    };
    assert!(verdict(50).contains("the limits are what they were"));
    assert!(!verdict(5_000).contains("the limits are what they were"));
}

/// A run in which so many of the steps within shop.orders are in order.
fn in_order(share: f64, run: Run) -> Run {
    let (mut document, diagnosis) = run;
    let file = &mut document.layout.as_mut().unwrap().files[0];
    file.order = Some(seekscope_run::ScanOrder {
        sequential_share: share,
        ..seekscope_run::ScanOrder::default()
    });
    (document, diagnosis)
}

#[test]
fn an_order_that_became_worse_is_not_called_the_same_under_another_load() {
    let waited = |share: f64, operations_per_s: f64| {
        let finding = Finding {
            gain: Some(Gain {
                unit: "s of waiting per hour".into(),
                ..key_order("shop.orders").gain.unwrap()
            }),
            ..key_order("shop.orders")
        };
        let of_disk = |(mut document, diagnosis): Run| {
            document.layout.as_mut().unwrap().predicted_for = format!("disk of {share}");
            (document, diagnosis)
        };
        let run = of_disk(in_order(share, run(Some(31.0), vec![finding])));
        at_load(
            with_waited(run, operations_per_s / 10.0),
            operations_per_s,
            operations_per_s,
        )
    };
    for (then, now, change) in [
        (0.72, 0.30, "worse"),
        (0.30, 0.72, "better"),
        (0.72, 0.70, "same"),
    ] {
        let found = changes(&waited(then, 1_000.0), &waited(now, 10.0));
        assert_eq!(found[0].change, change, "{found:?}");
        assert!(found[0].verdict.starts_with("cannot be told"), "{found:?}");
    }
}

#[test]
fn diagnostic_files_do_not_show_that_anything_is_gone() {
    let before = vec![
        waiting("cache.too-small", 4_000.0),
        waiting("server.old-settings", 0.0),
        waiting("cpu.saturated", 10.0),
    ];
    let before = at_load(with_waited(run(None, before), 5_000.0), 500.0, 500.0);
    let (mut document, diagnosis) = at_load(run(None, Vec::new()), 500.0, 500.0);
    document.examination = Some(ExaminationRecord {
        ftdc: Some(seekscope_run::FtdcFacts::default()),
        ..ExaminationRecord::default()
    });
    for change in changes(&before, &(document, diagnosis)) {
        assert_eq!(
            (change.change.as_str(), change.after),
            ("unknown", None),
            "{change:?}"
        );
    }
}

#[test]
fn hashed_names_are_not_found_among_others() {
    let named = |subject: &str, member: &str, redacted: bool| {
        let (mut document, diagnosis) =
            at_load(run(Some(31.0), vec![key_order(subject)]), 100.0, 100.0);
        let examination = document.examination.as_mut().unwrap();
        examination.redacted = redacted;
        examination.members.push(seekscope_run::MemberRecord {
            name: member.into(),
            ..seekscope_run::MemberRecord::default()
        });
        (document, diagnosis)
    };
    let plain = named("shop.orders", "db:1", false);
    let (one_salt, other_salt) = (named("xa.xb", "xc:1", true), named("xd.xe", "xf:1", true));
    for (before, after) in [
        (&plain, &one_salt),
        (&one_salt, &plain),
        (&one_salt, &other_salt),
    ] {
        let found = changes(before, after);
        assert_eq!(found.len(), 2);
        for change in found {
            assert_eq!(change.change, "unknown", "{change:?}");
            assert!(change.verdict.contains("--salt-file"), "{change:?}");
        }
    }
    // The name of this host is not hashed, and the folder of the data is.
    let in_folder = |subject: &str, folder: &str| {
        let (mut document, diagnosis) = named(subject, "127.0.0.1:27017", true);
        let member = &mut document.examination.as_mut().unwrap().members[0];
        member.target.dbpath = Some(folder.into());
        (document, diagnosis)
    };
    let found = changes(&in_folder("xa.xb", "/xg"), &in_folder("xd.xe", "/xh"));
    assert!(
        found.iter().all(|change| change.change == "unknown"),
        "{found:?}"
    );
    let found = changes(&one_salt, &one_salt);
    assert_eq!((found.len(), found[0].change.as_str()), (1, "same"));
}
