//! Finds what somebody else has set since a change was applied. It is theirs, and undoing the change leaves it.

use std::collections::BTreeSet;
use std::path::PathBuf;

use seekscope_run::tune::KnobValue;
use seekscope_tune::space::Configuration;

use super::engine::engine_text;
use super::process::Fate;
use super::restart::settings;
use super::{Applier, Appliers, ApplyError, parameter, reads_as, same};
use crate::engine_string::{self, value_text};
use crate::knob_file::Route;
use crate::originals::Target;
use crate::{host_files, mongod_conf, script};

/// A setting that has neither the value that was applied nor the one before it.
#[derive(Debug, Clone, PartialEq)]
pub struct SetByOthers {
    pub knob: String,
    /// The member of the set, `host:port`; empty for a server that is set alone.
    pub member: String,
    /// What it is now.
    pub found: String,
    pub applied: KnobValue,
    pub original: KnobValue,
    /// Whether it is set in the running server, and only until its next start.
    pub is_until_restart: bool,
}

/// A configuration file that somebody else has edited, and that has kept their edits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptEdits {
    pub path: PathBuf,
    /// Whether the server was started with them since, which puts them into force.
    pub are_in_force: bool,
}

impl KeptEdits {
    /// Says that the file has kept them, and from when on they hold.
    pub fn in_words(&self) -> String {
        let since = match self.are_in_force {
            true => "holds since the restart just made",
            false => "holds from the server's next start on",
        };
        format!(
            "{} was edited by somebody else meanwhile: what they edited stays in it, and {since}",
            self.path.display()
        )
    }
}

/// What somebody else has edited in the configuration file.
struct Edits {
    /// The original with their edits.
    merged: String,
    /// What they edited.
    written: String,
    /// What they made of it.
    found: String,
}

impl Appliers {
    /// Returns what somebody else has set since the last configuration was applied. What cannot be read is not among it,
    /// nor is the configuration file, into which the originals are merged.
    pub async fn set_by_others(&self) -> Vec<SetByOthers> {
        let mut others = Vec::new();
        for member in &self.members {
            let found = member.applier.set_by_others().await;
            others.extend(found.into_iter().map(|other| SetByOthers {
                member: member.name.clone(),
                ..other
            }));
        }
        others
    }

    /// Returns the settings that are not what the originals say, before anything was set: somebody has set them since
    /// the originals' values were read.
    pub async fn set_since_read(&self) -> Vec<SetByOthers> {
        let mut others = Vec::new();
        for member in &self.members {
            others.extend(member.applier.set_since_read().await);
        }
        others
    }

    /// Forgets these settings, which are not put back any more. It is recorded when the others have been put back.
    pub async fn leave(&mut self, others: &[SetByOthers]) {
        for member in &mut self.members {
            let own = others.iter().filter(|other| other.member == member.name);
            let knobs: Vec<&str> = own.map(|other| other.knob.as_str()).collect();
            member.applier.leave(&knobs).await;
        }
    }

    /// Returns whether restoring restarts a server.
    pub fn restore_restarts(&self) -> bool {
        let mut members = self.members.iter();
        members.any(|member| member.applier.restore_needs_restart())
    }

    /// Returns whether something was left to others when everything else was put back.
    pub fn has_left_some(&self) -> bool {
        let mut members = self.members.iter();
        members.any(|member| !member.applier.originals().left_to_others.is_empty())
    }

    /// Returns the configuration files that somebody else has edited, and that have kept their edits, since this was asked.
    pub fn take_kept_edits(&mut self) -> Vec<KeptEdits> {
        let members = self.members.iter_mut().map(|member| &mut member.applier);
        let edited = members.filter_map(|applier| {
            let has_kept = std::mem::take(&mut applier.has_kept_edits);
            let are_in_force = std::mem::take(&mut applier.are_edits_in_force);
            let restart = applier.means.restart.as_ref().filter(|_| has_kept)?;
            Some(KeptEdits {
                path: restart.config_file.clone(),
                are_in_force,
            })
        });
        edited.collect()
    }

    /// Returns what is to be put back, each with its original value and, in a set, its member.
    pub fn outstanding_in_words(&self) -> Vec<String> {
        let of_member = self.members.iter().flat_map(|member| {
            let on = match member.name.as_str() {
                "" => String::new(),
                name => format!(" on {name}"),
            };
            let settings = member.applier.originals().outstanding_in_words();
            settings
                .into_iter()
                .map(move |setting| format!("{setting}{on}"))
        });
        of_member.collect()
    }
}

impl Applier {
    async fn set_by_others(&self) -> Vec<SetByOthers> {
        // A server may make something else of a value, which is found when it is read back.
        let (Some(applied), None) = (&self.originals.applied, &self.originals.applying) else {
            return Vec::new();
        };
        // What another process has is nothing that was set since in ours.
        let fate = self.fate().await;
        let touched = self.touched_and_there(&fate).into_iter();
        let touched = touched.filter_map(|(target, _)| {
            let applied = applied.get(&target.name)?.clone();
            Some((target, applied))
        });
        let engine_text = match fate {
            Fate::Runs => self.engine_text().await,
            _ => None,
        };
        self.set_otherwise(touched, engine_text).await
    }

    async fn set_since_read(&self) -> Vec<SetByOthers> {
        let engine_text = match &self.means.server {
            Some(server) => engine_text(server).await.ok(),
            None => None,
        };
        let knobs = self.originals.knobs.iter();
        let baselines = knobs.map(|target| (target.clone(), target.baseline.clone()));
        self.set_otherwise(baselines, engine_text).await
    }

    /// Returns those of the settings that have neither the value given here nor their original one.
    async fn set_otherwise(
        &self,
        settings: impl Iterator<Item = (Target, KnobValue)>,
        engine_text: Option<String>,
    ) -> Vec<SetByOthers> {
        let mut others = Vec::new();
        for (target, applied) in settings {
            let ours = [&applied, &target.baseline];
            let found = match &target.set {
                Route::Engine { key, suffix } => {
                    let is_ours = |found: &String| {
                        let found = engine_string::parse_value(found, suffix);
                        ours.iter().any(|value| same(value, &found))
                    };
                    // A text that does not name the key has not set it.
                    let found = engine_text.as_deref();
                    let found = found.and_then(|text| engine_string::lookup(text, key));
                    found.filter(|found| !is_ours(found))
                }
                _ => self.other_value(&target, ours).await,
            };
            others.extend(found.map(|found| SetByOthers {
                knob: target.name.clone(),
                member: String::new(),
                found,
                original: target.baseline.clone(),
                applied,
                is_until_restart: target.is_of_process(),
            }));
        }
        others
    }

    async fn leave(&mut self, knobs: &[&str]) {
        let touched = &mut self.originals.touched;
        touched.retain(|knob| !knobs.contains(&knob.as_str()));
        let left = knobs.iter().map(ToString::to_string);
        self.originals.left_to_others.extend(left);
        if let Some(text) = self.engine_text_of_others().await {
            self.originals.engine_text = Some(text);
        }
    }

    /// Returns the text of WiredTiger's runtime configuration with the settings of others in it and ours put back, if
    /// others have set it.
    async fn engine_text_of_others(&self) -> Option<String> {
        let original = self.originals.engine_text.as_ref()?;
        let now = self.engine_text().await?;
        let (mut found, mut back) = (Vec::new(), Vec::new());
        for (target, value) in self.touched() {
            if let Route::Engine { key, suffix } = target.set
                && let Some(text) = engine_string::lookup(&now, &key)
            {
                back.push((key.clone(), value_text(&value, &suffix).ok()?));
                found.push((key, text));
            }
        }
        // A text that names our keys alone is the one that was applied.
        let ours = engine_string::set_all("", &found);
        let is_ours = now == *original || ours.is_ok_and(|ours| ours == now);
        (!is_ours).then(|| engine_string::set_all(&now, &back).ok())?
    }

    /// Returns the text of WiredTiger's runtime configuration, if a key of it was set and the server tells it.
    async fn engine_text(&self) -> Option<String> {
        self.originals.engine_text.as_ref()?;
        engine_text(self.means.server.as_ref()?).await.ok()
    }

    /// Takes over what somebody else has edited in the configuration file since it was written: to them the original is
    /// what it was with their edits, and so it is from now on.
    ///
    /// # Errors
    /// Returns an error if they edited the lines that were set, so that only they can say what holds.
    pub(super) fn take_over_edits(&mut self) -> Result<(), ApplyError> {
        let Some(edits) = self.edits_of_others()? else {
            return Ok(());
        };
        // What the server was started with is what was written, and their edits are for them to put into force.
        if self.running.as_ref() == Some(&edits.written) {
            self.running = Some(edits.found);
        }
        self.config_text = Some(edits.merged);
        (self.has_kept_edits, self.are_edits_in_force) = (true, false);
        Ok(())
    }

    /// Returns whether somebody else has edited the configuration file since it was written. Where their edits cannot
    /// be told from what was set, they have.
    pub(super) fn is_file_edited(&self) -> bool {
        !matches!(self.edits_of_others(), Ok(None))
    }

    /// Returns what somebody else has edited in the configuration file since it was written.
    fn edits_of_others(&self) -> Result<Option<Edits>, ApplyError> {
        let (Some(original), Some(restart)) = (&self.config_text, &self.means.restart) else {
            return Ok(None);
        };
        let found = restart.read_config()?;
        // A process that was killed while it applied a configuration may have written the file or not.
        let known = [&self.originals.applied, &self.originals.applying];
        let (mut written, mut set) = (Vec::new(), Vec::new());
        for values in known.into_iter().flatten() {
            let settings = settings(&self.wanted(&Configuration(values.clone()))?);
            let text = mongod_conf::edited(original, &settings);
            written.push(text.map_err(|why| restart.failed(why))?);
            set.extend(settings);
        }
        // A version before this one did not record what it had written.
        let is_unknown =
            written.is_empty() && self.touched().iter().any(|(target, _)| target.is_option());
        if is_unknown || found == *original || written.contains(&found) {
            return Ok(None);
        }
        let is_put_back = |text: &str| mongod_conf::agree(original, text, &set);
        let merged = match is_put_back(&found) {
            // Nothing was set in it yet, or they have put it back themselves.
            true => Some((found.clone(), original)),
            false => written.iter().rev().find_map(|text| {
                let merged = mongod_conf::merged(original, text, &found);
                Some((merged.filter(|merged| is_put_back(merged))?, text))
            }),
        };
        let conflict = "it was edited in the lines that were set, or next to them: put these settings back by hand";
        let (merged, text) = merged.ok_or_else(|| restart.failed(conflict))?;
        let written = text.clone();
        Ok(Some(Edits {
            merged,
            written,
            found,
        }))
    }

    /// Returns which of the settings have their original values, as far as that can be read.
    pub(super) async fn as_they_were(&self, touched: &[(Target, KnobValue)]) -> BTreeSet<String> {
        let mut as_they_were = BTreeSet::new();
        for (target, value) in touched {
            let is_original = match (&target.set, &self.means.server, &self.means.host) {
                (Route::Parameter { name }, Some(server), _) => {
                    match parameter::get(server, &target.name, name).await {
                        Ok(found) => parameter::is(&found, value),
                        // A server that is gone answers for none of them.
                        Err(ApplyError::Server(_)) => break,
                        Err(_) => false,
                    }
                }
                (Route::File { path }, _, Some(host)) => {
                    let text = host.read(path);
                    text.is_ok_and(|text| reads_as(host_files::current(&text), value))
                }
                _ => false,
            };
            if is_original {
                as_they_were.insert(target.name.clone());
            }
        }
        as_they_were
    }

    /// Returns the value of a setting that has a place of its own, unless it is one of ours.
    async fn other_value(&self, target: &Target, ours: [&KnobValue; 2]) -> Option<String> {
        let is_text_of_ours = |found: &str| ours.iter().any(|value| reads_as(found, value));
        match &target.set {
            Route::Parameter { name } => {
                let server = self.means.server.as_ref()?;
                let found = parameter::get(server, &target.name, name).await.ok()?;
                let is_ours = ours.iter().any(|value| parameter::is(&found, value));
                (!is_ours).then(|| parameter::in_words(&found))
            }
            Route::File { path } => {
                let text = self.means.host.as_ref()?.read(path).ok()?;
                let found = host_files::current(&text).to_owned();
                (!is_text_of_ours(&found)).then_some(found)
            }
            Route::Command {
                read: Some(read), ..
            } => {
                let printed = script::run(read, None, self.means.script_limit)
                    .await
                    .ok()?;
                let found = printed.trim().to_owned();
                (!is_text_of_ours(&found)).then_some(found)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_hold_since_a_restart_or_from_the_next_on() {
        let mut edits = KeptEdits {
            path: "/etc/mongod.conf".into(),
            are_in_force: false,
        };
        let said = edits.in_words();
        assert!(said.ends_with("holds from the server's next start on"));
        edits.are_in_force = true;
        let said = edits.in_words();
        assert!(said.ends_with("holds since the restart just made"));
    }
}
