//! The figures of a replay: `summary` of its `run.json` and of `--json`, and all that its table is
//! made from. Names are stable; see `docs/schema/replay.schema.json`.

use anyhow::{Context, Result};
use seekscope_disk::replay::{PlanFacts, ReplayOutcome};
use seekscope_run::RunDocument;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::prediction::Predicted;
use super::selection::PlayedFile;
use super::target::TargetFacts;
use crate::exit::Usage;

/// How a replay ended, as far as its figures go; why is the run's own outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndKind {
    Complete,
    TimeLimit,
    Interrupted,
    HeldBack,
    Failed,
}

/// See the module.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplaySummary {
    /// The recorded run, for people.
    pub recording: String,
    pub files: Vec<PlayedFile>,
    pub target: TargetFacts,
    /// Recorded seconds per played second; null without waiting.
    pub speed: Option<f64>,
    /// "closed" or "open".
    #[serde(rename = "loop")]
    pub pacing: String,
    pub plan: PlanFacts,
    pub ended: EndKind,
    pub outcome: ReplayOutcome,
    pub prediction: Option<Predicted>,
    pub notes: Vec<String>,
}

impl ReplaySummary {
    /// That of a run.
    pub fn of(document: &RunDocument) -> Result<Self> {
        if document.summary.is_null() {
            let why = document.outcome_reason.as_deref().unwrap_or_default();
            return Err(Usage(format!("the run played nothing: {why}")).into());
        }
        serde_json::from_value(document.summary.clone())
            .context("the run's summary is not that of a replay")
    }
}

/// The document printed by `--json`.
pub fn document(run: &RunDocument, run_dir: &str) -> Value {
    json!({
        "schema": "seekscope/replay/1",
        "command": run.command,
        "outcome": run.outcome,
        "outcome_reason": run.outcome_reason,
        "run_dir": run_dir,
        "host": run.host,
        "device": run.device,
        "limitations": run.limitations,
        "summary": run.summary,
        "findings": run.findings,
    })
}
