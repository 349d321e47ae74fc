//! The report of an examination: what it says with everything at hand, with nothing, and of hostile names.

use seekscope_doctor::Diagnosis;
use seekscope_doctor::evidence::Counters;
use seekscope_report::doctor::{DoctorReportInput, first_screen, html, verdict};
use seekscope_run::{Limitation, Outcome, RunDocument};

use crate::doctor_sample::{DoctorSample, examination};
use crate::{assert_harmless, between, markup};

const WIDTH: u16 = 100;

/// The lines of commands, and all others.
fn commands_and_text(screen: &str) -> (Vec<&str>, Vec<&str>) {
    screen
        .lines()
        .partition(|line| line.trim_start().starts_with("$ "))
}

#[test]
fn the_first_screen_has_the_verdict_and_five_findings_with_commands_in_one_piece() {
    let screen = examination(1000, false).terminal(WIDTH);
    let (commands, text) = commands_and_text(&screen);
    assert!(
        text.iter()
            .all(|line| line.chars().count() <= usize::from(WIDTH)),
        "{screen}"
    );
    for number in 1..=5 {
        assert!(
            text.iter()
                .any(|line| line.starts_with(&format!("{number}. "))),
            "{screen}"
        );
    }
    assert!(
        !screen.contains("\n6. ") && screen.contains("Further findings (2,"),
        "{screen}"
    );
    assert!(
        commands.contains(&"   $ seekscope reorder mongodb://db2.example:27017 shop.orders"),
        "{screen}"
    );
    assert_eq!(commands.len(), 5, "{screen}");
    assert!(
        screen.contains("The disk is the bottleneck: 87.0 %"),
        "{screen}"
    );
    assert!(
        screen.contains("Gain: 1,410 s of waiting per hour (between 1,180 and 1,630)."),
        "{screen}"
    );
    assert!(
        screen.contains("\nNot measured: io_uring. Why: "),
        "{screen}"
    );
}

#[test]
fn commands_without_the_user_that_was_given_say_so() {
    let mut sample = examination(1000, false);
    let asks_for_it = |sample: &DoctorSample| {
        let screen = sample.terminal(WIDTH);
        let page = sample.html().unwrap();
        [
            screen.contains("add -u USER to mongosh"),
            page.contains("add -u USER to mongosh"),
        ]
    };
    assert_eq!(asks_for_it(&sample), [false, false]);
    sample.trace.document.target.as_mut().unwrap().has_user = true;
    assert_eq!(asks_for_it(&sample), [true, true]);
}

#[test]
fn escape_sequences_reach_neither_terminal_nor_page() {
    let sample = examination(1000, true);
    let screen = sample.terminal(WIDTH);
    assert!(
        !screen.contains(['\u{7}', '\u{0}', '\u{202e}', '\u{1b}']),
        "{screen}"
    );
    assert!(screen.contains(r"abc\u{202e}fdp"), "{screen}");
    assert_harmless(&sample.html().unwrap());
}

#[test]
fn the_page_answers_every_question_and_links_to_the_answers() {
    let page = examination(1000, false).html().unwrap();
    let contents = between(&page, "<nav", "</nav>");
    let links: Vec<&str> = contents
        .split("href=\"#")
        .skip(1)
        .map(|rest| between(rest, "", "\""))
        .collect();
    let expected = [
        "tracks",
        "figures",
        "layout",
        "device",
        "checkpoints",
        "durations",
        "space",
        "memory",
        "host",
        "server",
        "members",
        "further",
        "limitations",
        "facts",
    ];
    assert_eq!(links, expected);
    for id in links {
        let places = markup(&page).matches(&format!("id=\"{id}\"")).count();
        assert_eq!(places, 1, "{id}");
    }
}

/// A run of which only the login was known, and not even that answered.
#[test]
fn a_page_about_nothing_says_so_and_has_no_empty_sections() {
    let mut document = RunDocument::begin("doctor", vec!["doctor".into(), "URI".into()]);
    document.outcome = Outcome::Ok;
    document.limitations = (0..9)
        .map(|nth| Limitation {
            what: format!("thing {nth}"),
            why: "no right".into(),
            remedy: "root".into(),
        })
        .collect();
    let input = DoctorReportInput {
        document: &document,
        diagnosis: &Diagnosis::default(),
        trace: None,
        counters: &Counters::default(),
        events: &|_| panic!("there is no trace to read"),
        leaves: &|_| panic!("there is no layout to read"),
    };
    assert!(verdict(&input).starts_with("Too little could be measured"));
    let page = html(&input).unwrap();
    for id in [
        "tracks", "figures", "layout", "device", "memory", "members", "since", "further",
    ] {
        assert!(
            !markup(&page).contains(&format!("<section id=\"{id}\"")),
            "{id}"
        );
    }
    assert!(page.contains("No finding."));
    let screen = first_screen(&input, WIDTH);
    assert!(screen.contains("thing 5; and 3 more."), "{screen}");
}
