//! Sets configurations, and in the end restores what there was before.
//!
//! [`Applier::begin`] records the originals; only then can anything be set. What was never changed is never
//! set either, so that a documented default that is wrong for a server does no harm. Each value is read back
//! where its route allows it.

mod engine;
mod error;
mod others;
mod parameter;
mod process;
mod restart;
mod restore;
mod rolling;
mod server_log;
mod waiting;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use seekscope_run::tune::KnobValue;
use seekscope_server::{Server, redact_text};
use seekscope_tune::space::Configuration;

pub use error::ApplyError;
pub use others::{KeptEdits, SetByOthers};
pub(crate) use process::ServerProcess;
pub use restore::{ByRestart, Restored, Silent};
pub use rolling::Appliers;
pub use waiting::Waiting;

use crate::discovery::RUNTIME_CONFIG;
use crate::engine_string;
use crate::host_files::{self, HostFiles};
use crate::knob_file::{KnobEntry, Route};
use crate::lock::members;
use crate::originals::{ConfigOriginal, Originals, OriginalsError, Target};
use crate::script;

/// The means of setting knobs.
#[derive(Debug, Clone)]
pub struct Means {
    /// The server; for a replica set, one member, through a connection that leads to no other.
    pub server: Option<Server>,
    pub host: Option<HostFiles>,
    pub restart: Option<Restart>,
    /// Time limit for each command of a knob.
    pub script_limit: Duration,
}

impl Default for Means {
    fn default() -> Self {
        Self {
            server: None,
            host: None,
            restart: None,
            script_limit: Duration::from_secs(60),
        }
    }
}

/// How a server is made to apply its configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restart {
    pub config_file: PathBuf,
    /// Shell command; it returns when the server is started or starting.
    pub command: String,
    /// Time limit for the command, and again for the server to answer.
    pub limit: Duration,
}

/// What was done, and what the caller has to do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Applied {
    pub restarted: bool,
    /// Start options of a local server, as texts with their units, for its next start.
    pub local: BTreeMap<String, String>,
    /// Environment variables for the measured command.
    pub environment: BTreeMap<String, String>,
}

/// Sets configurations of one session; see the module.
#[derive(Debug)]
pub struct Applier {
    means: Means,
    folder: PathBuf,
    originals: Originals,
    /// The configuration file as it was, if it holds knobs.
    config_text: Option<String>,
    /// The configuration file that the server is known to have been started with.
    running: Option<String>,
    /// Knobs for which the server accepted a value.
    accepted: BTreeSet<String>,
    /// Whether somebody else has edited the configuration file, and their edits were kept.
    has_kept_edits: bool,
    /// Whether the server was started with these edits.
    are_edits_in_force: bool,
    waiting: Waiting,
}

impl Applier {
    /// Writes the originals into `folder` (of the run): the entries' defaults, and files as they are.
    ///
    /// # Errors
    /// Returns an error if the means for a knob are missing, something cannot be read, or the folder holds
    /// originals of an earlier session that were not put back.
    pub fn begin(entries: &[KnobEntry], means: Means, folder: &Path) -> Result<Self, ApplyError> {
        if let Some(earlier) = Originals::load(folder)?
            && !earlier.outstanding().is_empty()
        {
            let path = folder.to_path_buf();
            return Err(OriginalsError::Unrestored { path }.into());
        }
        let (server, members) = identity(means.server.as_ref());
        let mut originals = Originals::new(server, members);
        for entry in entries {
            let target = target(entry, &means)?;
            if let (Route::File { path }, Some(host)) = (&target.set, &means.host) {
                let text = host.read(path).map_err(|source| ApplyError::HostFile {
                    knob: target.name.clone(),
                    source,
                })?;
                originals.files.insert(path.clone(), text);
            }
            originals.knobs.push(target);
        }
        let mut config_text = None;
        if let Some(restart) = &means.restart
            && originals.knobs.iter().any(Target::is_option)
        {
            let text = restart.read_config()?;
            let sha256 = Originals::save_config(folder, &text)?;
            originals.config = Some(ConfigOriginal {
                path: restart.config_file.clone(),
                command: kept(&restart.command),
                limit_s: restart.limit.as_secs(),
                sha256,
            });
            config_text = Some(text);
        }
        originals.save(folder)?;
        Ok(Self {
            means,
            folder: folder.to_path_buf(),
            originals,
            running: config_text.clone(),
            config_text,
            accepted: BTreeSet::new(),
            has_kept_edits: false,
            are_edits_in_force: false,
            waiting: Waiting::default(),
        })
    }

    /// Continues where another process ended, to put things back or to resume. `None` if the folder holds no
    /// originals. The restart command is the recorded one if `means` has none.
    ///
    /// # Errors
    /// Returns an error if the originals cannot be read, or belong to another server: one that their connection
    /// string did not name.
    pub fn resume(folder: &Path, mut means: Means) -> Result<Option<Self>, ApplyError> {
        let Some(originals) = Originals::load(folder)? else {
            return Ok(None);
        };
        let (given, members) = identity(means.server.as_ref());
        // A member of the set that was named before is the one that its restarts were of.
        let is_other = |member: &str| originals.members.split(',').all(|known| known != member);
        if means.server.is_some() && members.split(',').any(is_other) {
            let recorded = originals.server.clone();
            return Err(OriginalsError::OtherServer { recorded, given }.into());
        }
        if let (None, Some(config)) = (&means.restart, &originals.config)
            && let Some(command) = &config.command
        {
            means.restart = Some(Restart {
                config_file: config.path.clone(),
                command: command.clone(),
                limit: Duration::from_secs(config.limit_s),
            });
        }
        let config_text = originals.config_text(folder)?;
        let accepted = originals.touched.difference(&originals.refused);
        // The process that wrote the file may have ended before the restart.
        let written = originals
            .knobs
            .iter()
            .any(|target| target.is_option() && originals.touched.contains(&target.name));
        let running = config_text.clone().filter(|_| !written);
        Ok(Some(Self {
            accepted: accepted.cloned().collect(),
            has_kept_edits: false,
            are_edits_in_force: false,
            means,
            folder: folder.to_path_buf(),
            originals,
            config_text,
            running,
            waiting: Waiting::default(),
        }))
    }

    /// Returns the server, through new connections after a restart.
    pub fn server(&self) -> Option<&Server> {
        self.means.server.as_ref()
    }

    /// Returns what it waits for, which is a restart at most.
    pub fn waiting(&self) -> Waiting {
        self.waiting.clone()
    }

    pub fn originals(&self) -> &Originals {
        &self.originals
    }

    /// Returns whether it sets this knob.
    fn has(&self, knob: &str) -> bool {
        self.originals
            .knobs
            .iter()
            .any(|target| target.name == knob)
    }

    /// Sets all knobs and reads them back. Knobs without a value are set to their originals, except that
    /// those that do not exist under the other values are left alone.
    ///
    /// # Errors
    /// Returns an error at the first knob that cannot be set; those before it are set. Call `apply` again or
    /// [`Applier::restore`] afterwards.
    pub async fn apply(&mut self, values: &Configuration) -> Result<Applied, ApplyError> {
        let wanted = self.wanted(values)?;
        self.note_process().await?;
        self.touch(&wanted)?;
        let mut applied = Applied::default();
        for (target, value) in &wanted {
            match &target.set {
                Route::Local { name, suffix } => {
                    applied
                        .local
                        .insert(name.clone(), format!("{value}{suffix}"));
                }
                Route::Environment { name } => {
                    applied.environment.insert(name.clone(), value.to_string());
                }
                _ => {}
            }
        }
        // First what restarts the server, as a restart would undo the rest.
        applied.restarted = self.apply_options(&wanted).await?;
        let changed: Vec<(Target, KnobValue)> = (wanted.into_iter())
            .filter(|(target, value)| self.is_due(target, value))
            .collect();
        for (target, value) in &changed {
            match &target.set {
                Route::Parameter { name } => {
                    let server = self.needed_server(&target.name)?;
                    let result = parameter::set(server, &target.name, name, value).await;
                    self.note(&target.name, result)?;
                }
                Route::File { path } => self.apply_file(&target.name, path, value)?,
                Route::Command { set, read } => {
                    self.apply_command(&target.name, set, read.as_deref(), value)
                        .await?;
                }
                _ => {}
            }
        }
        self.apply_engine_keys(&changed).await?;
        self.note_applied()?;
        Ok(applied)
    }

    /// Sets one parameter of the knobs to the value that it has: a login without the right is found out before anything
    /// is loaded or measured.
    ///
    /// # Errors
    /// Returns an error if the login lacks the right or the server does not answer. A value that the server has and does
    /// not take, such as an empty text of the engine's, is no error.
    pub async fn try_right(&self) -> Result<(), ApplyError> {
        let mut knobs = self.originals.knobs.iter();
        let set = knobs.find_map(|target| match &target.set {
            Route::Parameter { name } => Some((target, name.as_str())),
            Route::Engine { .. } => Some((target, RUNTIME_CONFIG)),
            _ => None,
        });
        match set {
            Some((target, name)) => {
                let server = self.needed_server(&target.name)?;
                match parameter::set_as_it_is(server, &target.name, name).await {
                    Err(error @ ApplyError::Server(_)) => Err(error),
                    _ => Ok(()),
                }
            }
            None => Ok(()),
        }
    }

    /// Returns whether the knob was ever changed, or is about to be. A knob whose value the server rejected is
    /// unchanged, and so are all keys of the engine before its text was recorded, which comes before the first of them
    /// is set.
    fn is_due(&self, target: &Target, value: &KnobValue) -> bool {
        let touched = self.originals.touched.contains(&target.name);
        let refused = self.originals.refused.contains(&target.name);
        let unsent = engine::is_engine(target) && self.originals.engine_text.is_none();
        touched && !((refused || unsent) && same(value, &target.baseline))
    }

    /// Records what the server rejects, and what it accepts after all.
    fn note(&mut self, knob: &str, result: Result<(), ApplyError>) -> Result<(), ApplyError> {
        let refused = &mut self.originals.refused;
        let changed = match &result {
            Ok(()) => refused.remove(knob),
            Err(error) if error.is_refusal() || matches!(error, ApplyError::NoMeans { .. }) => {
                // A value accepted before may differ from the original, even if the server rejects another one now.
                !self.accepted.contains(knob) && refused.insert(knob.to_owned())
            }
            Err(_) => false,
        };
        if result.is_ok() {
            self.accepted.insert(knob.to_owned());
        }
        if changed {
            self.originals.save(&self.folder)?;
        }
        result
    }

    /// Returns each knob's value, if it has one.
    fn wanted(&self, values: &Configuration) -> Result<Vec<(Target, KnobValue)>, ApplyError> {
        let knobs = &self.originals.knobs;
        if let Some(name) = (values.0.keys()).find(|name| knobs.iter().all(|t| t.name != **name)) {
            return Err(ApplyError::UnknownKnob(name.clone()));
        }
        let value = |target: &Target| match values.0.get(&target.name) {
            Some(value) => Some(value.clone()),
            None if target.conditional => None,
            None => Some(target.baseline.clone()),
        };
        let wanted = knobs.iter();
        Ok(wanted
            .filter_map(|target| Some((target.clone(), value(target)?)))
            .collect())
    }

    /// Records which knobs are about to differ from their originals, and what they are about to be.
    fn touch(&mut self, wanted: &[(Target, KnobValue)]) -> Result<(), ApplyError> {
        let originals = &mut self.originals;
        for (target, value) in wanted {
            let ours = !matches!(target.set, Route::Local { .. } | Route::Environment { .. });
            if ours && !same(value, &target.baseline) {
                originals.touched.insert(target.name.clone());
            }
        }
        let touched = wanted
            .iter()
            .filter(|(target, _)| originals.touched.contains(&target.name))
            .map(|(target, value)| (target.name.clone(), value.clone()));
        let applying: BTreeMap<String, KnobValue> = touched.collect();
        let is_in_force =
            originals.applied.as_ref() == Some(&applying) && originals.applying.is_none();
        if applying.is_empty() || is_in_force {
            return Ok(());
        }
        originals.restored = false;
        originals.applying = Some(applying);
        Ok(originals.save(&self.folder)?)
    }

    /// Records what the touched knobs are now, so that what somebody else sets later can be told from it.
    fn note_applied(&mut self) -> Result<(), ApplyError> {
        match self.originals.applying.take() {
            Some(applied) => {
                self.originals.applied = Some(applied);
                Ok(self.originals.save(&self.folder)?)
            }
            None => Ok(()),
        }
    }

    fn needed_server(&self, knob: &str) -> Result<&Server, ApplyError> {
        let server = self.means.server.as_ref();
        server.ok_or_else(|| no_means(knob, "there is no server to be asked"))
    }

    fn apply_file(&self, knob: &str, path: &str, value: &KnobValue) -> Result<(), ApplyError> {
        let host = self.means.host.as_ref();
        let host = host.ok_or_else(|| no_means(knob, "the host's files may not be set"))?;
        let failed = |source| ApplyError::HostFile {
            knob: knob.into(),
            source,
        };
        let wanted = value.to_string();
        if host_files::current(&host.read(path).map_err(failed)?) == wanted {
            return Ok(());
        }
        let after = host.write(path, &wanted).map_err(failed)?;
        match host_files::current(&after) {
            found if found == wanted => Ok(()),
            found => Err(ApplyError::NotApplied {
                knob: knob.into(),
                wanted,
                found: found.into(),
            }),
        }
    }

    async fn apply_command(
        &self,
        knob: &str,
        set: &str,
        read: Option<&str>,
        value: &KnobValue,
    ) -> Result<(), ApplyError> {
        let failed = |source| ApplyError::Script {
            knob: knob.into(),
            source,
        };
        let (wanted, limit) = (value.to_string(), self.means.script_limit);
        script::run(set, Some(&wanted), limit)
            .await
            .map_err(failed)?;
        let Some(read) = read else {
            return Ok(());
        };
        let printed = script::run(read, None, limit).await.map_err(failed)?;
        let found = printed.trim();
        if reads_as(found, value) {
            return Ok(());
        }
        Err(ApplyError::NotApplied {
            knob: knob.into(),
            wanted,
            found: found.into(),
        })
    }
}

/// Returns the command unless it may hold a secret.
fn kept(command: &str) -> Option<String> {
    let is_open = !script::may_hold_secret(command) && redact_text(command, "") == command;
    is_open.then(|| command.to_owned())
}

/// Returns the connection string without credentials, and canonical members.
fn identity(server: Option<&Server>) -> (String, String) {
    server.map_or_else(Default::default, |server| {
        (server.shown_uri(), members(server.addresses()))
    })
}

fn no_means(knob: &str, why: &str) -> ApplyError {
    ApplyError::NoMeans {
        knob: knob.into(),
        why: why.into(),
    }
}

/// Compares as values, whatever their number types.
pub(crate) fn same(a: &KnobValue, b: &KnobValue) -> bool {
    match (a.number(), b.number()) {
        (Some(a), Some(b)) => a == b || (a - b).abs() <= 1e-9 * a.abs().max(b.abs()),
        _ => a == b,
    }
}

/// Returns whether a text that was read stands for the value.
fn reads_as(found: &str, value: &KnobValue) -> bool {
    found == value.to_string() || same(&engine_string::typed(found), value)
}

/// Checks that there are means for the knob.
fn target(entry: &KnobEntry, means: &Means) -> Result<Target, ApplyError> {
    let knob = &entry.knob;
    let set = match entry.route() {
        Route::File { path } => {
            let host = means.host.as_ref();
            let host =
                host.ok_or_else(|| no_means(&knob.name, "the host's files may not be set"))?;
            let path = host.resolve(&path).map_err(|source| ApplyError::HostFile {
                knob: knob.name.clone(),
                source,
            })?;
            Route::File { path }
        }
        other => other,
    };
    match &set {
        Route::Engine { .. } | Route::Parameter { .. } if means.server.is_none() => {
            return Err(no_means(&knob.name, "there is no server to be asked"));
        }
        Route::Option { .. } if means.restart.is_none() => {
            let why = "it needs a restart; --config-file and --restart-command allow that";
            return Err(no_means(&knob.name, why));
        }
        _ => {}
    }
    Ok(Target {
        name: knob.name.clone(),
        set,
        baseline: knob.default.clone(),
        conditional: knob.when.is_some(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_with_a_secret_is_not_kept() {
        let plain = "systemctl restart mongod";
        assert_eq!(kept(plain).as_deref(), Some(plain));
        for secret in [
            "restart.sh --password hush",
            "restart.sh -phush",
            "TOKEN=hush restart.sh",
            "restart.sh mongodb://u:hush@h/",
        ] {
            assert_eq!(kept(secret), None, "{secret}");
        }
    }
}
