//! `tune --restore`: restores settings that a killed session, or another command with a knob, left changed.

use std::path::Path;

use anyhow::Result;
use seekscope_settings::apply::Means;
use seekscope_settings::{Applier, Originals, Restart, TunerLock};

use super::LOCAL;
use super::definition::Definition;
use super::server_arena::{self, means, put_back, telling};
use crate::args::TuneSessionArgs;
use crate::bench::Target;
use crate::environment::Environment;
use crate::exit::{Interrupted, NotRestored, Usage};
use crate::interruption::Interruption;
use crate::output;
use crate::progress::Progress;
use crate::unrestored;

/// Runs the command. The first signal ends it, with what it waits for; what is not restored by then is still in
/// the run, for the next attempt.
pub async fn run(run: &Path, args: &TuneSessionArgs, environment: &Environment) -> Result<()> {
    let progress = Progress::new(args.output.quiet);
    let interruption = Interruption::listen();
    let restored = restore(run, args, progress, environment);
    let restored = interruption.or(restored).await;
    if let Err(error) = &restored
        && error.is::<Interrupted>()
    {
        progress.complain(not_restored(run).to_string());
    }
    restored
}

async fn restore(
    run: &Path,
    args: &TuneSessionArgs,
    progress: Progress,
    environment: &Environment,
) -> Result<()> {
    let (target, restart) = asked(run, args)?;
    let (means, _lock) = match target.as_deref() {
        Some(LOCAL) => {
            return output::print(
                "Nothing to put back: the session changed no server of anybody's.\n",
            );
        }
        None => (server_arena::means_alone(), None),
        Some(uri) => {
            let target = {
                let _step = progress.step("connecting");
                match Target::connect(uri, "", None).await {
                    Ok(target) => target,
                    Err(gone) => revived(run, restart.clone(), uri, gone, progress).await?,
                }
            };
            if restart.is_some() {
                server_arena::refuse_restart_of_set(target.server()?).await?;
            }
            let locks = unrestored::lock_folder(&environment.lease_folder)?;
            let lock = TunerLock::server(&locks, target.server()?.addresses())?;
            (means(&target, restart)?, Some(lock))
        }
    };
    let Some(mut applier) = Applier::resume(run, means)? else {
        let why = "holds no originals: the session had not changed anything";
        return Err(Usage(format!("{} {why}", run.display())).into());
    };
    match put_back(progress, &mut applier, None).await {
        None => output::print("Nothing to put back: the session had not changed anything.\n"),
        Some(true) => output::print("Every setting is as the session found it.\n"),
        Some(false) => Err(not_restored(run)),
    }
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
    let Some(mut applier) = Applier::resume(run, means)? else {
        return Err(gone);
    };
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
