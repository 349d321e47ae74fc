//! Two examinations: which findings are gone, new, better or worse, and whether predictions came true.

use std::path::Path;

use anyhow::Result;
use seekscope_report::doctor::change_line;
use seekscope_report::terminal::visible;
use seekscope_run::{FindingChange, RunDirectory, RunDocument};
use serde_json::{Value, json};

use crate::args::CompareArgs;
use crate::doctor::{Conclusion, Earlier};
use crate::output;

type Run = (RunDirectory, RunDocument);

/// Prints what changed from the first to the second, or JSON. Nothing is written to either.
pub fn compare(first: &Run, second: &Run, args: &CompareArgs) -> Result<()> {
    let (earlier, _) = concluded(first)?;
    let (later, document) = concluded(second)?;
    let since = Earlier::of(&args.first, first.1.clone(), earlier.diagnosis().clone());
    let changes = since.compare(&document, later.diagnosis()).changes;
    if args.output.json {
        return output::print_json(&as_json(first, second, &later, &changes));
    }
    let mut text = format!(
        "A: {}\nB: {}\n",
        args.first.display(),
        args.second.display()
    );
    if changes.is_empty() {
        text.push_str("Neither has a finding.\n");
    }
    changes
        .iter()
        .for_each(|change| text.push_str(&format!("{}\n", change_line(change))));
    output::print(&visible(&text))
}

fn concluded(run: &Run) -> Result<(Conclusion, RunDocument)> {
    let mut document = run.1.clone();
    let conclusion = Conclusion::of(&run.0, &mut document)?;
    Ok((conclusion, document))
}

fn as_json(first: &Run, second: &Run, later: &Conclusion, changes: &[FindingChange]) -> Value {
    let path = |path: &Path| path.display().to_string();
    json!({
        "schema": "seekscope/compare/1",
        "command": "compare",
        "outcome": "ok",
        "run_dir": path(second.0.path()),
        "summary": {
            "kind": "doctor",
            "first": { "run_dir": path(first.0.path()), "outcome": first.1.outcome },
            "second": { "run_dir": path(second.0.path()), "outcome": second.1.outcome },
            "changes": changes,
        },
        "findings": later.diagnosis().findings,
    })
}
