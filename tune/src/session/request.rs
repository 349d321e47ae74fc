//! Defines what a session requests, and why it may end prematurely.

use std::collections::BTreeMap;

use seekscope_run::tune::{TrialPurpose, TrialStatus, TuneTrial};

use crate::space::Configuration;

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    Run(Request),
    /// The session is over; [`super::Session::stopped`] says whether something went wrong.
    Done,
}

/// A requested run.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    pub purpose: TrialPurpose,
    /// The same as [`TuneTrial::arm`] and [`TuneTrial::origin`].
    pub arm: String,
    pub origin: String,
    /// Block of the duel, from 1.
    pub block: Option<u32>,
    /// Seed for the workload; below 2^53, so that every reader of JSON can hold it.
    pub seed: u64,
    pub values: Configuration,
    /// Expectation of the best setting, if the run may be ended early by [`super::Session::early_stop`].
    pub best: Option<f64>,
}

impl Request {
    /// Returns the trial to fill in: initially a failed one without a reason.
    pub fn trial(&self) -> TuneTrial {
        TuneTrial {
            number: 0,
            purpose: self.purpose,
            arm: self.arm.clone(),
            origin: self.origin.clone(),
            block: self.block,
            seed: self.seed,
            values: self.values.0.clone(),
            status: TrialStatus::Failed,
            value: None,
            partial: [None; 2],
            noise: 1.0,
            reason: String::new(),
            figures: BTreeMap::new(),
            started_unix_ms: 0,
            prepare_s: 0.0,
            measure_s: 0.0,
            best_so_far: None,
        }
    }
}

/// Why a session ended prematurely.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Stopped {
    #[error(
        "the settings found at the start failed twice in a row, so it is not the settings that fail: {reason}; \
         put that right and resume"
    )]
    BaselineFails { reason: String },
    #[error(
        "the budget of {budget_s:.0} s is too small: a run takes {run_s:.0} s, so baseline, one trial and a \
         duel take {least_s:.0} s, and all trials asked for {all_s:.0} s; give a larger budget or make runs \
         shorter"
    )]
    BudgetTooSmall {
        budget_s: f64,
        run_s: f64,
        least_s: f64,
        all_s: f64,
    },
}
