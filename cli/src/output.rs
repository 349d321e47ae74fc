//! Prints documents and text to stdout.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use schemars::JsonSchema;
use seekscope_run::{
    DeviceFacts, Finding, HostFacts, Limitation, Outcome, RunDocument, TargetFacts,
};
use serde::Serialize;
use serde_json::Value;

/// What `--json` prints for a run that a command or `report` shows. Names are stable; fields may be added. null means
/// unknown, or too few operations to say, which is not zero. Sizes are bytes; times have their unit in the name.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RunOutput<'a, Summary, Subject = ServerSubject<'a>> {
    /// Name and version of this format.
    pub schema: String,
    pub command: &'a str,
    pub outcome: Outcome,
    /// Why the outcome is not ok, for people; for a benchmark, also which objective was missed.
    pub outcome_reason: Option<&'a str>,
    pub run_dir: &'a str,
    #[serde(flatten)]
    pub subject: Subject,
    /// What could not be measured or must be kept in mind, why, and what remedies it.
    pub limitations: &'a [Limitation],
    /// The command's own figures.
    pub summary: Summary,
    pub findings: &'a [Finding],
}

/// The output for a run that measured a disk, not a server.
pub type DiskRunOutput<'a, Summary> = RunOutput<'a, Summary, DiskSubject<'a>>;

/// What a run on a server says of it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ServerSubject<'a> {
    /// The server; null if there was none to connect to.
    pub target: Option<&'a TargetFacts>,
}

/// What a run on a disk says of it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DiskSubject<'a> {
    pub host: Option<&'a HostFacts>,
    /// The device under the file that was measured or played on.
    pub device: Option<&'a DeviceFacts>,
}

impl<'a> From<&'a RunDocument> for ServerSubject<'a> {
    fn from(run: &'a RunDocument) -> Self {
        let target = run.target.as_ref();
        Self { target }
    }
}

impl<'a> From<&'a RunDocument> for DiskSubject<'a> {
    fn from(run: &'a RunDocument) -> Self {
        let (host, device) = (run.host.as_ref(), run.device.as_ref());
        Self { host, device }
    }
}

impl<'a> RunOutput<'a, &'a Value> {
    /// Makes the document of a run, with the summary saved in it. `schema` names a file of `docs/schema`.
    pub fn of(schema: &str, run: &'a RunDocument, run_dir: &'a str) -> Self {
        Self::with_summary(schema, run, run_dir, &run.summary)
    }
}

impl<'a, Summary, Subject: From<&'a RunDocument>> RunOutput<'a, Summary, Subject> {
    /// Makes the document of a run, with this summary. `schema` names a file of `docs/schema`.
    pub fn with_summary(
        schema: &str,
        run: &'a RunDocument,
        run_dir: &'a str,
        summary: Summary,
    ) -> Self {
        Self {
            schema: versioned(schema),
            command: &run.command,
            outcome: run.outcome,
            outcome_reason: run.outcome_reason.as_deref(),
            run_dir,
            subject: run.into(),
            limitations: &run.limitations,
            summary,
            findings: &run.findings,
        }
    }
}

/// What `--json` prints on one line if a command fails before it has a document to print. Errors in the arguments
/// themselves, exit code 2 with a usage text, are printed to stderr alone.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ErrorOutput<'a> {
    /// Name and version of this format.
    pub schema: String,
    /// The message that is also on stderr: what failed, on what, why, and what to do about it.
    pub error: &'a str,
    /// The exit code of the command.
    pub exit_code: u8,
}

/// Returns the first field of every document, such as `seekscope/layout/1`.
pub fn versioned(schema: &str) -> String {
    format!("seekscope/{schema}/1")
}

/// Prints one JSON document.
pub fn print_json(document: &impl Serialize) -> Result<()> {
    print(&format!("{}\n", serde_json::to_string_pretty(document)?))
}

/// Prints the document of a command that failed.
pub fn print_error(error: &str, exit_code: u8) -> Result<()> {
    let document = ErrorOutput {
        schema: versioned("error"),
        error,
        exit_code,
    };
    print(&format!("{}\n", serde_json::to_string(&document)?))
}

static HAS_PRINTED: AtomicBool = AtomicBool::new(false);

/// Returns whether anything was [printed](print()).
pub fn has_printed() -> bool {
    HAS_PRINTED.load(Ordering::Relaxed)
}

/// Prints text.
pub fn print(text: &str) -> Result<()> {
    HAS_PRINTED.store(true, Ordering::Relaxed);
    match std::io::stdout().write_all(text.as_bytes()) {
        // The reader of a pipe (head, less) may have had enough: that is success.
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => other.context("cannot write to stdout"),
    }
}
