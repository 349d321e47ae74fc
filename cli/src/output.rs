//! What goes to stdout.

use std::io::Write;

use anyhow::{Context, Result};
use seekscope_run::RunDocument;
use serde_json::{Value, json};

/// Prints one JSON document.
pub fn print_json(value: &Value) -> Result<()> {
    print(&format!("{value:#}\n"))
}

/// The document that `--json` prints of a traced run; `schema` names its description in
/// `docs/schema`.
pub fn run_document(schema: &str, run: &RunDocument, run_dir: &str) -> Value {
    json!({
        "schema": schema,
        "command": run.command,
        "outcome": run.outcome,
        "outcome_reason": run.outcome_reason,
        "run_dir": run_dir,
        "target": run.target,
        "limitations": run.limitations,
        "summary": run.summary,
        "findings": run.findings,
    })
}

/// Prints text.
pub fn print(text: &str) -> Result<()> {
    match std::io::stdout().write_all(text.as_bytes()) {
        // The reader of a pipe (head, less) may have had enough: that is success.
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => other.context("cannot write to stdout"),
    }
}
