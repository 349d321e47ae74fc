mod cpus;
mod figures;
mod loads;
mod older;
mod remedies;

use seekscope_run::{
    ExaminationRecord, Gain, HostSettings, LayoutFile, LayoutMeasurement, PredictedScan,
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
        ..WorkAnswer::default()
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

/// The same with this much waiting for reads, s per hour, all of which the findings are to save.
fn with_waited((document, mut diagnosis): Run, reads: f64) -> Run {
    diagnosis.answers.waited.reads = reads;
    for gain in diagnosis
        .findings
        .iter_mut()
        .filter_map(|f| f.gain.as_mut())
    {
        *gain = gain_of(reads);
    }
    (document, diagnosis)
}

fn gain_of(value: f64) -> Gain {
    Gain {
        value,
        low: value * 0.8,
        high: value * 1.2,
        unit: "s of waiting per hour".into(),
    }
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
    assert_eq!(same.change, "same", "{}", same.verdict);
    assert_eq!(same.after, same.before);
    let mended = changes(&before, &lying(Vec::new(), 0.97, "fast")).remove(0);
    assert_eq!(mended.change, "gone", "{}", mended.verdict);
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
        ("same", "it is as it was; nothing was predicted")
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

/// A run in which this many of the steps within shop.orders are in order.
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
        let begins = match change {
            "same" => {
                "nothing changed: 72 % of the steps from leaf to leaf in order then, 70 % now"
            }
            _ => "cannot be told",
        };
        assert!(found[0].verdict.starts_with(begins), "{found:?}");
    }
}

/// A run with shop.orders in which a share of the steps is in order, and the scans that a model predicts for it, s.
fn modelled(share: f64, now_s: f64, ordered_s: f64, findings: Vec<Finding>) -> Run {
    let (mut document, diagnosis) = in_order(share, run(Some(now_s), findings));
    let layout = document.layout.as_mut().unwrap();
    layout.predicted_for = format!("ext4 on vda, {ordered_s} s measured");
    layout.files[0].predicted_scan.as_mut().unwrap().ordered_s = ordered_s;
    (document, diagnosis)
}

/// A regression: the model is measured anew for each run, and its text then named another disk.
#[test]
fn a_new_model_of_the_disk_changes_no_order() {
    let lost = || vec![key_order("shop.orders")];
    let before = modelled(0.2, 31.0, 3.0, lost());
    for findings in [lost(), Vec::new()] {
        let same = changes(&before, &modelled(0.22, 14.0, 1.4, findings)).remove(0);
        assert_eq!(same.change, "same", "{same:?}");
        assert!(
            same.verdict.starts_with("nothing changed: 20 %"),
            "{same:?}"
        );
    }
    // The scan of now as the model that made the prediction has it: 3 s, and 28 s of which 3 of 80 are left.
    let mended = changes(&before, &modelled(0.97, 1.5, 1.4, Vec::new())).remove(0);
    assert_eq!(
        (mended.change.as_str(), mended.before),
        ("gone", Some(31.0))
    );
    assert!((mended.after.unwrap() - 4.05).abs() < 1e-9, "{mended:?}");
    assert!(
        mended.verdict.starts_with("as predicted: saved 2"),
        "{mended:?}"
    );
    let worse = changes(&before, &modelled(0.05, 9.0, 1.0, lost())).remove(0);
    assert_eq!(worse.change, "worse", "{worse:?}");
}

/// Where the order was not recorded, scans are compared that were predicted for one disk, whatever its model is called.
#[test]
fn a_disk_is_known_by_its_device_and_limits() {
    let on = |device: &str, limit: u64, text: &str, scan_s: f64| {
        let (mut document, diagnosis) = run(Some(scan_s), vec![key_order("shop.orders")]);
        document.device = Some(seekscope_run::DeviceFacts {
            disk_device: Some(device.into()),
            ..Default::default()
        });
        let layout = document.layout.as_mut().unwrap();
        (layout.predicted_for, layout.disk_measured) = (text.into(), true);
        let host = document.examination.as_mut().unwrap().host.as_mut();
        host.unwrap().surroundings.io_limits = vec![seekscope_run::IoLimit {
            cgroup: format!("/db-{text}"),
            device: device.into(),
            what: "read IOPS".into(),
            per_s: limit,
        }];
        (document, diagnosis)
    };
    let before = on("8:0", 150, "a", 31.0);
    let change = |now: Run| changes(&before, &now).remove(0).change;
    assert_eq!(change(on("8:0", 150, "b", 3.0)), "better");
    assert_eq!(change(on("8:16", 150, "b", 3.0)), "unknown");
    assert_eq!(change(on("8:0", 300, "b", 3.0)), "unknown");
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
