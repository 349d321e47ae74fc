//! How every run ends and is shown: the outcome of its records, what is printed of them, and the error with
//! which the command ends.
//!
//! A command's work returns a `Result`. The type of its error determines what the records are worth
//! ([`outcome_of`]); nothing else does.

use anyhow::Result;
use seekscope_run::{Outcome, RunDirectory, RunDocument, RunKind};

use crate::args::OutputArgs;
use crate::exit::{
    BrokenOff, CommandFailed, Inconsistent, Interrupted, ThresholdMissed, message_of,
};
use crate::output::{self, RunOutput};
use crate::progress::Progress;
use crate::session::{Session, measured_nothing};
use crate::{advise, bench, disk, doctor, layout, prefetch, reorder, replay, trace, tune};

/// Returns the outcome of records whose command ended with this result, and the reason unless all went as
/// wanted.
pub fn outcome_of(worked: &Result<()>) -> (Outcome, Option<String>) {
    let Err(error) = worked else {
        return (Outcome::Ok, None);
    };
    let reason = Some(message_of(error));
    if error.is::<Interrupted>() || error.is::<BrokenOff>() {
        (Outcome::Partial, reason)
    } else if error.is::<Inconsistent>() {
        (Outcome::Invalid, reason)
    } else if error.is::<ThresholdMissed>() {
        (Outcome::Ok, reason)
    } else if error.is::<CommandFailed>() {
        // The failure is the user's command's; everything was recorded.
        (Outcome::Ok, None)
    } else {
        (Outcome::Failed, reason)
    }
}

/// Ends the run. Returns the result of its work or, if that went well, the error that kept the run from being
/// completed on disk.
pub fn close(session: &mut Session, worked: Result<()>, progress: Progress) -> Result<()> {
    let (outcome, reason) = outcome_of(&worked);
    match (session.end(outcome, reason), worked) {
        (Err(end), Err(error)) => {
            // The first error is the one that matters; this one is probably its consequence.
            progress.say(format!(
                "the run could not be completely written to disk: {}",
                message_of(&end)
            ));
            Err(error)
        }
        (ended, worked) => worked.and(ended),
    }
}

/// Ends the run, shows what there is, and returns the command's result.
pub fn end(
    session: &mut Session,
    worked: Result<()>,
    progress: Progress,
    show: impl FnOnce(&mut Session) -> Result<()>,
) -> Result<()> {
    let worked = close(session, worked, progress);
    let shown = match session.is_discarded() || !session.document.has_figures() {
        true => Ok(()),
        false => show(session),
    };
    worked.and(shown)
}

/// Prints a run's results as text of a given width or as JSON that names the run's folder, and says where its
/// page is. `saved` tells whether records and page could be written: what is known is printed although the disk is
/// full, and that error is returned.
pub fn print(
    directory: &RunDirectory,
    saved: Result<()>,
    args: &OutputArgs,
    progress: Progress,
    json: impl FnOnce(&str) -> Result<()>,
    text: impl FnOnce(u16) -> Result<String>,
) -> Result<()> {
    match args.json {
        true => json(&directory.path().display().to_string())?,
        false => output::print(&text(progress.width())?)?,
    }
    saved?;
    progress.say(format!("Report: {}", directory.report_path().display()));
    Ok(())
}

/// Saves a run whose summary is in its document, with its page, and prints text or JSON. `schema` names a file of
/// `docs/schema`.
pub fn show_page(
    session: &Session,
    schema: &str,
    args: &OutputArgs,
    progress: Progress,
    html: fn(&RunDocument) -> String,
    terminal: fn(&RunDocument, u16) -> String,
) -> Result<()> {
    let document = &session.document;
    let saved = session.save_with_page(&html(document));
    print(
        &session.directory,
        saved,
        args,
        progress,
        |run_dir| output::print_json(&RunOutput::of(schema, document, run_dir)),
        |width| Ok(terminal(document, width)),
    )
}

/// Shows a finished run, possibly of an older version: prints its tables or JSON, and rewrites its page.
pub fn show(session: &mut Session, output: &OutputArgs, progress: Progress) -> Result<()> {
    let document = &session.document;
    let kind = document.kind().filter(|_| document.has_figures());
    match kind {
        None => Err(measured_nothing(session.directory.path(), document).into()),
        Some(RunKind::Advise) => advise::show(session, output, progress),
        Some(RunKind::Bench) => bench::show(session, output, progress),
        Some(RunKind::Disk) => disk::show(session, output, progress),
        Some(RunKind::Doctor) => doctor::show(session, output, progress),
        Some(RunKind::Layout) => layout::show(session, output, progress),
        Some(RunKind::Prefetch) => prefetch::show(session, output, progress),
        Some(RunKind::Reorder) => reorder::show(session, output, progress),
        Some(RunKind::Replay) => replay::show(session, output, progress),
        Some(RunKind::Trace) => trace::show(session, output, progress),
        Some(RunKind::Tune) => tune::show(session, output, progress),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use anyhow::{Context, anyhow};

    use super::*;

    #[test]
    fn what_a_run_stands_for_follows_from_its_error() {
        let failed = CommandFailed(ExitStatus::from_raw(3 << 8));
        let broken: Result<()> = Err(anyhow!("damaged")).context(BrokenOff("in half".into()));
        let table: [(Result<()>, Outcome, Option<&str>); 7] = [
            (Ok(()), Outcome::Ok, None),
            (
                Err(Interrupted("SIGINT").into()),
                Outcome::Partial,
                Some("interrupted by SIGINT"),
            ),
            (broken, Outcome::Partial, Some("in half: damaged")),
            (
                Err(Inconsistent("1 and 2".into()).into()),
                Outcome::Invalid,
                Some("1 and 2"),
            ),
            (
                Err(ThresholdMissed("late".into()).into()),
                Outcome::Ok,
                Some("late"),
            ),
            (Err(failed.into()), Outcome::Ok, None),
            (Err(anyhow!("no")), Outcome::Failed, Some("no")),
        ];
        for (worked, outcome, reason) in table {
            let found = outcome_of(&worked);
            assert_eq!(found, (outcome, reason.map(String::from)), "{worked:?}");
        }
    }
}
