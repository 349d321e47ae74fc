//! Reports of tuning sessions: what they say, what they draw, and what they never let through.

use seekscope_report::tune::{TuneSummary, html, terminal};
use seekscope_run::tune::{TrialStatus, TuneTrial, TuneVerdict};
use seekscope_run::{Outcome, RunDocument, TuneRecord};
use serde_json::Value;

use crate::hostile::HOSTILE_NAMES;
use crate::tune_sample::{BLOCKS, interrupted, session};
use crate::{assert_closed, between, markup};

const RUNS: usize = 40;

fn summary(record: &TuneRecord) -> Value {
    serde_json::to_value(TuneSummary::of(record)).unwrap_or_default()
}

/// The session after `change`.
fn changed(change: impl FnOnce(&mut TuneRecord)) -> RunDocument {
    let mut document = session(RUNS, false);
    change(document.tune.get_or_insert_default());
    document
}

fn first_line(document: &RunDocument) -> String {
    let text = terminal(document, 200);
    text.lines().next().unwrap_or_default().to_string()
}

/// The figure with this id.
fn figure<'a>(page: &'a str, id: &str) -> &'a str {
    between(
        page,
        &format!("<figure class=\"chart\" id=\"{id}\">"),
        "</figure>",
    )
}

/// The words without their line breaks.
fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_metric_that_never_changes_is_told_and_says_nothing_of_knobs() {
    let document = changed(|record| {
        for trial in &mut record.trials {
            trial.value = trial.value.map(|_| 42.0);
        }
    });
    let record = document.tune.as_ref().unwrap();
    let runs = record.trials.iter().filter(|trial| trial.value.is_some());
    let expected = format!(
        "the metric was 42 in all {} runs: nothing that was varied reaches it, or the command does not measure the \
         server",
        runs.count()
    );
    assert_eq!(first_line(&document), expected);
    let text = terminal(&document, 200);
    assert!(!text.contains("two together, beyond"), "{text}");
    assert!(!text.contains("The search expected"), "{text}");
    assert!(!html(&document).contains("id=\"tune-importance\""));
    let summary = summary(record);
    assert_eq!(summary["same_in_all_runs"], 42.0);
    assert_eq!(summary["importance"], serde_json::json!([]));
    assert_eq!(summary["interactions"], serde_json::json!([]));
}

#[test]
fn hostile_text_stays_text() {
    let document = session(RUNS, true);
    let page = html(&document);
    let body = markup(&page);
    for name in HOSTILE_NAMES {
        assert!(!body.contains(name), "{name} got through");
    }
    for element in [
        "<img",
        "<script",
        "</script",
        "</style",
        " style=\"",
        " href=\"",
    ] {
        assert!(!body.contains(element), "{element}");
    }
    // Titles are those of our own marks: each that begins ends.
    assert_eq!(
        body.matches("<title>").count(),
        body.matches("</title>").count()
    );
    assert!(body.contains("&lt;/title&gt;&lt;/style&gt;&lt;svg"));
    assert!(!body.chars().any(char::is_control) && !body.contains('\u{202e}'));
    assert_closed(&page);
    let text = terminal(&document, 100);
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text}");
    assert!(!text.contains('\u{202e}') && text.contains(r"\u{202e}"));
}

#[test]
fn the_verdict_is_one_sentence_and_comes_first() {
    let document = session(RUNS, false);
    assert_eq!(
        first_line(&document),
        "1.42 × the throughput (1.31 to 1.52, 6 pairs)"
    );
    let none = changed(|record| {
        record.verdict = Some(TuneVerdict::NotBetter);
        record.recommended.clear();
    });
    let given_up = first_line(&none);
    assert!(given_up.starts_with("no gain was shown: 1.44 × the throughput"));
    assert!(
        given_up.contains("2.0 % or more had become unlikely"),
        "{given_up}"
    );
    let worse = changed(|record| {
        let duel = &mut record.duels[0];
        (duel.ratio, duel.low, duel.high) = (0.9, 0.85, 0.97);
        duel.verdict = TuneVerdict::NotBetter;
        record.verdict = Some(TuneVerdict::NotBetter);
        record.recommended.clear();
    });
    assert!(first_line(&worse).starts_with("no real gain but a loss: 0.90 × the throughput"));
    let open = changed(|record| record.verdict = Some(TuneVerdict::Unresolved));
    assert!(first_line(&open).starts_with("unresolved: 1.42 ×"));
    let failed = changed(|record| record.duels[1].failed = 2);
    assert!(first_line(&failed).contains("no real gain: 2 runs of minimal failed"));
    let few = changed(|record| {
        (
            record.duels[1].ratio,
            record.duels[1].low,
            record.duels[1].high,
        ) = (0.0, 0.0, 0.0)
    });
    assert!(
        first_line(&few).starts_with("unresolved: 6 pairs of minimal and baseline are too few")
    );
    let less = changed(|record| (record.maximise, record.metric) = (false, "p99".into()));
    assert!(
        first_line(&less).contains("1.42 × less p99"),
        "{}",
        first_line(&less)
    );
    let expert = changed(|record| {
        let expert = record
            .trials
            .iter()
            .find(|trial| trial.arm == "expert 2018");
        let expert = expert.map(|trial| trial.values.clone());
        record.recommended = expert.unwrap_or_default();
    });
    assert!(first_line(&expert).ends_with("(1.24 to 1.47, 6 pairs), with expert 2018"));
}

#[test]
fn an_interval_beyond_sense_is_too_few_to_tell() {
    let wide = |low: f64, high: f64| {
        changed(|record| {
            let duel = &mut record.duels[1];
            (duel.ratio, duel.low, duel.high, duel.pairs) = (1.99, low, high, 2);
            record.verdict = Some(TuneVerdict::Unresolved);
        })
    };
    let document = wide(2.88e-5, 137_540.0);
    assert!(
        first_line(&document)
            .starts_with("unresolved: 2 pairs of minimal and baseline are too few"),
        "{}",
        first_line(&document)
    );
    let text = joined(&terminal(&document, 200));
    assert!(
        text.contains("minimal baseline (too few to tell) (too few to tell) 2"),
        "{text}"
    );
    let page = html(&document);
    assert!(!text.contains("137540") && !page.contains("137540"));
    let duels = chart(&page, "lines", "tune-duels").to_string();
    assert!(duels.contains("too few pairs to tell"));
    // The figures themselves stay where programs read them.
    let duels = &summary(document.tune.as_ref().unwrap())["duels"];
    assert_eq!(duels[1]["high"].as_f64(), Some(137_540.0));
    // A wide one that reaches one way alone tells which.
    assert!(first_line(&wide(1.2, 400.0)).starts_with("unresolved: 1.99 ×"));
    let lost = changed(|record| {
        let minimal = record.minimal.as_mut().unwrap();
        (minimal.loss_low, minimal.loss_high) = (-40_000.0, 1.0);
    });
    let text = joined(&terminal(&lost, 200));
    assert!(
        text.contains("Of what that costs too few runs tell."),
        "{text}"
    );
}

#[test]
fn what_was_left_out_and_what_is_risked_stand_in_the_document() {
    let document = changed(|record| {
        let pair = |name: &str, why: &str| (name.to_string(), why.to_string());
        record.left_out = vec![pair(
            "close_idle_time",
            "it shows in runs of more than 600 s",
        )];
        record.cautions = vec![pair("cache_size", "it is not raised above 363 MiB")];
    });
    let figures = summary(document.tune.as_ref().unwrap());
    assert_eq!(figures["left_out"][0]["knob"], "close_idle_time");
    let why = figures["left_out"][0]["why"].as_str();
    assert_eq!(why, Some("it shows in runs of more than 600 s"));
    assert_eq!(figures["cautions"][0]["knob"], "cache_size");
    let said = "cache_size: it is not raised above 363 MiB.";
    assert!(terminal(&document, 200).contains(said) && html(&document).contains(said));
}

#[test]
fn a_session_without_a_duel_says_why_and_claims_nothing() {
    for (document, why) in [
        (
            interrupted(5),
            "no duel was fought: the session did not get that far",
        ),
        (interrupted(0), "no duel was fought: nothing was run"),
        (
            changed(|record| {
                record.duels.clear();
                record.verdict = None;
                record.best = record.trials[0].values.clone();
            }),
            "no real gain: nothing that was tried promised more",
        ),
    ] {
        assert!(
            first_line(&document).starts_with(why),
            "{}",
            first_line(&document)
        );
        let page = html(&document);
        let heading = between(&page, "<h1>", "</h1>").to_lowercase();
        assert!(heading.contains(&why[..20]), "{heading}");
        assert!(figure(&page, "tune-duels").is_empty());
        assert!(page.contains("No duel was fought, so nothing is proven."));
    }
    let mut failed = RunDocument::begin("tune", Vec::new());
    failed.outcome = Outcome::Failed;
    failed.outcome_reason = Some("the server is in use".into());
    assert!(terminal(&failed, 80).contains("Failed run: the server is in use."));
    assert!(html(&failed).contains("Nothing was tuned in this run"));
}

#[test]
fn the_terminal_tells_duels_change_importance_time_and_undo() {
    let text = terminal(&session(RUNS, false), 100);
    let words = joined(&text);
    for part in [
        "minimal baseline 1.42 1.31 to 1.52 6 better 1.32",
        "minimal baseline 1.49 0.0156 < 0.0001",
        "minimal best 0.99 0.95 to 1.03 6 unresolved",
        "only the duel proves",
        "-1.2 % per hour. 24 pairs are likely to show a gain of 3.1 % or more",
        "commit_interval [DURABILITY] 100 500 mongod.conf",
        "gives each less than 1 %: compressor.",
        "indistinguishable from no effect compressor",
        "failed the server did not start within 60 s 4",
        "measuring, with warm-up 26.7 min 62.0 %",
        "Undo: mongod.conf: storage: journal: commitIntervalMs: 100",
    ] {
        assert!(words.contains(part), "{part} is missing from\n{text}");
    }
    let widest = text
        .lines()
        .map(|line| line.trim_end().chars().count())
        .max();
    assert!(widest <= Some(100), "{text}");
}

#[test]
fn every_line_with_a_durability_knob_is_labelled() {
    let document = session(RUNS, false);
    let text = terminal(&document, 300);
    let lines: Vec<&str> = (text.lines())
        .filter(|line| line.contains("commit_interval") || line.contains("commitIntervalMs"))
        .collect();
    assert!(lines.len() >= 6, "{text}");
    assert!(
        lines.iter().all(|line| line.contains("DURABILITY")),
        "{lines:#?}"
    );
    let page = html(&document);
    assert!(page.contains("data-outcome=\"durability\""));
    let trials = between(&page, "<section id=\"trials\">", "</section>");
    let moved = trials.matches("commit_interval").count();
    assert!(moved > 10 && moved == trials.matches("commit_interval [DURABILITY]").count());
    let harmless = changed(|record| {
        record.recommended.remove("commit_interval");
    });
    assert!(!html(&harmless).contains("data-outcome=\"durability\""));
}

#[test]
fn a_server_that_is_left_changed_is_told_of_first() {
    let left = changed(|record| record.restored = Some(false));
    let text = terminal(&left, 200);
    assert!(
        text.lines()
            .nth(2)
            .is_some_and(|line| line.starts_with("NOT every setting was put back"))
    );
    assert!(html(&left).contains("data-outcome=\"changed\""));
    let mut killed = changed(|record| {
        record.restored = None;
        record.duels.clear();
        record.verdict = None;
        record.best = record.trials[0].values.clone();
    });
    (killed.outcome, killed.ended_ns) = (Outcome::Partial, None);
    let text = terminal(&killed, 200);
    assert!(
        text.starts_with("no duel was fought: the session did not get that far"),
        "{text}"
    );
    assert!(
        text.contains("settings may differ from those found"),
        "{text}"
    );
    assert!(!text.contains("No setting was changed"), "{text}");
    assert!(html(&killed).contains("data-outcome=\"changed\""));
    assert!(!html(&session(RUNS, false)).contains("data-outcome=\"changed\""));
}

/// The chart with this id among the numbers for the script; null where there is none.
fn chart(page: &str, kind: &str, id: &str) -> Value {
    let data = between(page, "id=\"seekscope-data\">", "</script>");
    let data: Value = serde_json::from_str(data).unwrap_or_default();
    let charts = data[kind].as_array().into_iter().flatten();
    let found = charts.into_iter().find(|chart| chart["id"] == id);
    found.cloned().unwrap_or_default()
}

/// Its line with that label; null where there is none.
fn line<'a>(chart: &'a Value, label: &str) -> &'a Value {
    let mut lines = chart["lines"].as_array().into_iter().flatten();
    lines
        .find(|line| line["label"] == label)
        .unwrap_or(&Value::Null)
}

/// How many values are known.
fn known(line: &Value) -> usize {
    let values = line["values"].as_array().into_iter().flatten();
    values.filter(|value| !value.is_null()).count()
}

#[test]
fn convergence_marks_every_run_by_shape() {
    let document = session(RUNS, false);
    let chart = chart(&html(&document), "lines", "tune-convergence");
    let trials = document.tune.map_or_else(Vec::new, |record| record.trials);
    let count = |of: &dyn Fn(&&TuneTrial) -> bool| trials.iter().filter(of).count();
    let baseline = |trial: &&TuneTrial| trial.arm == "baseline";
    assert_eq!(
        known(line(&chart, "as found at the start")),
        count(&baseline)
    );
    assert_eq!(line(&chart, "as found at the start")["shape"], "square");
    assert_eq!(
        known(line(&chart, "candidate in the duel")),
        3 * BLOCKS as usize
    );
    let ended = |status| move |trial: &&TuneTrial| trial.status == status;
    for (label, status) in [
        ("failed", TrialStatus::Failed),
        ("ended early", TrialStatus::EndedEarly),
        ("constraint missed", TrialStatus::ConstraintMissed),
    ] {
        assert_eq!(known(line(&chart, label)), count(&ended(status)), "{label}");
        assert_eq!(
            line(&chart, label)["notes"].as_array().unwrap().len(),
            trials.len()
        );
    }
    let lines = chart["lines"].as_array().unwrap();
    let marks = lines.iter().filter(|line| !line["shape"].is_null());
    assert_eq!(marks.map(known).sum::<usize>(), trials.len());
    let bands = lines.iter().filter(|line| !line["intervals"].is_null());
    assert_eq!(bands.count(), 1);
    assert_eq!(chart["y_name"], "throughput (per s)");
}

#[test]
fn duels_importance_slices_and_pairs_are_drawn() {
    let page = html(&session(RUNS, false));
    let duels = chart(&page, "lines", "tune-duels");
    assert_eq!(known(line(&duels, "ratio, with its 95 % interval")), 4);
    assert_eq!(known(line(&duels, "promised by the search")), 2);
    assert_eq!(known(line(&duels, "a pair")), 4 * BLOCKS as usize);
    let bars = chart(&page, "bars", "tune-importance");
    let groups = bars["groups"].as_array().unwrap();
    let untold = |group: &&Value| {
        group
            .as_str()
            .unwrap()
            .ends_with("(indistinguishable from no effect)")
    };
    assert_eq!((groups.len(), groups.iter().filter(untold).count()), (4, 1));
    assert_eq!(bars["series"][1]["intervals"].as_array().unwrap().len(), 4);
    let trigger = chart(&page, "lines", "tune-slice-0");
    assert_eq!(trigger["x_name"], "dirty_trigger, logarithmic");
    assert!(!line(&trigger, "expected")["intervals"].is_null());
    let compressor = chart(&page, "lines", "tune-slice-2");
    assert_eq!(
        line(&compressor, "expected")["shape"],
        "dot",
        "a mark for each word"
    );
    let pair = chart(&page, "lines", "tune-heat");
    assert_eq!(pair["groups"].as_array().unwrap().len(), 7);
    assert_eq!(
        pair["lines"].as_array().unwrap().len(),
        4,
        "every second of 8"
    );
    // Numbers of every figure stand in tables too, for who cannot see it; the long table of all runs is folded.
    assert_eq!(page.matches("<summary>").count(), 1 + 3 + 1 + 1);
}

/// On a logarithmic axis, zero would lie infinitely far below.
#[test]
fn a_band_stays_on_a_logarithmic_axis() {
    let document = changed(|record| {
        record.trials[0].value = Some(10.0);
        for best in record
            .trials
            .iter_mut()
            .filter_map(|trial| trial.best_so_far.as_mut())
        {
            best.low = -5.0;
        }
    });
    let chart = chart(&html(&document), "lines", "tune-convergence");
    assert_eq!(chart["y"], "value_log");
    let band = line(&chart, "expected of the best so far")["intervals"]
        .as_array()
        .cloned();
    let lows: Vec<f64> = band
        .iter()
        .flatten()
        .filter_map(|ends| ends[0].as_f64())
        .collect();
    assert!(
        lows.len() > 10 && lows.iter().all(|low| *low >= 10.0),
        "{lows:?}"
    );
}

#[test]
fn each_setting_that_was_run_is_marked_and_carries_its_text_once() {
    let document = changed(|record| {
        let slice = &mut record.slices[0];
        slice.measured.extend(slice.measured.clone());
    });
    let measured = document
        .tune
        .as_ref()
        .map_or(&[][..], |record| &record.slices[0].measured);
    let values = measured
        .iter()
        .filter(|measured| measured.value.is_some())
        .count();
    let page = html(&document);
    let slice = chart(&page, "lines", "tune-slice-0");
    assert_eq!(known(line(&slice, "measured")), values);
    assert_eq!(known(line(&slice, "failed")), measured.len() - values);
    let convergence = chart(&page, "lines", "tune-convergence").to_string();
    assert_eq!(convergence.matches("run 12 (").count(), 1);
}

#[test]
fn broken_figures_of_a_record_do_no_harm() {
    let document = changed(|record| {
        for (index, trial) in record.trials.iter_mut().enumerate() {
            trial.value = [
                Some(f64::NAN),
                Some(f64::INFINITY),
                Some(-1e300),
                None,
                Some(0.0),
            ][index % 5];
            trial.started_unix_ms = if index % 2 == 0 { 0 } else { u64::MAX };
            trial.best_so_far = None;
        }
        if let Some(map) = &mut record.heat_map {
            map.expected.truncate(3);
            map.expected[1].clear();
            map.at[1].clear();
        }
        record.slices[0].points.clear();
        record.slices[1].points.truncate(1);
        record.ledger.total_s = f64::NAN;
        record.duels[0].ratio = f64::NAN;
    });
    assert!(html(&document).contains("tune-duels"));
    assert!(terminal(&document, 1).len() > 100);
    let many = html(&session(1200, false));
    assert!(many.contains("further runs are in"));
}

#[test]
fn the_summary_counts_and_names_what_was_found() {
    let summary = summary(&session(RUNS, false).tune.unwrap());
    assert_eq!(summary["trials"], 76);
    assert_eq!(summary["failed"], 4);
    assert_eq!(summary["duel"]["candidate"], "minimal");
    assert_eq!(summary["verdict"], "better");
    assert_eq!(summary["baseline"]["syncdelay"], 60);
    let empty = self::summary(&TuneRecord::default());
    assert!(empty["duel"].is_null() && empty["verdict"].is_null() && empty["restored"].is_null());
}
