//! Prints documents and text to stdout.

use std::io::Write;

use anyhow::{Context, Result};
use schemars::JsonSchema;
use seekscope_run::{
    DeviceFacts, Finding, HostFacts, Limitation, Outcome, RunDocument, TargetFacts,
};
use serde::Serialize;
use serde_json::Value;

/// What `--json` prints for a run that a command or `report` shows. Names are stable; fields may be added. null means
/// unknown, which is not zero. Sizes are bytes; times have their unit in the name.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RunOutput<'a, Summary> {
    /// Name and version of this format.
    pub schema: String,
    pub command: &'a str,
    pub outcome: Outcome,
    /// Why the outcome is not ok, for people; for a benchmark, also which objective was missed.
    pub outcome_reason: Option<&'a str>,
    pub run_dir: &'a str,
    /// The server; null if there was none to connect to.
    pub target: Option<&'a TargetFacts>,
    /// What could not be measured or must be kept in mind, why, and what remedies it.
    pub limitations: &'a [Limitation],
    /// The command's own figures.
    pub summary: Summary,
    pub findings: &'a [Finding],
}

impl<'a> RunOutput<'a, &'a Value> {
    /// Makes the document of a run, with the summary saved in it. `schema` names a file of `docs/schema`.
    pub fn of(schema: &str, run: &'a RunDocument, run_dir: &'a str) -> Self {
        Self {
            schema: versioned(schema),
            command: &run.command,
            outcome: run.outcome,
            outcome_reason: run.outcome_reason.as_deref(),
            run_dir,
            target: run.target.as_ref(),
            limitations: &run.limitations,
            summary: &run.summary,
            findings: &run.findings,
        }
    }
}

/// What `--json` prints for a run that measured a disk, not a server. Names are stable; fields may be added. null means
/// unknown, or too few operations to say, which is not zero. Sizes are bytes; times have their unit in the name.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DiskRunOutput<'a, Summary> {
    /// Name and version of this format.
    pub schema: String,
    pub command: &'a str,
    pub outcome: Outcome,
    /// Why the outcome is not ok, for people.
    pub outcome_reason: Option<&'a str>,
    pub run_dir: &'a str,
    pub host: Option<&'a HostFacts>,
    /// The device under the file that was measured or played on.
    pub device: Option<&'a DeviceFacts>,
    /// What could not be measured, why, and what would allow it.
    pub limitations: &'a [Limitation],
    /// The command's own figures.
    pub summary: Summary,
    pub findings: &'a [Finding],
}

impl<'a, Summary> DiskRunOutput<'a, Summary> {
    /// Makes the document of a run. `schema` names a file of `docs/schema`.
    pub fn of(schema: &str, run: &'a RunDocument, run_dir: &'a str, summary: Summary) -> Self {
        Self {
            schema: versioned(schema),
            command: &run.command,
            outcome: run.outcome,
            outcome_reason: run.outcome_reason.as_deref(),
            run_dir,
            host: run.host.as_ref(),
            device: run.device.as_ref(),
            limitations: &run.limitations,
            summary,
            findings: &run.findings,
        }
    }
}

/// Returns the first field of every document, such as `seekscope/layout/1`.
pub fn versioned(schema: &str) -> String {
    format!("seekscope/{schema}/1")
}

/// Prints one JSON document.
pub fn print_json(document: &impl Serialize) -> Result<()> {
    print(&format!("{}\n", serde_json::to_string_pretty(document)?))
}

/// Prints text.
pub fn print(text: &str) -> Result<()> {
    match std::io::stdout().write_all(text.as_bytes()) {
        // The reader of a pipe (head, less) may have had enough: that is success.
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => other.context("cannot write to stdout"),
    }
}
