//! `tune apply`: makes the recommended change on a server permanently, or undoes it.

use std::path::{Path, PathBuf};

use anyhow::Result;
use schemars::JsonSchema;
use seekscope_run::{KnobValue, KnobValues, RunDirectory};
use seekscope_settings::apply::Means;
use seekscope_settings::discovery::Discovered;
use seekscope_settings::{Applier, KnobEntry, KnobFile, Route, TunerLock};
use seekscope_tune::space::{Configuration, Space};
use serde::Serialize;

use super::definition::Definition;
use super::knobs;
use super::putting_back::{PutBack, put_back, telling};
use super::rolling::{self, Members, Whose};
use super::server_arena::{self, means, restart};
use super::undoing::{Undoer, Undoing, restarts_in_words, without_command};
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
    let definition = Definition::read(&args.run)?;
    let file = definition.knob_file()?;
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
    let is_undone = applied.iter().any(|one| one.restored);
    match (args.undo, is_applied) {
        (true, true) => return change.undo(environment).await,
        (true, false) if is_undone => {
            let why = "was applied by this command and has been taken back already: there is nothing to undo";
            return Err(Usage(format!("{} {why}", args.run.display())).into());
        }
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
    let settings = |entries: &[KnobEntry]| -> Vec<AppliedSetting> {
        let of = |entry: &KnobEntry| AppliedSetting::new(entry, &recommended(entry));
        entries.iter().map(of).collect()
    };
    let uri = seekscope_server::redact_uri(&args.uri);
    let measured = document.target.map(|target| target.uri);
    let mut output = ApplyOutput {
        settings: settings(&change.entries),
        not_here: settings(&elsewhere),
        risks: record.exports.risks,
        measured_on: measured.filter(|measured| *measured != uri),
        ..change.output()
    };
    change.set(environment, &mut output).await?;
    change.say(&output, false)
}

/// A setting that is made or taken back.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct AppliedSetting {
    pub name: String,
    /// The value that it gets, as text.
    pub value: String,
    /// The value that it had on this server, as text; null where that was not asked for.
    pub before: Option<String>,
    /// How it is set, in words.
    pub how: String,
}

impl AppliedSetting {
    fn new(entry: &KnobEntry, value: &KnobValue) -> Self {
        Self {
            name: entry.knob.name.clone(),
            value: value.to_string(),
            before: None,
            how: entry.set.in_words(),
        }
    }

    /// Returns a line that people read. `note` follows the value.
    fn line(&self, note: &str) -> String {
        let Self {
            name, value, how, ..
        } = self;
        let before = match &self.before {
            Some(before) => format!(", {before} so far"),
            None => String::new(),
        };
        format!("{name} = {value}{note}{before} ({how})\n")
    }
}

/// What `tune apply --json` prints, and `tune --restore --json`, which is shown as a change taken back.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct ApplyOutput {
    /// Name and version of this format.
    pub schema: String,
    pub command: &'static str,
    pub run_dir: String,
    /// The server, without secrets.
    pub uri: String,
    /// Whether the change is taken back (`--undo`).
    pub undo: bool,
    /// Whether it was made (`--yes`); false if this only says what would be.
    pub done: bool,
    /// What is set; empty with `undo`.
    pub settings: Vec<AppliedSetting>,
    /// Parts of the change that are not for a server.
    pub not_here: Vec<AppliedSetting>,
    /// What was put back or stays, and why, in sentences; empty without `undo`.
    pub put_back: Vec<String>,
    /// Risks of the change, in sentences.
    pub risks: Vec<String>,
    /// The server of the session, without secrets, if it was another one.
    pub measured_on: Option<String>,
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
    /// Returns the document without what was found out.
    fn output(&self) -> ApplyOutput {
        ApplyOutput {
            schema: output::versioned("tune-apply"),
            command: "tune apply",
            run_dir: self.args.run.display().to_string(),
            uri: seekscope_server::redact_uri(&self.args.uri),
            undo: self.args.undo,
            done: self.args.yes,
            ..ApplyOutput::default()
        }
    }

    /// Shows the change, and that it was made or would be. `is_all_left` says that undoing it leaves all to others.
    fn say(&self, output: &ApplyOutput, is_all_left: bool) -> Result<()> {
        if self.args.output.json {
            return output::print_json(output);
        }
        let not_here = " is not for this command to set";
        let mut text: String = output.settings.iter().map(|one| one.line("")).collect();
        text.extend(output.not_here.iter().map(|one| one.line(not_here)));
        text.extend(output.put_back.iter().map(|line| format!("{line}\n")));
        text.extend(output.risks.iter().map(|risk| format!("{risk}\n")));
        if let Some(server) = &output.measured_on {
            text.push_str(&format!(
                "The gain was measured on {server}, not on this server.\n"
            ));
        }
        let uri = &output.uri;
        let (done, would_be) = match self.args.undo {
            true => ("Put back", "put back"),
            false => ("Set", "set"),
        };
        text.push_str(&match (is_all_left, self.args.yes) {
            (false, true) => format!("{done} on {uri} and read back.\n{}", self.lasting()),
            (false, false) => format!(
                "This would be {would_be} on {uri}. {}Nothing was changed: --yes does it.\n",
                self.restarts()
            ),
            (true, true) => "Nothing was put back.\n".into(),
            (true, false) => {
                "Nothing would be put back; --yes records the change as undone.\n".into()
            }
        });
        output::print(&text)
    }

    async fn connect(&self) -> Result<(Target, Option<Members>, Means)> {
        let args = self.args;
        let target = Target::connect(&args.uri, "", None).await?;
        server_arena::refuse_router(&target)?;
        let restart = restart(args.config_file.as_ref(), args.restart_command.as_ref());
        let server = target.server()?;
        let members = Members::find(server, restart.clone(), args.allow_stepdown, Whose::OfAll);
        let members = members.await?;
        let means = means(&target, restart)?;
        Ok((target, members, means))
    }

    /// Finds out what is set so far, refuses what this server cannot have, and makes the change if it is asked for.
    async fn set(&self, environment: &Environment, output: &mut ApplyOutput) -> Result<()> {
        let progress = Progress::new(self.args.output.quiet);
        let step = progress.step("connecting");
        let (target, members, means) = self.connect().await?;
        let found = knobs::as_set_on(&target, self.entries.clone()).await?;
        for setting in &mut output.settings {
            let mut entries = found.entries.iter();
            let entry = entries.find(|entry| entry.knob.name == setting.name);
            setting.before = entry.map(|entry| entry.knob.default.to_string());
        }
        self.refuse_beyond_bounds(&found)?;
        drop(step);
        if !self.args.yes {
            return Ok(());
        }
        let _step = progress.step("setting");
        let names = members.as_ref().map_or(&[][..], Members::names);
        let _locks = locks(environment, &target, names)?;
        std::fs::create_dir_all(&self.folder)?;
        // What is taken back is what this server had, which need not be the one that was tuned.
        let mut applier = match &members {
            Some(members) => members.begin(&target, &found.entries, &self.folder).await?,
            None => Applier::begin(&found.entries, means, &self.folder)?.into(),
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

    /// Refuses a value that this server's memory or processors have no room for. The session's server may have had it.
    fn refuse_beyond_bounds(&self, found: &Discovered) -> Result<()> {
        for entry in &found.entries {
            let name = &entry.knob.name;
            let value = self.wanted.0.get(name).cloned();
            // A share of another knob is bounded by that.
            let value = value.filter(|_| entry.knob.share_of.is_none());
            let Some(value) = value else { continue };
            let space = Space::new(vec![entry.knob.clone()], Vec::new());
            let wanted = Configuration([(name.clone(), value)].into());
            let Err(error) = space.and_then(|space| space.complete(&wanted)) else {
                continue;
            };
            let bounds = [&found.memory_risks, &found.cpu_bounds];
            let why = bounds.into_iter().find_map(|said| said.get(name));
            let why = why.map_or(String::new(), |why| format!("; {why}"));
            return Err(Usage(format!(
                "{} cannot have what was measured on the session's server: {error}{why}. Nothing was changed; tune this \
                 server itself",
                seekscope_server::redact_uri(&self.args.uri)
            ))
            .into());
        }
        Ok(())
    }

    /// Puts back what was applied, except for what somebody else has set since.
    async fn undo(&self, environment: &Environment) -> Result<()> {
        let progress = Progress::new(self.args.output.quiet);
        let (target, _, means) = {
            let _step = progress.step("connecting");
            self.connect().await?
        };
        let _locks = match self.args.yes {
            true => {
                let members = rolling::members_of(&self.folder).into_iter();
                let names: Vec<String> = members.map(|(name, _)| name).collect();
                locks(environment, &target, &names)?
            }
            false => Vec::new(),
        };
        let Some(mut applier) = rolling::resume(&self.folder, means)? else {
            return Ok(());
        };
        let undoing = Undoing::of(&mut applier).await;
        let mut restarts = undoing.restarts.iter();
        if self.args.yes
            && let Some(missing) = restarts.find(|restart| !restart.is_possible)
        {
            return Err(Usage(without_command(missing)).into());
        }
        let is_all_left = undoing.back.is_empty();
        let planned = match self.args.yes {
            true => Vec::new(),
            false => restarts_in_words(&undoing.restarts, Undoer::Apply),
        };
        let lines = undoing.back.into_iter().chain(undoing.left).chain(planned);
        let output = ApplyOutput {
            put_back: lines.collect(),
            ..self.output()
        };
        if self.args.yes {
            match put_back(progress, &mut applier, None).await {
                PutBack::NotAll => {
                    let why = "not every setting could be put back";
                    return Err(Inconsistent(why.into()).into());
                }
                PutBack::Everything | PutBack::ButForOthers => {}
                // Everything is left to others, which is recorded as the change being undone.
                PutBack::Nothing => drop(applier.restore().await),
            }
        }
        self.say(&output, is_all_left)
    }

    /// Says which settings need a restart of the server, and what allows that. What undoes them is remembered.
    fn restarts(&self) -> String {
        if self.args.undo {
            return String::new();
        }
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

    /// Explains which part of the change does not survive a restart of the server, or that all of it is undone.
    fn lasting(&self) -> String {
        let at_run_time = |entry: &&KnobEntry| {
            matches!(
                entry.set,
                Route::Engine { .. } | Route::Parameter { .. } | Route::File { .. }
            )
        };
        match self.entries.iter().filter(at_run_time).count() {
            0 => String::new(),
            _ => after_a_restart(&self.args.run, self.args.undo),
        }
    }
}

/// Says what becomes of what was set or put back at run time when the server is started again.
fn after_a_restart(run: &Path, undo: bool) -> String {
    let show = format!("seekscope tune show {}", run.display());
    match undo {
        true => format!(
            "Nothing is left to undo. A restart of the server starts with what its configuration file says; if somebody has \
             copied the change into it, this takes it out: {show} --as undo\n"
        ),
        false => format!(
            "What was set at run time lasts until the next start. For good: {show} --as mongod-conf\n"
        ),
    }
}

fn locks(environment: &Environment, target: &Target, members: &[String]) -> Result<Vec<TunerLock>> {
    let folder = unrestored::lock_folder(&environment.lease_folder)?;
    Ok(rolling::lock(&folder, target.server()?, members)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_undone_change_is_not_said_to_last() {
        let said = |undo| after_a_restart(Path::new("runs/tune-1"), undo);
        let undone = said(true);
        assert!(undone.starts_with("Nothing is left to undo."), "{undone}");
        assert!(!undone.contains("lasts until"), "{undone}");
        assert!(undone.ends_with("runs/tune-1 --as undo\n"), "{undone}");
        assert!(said(false).contains("lasts until the next start"));
    }
}
