//! What a session's records say, shown by `tune` at its end, and by `tune show` and `report` later.

use std::path::Path;

use anyhow::Result;
use seekscope_report::tune::{TuneSummary, html, terminal};
use seekscope_run::tune::{TuneExports, TuneRecord};
use seekscope_run::{RunDirectory, RunDocument, RunError};

use crate::args::{OutputArgs, TuneForm, TuneShowArgs};
use crate::ending;
use crate::exit::{NotRestored, Usage};
use crate::output::{self, RunOutput};
use crate::progress::Progress;
use crate::session::Session;
use crate::unrestored;

/// Fills in the summary, writes `report.html`, and prints text or JSON on stdout, also if nothing can be written.
pub fn show(session: &mut Session, args: &OutputArgs, progress: Progress) -> Result<()> {
    if let Some(record) = &mut session.document.tune {
        // The record of a killed session is in its journal.
        if record.trials.is_empty() {
            record.trials = session.directory.read_trials()?;
        }
        session.document.summary = serde_json::to_value(TuneSummary::of(record))?;
    }
    let saved = session.save_with_page(&html(&session.document));
    let document = &session.document;
    let json = |run_dir: &str| output::print_json(&RunOutput::of("tune", document, run_dir));
    let text = |width| Ok(terminal(document, width));
    ending::print(&session.directory, saved, args, progress, json, text)
}

/// Runs `tune show`; for a session that is running or was killed, shows what its journal says.
pub fn show_run(args: &TuneShowArgs) -> Result<()> {
    let (directory, mut document) = match RunDirectory::open(&args.run) {
        Err(RunError::InUse { .. }) => return show_under_way(args),
        opened => opened?,
    };
    let Some(record) = &mut document.tune else {
        return Err(no_session(args));
    };
    let progress = Progress::new(args.output.quiet);
    if let Some(form) = args.form {
        let text = in_form(&record.exports, form);
        if let Some(left) = unrestored::of_run(&args.run)
            && (text.is_empty() || form == TuneForm::Undo)
        {
            return Err(NotRestored(left.to_string()).into());
        }
        if text.is_empty() {
            // Not on stdout, which may become somebody's configuration file.
            progress.say(why_nothing(record));
        }
        return output::print(&text);
    }
    show(
        &mut Session::reopen(directory, document),
        &args.output,
        progress,
    )
}

/// Shows a running session without changing anything, as another process writes there.
fn show_under_way(args: &TuneShowArgs) -> Result<()> {
    let mut document = RunDirectory::read_document(&args.run)?;
    let Some(record) = &mut document.tune else {
        return Err(no_session(args));
    };
    if args.form.is_some() {
        let why = "is under way: what it will recommend is not known";
        return Err(Usage(format!("{} {why}", args.run.display())).into());
    }
    record.trials = RunDirectory::journalled_trials(&args.run)?.unwrap_or_default();
    document.summary = serde_json::to_value(TuneSummary::of(record))?;
    document.outcome_reason = Some("the session is under way".into());
    print(
        &document,
        &args.run,
        &args.output,
        Progress::new(args.output.quiet),
    )
}

fn no_session(args: &TuneShowArgs) -> anyhow::Error {
    Usage(format!("{} is no tuning session", args.run.display())).into()
}

fn print(document: &RunDocument, run: &Path, args: &OutputArgs, progress: Progress) -> Result<()> {
    if args.json {
        let run_dir = run.display().to_string();
        return output::print_json(&RunOutput::of("tune", document, &run_dir));
    }
    output::print(&terminal(document, progress.width()))
}

/// Returns why there is no text to copy.
fn why_nothing(record: &TuneRecord) -> &'static str {
    match record.recommended.is_empty() {
        true => "No gain was proven, so there is nothing to change and nothing to take back.",
        false => {
            "The recommended change has no such form: without --as it is shown in those that it has."
        }
    }
}

fn in_form(exports: &TuneExports, form: TuneForm) -> String {
    let lines = |lines: &[String]| lines.iter().map(|line| format!("{line}\n")).collect();
    match form {
        TuneForm::MongodConf => exports.mongod_conf.clone(),
        TuneForm::SetParameter => lines(&exports.set_parameter),
        TuneForm::Shell => lines(&exports.shell),
        TuneForm::Undo => {
            let undo = exports.undo_set_parameter.iter().chain(&exports.undo_shell);
            let undo: String = undo.map(|line| format!("{line}\n")).collect();
            match exports.undo_mongod_conf.as_str() {
                "" => undo,
                conf => format!("{undo}# mongod.conf:\n{conf}"),
            }
        }
    }
}
