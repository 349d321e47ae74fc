//! `tune --restore`: restores settings that a killed session, or another command with a knob, left changed.

use std::path::{Path, PathBuf};

use anyhow::Result;
use seekscope_report::tune::left_database;
use seekscope_run::RunDirectory;
use seekscope_server::{Server, redact_uri};
use seekscope_settings::apply::Means;
use seekscope_settings::{Applier, Appliers, ByRestart, HostFiles, Originals, Restart};

use super::apply::ApplyOutput;
use super::definition::Definition;
use super::putting_back::{PutBack, put_back_in_words, put_back_rest, telling};
use super::rolling::{self, Members, Whose};
use super::server_arena::{self, means};
use super::undoing::{Undoer, Undoing, restarts_in_words};
use super::{LOCAL, note_put_back};
use crate::args::TuneSessionArgs;
use crate::bench::Target;
use crate::environment::Environment;
use crate::exit::{Interrupted, NotRestored, Usage};
use crate::interruption::Interruption;
use crate::output;
use crate::progress::Progress;
use crate::unrestored;

/// What became of the settings of one server, or of the members of one set.
struct Outcome {
    /// The server, without secrets; empty where there is none.
    uri: String,
    is_done: bool,
    /// What was put back or stays, setting by setting.
    settings: Vec<String>,
    /// The result, in sentences.
    result: Vec<String>,
}

/// Runs the command. The first signal ends it, with what it waits for; what is not restored by then is still in
/// the run, for the next attempt.
pub async fn run(run: &Path, args: &TuneSessionArgs, environment: &Environment) -> Result<()> {
    let progress = Progress::new(args.output.quiet);
    let interruption = Interruption::listen();
    let mut outcomes = Vec::new();
    for folder in folders_of(run)? {
        let restored = restore(&folder, args, progress, environment);
        let restored = interruption.or(restored).await;
        if let Err(error) = &restored
            && error.is::<Interrupted>()
        {
            for originals in unrestored::originals_of(&folder) {
                for outstanding in originals.outstanding_in_words() {
                    progress.complain(outstanding);
                }
            }
            progress.complain(not_restored(&folder).to_string());
        }
        let outcome = restored?;
        if !args.output.json {
            let lines = outcome.result.iter().map(|line| format!("{line}\n"));
            output::print(&lines.collect::<String>())?;
        }
        outcomes.push(outcome);
    }
    match args.output.json {
        true => output::print_json(&document(run, outcomes)),
        false => Ok(()),
    }
}

/// Returns the document of `--json`: what `tune apply --undo --yes` prints.
fn document(run: &Path, outcomes: Vec<Outcome>) -> ApplyOutput {
    let uris: Vec<&str> = outcomes
        .iter()
        .map(|outcome| outcome.uri.as_str())
        .collect();
    ApplyOutput {
        schema: output::versioned("tune-apply"),
        command: "tune apply",
        run_dir: run.display().to_string(),
        uri: uris.join(", "),
        undo: true,
        done: outcomes.iter().any(|outcome| outcome.is_done),
        put_back: outcomes
            .into_iter()
            .flat_map(|outcome| outcome.settings.into_iter().chain(outcome.result))
            .collect(),
        ..ApplyOutput::default()
    }
}

/// Returns the folders whose originals are restored one after the other: a session restores all of its own together, and
/// `bench index` has those of each of its servers, which have nothing to do with one another, in a folder below.
fn folders_of(run: &Path) -> Result<Vec<PathBuf>> {
    if Definition::is_in(run) || Originals::load(run)?.is_some() {
        return Ok(vec![run.into()]);
    }
    let folders = unrestored::folders_below(run);
    Ok(match folders.is_empty() {
        // Which says that there is no session.
        true => vec![run.into()],
        false => folders,
    })
}

async fn restore(
    run: &Path,
    args: &TuneSessionArgs,
    progress: Progress,
    environment: &Environment,
) -> Result<Outcome> {
    let (target, restart) = asked(run, args)?;
    let uri = target.as_deref().map(redact_uri).unwrap_or_default();
    let members = rolling::members_of(run).into_iter();
    let members: Vec<String> = members.map(|(name, _)| name).collect();
    let (means, _locks) = match target.as_deref() {
        Some(LOCAL) => {
            return Ok(Outcome {
                uri,
                is_done: false,
                settings: Vec::new(),
                result: vec![
                    "Nothing to put back: the session changed no server of anybody's.".into(),
                ],
            });
        }
        None => (server_arena::means_alone(), Vec::new()),
        Some(uri) if !members.is_empty() => {
            // Without a primary the set gives no answer, and each member is asked itself.
            let server = Server::unasked(uri).await?;
            let locks = unrestored::lock_folder(&environment.lease_folder)?;
            let locks = rolling::lock(&locks, &server, &members)?;
            let means = Means {
                server: Some(server),
                host: Some(HostFiles::host(None)),
                restart,
                ..server_arena::means_alone()
            };
            (means, locks)
        }
        Some(uri) => {
            let target = {
                let _step = progress.step("connecting");
                match Target::connect(uri, "", None).await {
                    Ok(target) => target,
                    Err(gone) => revived(run, restart.clone(), uri, gone, progress).await?,
                }
            };
            // The session was of one server: a set is another one.
            if restart.is_some() {
                Members::find(target.server()?, restart.clone(), false, Whose::OfPrimary).await?;
            }
            let locks = unrestored::lock_folder(&environment.lease_folder)?;
            let locks = rolling::lock(&locks, target.server()?, &[])?;
            (means(&target, restart)?, locks)
        }
    };
    let Some(mut applier) = rolling::resume(run, means)? else {
        let why = "holds no originals: the session had not changed anything";
        return Err(Usage(format!("{} {why}", run.display())).into());
    };
    if !members.is_empty() && applier.is_outstanding() {
        // A member that a killed session was just restarting is down.
        let waiting = applier.waiting();
        telling(progress, &waiting, applier.recover()).await;
    }
    let (put_back, settings) = put_back_as_told(progress, &mut applier).await;
    let left = note_restored(run, put_back)?;
    let result = match put_back {
        PutBack::Nothing => "Nothing to put back: the session had not changed anything.",
        PutBack::Everything => "Every setting is as the session found it.",
        PutBack::ButForOthers => {
            "Every setting is as the session found it, but for what somebody else has set since."
        }
        PutBack::NotAll => return Err(not_restored(run)),
    };
    Ok(Outcome {
        uri,
        is_done: put_back != PutBack::Nothing,
        settings,
        result: std::iter::once(result.into()).chain(left).collect(),
    })
}

/// Says what will be put back and by which restarts, and puts it back.
async fn put_back_as_told(progress: Progress, applier: &mut Appliers) -> (PutBack, Vec<String>) {
    if !applier.is_outstanding() {
        return put_back_in_words(progress, applier, None).await;
    }
    let undoing = Undoing::of(applier).await;
    for setting in &undoing.back {
        progress.say(format!("  to be put back: {setting}"));
    }
    tell_restarts(progress, &undoing.restarts);
    put_back_rest(progress, applier, None, undoing.left).await
}

fn tell_restarts(progress: Progress, restarts: &[ByRestart]) {
    for line in restarts_in_words(restarts, Undoer::Restore) {
        progress.say(format!("  {line}"));
    }
}

/// Records in the session's run, if it is one, that every setting was put back. Returns what is said of the database that
/// the session leaves.
fn note_restored(run: &Path, put_back: PutBack) -> Result<Option<String>> {
    let Ok((directory, mut document)) = RunDirectory::open(run) else {
        return Ok(None);
    };
    let Some(record) = &mut document.tune else {
        return Ok(None);
    };
    let left = left_database(record);
    if put_back.is_complete() == Some(true) {
        note_put_back(record, put_back);
        directory.save(&document)?;
    }
    Ok(left)
}

/// Returns the target whose settings are restored, and how it is restarted. A benchmark has no definition of a session:
/// its originals name the server.
fn asked(run: &Path, args: &TuneSessionArgs) -> Result<(Option<String>, Option<Restart>)> {
    let uri = args.target.as_deref();
    if !Definition::is_in(run)
        && let Some(originals) = Originals::load(run)?
    {
        return Ok((Some(uri.map_or(originals.server, String::from)), None));
    }
    let restart = args.knobs.restart_command.as_deref();
    let definition = Definition::read(run)?.for_restore(uri, restart)?;
    let restart = definition.restart();
    Ok((definition.target, restart))
}

/// Revives a server that died in a trial, or that a trial's configuration file keeps from running: with its own file it
/// may run again.
async fn revived(
    run: &Path,
    restart: Option<Restart>,
    uri: &str,
    gone: anyhow::Error,
    progress: Progress,
) -> Result<Target> {
    let Some(restart) = restart else {
        return Err(gone);
    };
    let means = Means {
        restart: Some(restart),
        ..server_arena::means_alone()
    };
    let Some(applier) = Applier::resume(run, means)? else {
        return Err(gone);
    };
    let mut applier = Appliers::from(applier);
    tell_restarts(progress, &applier.restore_by_restarts());
    let _step = progress.step("starting the server with its own configuration file");
    // Settings that only a running server accepts are left for when it runs.
    let waiting = applier.waiting();
    let recovering = async {
        applier.recover().await;
        applier.restore().await
    };
    telling(progress, &waiting, recovering).await;
    Target::connect(uri, "", None).await
}

/// Returns the error for settings that could not all be restored.
pub fn not_restored(run: &Path) -> anyhow::Error {
    NotRestored(format!(
        "not every setting could be put back; see above for what it was, and try again: \
         {}",
        unrestored::remedy(run)
    ))
    .into()
}
