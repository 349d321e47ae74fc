use seekscope_run::{
    ExaminationRecord, HostSettings, LayoutFile, LayoutMeasurement, PredictedScan,
};

use super::*;
use crate::Answers;

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

/// A run in which a scan of shop.orders is predicted to take so long.
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
        "as predicted: saved 28.000 s per cold scan, predicted 20.000 to 30.000"
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

#[test]
fn waiting_is_compared_under_like_loads() {
    let scheduler = |saves: f64| Finding {
        id: "scheduler.unfit".into(),
        saves_s_per_hour: Some(saves),
        gain: Some(Gain {
            value: 50.0,
            low: 40.0,
            high: 60.0,
            unit: "s per hour".into(),
        }),
        ..Finding::default()
    };
    let before = run(None, vec![scheduler(55.0)]);
    let found = changes(&before, &run(None, Vec::new()));
    assert_eq!((found[0].before, found[0].after), (Some(55.0), Some(0.0)));
    assert!(
        found[0].verdict.starts_with("as predicted"),
        "{}",
        found[0].verdict
    );

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
        ..scheduler(55.0)
    };
    let with_calls = |finding: Finding, scan_s: f64, calls_per_s: Option<f64>| {
        let mut run = run(Some(scan_s), vec![finding]);
        run.1.answers.device_users = calls_per_s.map(user).into_iter().collect();
        run
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
    // None: the layout tells.
    let found = changes(&before, &with_calls(of("layout.key-order-lost"), 3.0, None));
    assert_eq!(
        (found[0].after, found[0].change.as_str()),
        (Some(36.0), "better")
    );
    // Fewer calls are what an index is for.
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
    assert_eq!(found[0].after, None, "there was no trace");
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
