//! Compares two layouts: files matched by namespace and index, and how many leaves moved between them.

use std::collections::HashMap;

use anyhow::Result;
use schemars::JsonSchema;
use seekscope_layout::decay::LeafChanges;
use seekscope_report::layout::{LayoutComparison, PairedFiles, comparison_terminal};
use seekscope_run::{LayoutFile, Outcome};
use seekscope_wiredtiger::Leaf;
use serde::Serialize;

use super::{CompareOutput, CompareSummary, Run, path_of};
use crate::args::CompareArgs;
use crate::exit::Usage;
use crate::layout::{FileSummary, layout_of, leaves_by_file};
use crate::output;
use crate::progress::Progress;

type Leaves = HashMap<u32, Vec<Leaf>>;

/// Prints both side by side, or as JSON.
pub fn compare(first: &Run, second: &Run, args: &CompareArgs) -> Result<()> {
    let pairs = pairs(first, second, args)?;
    if pairs.is_empty() {
        let why = "no file is in both: each was told which files to read, and they are others";
        let (first, second) = (args.first.display(), args.second.display());
        return Err(Usage(format!("{first} and {second} cannot be compared: {why}")).into());
    }
    if args.output.json {
        let summary = CompareSummary::Layout(LayoutsCompared::of(first, second, &pairs));
        let findings = &second.1.findings;
        return output::print_json(&CompareOutput::new(Outcome::Ok, second, summary, findings));
    }
    let comparison = LayoutComparison {
        first: &first.1,
        second: &second.1,
        pairs: &pairs,
    };
    let width = Progress::new(args.output.quiet).width();
    output::print(&comparison_terminal(&comparison, width))
}

fn pairs<'a>(first: &'a Run, second: &'a Run, args: &CompareArgs) -> Result<Vec<PairedFiles<'a>>> {
    let (before, after) = (
        layout_of(&first.1, &args.first)?,
        layout_of(&second.1, &args.second)?,
    );
    // A file that one run was not asked for is not missing there.
    let partial = !before.named.is_empty() || !after.named.is_empty();
    let (before, after) = (&before.files, &after.files);
    let leaves = (
        leaves_by_file(&first.0, |_| true)?,
        leaves_by_file(&second.0, |_| true)?,
    );
    let mut pairs = Vec::new();
    for old in before {
        let new = after.iter().find(|new| key(new) == key(old));
        pairs.push(PairedFiles {
            first: Some(old),
            second: new,
            moved_leaf_pages: new.and_then(|new| moved((&leaves.0, old), (&leaves.1, new))),
        });
    }
    let only_after = after
        .iter()
        .filter(|new| !before.iter().any(|old| key(old) == key(new)));
    pairs.extend(only_after.map(|new| PairedFiles {
        first: None,
        second: Some(new),
        moved_leaf_pages: None,
    }));
    if partial {
        pairs.retain(|pair| pair.first.is_some() && pair.second.is_some());
    }
    // Files in both runs come first, by the change in their scan time.
    pairs.sort_by(|a, b| change_s(b).total_cmp(&change_s(a)));
    Ok(pairs)
}

/// Returns the key by which files are matched: members of a replica set use different file names.
fn key(file: &LayoutFile) -> (Option<&str>, &str, Option<&str>) {
    let member = file.member.as_deref();
    match &file.namespace {
        Some(namespace) => (member, namespace, file.index.as_deref()),
        None => (member, &file.file, None),
    }
}

fn change_s(pair: &PairedFiles<'_>) -> f64 {
    let now_s = |file: Option<&LayoutFile>| Some(file?.predicted_scan.as_ref()?.now_s);
    match (now_s(pair.first), now_s(pair.second)) {
        (Some(a), Some(b)) => (a - b).abs(),
        _ => -1.0,
    }
}

/// Counts the leaves that moved; `None` for different files, such as another member's, whose leaves never
/// moved.
fn moved(first: (&Leaves, &LayoutFile), second: (&Leaves, &LayoutFile)) -> Option<u64> {
    if first.1.file != second.1.file || first.1.leaf_pages == 0 || second.1.leaf_pages == 0 {
        return None;
    }
    // A run that was killed before it had written its leaves has none.
    let before = first.0.get(&first.1.file_id)?;
    let after = second.0.get(&second.1.file_id)?;
    Some(LeafChanges::between(before, after).new_places())
}

/// A comparison of two layouts.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LayoutsCompared<'a> {
    first: LayoutRun<'a>,
    second: LayoutRun<'a>,
    /// Files in both runs first, sorted by the change in scan time.
    files: Vec<FilesCompared<'a>>,
}

/// A run that is compared.
#[derive(Debug, Serialize, JsonSchema)]
struct LayoutRun<'a> {
    run_dir: String,
    outcome: Outcome,
    path: Option<&'a str>,
    /// The disk that scans were predicted for.
    predicted_for: Option<&'a str>,
}

/// A file in both runs, or in one of them.
#[derive(Debug, Serialize, JsonSchema)]
struct FilesCompared<'a> {
    file: Option<&'a str>,
    namespace: Option<&'a str>,
    index: Option<&'a str>,
    /// Leaves in the second run that are where no leaf was in the first; null for different files, or if a leaf list is
    /// missing.
    moved_leaf_pages: Option<u64>,
    /// null if the file is not in the first run.
    first: Option<FileSummary<'a>>,
    /// null if the file is not in the second run.
    second: Option<FileSummary<'a>>,
}

impl<'a> LayoutsCompared<'a> {
    fn of(first: &'a Run, second: &'a Run, pairs: &[PairedFiles<'a>]) -> Self {
        Self {
            first: LayoutRun::of(first),
            second: LayoutRun::of(second),
            files: pairs.iter().map(FilesCompared::of).collect(),
        }
    }
}

impl<'a> LayoutRun<'a> {
    fn of(run: &'a Run) -> Self {
        let layout = run.1.layout.as_ref();
        Self {
            run_dir: path_of(run),
            outcome: run.1.outcome,
            path: layout.map(|l| l.path.as_str()),
            predicted_for: layout.map(|l| l.predicted_for.as_str()),
        }
    }
}

impl<'a> FilesCompared<'a> {
    fn of(pair: &PairedFiles<'a>) -> Self {
        let file = pair.first.or(pair.second);
        Self {
            file: file.map(|f| f.file.as_str()),
            namespace: file.and_then(|f| f.namespace.as_deref()),
            index: file.and_then(|f| f.index.as_deref()),
            moved_leaf_pages: pair.moved_leaf_pages,
            first: pair.first.map(FileSummary::of),
            second: pair.second.map(FileSummary::of),
        }
    }
}
