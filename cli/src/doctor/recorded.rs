//! `doctor RUN`: draws conclusions from records alone, on any host, without a server or privileges.

use std::path::Path;

use anyhow::Result;
use seekscope_run::{Outcome, RunError, shell_quoted};

use super::conclusion::Conclusion;
use super::diagnostic_folder;
use super::judgement::Judgement;
use crate::args::{DoctorArgs, ExamineArgs, OutputArgs};
use crate::collect;
use crate::exit::{BrokenOff, Usage};
use crate::progress::Progress;
use crate::session::{Session, measured_nothing};

/// Runs the command.
pub async fn run(args: &DoctorArgs, path: &Path, arguments: Vec<String>) -> Result<()> {
    only_recorded(&args.examine, path)?;
    let judgement = Judgement::new(&args.judge)?;
    let progress = Progress::new(args.output.quiet);
    let mut session = open(path, arguments, args.out.as_deref()).await?;
    let document = &session.document;
    if document.phases.is_empty() && document.outcome == Outcome::Ok {
        let why = format!(
            "{} is a run of `seekscope {}`, in which no server was watched; see: seekscope report {}",
            path.display(),
            document.command,
            shell_quoted(&session.directory.path().display().to_string())
        );
        return Err(Usage(why).into());
    }
    if document.phases.is_empty() {
        return Err(measured_nothing(path, document).into());
    }
    let conclusion = Conclusion::derive(&mut session, judgement.since())?;
    conclusion.show(&session, &args.output, progress)?;
    if conclusion.is_blind && judgement.has_limits() {
        let why = "nothing of the server is in what was given, so that --fail-on cannot be judged";
        return Err(BrokenOff(why.into()).into());
    }
    judgement.judge(conclusion.diagnosis())
}

/// Refuses options that say how a server is watched.
pub fn only_recorded(args: &ExamineArgs, path: &Path) -> Result<(), Usage> {
    match args.given() {
        None => Ok(()),
        Some(option) => Err(Usage(format!(
            "{option} is for a server that is watched, and {} is what was recorded",
            path.display()
        ))),
    }
}

/// Opens a run or bundle, or makes a run from a folder of diagnostic files.
async fn open(path: &Path, arguments: Vec<String>, out: Option<&Path>) -> Result<Session> {
    let error = match collect::open(path, "doctor", out).await {
        Ok(session) => return Ok(session),
        Err(error) => error,
    };
    if !matches!(error.downcast_ref(), Some(RunError::NotARun { .. })) {
        return Err(error);
    }
    match diagnostic_folder::find(path) {
        Some(folder) => diagnostic_folder::run_of(&folder, arguments, out),
        None => Err(Usage(format!(
            "{} is no run, no bundle of `seekscope collect` and no folder of diagnostic files; of a data \
             directory see `seekscope layout`",
            path.display()
        ))
        .into()),
    }
}

/// Shows a run of `doctor` again.
pub fn show(session: &mut Session, args: &OutputArgs, progress: Progress) -> Result<()> {
    Conclusion::derive(session, None)?.show(session, args, progress)
}
