//! `seekscope disk`: what a disk can do for a database; a single job; predictions from the model.

mod job;
mod measurement;
mod place;
mod predict;
mod records;
mod results;
mod summary;
mod survey;

pub use results::Results;

use anyhow::Result;

use crate::args::{DiskArgs, DiskVerb};
use crate::environment::Environment;

/// Runs the command.
pub async fn run(args: &DiskArgs, environment: &Environment, arguments: Vec<String>) -> Result<()> {
    match &args.verb {
        None => survey::run(&args.survey, environment, arguments).await,
        Some(DiskVerb::Run(job)) => job::run(job, environment, arguments).await,
        Some(DiskVerb::Predict(prediction)) => predict::run(prediction),
    }
}
