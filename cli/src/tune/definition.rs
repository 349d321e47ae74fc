//! The definition of a session as stored in its run directory: enough to resume it.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use seekscope_server::redact_text;
use seekscope_settings::script::may_hold_secret;
use seekscope_settings::{KnobFile, Restart};
use seekscope_tune::session::Plan;
use serde::{Deserialize, Serialize};

use super::{LOCAL, server_arena};
use crate::args::{TuneLocalArgs, TuneMeasuredArgs};
use crate::exit::Usage;

const FILE: &str = "tune.json";
const SCHEMA: &str = "seekscope/tune-session/1";
/// Shown in place of such a command.
const HIDDEN: &str = "...";
/// Name of the connection string in messages.
const URI: &str = "the connection string";
const RESTART: &str = "--restart-command";
/// A real definition is a few thousand bytes.
const BYTES_MAX: u64 = 16 << 20;

/// The definition of a session, without secrets: neither a connection string's user and password nor those in
/// commands are kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Definition {
    pub schema: String,
    /// "local", a connection string, or none.
    pub target: Option<String>,
    pub measured: TuneMeasuredArgs,
    pub local: TuneLocalArgs,
    pub config_file: Option<PathBuf>,
    pub restart_command: Option<String>,
    /// Whether the members of a set are restarted in turn.
    #[serde(default)]
    pub allow_stepdown: bool,
    /// The knobs with their values at the start (TOML).
    pub knobs: String,
    /// Knobs of the catalogue that are not tuned, and why.
    pub left_out: Vec<(String, String)>,
    /// What people should know about the tuned knobs.
    #[serde(default)]
    pub cautions: Vec<(String, String)>,
    /// WiredTiger configuration texts that the server was started with, by their path in its configuration
    /// file.
    pub configured: BTreeMap<String, String>,
    pub plan: Plan,
    /// Names of the texts that contained secrets and must be given again.
    #[serde(default)]
    secret: Vec<String>,
}

impl Definition {
    pub fn new(
        target: Option<&str>,
        measured: &TuneMeasuredArgs,
        local: &TuneLocalArgs,
        plan: Plan,
    ) -> Self {
        Self {
            schema: SCHEMA.into(),
            target: target.map(Into::into),
            measured: measured.clone(),
            local: local.clone(),
            config_file: None,
            restart_command: None,
            allow_stepdown: false,
            knobs: String::new(),
            left_out: Vec::new(),
            cautions: Vec::new(),
            configured: BTreeMap::new(),
            plan,
            secret: Vec::new(),
        }
    }

    /// Writes the definition for a later process, without secrets.
    pub fn save(&self, run: &Path) -> Result<()> {
        let uri = self.target.clone().unwrap_or_default();
        let (mut kept, mut secret) = (self.clone(), Vec::new());
        for (name, text) in kept.texts() {
            let Some(text) = text else { continue };
            let without = without_secrets(name, text, &uri);
            if without != *text {
                secret.push(name.to_string());
            }
            *text = without;
        }
        kept.secret = secret;
        let text = serde_json::to_string_pretty(&kept).context("cannot write the session down")?;
        let path = run.join(FILE);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Returns whether a session was defined in this folder.
    pub fn is_in(run: &Path) -> bool {
        run.join(FILE).exists()
    }

    /// Reads what [`Self::save`] wrote.
    pub fn read(run: &Path) -> Result<Self> {
        let path = run.join(FILE);
        let not_ours =
            |why: String| Usage(format!("{} is no tuning session: {why}", run.display()));
        let file = fs::File::open(&path).map_err(|error| not_ours(error.to_string()))?;
        let mut text = String::new();
        file.take(BYTES_MAX)
            .read_to_string(&mut text)
            .map_err(|error| not_ours(error.to_string()))?;
        let definition: Self =
            serde_json::from_str(&text).map_err(|error| not_ours(error.to_string()))?;
        if definition.schema != SCHEMA {
            return Err(not_ours(format!("{} is not {SCHEMA}", definition.schema)).into());
        }
        Ok(definition)
    }

    /// Takes from the command line what was not kept because it contains secrets.
    pub fn with_secrets(mut self, given: [Option<&str>; TEXTS]) -> Result<Self> {
        let uri = given[0].unwrap_or_default();
        let secret = std::mem::take(&mut self.secret);
        for ((name, kept), given) in self.texts().into_iter().zip(given) {
            match (kept, given) {
                (Some(text), Some(given)) if without_secrets(name, given, uri) == *text => {
                    *text = given.into();
                }
                (text, Some(_)) => {
                    let text = text.as_deref().unwrap_or("none");
                    return Err(Usage(format!(
                        "a session goes on as it began; {name} was: {text}"
                    ))
                    .into());
                }
                (Some(text), None) if secret.iter().any(|secret| secret == name) => {
                    return Err(Usage(format!(
                        "{name} of the session holds a secret, which is not kept: give it again ({text})"
                    ))
                    .into());
                }
                (_, None) => {}
            }
        }
        Ok(self)
    }

    /// Does the same as [`Self::with_secrets`] for restoring settings, which runs no load. The connection string may
    /// be another one, which leads straight to the restarted member of a set: the originals say which server they
    /// belong to. The restart command may differ too: the session's may be what keeps the server from coming back.
    pub fn for_restore(mut self, uri: Option<&str>, restart: Option<&str>) -> Result<Self> {
        self.secret.retain(|name| name == URI || name == RESTART);
        if let (Some(kept), Some(uri)) = (&mut self.target, uri)
            && kept != LOCAL
        {
            *kept = without_secrets(URI, uri, uri);
        }
        if let (Some(kept), Some(restart)) = (&mut self.restart_command, restart) {
            *kept = without_secrets(RESTART, restart, uri.unwrap_or_default());
        }
        self.with_secrets([uri, None, None, restart])
    }

    /// Returns the texts that may contain secrets.
    fn texts(&mut self) -> [(&'static str, &mut Option<String>); TEXTS] {
        [
            (URI, &mut self.target),
            ("--command", &mut self.measured.command),
            ("--prepare", &mut self.measured.prepare),
            (RESTART, &mut self.restart_command),
        ]
    }

    /// Returns how a server picks up its configuration file.
    pub fn restart(&self) -> Option<Restart> {
        server_arena::restart(self.config_file.as_ref(), self.restart_command.as_ref())
    }

    /// Returns the stored knobs.
    pub fn knob_file(&self) -> Result<KnobFile> {
        KnobFile::parse(&self.knobs).map_err(|error| Usage(error.to_string()).into())
    }
}

/// Returns a text without secrets. A command that may contain a password in some other form is not kept at all.
fn without_secrets(name: &str, text: &str, uri: &str) -> String {
    match name != URI && may_hold_secret(text) {
        true => HIDDEN.into(),
        false => redact_text(text, uri),
    }
}

/// The number of such texts; see [`Definition::with_secrets`].
pub const TEXTS: usize = 4;

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::TuneSessionArgs;

    #[derive(Debug, Parser)]
    struct Typed {
        #[command(flatten)]
        session: TuneSessionArgs,
    }

    fn definition() -> Definition {
        let words = [
            "x",
            "mongodb://u:hush@h/",
            "--command",
            "load mongodb://u:hush@h/ --fast",
        ];
        let args = Typed::parse_from(words).session;
        let space = seekscope_tune::space::Space::new(Vec::new(), Vec::new()).unwrap();
        let plan = Plan {
            space,
            goal: seekscope_tune::optimiser::Goal::Maximise,
            seed: 1,
            presets: Vec::new(),
            also: Vec::new(),
            trials: 5,
            baseline_pairs: 1,
            duel_pairs: 4,
            budget: None,
        };
        Definition::new(args.target.as_deref(), &args.measured, &args.local, plan)
    }

    #[test]
    fn secrets_are_not_kept_but_asked_for_again() {
        let folder = tempfile::tempdir().unwrap();
        definition().save(folder.path()).unwrap();
        let text = fs::read_to_string(folder.path().join(FILE)).unwrap();
        assert!(!text.contains("hush") && text.contains("--fast"), "{text}");
        let read = || Definition::read(folder.path()).unwrap();
        let uri = Some("mongodb://u:hush@h/");
        let command = Some("load mongodb://u:hush@h/ --fast");
        let whole = read().with_secrets([uri, command, None, None]).unwrap();
        assert_eq!(whole.measured.command.as_deref(), command);
        for wrong in [
            [None, command, None, None],
            [uri, None, None, None],
            [uri, Some("another"), None, None],
            [uri, command, Some("more"), None],
        ] {
            assert!(
                read().with_secrets(wrong).unwrap_err().is::<Usage>(),
                "{wrong:?}"
            );
        }
    }

    #[test]
    fn putting_back_needs_no_load() {
        let folder = tempfile::tempdir().unwrap();
        let mut definition = definition();
        definition.restart_command = Some("restart -p hush".into());
        definition.save(folder.path()).unwrap();
        let restore = |restart| {
            let read = Definition::read(folder.path()).unwrap();
            read.for_restore(Some("mongodb://u:hush@h/"), restart)
        };
        let whole = restore(Some("restart -p hush")).unwrap();
        assert_eq!(whole.restart_command.as_deref(), Some("restart -p hush"));
        let another = restore(Some("systemctl restart mongod")).unwrap();
        let command = another.restart_command.as_deref();
        assert_eq!(command, Some("systemctl restart mongod"));
        let error = restore(None).unwrap_err();
        assert!(
            error.is::<Usage>() && !error.to_string().contains("hush"),
            "{error}"
        );
    }

    #[test]
    fn what_is_no_session_is_said() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Definition::read(folder.path()).unwrap_err().is::<Usage>());
        fs::write(folder.path().join(FILE), "{}").unwrap();
        assert!(Definition::read(folder.path()).unwrap_err().is::<Usage>());
    }
}
