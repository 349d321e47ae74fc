//! `tune apply`: makes the recommended change on a server permanently, or undoes it.

use std::path::Path;

use anyhow::Result;
use seekscope_run::{KnobValue, KnobValues, RunDirectory};
use seekscope_settings::{Applier, KnobEntry, KnobFile, Originals, Route};
use seekscope_tune::space::Configuration;

use super::definition::Definition;
use super::knobs;
use super::rolling::{self, Rolling};
use super::server_arena::{self, means, put_back, restart, telling};
use crate::args::TuneApplyArgs;
use crate::bench::Target;
use crate::environment::Environment;
use crate::exit::{Inconsistent, NotRestored, Usage};
use crate::output;
use crate::progress::Progress;
use crate::unrestored;

/// Runs the command.
pub async fn run(args: &TuneApplyArgs, environment: &Environment) -> Result<()> {
    let (directory, document) = RunDirectory::open(&args.run)?;
    let Some(record) = document.tune else {
        return Err(Usage(format!("{} is no tuning session", args.run.display())).into());
    };
    if let Some(left) = unrestored::of_run(&args.run) {
        return Err(NotRestored(left.to_string()).into());
    }
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
    // Originals of this change are kept apart from those of the session.
    let folder = directory.path().join("applied");
    let applied = unrestored::originals_of(&folder);
    let is_applied = applied.iter().any(|one| !one.outstanding().is_empty());
    let value = |entry: &KnobEntry| -> KnobValue {
        let recommended = record.recommended.get(&entry.knob.name);
        recommended.unwrap_or(&entry.knob.default).clone()
    };
    let lines: Vec<String> = match (args.undo, is_applied) {
        (true, true) => in_words(&applied),
        (true, false) => {
            let why = "was not applied by this command, which undoes only what it did; `tune show --as undo` \
                       has the commands";
            return Err(Usage(format!("{} {why}", args.run.display())).into());
        }
        (false, true) => {
            let why = "was applied already; take that back first, with --undo --yes";
            return Err(Usage(format!("{} {why}", args.run.display())).into());
        }
        (false, false) => {
            let line = |entry: &KnobEntry, how: &str| {
                let (name, words) = (&entry.knob.name, entry.set.in_words());
                format!("{name} = {}{how} ({words})", value(entry))
            };
            let here = entries.iter().map(|entry| line(entry, ""));
            let not_here = " is not for this command to set";
            here.chain(elsewhere.iter().map(|entry| line(entry, not_here)))
                .collect()
        }
    };
    let text = lines.join("\n") + "\n";
    let uri = seekscope_server::redact_uri(&args.uri);
    if !args.yes {
        return output::print(&format!(
            "{text}This would be set on {uri}. {}Nothing was changed: --yes does it.\n",
            restarts(args, &entries)
        ));
    }
    let wanted = entries
        .iter()
        .map(|entry| (entry.knob.name.clone(), value(entry)));
    set(
        args,
        environment,
        &folder,
        entries.clone(),
        wanted.collect(),
    )
    .await?;
    output::print(&format!(
        "{text}Set on {uri} and read back.\n{}",
        lasting(args, &entries)
    ))
}

/// Returns what was changed on each server, with its original value.
fn in_words(applied: &[Originals]) -> Vec<String> {
    let of_several = applied.len() > 1;
    let lines = applied.iter().flat_map(|one| {
        let on = match of_several {
            true => format!(" on {}", one.server),
            false => String::new(),
        };
        let settings = one.outstanding_in_words().into_iter();
        settings.map(move |setting| format!("{setting}{on}"))
    });
    lines.collect()
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
    folder: &Path,
    entries: Vec<KnobEntry>,
    wanted: KnobValues,
) -> Result<()> {
    let progress = Progress::new(args.output.quiet);
    let _step = progress.step("setting");
    let target = Target::connect(&args.uri, "", None).await?;
    server_arena::refuse_router(&target)?;
    let restart = restart(args.config_file.as_ref(), args.restart_command.as_ref());
    let server = target.server()?;
    let rolling = Rolling::find(server, restart.clone(), args.allow_stepdown).await?;
    let locks = unrestored::lock_folder(&environment.lease_folder)?;
    let members = rolling.as_ref().map_or(&[][..], Rolling::members);
    let _locks = rolling::lock(&locks, server, members)?;
    std::fs::create_dir_all(folder)?;
    let means = means(&target, restart)?;
    if args.undo {
        let Some(mut applier) = rolling::resume(folder, means)? else {
            return Ok(());
        };
        return match put_back(progress, &mut applier, None).await {
            Some(false) => Err(Inconsistent("not every setting could be put back".into()).into()),
            _ => Ok(()),
        };
    }
    // What is taken back is what this server had, which need not be the one that was tuned.
    let mut applier = match &rolling {
        Some(rolling) => rolling.begin(&target, &entries, folder).await?,
        None => {
            let entries = knobs::as_set_on(&target, entries).await?;
            Applier::begin(&entries, means, folder)?.into()
        }
    };
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

/// Says which settings need a restart of the server, and what allows that.
fn restarts(args: &TuneApplyArgs, entries: &[KnobEntry]) -> String {
    let of_file = entries.iter().filter(|entry| entry.needs_restart());
    let names: Vec<&str> = of_file.map(|entry| entry.knob.name.as_str()).collect();
    match (names.is_empty(), &args.config_file) {
        (true, _) => String::new(),
        (false, Some(_)) => format!("The server is restarted for {}. ", names.join(", ")),
        (false, None) => format!(
            "A restart of the server is needed for {}: --yes refuses without --config-file and --restart-command. ",
            names.join(", ")
        ),
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
