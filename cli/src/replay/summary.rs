//! The figures of a replay: `summary` of its `run.json` and of `--json`, and all that its table is
//! made from. Names are stable; see `docs/schema/replay.schema.json`.

use anyhow::{Context, Result};
use schemars::JsonSchema;
use seekscope_disk::replay::{PlanFacts, ReplayOutcome};
use seekscope_run::RunDocument;
use serde::{Deserialize, Serialize};

use super::prediction::Predicted;
use super::selection::PlayedFile;
use super::target::TargetFacts;
use crate::exit::Usage;

/// How a replay ended, as far as its figures are concerned; the reason is given with the run's outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EndKind {
    Complete,
    TimeLimit,
    Interrupted,
    HeldBack,
    Failed,
}

/// What was played, on what, and how it compares with the recording.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplaySummary {
    /// The recorded run, for people.
    pub recording: String,
    /// The files whose events were played, in the order of their regions on the target.
    #[schemars(length(min = 1))]
    pub files: Vec<PlayedFile>,
    pub target: TargetFacts,
    /// Recorded seconds per played second; null if the replay ran without waiting.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub speed: Option<f64>,
    /// "closed" or "open".
    #[schemars(extend("enum" = ["closed", "open"]))]
    #[serde(rename = "loop")]
    pub pacing: String,
    pub plan: PlanFacts,
    /// The rate that it was held to for the sake of a database at work there; null if it was not.
    #[serde(default)]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub held_to_per_s: Option<f64>,
    pub ended: EndKind,
    pub outcome: ReplayOutcome,
    pub prediction: Option<Predicted>,
    pub notes: Vec<String>,
}

impl ReplaySummary {
    /// Makes the summary of a run.
    pub fn of(document: &RunDocument) -> Result<Self> {
        if document.summary.is_null() {
            let why = document.outcome_reason.as_deref().unwrap_or_default();
            return Err(Usage(format!("the run replayed nothing: {why}")).into());
        }
        serde_json::from_value(document.summary.clone())
            .context("the run's summary is not that of a replay")
    }
}
