//! Compares benchmarks: the same work on different servers, or with different settings.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use schemars::JsonSchema;
use seekscope_report::bench::comparison::{Compared, Side, compare as compare_sides};
use seekscope_report::bench::index_builds::{
    BuildComparison, compared_runs, compared_runs_terminal,
};
use seekscope_report::bench::{
    BenchRecords, SIDES_MAX, arrivals, caveats, comparison_terminal, outcome_word, verdict,
};
use seekscope_run::{BenchMeasurement, Outcome, RunDirectory, RunDocument};
use serde::Serialize;

use super::{CompareOutput, CompareSummary, Run, path_of};
use crate::args::CompareArgs;
use crate::exit::Usage;
use crate::output;
use crate::progress::Progress;

/// Settings that determine the data; runs that differ in one of them did different work. Compared without
/// regard to case, `-` and `_`.
const DATA_SETTINGS: [&str; 15] = [
    "data",
    "recordcount",
    "records",
    "documents",
    "docs",
    "collections",
    "fieldcount",
    "fieldlength",
    "minfieldlength",
    "insertorder",
    "keyhash",
    "zeropadding",
    "samples",
    "series",
    "era",
];

/// Stands among the settings for how operations were sent, which no setting of a workload tells.
const SENT: &str = "sent";

/// Prints the runs side by side, or as JSON.
pub fn compare(runs: &[Run], args: &CompareArgs) -> Result<()> {
    let measured = measurements(runs)?;
    if runs.len() > SIDES_MAX {
        return Err(Usage(format!("at most {SIDES_MAX} runs can be compared at once")).into());
    }
    let different = different_work(&measured);
    if !different.is_empty() && !args.anyway {
        return Err(Usage(format!(
            "these runs did different work: {}. Compare them with --anyway",
            different.join("; ")
        ))
        .into());
    }
    if have_only_builds(runs) {
        return compare_builds(runs, &different, args);
    }
    let records: Vec<BenchRecords> = (runs.iter())
        .map(|(directory, document)| whole_records(directory, document))
        .collect::<Result<_>>()?;
    let sides: Vec<Side<'_>> = (runs.iter().zip(&records))
        .map(|((directory, document), records)| {
            Side::of_run(label(directory, document), document, records)
        })
        .collect();
    let comparison = compare_sides(&sides, false);
    let settings = differing_settings(&measured);
    if args.output.json {
        return print_json(runs, &settings, &comparison.compared, &[]);
    }
    let mut notes = notes(runs, &different, &settings);
    if comparison.has_lone_runs() {
        notes.push(
            "A side that ran once is judged by its seconds: what the machine did to one run and not to the \
             other counts as a difference. `bench --vs` or several repetitions tell the two apart."
                .into(),
        );
    }
    let width = Progress::new(args.output.quiet).width();
    output::print(&comparison_terminal(&comparison, &notes, width))
}

/// Reads the records of a run; refuses those that lack latencies, from whose seconds it is judged what differs.
fn whole_records(directory: &RunDirectory, document: &RunDocument) -> Result<BenchRecords> {
    let records = BenchRecords::read(directory, document)
        .with_context(|| format!("while reading {}", directory.path().display()))?;
    let bench = document.bench.as_ref();
    match bench.and_then(|bench| records.lost_latencies(bench)) {
        Some(lost) => Err(Usage(lost.refusal(directory.path())).into()),
        None => Ok(records),
    }
}

fn measurements(runs: &[Run]) -> Result<Vec<&BenchMeasurement>> {
    let has_steps = |run: &Run| {
        run.1
            .bench
            .as_ref()
            .is_some_and(|bench| !bench.steps.is_empty())
    };
    let have_only_builds = have_only_builds(runs);
    if let Some((directory, document)) =
        runs.iter().find(|run| !has_steps(run) && !have_only_builds)
    {
        let path = directory.path().display();
        let bench = document.bench.as_ref();
        let why = match bench {
            Some(bench) if !bench.shapes.is_empty() => {
                format!(
                    "{path} is a run of `bench schema`, whose own report compares its ways of storing"
                )
            }
            Some(bench) if !bench.index_builds.is_empty() => {
                format!("{path} holds index builds alone, and another of the runs does not")
            }
            _ => format!("{path} holds no steps of a benchmark"),
        };
        return Err(Usage(format!(
            "{why}; runs of `seekscope bench` that ran operations can be compared, and two of `bench index` without other \
             load"
        ))
        .into());
    }
    Ok(runs
        .iter()
        .filter_map(|(_, document)| document.bench.as_ref())
        .collect())
}

/// Returns whether all runs built indexes and nothing else.
fn have_only_builds(runs: &[Run]) -> bool {
    let has_only_builds =
        |bench: &BenchMeasurement| bench.steps.is_empty() && !bench.index_builds.is_empty();
    runs.iter()
        .all(|(_, document)| document.bench.as_ref().is_some_and(has_only_builds))
}

/// Prints the index builds of two runs side by side, or as JSON.
fn compare_builds(runs: &[Run], different: &[String], args: &CompareArgs) -> Result<()> {
    let measured = measurements(runs)?;
    let [first, second] = measured[..] else {
        let text = "index builds can be compared of two runs";
        return Err(Usage(text.into()).into());
    };
    let is_of_several = |bench: &&BenchMeasurement| {
        let mut builds = bench.index_builds.iter();
        builds.any(|build| !build.variant.is_empty())
    };
    if measured.iter().any(is_of_several) {
        let text = "a run with --vs compares its index builds in its own report; name runs on one server each";
        return Err(Usage(text.into()).into());
    }
    let compared = compared_runs(first, second);
    let settings = differing_settings(&measured);
    if args.output.json {
        return print_json(runs, &settings, &[], &compared);
    }
    let labels = runs
        .iter()
        .map(|(directory, document)| label(directory, document));
    let labels: Vec<String> = labels.collect();
    let mut notes = notes(runs, different, &settings);
    notes.push(
        "The runs were made one after the other: what the machine did during one of them counts as a difference. \
         `bench index --vs` builds in turn."
            .into(),
    );
    let width = Progress::new(args.output.quiet).width();
    output::print(&compared_runs_terminal(&compared, &labels, &notes, width))
}

fn label(directory: &RunDirectory, document: &RunDocument) -> String {
    let server = document.target.as_ref().map_or_else(String::new, |target| {
        format!(", {} {} at {}", target.product, target.version, target.uri)
    });
    format!("{}{server}", directory.path().display())
}

/// Returns the reasons why a run did different work from the first.
fn different_work(measured: &[&BenchMeasurement]) -> Vec<String> {
    let mut found = Vec::new();
    let mut compare = |what: &str, values: Vec<String>| {
        if values.iter().any(|value| *value != values[0]) {
            found.push(format!("{what} {}", values.join(" / ")));
        }
    };
    compare(
        "workload",
        measured.iter().map(|m| m.workload.clone()).collect(),
    );
    compare(
        "edition",
        measured.iter().map(|m| m.edition.clone()).collect(),
    );
    for (name, values) in differing_settings(measured) {
        let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
        if DATA_SETTINGS.contains(&plain.to_ascii_lowercase().as_str()) {
            compare(
                &name,
                values.into_iter().map(Option::unwrap_or_default).collect(),
            );
        }
    }
    found
}

/// Returns each setting that differs between runs, with its value in each run.
fn differing_settings(measured: &[&BenchMeasurement]) -> BTreeMap<String, Vec<Option<String>>> {
    let names: BTreeSet<&String> = measured.iter().flat_map(|m| m.settings.keys()).collect();
    let values = |name: &String| -> Vec<Option<String>> {
        measured
            .iter()
            .map(|m| m.settings.get(name).cloned())
            .collect()
    };
    let sent = measured.iter().map(|m| how_sent(m)).collect();
    let all = names.into_iter().map(|name| (name.clone(), values(name)));
    let all = all.chain([(SENT.to_string(), sent)]);
    all.filter(|(_, values)| values.iter().any(|v| *v != values[0]))
        .collect()
}

/// Returns how the operations were sent in the measured steps, in words; `None` if there were none.
fn how_sent(measurement: &BenchMeasurement) -> Option<String> {
    let steps = measurement.steps.iter().filter(|step| step.kind == "run");
    let ways: BTreeSet<String> = steps
        .map(|step| {
            format!(
                "{}, at most {} in flight",
                arrivals(&step.arrivals),
                step.in_flight
            )
        })
        .collect();
    let ways: Vec<String> = ways.into_iter().collect();
    (!ways.is_empty()).then(|| ways.join(" and "))
}

fn notes(
    runs: &[Run],
    different: &[String],
    settings: &BTreeMap<String, Vec<Option<String>>>,
) -> Vec<String> {
    let mut notes = Vec::new();
    if !different.is_empty() {
        notes.push(format!(
            "THEY DID DIFFERENT WORK: {}.",
            different.join("; ")
        ));
    }
    if settings.contains_key(SENT) {
        notes.push(
            "They were not sent in the same way: throughput and latencies are those of the schedules, too.".into(),
        );
    }
    for ((_, document), letter) in runs.iter().zip('A'..) {
        let caveats = caveats(document).into_iter();
        notes.extend(caveats.map(|caveat| format!("{letter}: {caveat}")));
    }
    for (name, values) in settings {
        let values: Vec<&str> = values
            .iter()
            .map(|v| v.as_deref().unwrap_or("not set"))
            .collect();
        notes.push(format!("{name}: {}", values.join(" / ")));
    }
    notes
}

/// The same work on different servers, or with different settings.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BenchesCompared<'a> {
    #[schemars(length(min = 2))]
    runs: Vec<BenchRun<'a>>,
    /// Settings that differ between the runs, and `sent`, how operations were sent, if that does: one value per run, null
    /// where the setting is not set.
    differing_settings: &'a BTreeMap<String, Vec<Option<String>>>,
    compared: &'a [Compared],
    /// The index builds of two runs that did nothing else, A being the first; there are then no other figures.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    index_builds: &'a [BuildComparison],
}

/// A run that is compared.
#[derive(Debug, Serialize, JsonSchema)]
struct BenchRun<'a> {
    run_dir: String,
    outcome: Outcome,
    /// How far its figures can be trusted.
    verdict: String,
    /// What bears on the comparison: that it is incomplete or invalid, and what others did meanwhile.
    caveats: Vec<String>,
    workload: Option<&'a str>,
    edition: Option<&'a str>,
    /// The server, e.g. mongod.
    product: Option<&'a str>,
    version: Option<&'a str>,
}

impl<'a> BenchRun<'a> {
    fn of(run: &'a Run) -> Self {
        let document = &run.1;
        let bench = document.bench.as_ref();
        let target = document.target.as_ref();
        Self {
            run_dir: path_of(run),
            outcome: document.outcome,
            verdict: verdict(document),
            caveats: caveats(document),
            workload: bench.map(|b| b.workload.as_str()),
            edition: bench.map(|b| b.edition.as_str()),
            product: target.map(|t| t.product.as_str()),
            version: target.map(|t| t.version.as_str()),
        }
    }
}

fn print_json(
    runs: &[Run],
    settings: &BTreeMap<String, Vec<Option<String>>>,
    compared: &[Compared],
    index_builds: &[BuildComparison],
) -> Result<()> {
    let is_ok = |run: &Run| outcome_word(&run.1) == "ok";
    let outcome = match runs.iter().all(is_ok) {
        true => Outcome::Ok,
        false => Outcome::Partial,
    };
    let Some(last) = runs.last() else {
        return Ok(());
    };
    let summary = CompareSummary::Bench(BenchesCompared {
        runs: runs.iter().map(BenchRun::of).collect(),
        differing_settings: settings,
        compared,
        index_builds,
    });
    output::print_json(&CompareOutput::new(outcome, last, summary, &[]))
}
