//! Compares two examinations: which findings are gone, new, better or worse, and whether predictions came true. Those of
//! different members at the same time are joined to one of their deployment.

use anyhow::Result;
use schemars::JsonSchema;
use seekscope_report::doctor::change_line;
use seekscope_report::terminal::visible;
use seekscope_run::{FindingChange, Outcome, RunDocument};
use serde::Serialize;

use super::{CompareOutput, CompareSummary, Run, path_of};
use crate::args::CompareArgs;
use crate::doctor::{Conclusion, Earlier, Joined};
use crate::exit::Usage;
use crate::output;

/// Joins runs of different members, or prints what changed from the first run to the second, or JSON. Writes nothing to
/// any of them.
pub fn compare(runs: &[Run], args: &CompareArgs) -> Result<()> {
    match (Joined::of(runs)?, runs) {
        (Ok(joined), _) => joined.show(args.out.as_deref(), &args.output),
        (Err(why), [first, second]) if args.out.is_none() => changes(first, second, args, &why),
        (Err(why), _) => Err(Usage(format!("the runs cannot be joined: {why}")).into()),
    }
}

/// `not_joined` says why the two are not joined, in case they are of different servers.
fn changes(first: &Run, second: &Run, args: &CompareArgs, not_joined: &str) -> Result<()> {
    let (earlier, _) = concluded(first)?;
    let (later, document) = concluded(second)?;
    let since = Earlier::of(&args.first, first.1.clone(), earlier.diagnosis().clone());
    let compared = since.compare(&document, later.diagnosis());
    let changes = &compared.changes;
    if args.output.json {
        let summary = CompareSummary::Doctor(ExaminationsCompared {
            first: ExaminedRun::of(first),
            second: ExaminedRun::of(second),
            other_server: compared.other_server.as_deref(),
            changes,
        });
        let findings = &later.diagnosis().findings;
        return output::print_json(&CompareOutput::new(Outcome::Ok, second, summary, findings));
    }
    let mut text = format!(
        "A: {}\nB: {}\n",
        args.first.display(),
        args.second.display()
    );
    if let Some(caution) = compared.caution() {
        text.push_str(&format!(
            "{caution} They are not joined to one run of a deployment: {not_joined}.\n"
        ));
    }
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

/// Which findings are gone, new, better or worse.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ExaminationsCompared<'a> {
    first: ExaminedRun,
    second: ExaminedRun,
    /// Which servers the two runs are of, if they are different ones; null if they are of the same one as far as is
    /// known.
    other_server: Option<&'a str>,
    changes: &'a [FindingChange],
}

/// A run that is compared.
#[derive(Debug, Serialize, JsonSchema)]
struct ExaminedRun {
    run_dir: String,
    outcome: Outcome,
}

impl ExaminedRun {
    fn of(run: &Run) -> Self {
        Self {
            run_dir: path_of(run),
            outcome: run.1.outcome,
        }
    }
}
