//! `tune apply`: makes the recommended change on a server permanently, or undoes it.

use anyhow::Result;
use seekscope_run::{KnobValue, KnobValues, RunDirectory};
use seekscope_settings::{Applier, KnobEntry, KnobFile, Route, TunerLock};
use seekscope_tune::space::Configuration;

use super::definition::Definition;
use super::server_arena::{self, means, put_back, restart, telling};
use crate::args::TuneApplyArgs;
use crate::bench::Target;
use crate::environment::Environment;
use crate::exit::{Inconsistent, Usage};
use crate::output;
use crate::progress::Progress;
use crate::unrestored;

/// Runs the command.
pub async fn run(args: &TuneApplyArgs, environment: &Environment) -> Result<()> {
    let (directory, document) = RunDirectory::open(&args.run)?;
    let Some(record) = document.tune else {
        return Err(Usage(format!("{} is no tuning session", args.run.display())).into());
    };
    if record.recommended.is_empty() {
        let why = "recommends no change: no gain was proven";
        return Err(Usage(format!("{} {why}", args.run.display())).into());
    }
    let file = Definition::read(&args.run)?.knob_file()?;
    let (entries, elsewhere): (Vec<KnobEntry>, Vec<KnobEntry>) = changed(file, &record.recommended)
        .into_iter()
        .partition(is_of_a_server);
    if entries.is_empty() {
        let why = "recommends start options of a private server, or variables of a command: there is nothing to \
                   be set on a server; `tune show` has them";
        return Err(Usage(format!("{} {why}", args.run.display())).into());
    }
    let value = |entry: &KnobEntry| -> KnobValue {
        let recommended = record
            .recommended
            .get(&entry.knob.name)
            .filter(|_| !args.undo);
        recommended.unwrap_or(&entry.knob.default).clone()
    };
    let mut text = String::new();
    for entry in &entries {
        let how = entry.set.in_words();
        text.push_str(&format!(
            "{} = {}  ({how})\n",
            entry.knob.name,
            value(entry)
        ));
    }
    for entry in &elsewhere {
        let how = entry.set.in_words();
        text.push_str(&format!(
            "{} = {} is not for this command to set ({how})\n",
            entry.knob.name,
            value(entry)
        ));
    }
    let uri = seekscope_server::redact_uri(&args.uri);
    if !args.yes {
        return output::print(&format!(
            "{text}This would be set on {uri}. Nothing was changed: --yes does it.\n"
        ));
    }
    let wanted = entries
        .iter()
        .map(|entry| (entry.knob.name.clone(), value(entry)));
    set(args, environment, &directory, &entries, wanted.collect()).await?;
    output::print(&format!(
        "{text}Set on {uri} and read back.\n{}",
        lasting(args, &entries)
    ))
}

/// Returns the knobs that the change affects.
fn changed(file: KnobFile, recommended: &KnobValues) -> Vec<KnobEntry> {
    let entries = file.knobs.into_iter();
    let differs = |entry: &KnobEntry| {
        let value = recommended.get(&entry.knob.name);
        value.is_some_and(|value| *value != entry.knob.default)
    };
    entries.filter(differs).collect()
}

fn is_of_a_server(entry: &KnobEntry) -> bool {
    !matches!(entry.set, Route::Local { .. } | Route::Environment { .. })
}

async fn set(
    args: &TuneApplyArgs,
    environment: &Environment,
    directory: &RunDirectory,
    entries: &[KnobEntry],
    wanted: KnobValues,
) -> Result<()> {
    let progress = Progress::new(args.output.quiet);
    let _step = progress.step("setting");
    let target = Target::connect(&args.uri, "", None).await?;
    server_arena::refuse_router(&target)?;
    if args.config_file.is_some() {
        server_arena::refuse_restart_of_set(target.server()?).await?;
    }
    let locks = unrestored::lock_folder(&environment.lease_folder)?;
    let _lock = TunerLock::server(&locks, target.server()?.addresses())?;
    let restart = restart(args.config_file.as_ref(), args.restart_command.as_ref());
    // Originals of this change are kept apart from those of the session.
    let folder = directory.path().join("applied");
    std::fs::create_dir_all(&folder)?;
    let means = means(&target, restart)?;
    if args.undo {
        let applied = Applier::resume(&folder, means)?;
        let Some(mut applier) = applied.filter(|a| !a.originals().outstanding().is_empty()) else {
            let why = "was not applied by this command, which undoes only what it did; `tune show --as undo` \
                       has the commands";
            return Err(Usage(format!("{} {why}", args.run.display())).into());
        };
        return match put_back(progress, &mut applier, None).await {
            Some(false) => Err(Inconsistent("not every setting could be put back".into()).into()),
            _ => Ok(()),
        };
    }
    if let Some(applied) = Applier::resume(&folder, means.clone())?
        && !applied.originals().outstanding().is_empty()
    {
        let why = "was applied already; take that back first, with --undo --yes";
        return Err(Usage(format!("{} {why}", args.run.display())).into());
    }
    let mut applier = Applier::begin(entries, means, &folder)?;
    let waiting = applier.waiting();
    let wanted = Configuration(wanted);
    match telling(progress, &waiting, applier.apply(&wanted)).await {
        Ok(_) => Ok(()),
        Err(error) => {
            // Half of a change was never measured.
            put_back(progress, &mut applier, None).await;
            Err(error.into())
        }
    }
}

/// Explains which part of the change does not survive a restart of the server.
fn lasting(args: &TuneApplyArgs, entries: &[KnobEntry]) -> String {
    let at_run_time = |entry: &&KnobEntry| {
        matches!(
            entry.set,
            Route::Engine { .. } | Route::Parameter { .. } | Route::File { .. }
        )
    };
    match entries.iter().filter(at_run_time).count() {
        0 => String::new(),
        _ if args.undo => format!(
            "What was put back at run time lasts until the next start; what the configuration file says holds then. As a \
             text: seekscope tune show {} --as undo\n",
            args.run.display()
        ),
        _ => format!(
            "What was set at run time lasts until the next start. For good: seekscope tune show {} --as mongod-conf\n",
            args.run.display()
        ),
    }
}
