//! Reports of disk runs.

use std::collections::BTreeMap;

use seekscope_report::disk::{DiskReportInput, html, sentences, terminal};
use seekscope_run::{DiskMeasurement, Outcome, RunDocument, StepGroup};

use crate::disk_sample::{DiskSample, disk_run, job_run};
use crate::hostile::HOSTILE_NAMES;
use crate::{assert_closed, assert_harmless, first_line, markup};

/// Ids of the sections that a page has.
const SECTIONS: [&str; 14] = [
    "ramp",
    "sequential",
    "order",
    "read-ahead",
    "journal",
    "checkpoint",
    "mixed",
    "mmap",
    "percentiles",
    "seconds",
    "model",
    "trust",
    "surroundings",
    "steps",
];

fn measurement(sample: &mut DiskSample) -> &mut DiskMeasurement {
    sample.document.disk.get_or_insert_default()
}

fn has_section(page: &str, id: &str) -> bool {
    markup(page).contains(&format!("<section id=\"{id}\">"))
}

#[test]
fn hostile_text_stays_text() {
    let sample = disk_run(true);
    let page = html(&sample.input());
    assert_harmless(&page);
    assert_closed(&page);
    let text = terminal(&sample.input(), 100);
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'));
    assert!(!text.contains('\u{202e}') && text.contains(HOSTILE_NAMES[0]));
}

#[test]
fn a_complete_run_has_all_sections_and_all_sentences() {
    let sample = disk_run(false);
    let page = html(&sample.input());
    for id in SECTIONS {
        assert!(has_section(&page, id), "{id}");
    }
    assert_closed(&page);
    let said = sentences(sample.document.disk.as_ref().unwrap());
    assert!(said.len() >= 18, "{said:?}");
    let text = terminal(&sample.input(), 100).replace("\n  ", " ");
    let page = markup(&page).replace("&amp;", "&");
    for (key, sentence) in said {
        assert!(
            page.contains(&sentence),
            "{key} is not on the page: {sentence}"
        );
        assert!(
            text.contains(&sentence),
            "{key} is not in the text: {sentence}"
        );
    }
}

#[test]
fn what_was_not_measured_does_not_appear() {
    for (group, section) in [
        (StepGroup::Ramp, "ramp"),
        (StepGroup::SequentialDirect, "sequential"),
        (StepGroup::ReadAhead, "read-ahead"),
        (StepGroup::Checkpoint, "checkpoint"),
        (StepGroup::Mixed, "mixed"),
        (StepGroup::Mmap, "mmap"),
    ] {
        let mut sample = disk_run(false);
        let shown = html(&sample.input());
        measurement(&mut sample)
            .steps
            .retain(|step| step.group != group);
        if group == StepGroup::SequentialDirect {
            // The order steps hold a sequential one too.
            measurement(&mut sample)
                .steps
                .retain(|step| step.group != StepGroup::Order);
        }
        let page = html(&sample.input());
        assert!(
            has_section(&shown, section) && !has_section(&page, section),
            "{section}"
        );
        let text = terminal(&sample.input(), 100);
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    }
}

#[test]
fn an_interrupted_run_says_so_first_and_shows_what_it_has() {
    let mut sample = disk_run(false);
    sample.document.outcome = Outcome::Partial;
    sample.document.outcome_reason = Some("interrupted".into());
    measurement(&mut sample).steps.truncate(3);
    measurement(&mut sample).model = None;
    // Cut short before anything was done.
    measurement(&mut sample).steps[2].jobs[0].reads = Default::default();
    let page = html(&sample.input());
    assert!(first_line(&page).contains("Partial run (interrupted)"));
    assert!(has_section(&page, "ramp") && !has_section(&page, "model"));
    let text = terminal(&sample.input(), 100);
    assert!(text.starts_with("Partial run (interrupted)"), "{text}");
    assert!(
        text.contains("RANDOM READS BY DEPTH") && !text.contains("DEVICE MODEL"),
        "{text}"
    );
}

#[test]
fn a_run_that_measured_nothing_is_still_a_report() {
    let document = RunDocument::begin("disk", Vec::new());
    let input = DiskReportInput {
        document: &document,
        histograms: &BTreeMap::new(),
        seconds: &[],
        predictions: &[],
    };
    let page = html(&input);
    assert!(first_line(&page).contains("Nothing was measured."));
    assert!(page.contains("Nothing was measured in this run"));
    assert!(terminal(&input, 80).contains("Nothing was measured."));
}

#[test]
fn percentiles_without_operations_behind_them_are_not_shown() {
    let mut sample = disk_run(false);
    measurement(&mut sample).steps.truncate(1);
    let latency = &mut measurement(&mut sample).steps[0].jobs[0].reads.latency;
    latency.count = 99;
    (latency.p99_ns, latency.p999_ns) = (111_111_111, 222_222_222);
    sample.histograms.clear();
    sample.seconds.clear();
    for report in [html(&sample.input()), terminal(&sample.input(), 100)] {
        let report = markup_or_all(&report);
        assert!(report.contains("too few"));
        assert!(
            !report.contains("111 ms") && !report.contains("222 ms"),
            "{report}"
        );
    }
}

fn markup_or_all(report: &str) -> &str {
    match markup(report) {
        "" => report,
        page => page,
    }
}

#[test]
fn a_job_shows_its_own_table_and_how_its_rate_held() {
    let sample = job_run(90);
    let page = html(&sample.input());
    assert!(has_section(&page, "job") && !has_section(&page, "ramp"));
    let text = terminal(&sample.input(), 100).replace("\n  ", " ");
    assert!(
        text.contains("randread, 4 KiB, uring, direct, depth 32"),
        "{text}"
    );
    assert!(
        text.contains("The rate fell by ") && text.contains("after 31 s"),
        "{text}"
    );
}

#[test]
fn predictions_stand_beside_what_was_measured() {
    let mut sample = disk_run(false);
    sample.predictions[0].name = "a trace of yesterday".into();
    let page = html(&sample.input());
    assert!(page.contains("a trace of yesterday"));
    assert!(markup(&page).contains("The model made from this run was off by at most 15.3 %"));
    assert!(
        markup(&page).contains("not predicted"),
        "disk order has lost its prediction"
    );
}

#[test]
fn the_same_run_gives_the_same_report() {
    let sample = disk_run(false);
    assert!(html(&sample.input()) == html(&sample.input()));
    assert_eq!(terminal(&sample.input(), 80), terminal(&sample.input(), 80));
}
