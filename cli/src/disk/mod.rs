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

use crate::args::{DiskArgs, DiskVerb, OutputArgs, ScanDiskArgs, SurveyArgs};
use crate::environment::Environment;
use crate::exit::Usage;
use crate::misspelt;

/// Measures the disk that scans are predicted for, if that was asked for, and names the run as the one to predict from.
pub async fn measure_first(
    scan_disk: &mut ScanDiskArgs,
    output: OutputArgs,
    environment: &Environment,
    arguments: &[String],
) -> Result<()> {
    if let Some(directory) = scan_disk.measure_disk.take() {
        let survey_args = SurveyArgs::within(directory, scan_disk.measure_for, output);
        let session = survey(&survey_args, environment, arguments.to_vec()).await?;
        scan_disk.disk_run = Some(session.directory.path().to_path_buf());
    }
    Ok(())
}

/// Refuses a folder that is not there and whose name is like that of a subcommand.
fn refuse_misspelt(args: &SurveyArgs) -> Result<()> {
    let name = args.directory.to_string_lossy();
    let meant = misspelt::meant("disk", &name).filter(|_| !args.directory.exists());
    meant.map_or(Ok(()), |meant| {
        let text = format!("there is no folder {name}; did you mean `{meant}`?");
        Err(Usage(text).into())
    })
}

/// Runs the command.
pub async fn run(args: &DiskArgs, environment: &Environment, arguments: Vec<String>) -> Result<()> {
    match &args.verb {
        None => {
            refuse_misspelt(&args.survey)?;
            survey::run(&args.survey, environment, arguments).await?;
            Ok(())
        }
        Some(DiskVerb::Run(job)) => job::run(job, environment, arguments).await,
        Some(DiskVerb::Predict(prediction)) => predict::run(prediction),
    }
}
