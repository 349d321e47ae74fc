//! Benchmarks: what the page and the terminal say, and what comparisons find.

use seekscope_report::bench::comparison::{BenchComparison, Measure, Method, Side, compare};
use seekscope_report::bench::{comparison_terminal, html, terminal};
use seekscope_run::{Outcome, StorageFacts, Verification};

use crate::bench_sample::{BenchSample, Maker, Wanted, bench_run};
use crate::hostile::HOSTILE_NAMES;

const WIDTH: u16 = 100;

/// One step of a closed loop: what comparisons are tried on. `ratio`: how much faster than usual.
fn plain(seed: u64, ratio: f64, seconds: u64) -> BenchSample {
    let mut maker = Maker::new(seed);
    let mut wanted = Wanted::run("run", 2000.0 * ratio, seconds);
    wanted.p50_us /= ratio;
    maker.step(&wanted);
    maker.finish()
}

fn compared(samples: &[BenchSample]) -> BenchComparison {
    let sides: Vec<Side<'_>> = samples
        .iter()
        .enumerate()
        .map(|(i, s)| Side::of_run(format!("run {i}"), &s.document, &s.records))
        .collect();
    compare(&sides, false)
}

#[test]
fn the_first_line_is_the_verdict() {
    let mut sample = plain(1, 1.0, 20);
    assert!(
        sample.terminal(WIDTH).starts_with("OK: "),
        "{}",
        sample.terminal(WIDTH)
    );
    sample.document.bench.as_mut().unwrap().is_left_changed = true;
    let text = sample.terminal(WIDTH);
    let first = text.lines().next().unwrap();
    assert!(first.contains("not set as its owner set it"), "{text}");
    let steps = &mut sample.document.bench.as_mut().unwrap().steps;
    steps[0].invalid = vec!["the backlog grew to 4,000 operations".into()];
    let text = sample.terminal(WIDTH);
    assert!(
        text.starts_with("INVALID: run: the backlog grew to 4,000 operations."),
        "{text}"
    );
    assert!(sample.html().contains(r#"data-outcome="invalid""#));
    // A probe of a search is meant to find what is too much.
    let steps = &mut sample.document.bench.as_mut().unwrap().steps;
    steps[0].kind = "probe".into();
    assert!(sample.terminal(WIDTH).starts_with("OK: "));
    sample.document.outcome = Outcome::Partial;
    sample.document.outcome_reason = Some("interrupted by SIGINT".into());
    let text = sample.terminal(WIDTH);
    assert!(
        text.starts_with("Partial (interrupted by SIGINT)"),
        "{text}"
    );
    sample.document.bench = None;
    let (text, page) = (terminal(&sample.input(), WIDTH), html(&sample.input()));
    assert!(text.starts_with("Partial"), "{text}");
    assert!(page.contains("Nothing was measured in this run"));
}

#[test]
fn the_terminal_says_what_a_performance_engineer_asks() {
    let sample = bench_run(60, false);
    let text = sample.terminal(WIDTH);
    for said in [
        "open loop, Poisson arrivals at 2,000/s",
        "response",
        "17.0 µs",
        "95.0 µs",
        "connection reset by peer",
        "Maximum with p99=20ms: 4,000 operations per second",
        "One document per month",
        "one document per sample",
        "B / A",
    ] {
        assert!(text.contains(said), "{said} is missing from\n{text}");
    }
    // With many steps the table says what sentences say of few.
    let conditions = "open loop, Poisson arrivals at 2,000/s";
    let warmed_up = |line: &str| line.contains(conditions) && line.contains("10.0 s");
    assert!(text.lines().any(warmed_up), "{text}");
    let wide = text
        .lines()
        .find(|line| line.chars().count() > usize::from(WIDTH));
    assert_eq!(wide, None, "{text}");
    assert!(!terminal(&sample.input(), 60).is_empty());
}

#[test]
fn lost_writes_stand_in_the_first_line() {
    let mut sample = plain(1, 1.0, 20);
    let steps = &mut sample.document.bench.as_mut().unwrap().steps;
    steps[0].verification = Some(Verification {
        expected: Some(10),
        counted: Some(9),
        ..Verification::default()
    });
    let text = sample.terminal(WIDTH);
    let first = text.lines().next().unwrap();
    assert!(
        first.contains("Acknowledged writes are not all there"),
        "{text}"
    );
    assert!(text.contains("VERIFICATION FAILED"), "{text}");
}

#[test]
fn hostile_names_give_no_orders() {
    let sample = bench_run(40, true);
    let (text, page) = (sample.terminal(WIDTH), sample.html());
    for output in [&text, &page] {
        assert!(!output.contains(['\u{7}', '\u{0}', '\u{202e}']));
    }
    for name in [HOSTILE_NAMES[0], HOSTILE_NAMES[1], HOSTILE_NAMES[3]] {
        assert!(!page.contains(name), "{name}");
    }
    assert!(page.contains("&lt;img src=x onerror="));
}

#[test]
fn runs_that_differ_by_a_fifth_are_told_apart() {
    let found = compared(&[plain(1, 1.0, 90), plain(2, 1.2, 90)]);
    for compared in found
        .compared
        .iter()
        .filter(|c| c.measure == Measure::PerSecond && !c.operation.is_empty())
    {
        let against = compared.against_first[0].unwrap();
        let comparison = against.comparison.unwrap();
        assert!(comparison.differs, "{compared:?}");
        assert!(
            comparison.low <= 1.2 && 1.2 <= comparison.high,
            "{compared:?}"
        );
        assert!((against.ratio - 1.2).abs() < 0.04, "{compared:?}");
        assert_eq!(against.method, Some(Method::BlockBootstrap));
    }
    let p50 = found
        .compared
        .iter()
        .find(|c| c.measure == Measure::ServiceP50Ns)
        .unwrap();
    let comparison = p50.against_first[0].unwrap().comparison.unwrap();
    assert!(comparison.differs && comparison.high < 1.0, "{p50:?}");
    let text = comparison_terminal(&found, &[], WIDTH);
    assert!(
        text.contains("B does") && text.contains("more per second than A"),
        "{text}"
    );
}

#[test]
fn equal_runs_are_not_told_apart_and_it_is_said_what_could_have_been() {
    let mut false_findings = 0;
    for seed in 0..20 {
        let found = compared(&[plain(100 + seed, 1.0, 90), plain(200 + seed, 1.0, 90)]);
        let tested = found
            .compared
            .iter()
            .flat_map(|c| &c.against_first)
            .flatten();
        let differs = |c: &seekscope_stats::RatioComparison| c.differs;
        false_findings += usize::from(tested.filter_map(|a| a.comparison).any(|c| differs(&c)));
        let rate = found
            .compared
            .iter()
            .find(|c| c.measure == Measure::PerSecond)
            .unwrap();
        let comparison = rate.against_first[0].unwrap().comparison.unwrap();
        assert!(comparison.detectable < 0.1, "{comparison:?}");
    }
    assert!(false_findings <= 3, "{false_findings} of 20");
    let found = compared(&[plain(1, 1.0, 90), plain(2, 1.0, 90)]);
    let text = comparison_terminal(&found, &["note well".into()], WIDTH);
    assert!(
        text.contains("no detectable difference between A and B above"),
        "{text}"
    );
    assert!(text.contains("note well"), "{text}");
}

/// Repetitions of two variants, with the machine's speed drifting under both.
fn repeated(ratio: f64) -> BenchSample {
    let mut maker = Maker::new(5);
    for repetition in 1..=6 {
        let drift = 1.0 + 0.1 * f64::from(repetition);
        for (variant, own) in [("a", 1.0), ("b", ratio)] {
            maker.step(&Wanted {
                variant: variant.into(),
                repetition,
                ..Wanted::run(&format!("{variant}{repetition}"), 1000.0 * own * drift, 12)
            });
        }
    }
    maker.finish()
}

#[test]
fn interleaved_variants_are_compared_in_pairs() {
    let text = repeated(1.2).terminal(WIDTH);
    assert!(text.contains("more per second than A"), "{text}");
    // The answer, then its table, then the steps.
    let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what}: {text}"));
    assert!(at("more per second than A") < at("B / A") && at("B / A") < at("p99.9"));
    let text = repeated(1.0).terminal(WIDTH);
    assert!(
        text.contains("no detectable difference between A and B"),
        "{text}"
    );
    assert!(repeated(1.2).html().contains("chart-variants"));
}

/// Two equal servers, each loaded once: as they were after a checkpoint. Every repetition has its side's size, and
/// that spread of nothing was taken for certainty.
#[test]
fn sizes_of_one_load_each_are_not_claimed_to_differ() {
    let mut sample = repeated(1.0);
    for step in &mut sample.document.bench.as_mut().unwrap().steps {
        let storage_bytes = match step.variant.as_str() {
            "a" => 26_440_000,
            _ => 26_710_000,
        };
        step.storage_after = Some(StorageFacts {
            documents: 20_000,
            data_bytes: 22_000_000,
            storage_bytes,
            ..StorageFacts::default()
        });
    }
    let text = sample.terminal(WIDTH);
    let lines = text.lines().filter(|line| line.contains("on disk"));
    let lines: Vec<&str> = lines.filter(|line| line.contains("1.01")).collect();
    assert_eq!(lines.len(), 2, "{text}");
    for line in lines {
        assert!(!line.contains(" to "), "{line}");
    }
    assert!(text.contains("Sizes have no interval"), "{text}");
}

/// CPU time is counted in ticks of 10 ms. The spread that different numbers of operations make of the same ticks is not
/// that of the CPU time.
#[test]
fn cpu_time_of_few_ticks_is_not_claimed_to_differ() {
    let compared = |pairs: u32, ticks: [u64; 2]| {
        let mut maker = Maker::new(5);
        for repetition in 1..=pairs {
            for (variant, ticks) in ["a", "b"].into_iter().zip(ticks) {
                let step = maker.step(&Wanted {
                    variant: variant.into(),
                    repetition,
                    ..Wanted::run(&format!("{variant}{repetition}"), 1000.0, 12)
                });
                step.requests = 3000 + u64::from(variant == "a" && repetition == 1);
                step.server_cpu_ns = Some(ticks * 10_000_000);
            }
        }
        let sample = maker.finish();
        let steps = &sample.document.bench.as_ref().unwrap().steps;
        let sides = ["a", "b"].map(|variant| Side {
            label: variant.into(),
            steps: steps
                .iter()
                .filter(|step| step.variant == variant)
                .map(|step| (&sample.records, step))
                .collect(),
        });
        let found = compare(&sides, true);
        let mut rows = found.compared.iter();
        let cpu = rows.find(|row| row.measure == Measure::ServerCpuNsPerOperation);
        cpu.unwrap().against_first[0].unwrap().comparison.unwrap()
    };
    let few = compared(2, [23, 17]);
    assert!(!few.differs && few.detectable > 1.0, "{few:?}");
    let many = compared(6, [2300, 1700]);
    assert!(many.differs && many.detectable < 0.01, "{many:?}");
}

#[test]
fn three_runs_are_each_compared_with_the_first() {
    let found = compared(&[plain(1, 1.0, 60), plain(2, 1.2, 60), plain(3, 0.7, 60)]);
    let rate = found
        .compared
        .iter()
        .find(|c| c.operation == "READ")
        .unwrap();
    assert_eq!(rate.values.len(), 3);
    let ratios: Vec<f64> = rate
        .against_first
        .iter()
        .map(|a| a.unwrap().ratio)
        .collect();
    assert!(ratios[0] > 1.1 && ratios[1] < 0.8, "{ratios:?}");
    let text = comparison_terminal(&found, &[], 120);
    assert!(text.contains("C / A"), "{text}");
}
