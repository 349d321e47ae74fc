//! `seekscope compare`: shows runs of the same command side by side. It handles layouts ([`layout`]),
//! benchmarks ([`mod@bench`]) and examinations ([`doctor`]); each further kind of run gets its own module here.

mod bench;
mod doctor;
mod layout;

use std::collections::HashSet;
use std::path::PathBuf;

use anyhow::Result;
use schemars::JsonSchema;
use seekscope_run::{Finding, Outcome, RunDirectory, RunDocument, RunKind};
use serde::Serialize;

use crate::args::CompareArgs;
use crate::collect;
use crate::exit::Usage;
use crate::output;

type Run = (RunDirectory, RunDocument);

/// What `--json` prints for runs side by side: two of layout, two of doctor, or two to eight of bench. Names are
/// stable; fields may be added. null means unknown, which is not zero.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CompareOutput<'a> {
    /// Name and version of this format.
    schema: String,
    command: &'static str,
    outcome: Outcome,
    /// Directory of the last run.
    run_dir: String,
    summary: CompareSummary<'a>,
    /// Findings of the second run; empty for benchmarks.
    findings: &'a [Finding],
}

/// The differences, by the command that made the runs.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum CompareSummary<'a> {
    Layout(layout::LayoutsCompared<'a>),
    Bench(bench::BenchesCompared<'a>),
    Doctor(doctor::ExaminationsCompared<'a>),
}

impl<'a> CompareOutput<'a> {
    /// `last`: the run whose directory is given for all.
    fn new(
        outcome: Outcome,
        last: &Run,
        summary: CompareSummary<'a>,
        findings: &'a [Finding],
    ) -> Self {
        Self {
            schema: output::versioned("compare"),
            command: "compare",
            outcome,
            run_dir: path_of(last),
            summary,
            findings,
        }
    }
}

fn path_of((directory, _): &Run) -> String {
    directory.path().display().to_string()
}

/// Runs the command.
pub async fn run(args: &CompareArgs) -> Result<()> {
    let paths: Vec<&PathBuf> = [&args.first, &args.second]
        .into_iter()
        .chain(&args.others)
        .collect();
    let mut places = HashSet::new();
    let mut is_repeated =
        |path: &&PathBuf| path.canonicalize().is_ok_and(|place| !places.insert(place));
    if paths.iter().copied().any(|path| is_repeated(&path)) {
        return Err(Usage("the same run is named twice; name different runs".into()).into());
    }
    let mut runs: Vec<Run> = Vec::new();
    for path in paths {
        runs.push(collect::open_to_read(path, "compare").await?);
    }
    let comparable = |run: &RunDocument| {
        let kinds = [RunKind::Bench, RunKind::Doctor, RunKind::Layout];
        run.kind().is_none_or(|kind| kinds.contains(&kind))
    };
    if let Some((directory, run)) = runs.iter().find(|(_, run)| !comparable(run)) {
        return Err(Usage(format!(
            "{} is a run of `seekscope {}`; only runs of layout, bench and doctor can be compared",
            directory.path().display(),
            run.command
        ))
        .into());
    }
    let are_examinations = runs.iter().all(|(_, run)| run.examination.is_some());
    if args.out.is_some() && !are_examinations {
        let text = "--out is possible only for runs of `doctor` on several members, which are \
                    merged; the comparison of other runs is only printed";
        return Err(Usage(text.into()).into());
    }
    match &runs[..] {
        [(_, first), ..] if first.bench.is_some() => bench::compare(&runs, args),
        all if are_examinations => doctor::compare(all, args),
        [first, second] => layout::compare(first, second, args),
        _ => {
            let text = "more than two runs can be compared only if they are runs of `bench`, or of \
                        `doctor` on members of one deployment; name two runs of `layout`";
            Err(Usage(text.into()).into())
        }
    }
}
