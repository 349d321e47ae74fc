//! Records what has been tried, and how it ended.

use serde::{Deserialize, Serialize};

use crate::space::Configuration;

/// Which way is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Goal {
    Maximise,
    Minimise,
}

impl Goal {
    /// Returns the value on a scale where more is better and ratios are differences; `None` for what is not a
    /// positive number.
    pub(crate) fn score(self, value: f64) -> Option<f64> {
        let log = (value > 0.0 && value.is_finite()).then(|| value.ln())?;
        Some(match self {
            Self::Maximise => log,
            Self::Minimise => -log,
        })
    }

    /// Returns the inverse of [`Goal::score`].
    pub(crate) fn value(self, score: f64) -> f64 {
        match self {
            Self::Maximise => score.exp(),
            Self::Minimise => (-score).exp(),
        }
    }
}

/// How a trial ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Outcome {
    Measured {
        /// The value to be maximised or minimised; positive.
        value: f64,
        /// Variance of this run in units of an ordinary run's: 2 where it was not steady or ended early.
        #[serde(default = "one")]
        noise: f64,
    },
    /// It crashed, did not start, timed out, or broke a constraint.
    Failed { reason: String },
}

fn one() -> f64 {
    1.0
}

/// One run of one configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    pub configuration: Configuration,
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// All trials of a session, in order.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct History {
    pub trials: Vec<Trial>,
}
