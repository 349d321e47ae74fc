//! Puts everything back.

use std::collections::BTreeMap;
use std::path::PathBuf;

use seekscope_run::tune::KnobValue;

use super::process::Fate;
use super::{Applier, Appliers, kept, parameter, same};
use crate::knob_file::Route;
use crate::originals::Target;

/// The result for each knob that had been changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Restored {
    /// `Err` says why it is not as it was, and what its original value is.
    pub knobs: Vec<(String, Result<(), String>)>,
    /// Which of them were set to their originals, or need not be any more, with what was done in words; the others were as
    /// they were.
    pub put_back: BTreeMap<String, String>,
    /// The servers that did not answer.
    pub silent: Vec<Silent>,
    /// Why the restored state could not be recorded on disk.
    pub not_noted: Option<String>,
}

/// A server that does not answer, so that nobody knows what is set in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Silent {
    /// The connection string, without secrets.
    pub server: String,
    pub why: String,
}

impl Restored {
    /// Returns whether everything is as it was, and was read back where that is possible.
    pub fn is_complete(&self) -> bool {
        self.knobs.iter().all(|(_, result)| result.is_ok())
    }
}

/// A restart by which settings of the configuration file are put back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ByRestart {
    /// The member of the set, `host:port`; empty for a server that is set alone.
    pub member: String,
    pub config_file: PathBuf,
    /// Whether the command is known: one that may hold a secret is not kept, and must be given again.
    pub is_possible: bool,
    /// The command; `None` if it may hold a secret.
    pub command: Option<String>,
    /// Whether somebody else has edited the file since it was written.
    pub is_edited: bool,
}

impl Appliers {
    /// Returns the restarts by which settings are put back, before anything is.
    pub fn restore_by_restarts(&self) -> Vec<ByRestart> {
        let members = self.members.iter();
        let restarts = members.filter_map(|member| {
            Some(ByRestart {
                member: member.name.clone(),
                ..member.applier.restore_by_restart()?
            })
        });
        restarts.collect()
    }
}

impl Applier {
    /// Sets what was changed to its original and reads it back; continues after failures. A second call, or
    /// one in a later process, does no harm.
    pub async fn restore(&mut self) -> Restored {
        let touched = self.touched();
        let mut restored = Restored::default();
        if self.originals.restored {
            restored.knobs = touched
                .into_iter()
                .map(|(target, _)| (target.name, Ok(())))
                .collect();
            return restored;
        }
        let fate = self.fate().await;
        let as_they_were = self.as_they_were(&self.touched_and_there(&fate)).await;
        // The original text, byte for byte but for what others have edited.
        let options = self.apply_options(&touched).await;
        // What its owner had set in the process that was just ended for us is set in the next one.
        let fate = match options {
            Ok(true) => Fate::Runs,
            _ => fate,
        };
        let options = options.map(drop).map_err(|error| error.to_string());
        let due: Vec<(Target, KnobValue)> = (touched.iter())
            .filter(|(target, value)| self.is_due(target, value))
            .cloned()
            .collect();
        let engine = match fate {
            Fate::Runs => self.restore_engine(&due).await,
            _ => Ok(()),
        };
        for (target, value) in touched {
            let name = &target.name;
            let result = match &fate {
                Fate::Ended if target.is_of_process() => Ok(()),
                Fate::Unknown(_) if target.is_of_process() && self.is_due(&target, &value) => {
                    Err("the server does not answer".into())
                }
                _ => self.restore_one(&target, &value, &options, &engine).await,
            };
            let result =
                result.map_err(|why| format!("{why}; it was {value} ({})", target.set.in_words()));
            if result.is_ok()
                && !as_they_were.contains(name)
                && let Some(words) = self.put_back_in_words(&target, &value, &fate)
            {
                restored.put_back.insert(name.clone(), words);
            }
            restored.knobs.push((name.clone(), result));
        }
        if let (Fate::Unknown(why), Some(server), false) =
            (fate, &self.means.server, restored.is_complete())
        {
            let server = server.shown_uri();
            restored.silent.push(Silent { server, why });
        }
        if restored.is_complete()
            && let Err(error) = self.originals.close(&self.folder)
        {
            restored.not_noted = Some(error.to_string());
        }
        restored
    }

    async fn restore_engine(&self, due: &[(Target, KnobValue)]) -> Result<(), String> {
        let engine = self.apply_engine(due).await;
        engine.map_err(|error| error.to_string())?;
        self.restore_engine_text().await;
        Ok(())
    }

    /// Returns whether restoring would restart the server.
    pub(super) fn restore_needs_restart(&self) -> bool {
        let due = self.due_config(&self.touched());
        !self.originals.restored && due.is_ok_and(|due| due.is_some())
    }

    /// Returns the restart by which the configuration file is put back; `None` if there is none.
    fn restore_by_restart(&self) -> Option<ByRestart> {
        let config = self.originals.config.as_ref();
        let config = config.filter(|_| !self.originals.restored)?;
        let restart = match self.due_config(&self.touched()) {
            Ok(None) => return None,
            Ok(Some((restart, _))) => Some(restart),
            Err(_) => self.means.restart.clone(),
        };
        let file = restart.as_ref().map(|restart| &restart.config_file);
        Some(ByRestart {
            member: String::new(),
            config_file: file.unwrap_or(&config.path).clone(),
            is_possible: restart.is_some(),
            command: restart.as_ref().and_then(|restart| kept(&restart.command)),
            is_edited: self.is_file_edited(),
        })
    }

    /// Returns what is said of a server on which nothing can be restored.
    pub(super) fn not_restored(&self, why: &str) -> Restored {
        let knobs = self.touched().into_iter().map(|(target, _)| {
            let why = format!("{why}; it was {}", target.in_words());
            (target.name, Err(why))
        });
        Restored {
            knobs: knobs.collect(),
            ..Restored::default()
        }
    }

    /// Says from what to what a knob is put back; `None` if it is as it was already.
    fn put_back_in_words(&self, target: &Target, value: &KnobValue, fate: &Fate) -> Option<String> {
        if !self.is_due(target, value) {
            return None;
        }
        if *fate == Fate::Ended && target.is_of_process() {
            return Some(
                "not set: the process in which it was changed has ended, and the change with it"
                    .into(),
            );
        }
        let to = target.set.with_suffix(value);
        match self.originals.last_set(&target.name) {
            Some(from) if same(from, value) => None,
            Some(from) => {
                let from = target.set.with_suffix(from);
                Some(format!("put back from {from} to {to}"))
            }
            None => Some(format!("put back to {to}")),
        }
    }

    /// Returns the knobs that were changed, with their originals.
    pub(super) fn touched(&self) -> Vec<(Target, KnobValue)> {
        let knobs = self.originals.knobs.iter();
        knobs
            .filter(|target| self.originals.touched.contains(&target.name))
            .map(|target| (target.clone(), target.baseline.clone()))
            .collect()
    }

    /// Returns the same but for what was set in a process that has ended or does not answer.
    pub(super) fn touched_and_there(&self, fate: &Fate) -> Vec<(Target, KnobValue)> {
        let mut touched = self.touched();
        touched.retain(|(target, _)| *fate == Fate::Runs || !target.is_of_process());
        touched
    }

    async fn restore_one(
        &self,
        target: &Target,
        value: &KnobValue,
        options: &Result<(), String>,
        engine: &Result<(), String>,
    ) -> Result<(), String> {
        let knob = &target.name;
        if !self.is_due(target, value) {
            return Ok(());
        }
        let result = match &target.set {
            Route::Option { .. } => return options.clone(),
            Route::Engine { .. } => return engine.clone(),
            Route::Parameter { name } => match self.needed_server(knob) {
                Ok(server) => parameter::set(server, knob, name, value).await,
                Err(error) => Err(error),
            },
            Route::File { path } => self.apply_file(knob, path, value),
            Route::Command { set, read } => {
                self.apply_command(knob, set, read.as_deref(), value).await
            }
            Route::Local { .. } | Route::Environment { .. } => Ok(()),
        };
        result.map_err(|error| error.to_string())
    }
}
