//! Finds what somebody else has set since a change was applied. It is theirs, and undoing the change leaves it.

use seekscope_run::tune::KnobValue;
use seekscope_tune::space::Configuration;

use super::engine::engine_text;
use super::{Applier, Appliers, parameter, reads_as};
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
    /// What it is now; `None` for a setting in a configuration file that was edited since.
    pub found: Option<String>,
    pub applied: KnobValue,
}

impl Appliers {
    /// Returns what somebody else has set since `applied` was. What cannot be read is not among it.
    pub async fn set_by_others(&self, applied: &Configuration) -> Vec<SetByOthers> {
        let mut others = Vec::new();
        for member in &self.members {
            let part = member.part_of(applied);
            let found = member.applier.set_by_others(&part).await;
            others.extend(found.into_iter().map(|other| SetByOthers {
                member: member.name.clone(),
                ..other
            }));
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

    /// Returns what is to be put back, each with its original value and, in a set, its member.
    pub fn outstanding_in_words(&self) -> Vec<String> {
        let of_member = self.members.iter().flat_map(|member| {
            let on = match self.members.len() {
                1 => String::new(),
                _ => format!(" on {}", member.name),
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
    async fn set_by_others(&self, applied: &Configuration) -> Vec<SetByOthers> {
        let mut others = Vec::new();
        let is_edited = self.is_config_edited(applied);
        let engine_text = self.engine_text().await;
        for (target, original) in self.touched() {
            let Some(applied) = applied.0.get(&target.name) else {
                continue;
            };
            let ours = [applied, &original];
            let found = match &target.set {
                Route::Option { .. } => is_edited.then_some(None),
                Route::Engine { key, suffix } => {
                    let is_ours = |found: &String| {
                        let text_of = |value: &KnobValue| value_text(value, suffix);
                        ours.iter()
                            .any(|value| text_of(value).as_ref() == Ok(found))
                    };
                    // A text that does not name the key has not set it.
                    let found = engine_text.as_deref();
                    let found = found.and_then(|text| engine_string::lookup(text, key));
                    found.filter(|found| !is_ours(found)).map(Some)
                }
                _ => self.other_value(&target, ours).await.map(Some),
            };
            others.extend(found.map(|found| SetByOthers {
                knob: target.name,
                member: String::new(),
                found,
                applied: applied.clone(),
            }));
        }
        others
    }

    async fn leave(&mut self, knobs: &[&str]) {
        let mut left = self.originals.knobs.iter();
        let is_option = |target: &Target| matches!(target.set, Route::Option { .. });
        if left.any(|target| is_option(target) && knobs.contains(&target.name.as_str())) {
            // Its original text would undo the edits of others.
            self.config_text = None;
        }
        let touched = &mut self.originals.touched;
        touched.retain(|knob| !knobs.contains(&knob.as_str()));
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

    /// Returns whether the configuration file is neither the one that was applied nor the original.
    fn is_config_edited(&self, applied: &Configuration) -> bool {
        let (Some(original), Some(restart)) = (&self.config_text, &self.means.restart) else {
            return false;
        };
        let Ok(wanted) = self.wanted(applied) else {
            return false;
        };
        let applied = mongod_conf::edited(original, &super::restart::settings(&wanted));
        let found = restart.read_config();
        found.is_ok_and(|found| found != *original && applied.is_ok_and(|ours| found != ours))
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
