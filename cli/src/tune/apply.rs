//! `tune apply`: makes the recommended change on a server permanently, or undoes it.

use std::path::PathBuf;

use anyhow::Result;
use seekscope_run::{KnobValues, RunDirectory};
use seekscope_settings::apply::Means;
use seekscope_settings::{Applier, KnobEntry, KnobFile, Route, SetByOthers, TunerLock};
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
    let recommended = |entry: &KnobEntry| {
        let value = record.recommended.get(&entry.knob.name);
        value.unwrap_or(&entry.knob.default).clone()
    };
    let wanted = entries
        .iter()
        .map(|entry| (entry.knob.name.clone(), recommended(entry)));
    let change = Change {
        args,
        // Originals of this change are kept apart from those of the session.
        folder: directory.path().join("applied"),
        wanted: Configuration(wanted.collect()),
        entries,
    };
    let applied = unrestored::originals_of(&change.folder);
    let is_applied = applied.iter().any(|one| !one.outstanding().is_empty());
    match (args.undo, is_applied) {
        (true, true) => return change.undo(environment).await,
        (true, false) => {
            let why = "was not applied by this command, which undoes only what it did; `tune show --as undo` \
                       has the commands";
            return Err(Usage(format!("{} {why}", args.run.display())).into());
        }
        (false, true) => {
            let why = "was applied already; take that back first, with --undo --yes";
            return Err(Usage(format!("{} {why}", args.run.display())).into());
        }
        (false, false) => {}
    }
    let line = |entry: &KnobEntry, how: &str| {
        let (name, words) = (&entry.knob.name, entry.set.in_words());
        format!("{name} = {}{how} ({words})\n", recommended(entry))
    };
    let here = change.entries.iter().map(|entry| line(entry, ""));
    let not_here = " is not for this command to set";
    let text: String = here
        .chain(elsewhere.iter().map(|entry| line(entry, not_here)))
        .collect();
    if args.yes {
        change.set(environment).await?;
    }
    change.say(&text)
}

/// A change of a server, or of the members of a set, to be made or undone.
struct Change<'a> {
    args: &'a TuneApplyArgs,
    folder: PathBuf,
    entries: Vec<KnobEntry>,
    wanted: Configuration,
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

impl Change<'_> {
    /// Shows the lines of the change, and that they were set or would be.
    fn say(&self, lines: &str) -> Result<()> {
        let uri = seekscope_server::redact_uri(&self.args.uri);
        let said = match self.args.yes {
            true => format!("Set on {uri} and read back.\n{}", self.lasting()),
            false => format!(
                "This would be set on {uri}. {}Nothing was changed: --yes does it.\n",
                self.restarts()
            ),
        };
        output::print(&(lines.to_owned() + &said))
    }

    async fn connect(&self) -> Result<(Target, Option<Rolling>, Means)> {
        let args = self.args;
        let target = Target::connect(&args.uri, "", None).await?;
        server_arena::refuse_router(&target)?;
        let restart = restart(args.config_file.as_ref(), args.restart_command.as_ref());
        let rolling = Rolling::find(target.server()?, restart.clone(), args.allow_stepdown).await?;
        let means = means(&target, restart)?;
        Ok((target, rolling, means))
    }

    async fn set(&self, environment: &Environment) -> Result<()> {
        let progress = Progress::new(self.args.output.quiet);
        let _step = progress.step("setting");
        let (target, rolling, means) = self.connect().await?;
        let _locks = locks(environment, &target, rolling.as_ref())?;
        std::fs::create_dir_all(&self.folder)?;
        // What is taken back is what this server had, which need not be the one that was tuned.
        let mut applier = match &rolling {
            Some(rolling) => rolling.begin(&target, &self.entries, &self.folder).await?,
            None => {
                let entries = knobs::as_set_on(&target, self.entries.clone()).await?;
                Applier::begin(&entries, means, &self.folder)?.into()
            }
        };
        let waiting = applier.waiting();
        match telling(progress, &waiting, applier.apply(&self.wanted)).await {
            Ok(_) => Ok(()),
            Err(error) => {
                // Half of a change was never measured.
                put_back(progress, &mut applier, None).await;
                Err(error.into())
            }
        }
    }

    /// Puts back what was applied, except for what somebody else has set since.
    async fn undo(&self, environment: &Environment) -> Result<()> {
        let progress = Progress::new(self.args.output.quiet);
        let (target, rolling, means) = {
            let _step = progress.step("connecting");
            self.connect().await?
        };
        let _locks = match self.args.yes {
            true => locks(environment, &target, rolling.as_ref())?,
            false => Vec::new(),
        };
        let Some(mut applier) = rolling::resume(&self.folder, means)? else {
            return Ok(());
        };
        let others = applier.set_by_others(&self.wanted).await;
        applier.leave(&others).await;
        let back = applier.outstanding_in_words();
        let is_all_left = back.is_empty();
        let lines = back.into_iter().chain(others.iter().map(left));
        let lines: String = lines.map(|line| line + "\n").collect();
        if self.args.yes {
            match put_back(progress, &mut applier, None).await {
                Some(false) => {
                    let why = "not every setting could be put back";
                    return Err(Inconsistent(why.into()).into());
                }
                Some(true) => {}
                // Everything is left to others, which is recorded as the change being undone.
                None => drop(applier.restore().await),
            }
        }
        match (is_all_left, self.args.yes) {
            (false, _) => self.say(&lines),
            (true, true) => output::print(&(lines + "Nothing was put back.\n")),
            (true, false) => output::print(
                &(lines + "Nothing would be put back; --yes records the change as undone.\n"),
            ),
        }
    }

    /// Says which settings need a restart of the server, and what allows that.
    fn restarts(&self) -> String {
        let of_file = self.entries.iter().filter(|entry| entry.needs_restart());
        let names: Vec<&str> = of_file.map(|entry| entry.knob.name.as_str()).collect();
        match (names.is_empty(), &self.args.config_file) {
            (true, _) => String::new(),
            (false, Some(_)) => format!("The server is restarted for {}. ", names.join(", ")),
            (false, None) => format!(
                "A restart of the server is needed for {}: --yes refuses without --config-file and --restart-command. ",
                names.join(", ")
            ),
        }
    }

    /// Explains which part of the change does not survive a restart of the server.
    fn lasting(&self) -> String {
        let at_run_time = |entry: &&KnobEntry| {
            matches!(
                entry.set,
                Route::Engine { .. } | Route::Parameter { .. } | Route::File { .. }
            )
        };
        match self.entries.iter().filter(at_run_time).count() {
            0 => String::new(),
            _ if self.args.undo => format!(
                "What was put back at run time lasts until the next start; what the configuration file says holds then. As a \
                 text: seekscope tune show {} --as undo\n",
                self.args.run.display()
            ),
            _ => format!(
                "What was set at run time lasts until the next start. For good: seekscope tune show {} --as mongod-conf\n",
                self.args.run.display()
            ),
        }
    }
}

fn locks(
    environment: &Environment,
    target: &Target,
    rolling: Option<&Rolling>,
) -> Result<Vec<TunerLock>> {
    let folder = unrestored::lock_folder(&environment.lease_folder)?;
    let members = rolling.map_or(&[][..], Rolling::members);
    Ok(rolling::lock(&folder, target.server()?, members)?)
}

/// Says what is left as somebody else has set it.
fn left(other: &SetByOthers) -> String {
    let SetByOthers {
        knob,
        member,
        found,
        applied,
    } = other;
    let on = match member.as_str() {
        "" => String::new(),
        member => format!(" on {member}"),
    };
    match found {
        Some(found) => format!(
            "{knob} stays {found}{on}: somebody else has set it since this command set {applied}"
        ),
        None => format!(
            "{knob} stays as it is{on}: the configuration file was edited since this command set {applied}, and its \
             original text would undo that too"
        ),
    }
}
