//! `seekscope disk`: measures what a disk can do for a database, runs a single job, and predicts from the
//! model.

mod job;
mod measurement;
pub mod predict;
mod records;
mod results;
pub mod summary;
mod survey;
mod target;

pub use measurement::{held_back, show};
pub use results::load_model;
pub use survey::run as survey;
pub use target::{FILL_BYTES_PER_S_BESIDE_DATABASE, LIMITS_BESIDE_DATABASE};

use anyhow::Result;

use crate::args::{DiskArgs, DiskVerb};
use crate::environment::Environment;

/// Runs the command.
pub async fn run(args: &DiskArgs, environment: &Environment, arguments: Vec<String>) -> Result<()> {
    match &args.verb {
        None => {
            survey::run(&args.survey, environment, arguments).await?;
            Ok(())
        }
        Some(DiskVerb::Run(job)) => job::run(job, environment, arguments).await,
        Some(DiskVerb::Predict(prediction)) => predict::run(prediction),
    }
}
