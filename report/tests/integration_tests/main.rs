//! The report as a document: what it says, and what it never lets through.

mod bench_report;
mod disk_report;
mod doctor_report;
mod layout_report;
mod trace_report;
mod tune_report;

#[path = "../../examples/sample_report/bench_sample.rs"]
mod bench_sample;
#[path = "../../examples/sample_report/builds_sample.rs"]
mod builds_sample;
#[path = "../../examples/sample_report/disk_sample.rs"]
mod disk_sample;
#[path = "../../examples/sample_report/doctor_sample/mod.rs"]
mod doctor_sample;
#[path = "../../examples/sample_report/hostile.rs"]
mod hostile;
#[path = "../../examples/sample_report/layout_sample.rs"]
mod layout_sample;
#[path = "../../examples/sample_report/trace_sample.rs"]
mod trace_sample;
#[path = "../../examples/sample_report/tune_sample.rs"]
mod tune_sample;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use builds_sample::BuildsSample;
use hostile::HOSTILE_NAMES;
use seekscope_run::Outcome;
use sha2::{Digest, Sha256};

/// Empty when it cannot be made, which no test takes for a page.
fn render(sample: &BuildsSample) -> String {
    sample.html().unwrap_or_default()
}

/// The text between the first `open` and the next `close`; empty when there is none.
fn between<'a>(page: &'a str, open: &str, close: &str) -> &'a str {
    let rest = page.split_once(open).map_or("", |(_, rest)| rest);
    rest.split_once(close).map_or("", |(inside, _)| inside)
}

/// The visible part: without the style, the data and the script.
fn markup(page: &str) -> &str {
    between(page, "<body>", "<script")
}

fn first_line(page: &str) -> &str {
    between(page, "<p class=\"outcome\"", "</p>")
}

/// Nothing that the page was given as text has become markup.
fn assert_harmless(page: &str) {
    let markup = markup(page);
    assert!(markup.len() > 10_000);
    for name in HOSTILE_NAMES {
        assert!(!markup.contains(name), "{name} got through");
    }
    for element in ["<img", "<svg", "<script", "</script", "</title", "<style"] {
        assert!(!markup.contains(element), "{element}");
    }
    assert!(markup.contains("&lt;img src=x onerror=&quot;window.hacked=1&quot;&gt;"));
    assert!(markup.contains("abc\\u{202e}fdp.tw"));
    let outside_bundle = page.replace(between(page, "<style>", "</style>"), "");
    let (before_script, _) = outside_bundle
        .rsplit_once("<script>")
        .unwrap_or((&outside_bundle, ""));
    assert!(!before_script.chars().any(char::is_control));
    // Links lead to places in the page.
    let markup = markup.replace(" href=\"#", " ");
    for attribute in [" src=\"", " href=\"", " style=\"", "http-equiv=\"refresh"] {
        assert!(!markup.contains(attribute), "{attribute}");
    }
}

#[test]
fn hostile_text_stays_text() {
    assert_harmless(&render(&builds_sample::builds(400, true)));
}

/// The page may run its one script and use its one style, and load nothing.
fn assert_closed(page: &str) {
    let policy = between(page, "Content-Security-Policy\" content=\"", "\"");
    let script = page.rsplit_once("<script>").map_or("", |(_, rest)| rest);
    let script = script
        .split_once("</script>")
        .map_or("", |(script, _)| script);
    let style = between(page, "<style>", "</style>");
    let hash = |text: &str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)));
    assert_eq!(
        policy,
        format!(
            "default-src 'none'; script-src {}; style-src {}; base-uri 'none'; form-action 'none'",
            hash(script),
            hash(style)
        )
    );
    assert_eq!(page.matches("<script>").count(), 1);
}

#[test]
fn the_policy_names_the_one_script_and_the_one_style() {
    assert_closed(&render(&builds_sample::builds(400, false)));
}

#[test]
fn a_run_says_how_it_ended_in_its_first_line() {
    let mut run = builds_sample::builds(400, false);
    let limited = render(&run);
    assert!(first_line(&limited).contains("not everything could be measured"));
    assert!(!first_line(&limited).contains("Complete"));
    run.document.limitations.clear();
    let complete = render(&run);
    assert!(first_line(&complete).contains("Complete run"));
    assert!(first_line(&complete).contains("emulated hdd (150 IOPS, 150 MB/s)"));
    if let Some(trace) = &mut run.document.phases[0].trace {
        trace.lost = 12;
        trace.seen += 12;
    }
    let lossy = render(&run);
    assert!(first_line(&lossy).contains("Events were lost: 12 of 412 events (2.9 %)"));
    assert!(!first_line(&lossy).contains("Complete"));
    run.document.outcome = Outcome::Partial;
    run.document.outcome_reason = Some("interrupted".into());
    assert!(first_line(&render(&run)).contains("Partial run (interrupted)"));
}

#[test]
fn builds_are_set_against_one_another_and_only_traced_ones_have_pictures() {
    let mut run = builds_sample::builds(400, false);
    let builds = |page: &str| between(page, "<section id=\"builds\">", "</section>").to_string();
    let all = builds(&render(&run));
    assert_eq!(all.matches("<article class=\"phase\"").count(), 4);
    assert_eq!(all.matches("times as long (3 pairs").count(), 2);
    for phase in &mut run.document.phases[3..] {
        let later_ns = 1_000_000_000_000;
        (phase.started_ns, phase.ended_ns) =
            (phase.started_ns + later_ns, phase.ended_ns + later_ns);
    }
    let some = builds(&render(&run));
    assert_eq!(some.matches("<article class=\"phase\"").count(), 2);
    assert_eq!(some.matches("times as long (3 pairs").count(), 2);
    run.document.phases.truncate(1);
    assert_eq!(builds(&render(&run)), "");
}

#[test]
fn the_same_run_gives_the_same_report() {
    let run = builds_sample::builds(2_000, false);
    assert!(render(&run) == render(&run));
}
