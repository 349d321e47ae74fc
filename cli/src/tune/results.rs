//! What a session's records say: by `tune` at its end, by `tune show` and `report` later.

use anyhow::Result;
use seekscope_report::tune::{html, summary, terminal};
use seekscope_run::RunDirectory;
use seekscope_run::tune::TuneExports;

use crate::args::{OutputArgs, TuneForm, TuneShowArgs};
use crate::exit::Usage;
use crate::output;
use crate::progress::Progress;
use crate::session::Session;

/// Fills in the summary, writes `report.html`, and prints text, or JSON, on stdout.
pub fn show(session: &mut Session, args: &OutputArgs, progress: Progress) -> Result<()> {
    if let Some(record) = &session.document.tune {
        session.document.summary = summary(record);
        session.save()?;
    }
    session.directory.save_report(&html(&session.document))?;
    if args.json {
        let run_dir = session.directory.path().display().to_string();
        let document = output::run_document("seekscope/tune/1", &session.document, &run_dir);
        output::print_json(&document)?;
    } else {
        output::print(&terminal(&session.document, progress.width()))?;
    }
    let report = session.directory.report_path();
    progress.say(format!("Report: {}", report.display()));
    Ok(())
}

/// `tune show`: of a session under way, or killed, what its journal says.
pub fn show_run(args: &TuneShowArgs) -> Result<()> {
    let (directory, mut document) = RunDirectory::open(&args.run)?;
    let Some(record) = &mut document.tune else {
        return Err(Usage(format!("{} is no tuning session", args.run.display())).into());
    };
    if record.trials.is_empty() {
        record.trials = directory.read_trials()?;
    }
    if let Some(form) = args.form {
        return output::print(&in_form(&record.exports, form));
    }
    let progress = Progress::new(args.output.quiet);
    show(
        &mut Session::reopen(directory, document),
        &args.output,
        progress,
    )
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
