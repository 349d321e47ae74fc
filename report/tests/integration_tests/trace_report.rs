//! Reports of traces: what they say, and what they never let through.

use seekscope_pattern::{AnalysisOptions, TraceAnalyser};
use seekscope_report::trace::{TraceReportInput, html};
use seekscope_run::{Outcome, RunError};

use crate::trace_sample::{TraceSample, trace};
use crate::{assert_closed, assert_harmless, first_line};

/// Empty when it cannot be made, which no test takes for a page.
fn page(sample: &TraceSample) -> String {
    sample.html().unwrap_or_default()
}

#[test]
fn hostile_text_stays_text() {
    let sample = trace(2_000, true);
    assert_harmless(&page(&sample));
    let text = sample.terminal(100);
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text}");
    assert!(!text.contains('\u{202e}'));
}

#[test]
fn the_policy_names_the_one_script_and_the_one_style() {
    assert_closed(&page(&trace(2_000, false)));
}

#[test]
fn loss_and_truncation_come_first() {
    let mut sample = trace(2_000, false);
    let lossy = page(&sample);
    assert!(
        first_line(&lossy).contains("Events were lost: 60 of "),
        "{}",
        first_line(&lossy)
    );
    assert!(
        sample
            .terminal(100)
            .starts_with("Finished run, with gaps. Events were lost: 60 of ")
    );
    let facts = sample.document.phases[0].trace.as_mut().unwrap();
    (facts.lost, facts.seen) = (12, facts.written + 12);
    let counted = page(&sample);
    assert!(
        first_line(&counted).contains("Complete run") && first_line(&counted).contains("12 lost."),
        "twelve of three thousand change no conclusion: {}",
        first_line(&counted)
    );
    let facts = sample.document.phases[0].trace.as_mut().unwrap();
    (facts.lost, facts.seen, facts.overwritten) = (0, facts.written + 5, 5);
    let complete = page(&sample);
    assert!(first_line(&complete).contains("0 lost. 5 older ones were replaced"));
    let facts = sample.document.phases[0].trace.as_mut().unwrap();
    facts.truncated = true;
    sample.document.outcome = Outcome::Partial;
    let cut = page(&sample);
    assert!(first_line(&cut).contains("cut off before its trailer"));
    let recording = cut.split_once("id=\"recording\"").unwrap().1;
    let seen = recording.split_once("Events seen").unwrap().1;
    let value = seen.split_once("</tr>").unwrap().0;
    assert!(
        value.contains("missing"),
        "what is not known is not a number: {value}"
    );
}

#[test]
fn the_terminal_keeps_to_its_width_and_says_what_stands_out() {
    let text = trace(20_000, false).terminal(110);
    let widest = text
        .lines()
        .map(|line| line.trim_end().chars().count())
        .max()
        .unwrap();
    assert!(widest <= 110, "{widest}\n{text}");
    for part in [
        "are random: > 99.9 % of the steps are seeks",
        "Syncs of WiredTigerLog.0000000003: 1,000",
        "sequential",
        "checkpoint",
        "254:0",
        "io_uring",
        "directory /var/lib/db",
    ] {
        assert!(text.contains(part), "{part} is missing from\n{text}");
    }
}

#[test]
fn events_that_cannot_be_read_are_an_error() {
    let sample = trace(100, false);
    let analysis = TraceAnalyser::new(AnalysisOptions::default()).finish(&[], &[]);
    let events = |_: &mut dyn FnMut(&seekscope_run::IoEvent)| {
        Err(RunError::NotARun {
            path: "/nowhere".into(),
        })
    };
    let input = TraceReportInput {
        document: &sample.document,
        analysis: &analysis,
        events: &events,
    };
    assert!(html(&input).is_err());
}

#[test]
fn a_trace_of_nothing_is_still_a_report() {
    let mut sample = trace(0, false);
    sample.document.phases.clear();
    let page = page(&sample);
    assert!(page.contains("Nothing stands out because there were hardly any calls."));
    assert!(first_line(&page).contains("no trailer"));
}

#[test]
fn the_same_trace_gives_the_same_report() {
    let sample = trace(2_000, false);
    let first = page(&sample);
    assert!(first.len() > 10_000 && first == page(&sample));
}
