//! Changes the configuration file and restarts the server that reads it.

use std::time::{Duration, Instant};

use mongodb::bson::doc;
use seekscope_run::tune::KnobValue;
use seekscope_server::Server;
use seekscope_tune::space::Configuration;

use super::server_log::ServerLog;
use super::{Applier, ApplyError, Restart, no_means, same};
use crate::discovery::value_of;
use crate::knob_file::Route;
use crate::mongod_conf::{self, Setting};
use crate::originals::Target;
use crate::script;

const PAUSE: Duration = Duration::from_millis(200);
/// Readings of one process's age agree to within this.
const AGE_SLACK_MS: f64 = 500.0;
/// Time in which a server that was told to stop stops answering. One that still answers as if nothing had happened was
/// not restarted.
const STOPPING_LIMIT: Duration = Duration::from_secs(30);

impl Restart {
    pub(super) fn failed(&self, why: impl ToString) -> ApplyError {
        ApplyError::ConfigFile {
            path: self.config_file.display().to_string(),
            why: why.to_string(),
        }
    }

    pub(super) fn read_config(&self) -> Result<String, ApplyError> {
        mongod_conf::read(&self.config_file).map_err(|error| self.failed(error))
    }

    /// Replaces the file, if it still says what was read.
    fn write_config(&self, read: &str, text: &str) -> Result<(), ApplyError> {
        if self.read_config()? != read {
            let why =
                "somebody else has edited it at the same time, and it was left to them: try again";
            return Err(self.failed(why));
        }
        mongod_conf::replace(&self.config_file, text).map_err(|error| self.failed(error))
    }
}

/// Distinguishes a server process from the one before it.
struct Process {
    pid: Option<f64>,
    /// Its age and when that was read.
    age_ms: Option<f64>,
    asked: Instant,
}

impl Process {
    async fn of(server: &Server) -> Self {
        let status = server.command("admin", doc! { "serverStatus": 1 }).await;
        let status = status.unwrap_or_default();
        let number = |name: &str| status.get(name).and_then(|value| value_of(value)?.number());
        Self {
            pid: number("pid"),
            age_ms: number("uptimeMillis"),
            asked: Instant::now(),
        }
    }

    /// Returns whether it is a later process. If the server reports neither, it is assumed to be.
    fn is_later_than(&self, before: &Self) -> bool {
        if let (Some(now), Some(then)) = (self.pid, before.pid)
            && now != then
        {
            return true;
        }
        match (self.age_ms, before.age_ms) {
            (Some(now), Some(then)) => {
                let passed = self.asked.duration_since(before.asked).as_secs_f64() * 1e3;
                now + AGE_SLACK_MS < then + passed
            }
            _ => true,
        }
    }
}

impl Applier {
    /// Returns whether there are knobs that need restarts.
    pub fn restarts(&self) -> bool {
        self.config_text.is_some() && self.means.restart.is_some()
    }

    /// Restarts the server once with its configuration as it is, if there are knobs that need restarts: a command that
    /// restarts nothing is found out before anything is measured.
    ///
    /// # Errors
    /// Returns an error if no other process answers afterwards.
    pub async fn try_restart(&mut self) -> Result<bool, ApplyError> {
        let (Some(_), Some(restart)) = (&self.config_text, self.means.restart.clone()) else {
            return Ok(false);
        };
        match self.restart(&restart).await? {
            Ok(()) => Ok(true),
            Err(why) => Err(ApplyError::DoesNotRestart { why }),
        }
    }

    /// Returns whether applying these values would restart the server.
    pub(super) fn needs_restart(&self, values: &Configuration) -> Result<bool, ApplyError> {
        Ok(self.due_config(&self.wanted(values)?)?.is_some())
    }

    /// Returns whether the configuration file holds something of ours, or is to. If not, it is not for us to write,
    /// whatever others have made of it.
    fn has_settings_in_file(&self, wanted: &[(Target, KnobValue)]) -> bool {
        let mut touched = self.touched().into_iter();
        !settings(wanted).is_empty() || touched.any(|(target, _)| target.is_option())
    }

    /// Returns how the server is restarted and the configuration text that it is to have, if it has another one.
    pub(super) fn due_config(
        &self,
        wanted: &[(Target, KnobValue)],
    ) -> Result<Option<(Restart, String)>, ApplyError> {
        let Some(original) = &self.config_text else {
            return Ok(None);
        };
        if !self.has_settings_in_file(wanted) {
            return Ok(None);
        }
        let Some(restart) = &self.means.restart else {
            let why = "the command that restarts the server may hold a secret, which was not kept: give it \
                       again with --restart-command";
            return Err(no_means("the configuration file", why));
        };
        let settings = settings(wanted);
        let text = if settings.is_empty() {
            original.clone()
        } else {
            mongod_conf::edited(original, &settings).map_err(|why| restart.failed(why))?
        };
        let is_in_force = self.running.as_ref() == Some(&text) && restart.read_config()? == text;
        Ok((!is_in_force).then(|| (restart.clone(), text)))
    }

    /// Writes the configuration file and restarts the server, if that changes anything.
    pub(super) async fn apply_options(
        &mut self,
        wanted: &[(Target, KnobValue)],
    ) -> Result<bool, ApplyError> {
        if !self.has_settings_in_file(wanted) {
            return Ok(false);
        }
        let read = self.read_with_edits()?;
        let Some((restart, text)) = self.due_config(wanted)? else {
            return Ok(false);
        };
        let is_gone = match &self.means.server {
            Some(server) => server.another().await.is_err(),
            None => false,
        };
        if is_gone && read != text {
            self.recover().await;
        }
        match self.restart_with(&restart, &read, &text).await? {
            Ok(()) => Ok(true),
            Err(why) => {
                // Whoever saw that the server did not come back may have edited the file.
                let read = self.read_with_edits()?;
                let original = self.config_text.clone().unwrap_or_default();
                let put_back = self.restart_with(&restart, &read, &original).await?.is_ok();
                Err(ApplyError::DidNotComeBack { why, put_back })
            }
        }
    }

    /// Takes over what somebody else has edited in the configuration file. Returns what the file says: nothing newer is
    /// overwritten.
    fn read_with_edits(&mut self) -> Result<String, ApplyError> {
        let read = match &self.means.restart {
            Some(restart) => restart.read_config()?,
            None => String::new(),
        };
        self.take_over_edits()?;
        Ok(read)
    }

    /// Starts a server that is gone once more with the configuration file as it is: what it had not written to its files
    /// when it died is in its journal, which may be readable only by what it was written with, such as a compressor. If
    /// it does not start, another configuration is still worth a try.
    pub async fn recover(&mut self) {
        if let Some(restart) = self.means.restart.clone() {
            let _ = self.restart(&restart).await;
        }
    }

    /// Restarts with a configuration, which replaces what was `read`; the inner error says why the server did not come
    /// back.
    async fn restart_with(
        &mut self,
        restart: &Restart,
        read: &str,
        text: &str,
    ) -> Result<Result<(), String>, ApplyError> {
        self.running = None;
        let log = ServerLog::named_in(text);
        restart.write_config(read, text)?;
        let result = self.restart(restart).await?;
        if result.is_ok() {
            self.running = Some(text.to_owned());
            self.are_edits_in_force = self.has_kept_edits;
        }
        Ok(
            result.map_err(|why| match log.and_then(|log| log.last_error()) {
                Some(error) => format!("{why}; its log says: {error}"),
                None => why,
            }),
        )
    }

    /// Runs the restart command and waits until another process than before answers. Without a server that
    /// can be asked, the command's success is taken as proof. The inner error says why the server did not come back.
    async fn restart(&mut self, restart: &Restart) -> Result<Result<(), String>, ApplyError> {
        let before = match &self.means.server {
            Some(server) => Some(Process::of(server).await),
            None => None,
        };
        {
            let _wait = self.waiting.begin("--restart-command");
            let run = script::run(&restart.command, None, restart.limit).await;
            if let Err(error) = run {
                return Ok(Err(error.to_string()));
            }
        }
        let (Some(before), Some(server)) = (before, self.means.server.clone()) else {
            return Ok(Ok(()));
        };
        let began = Instant::now();
        // When it answered with an error, or not at all, as a server does that stops.
        let mut has_stopped = false;
        let _wait = self
            .waiting
            .begin("another process of the server to answer after the restart");
        loop {
            let why = match server.another().await {
                Ok(again) if Process::of(&again).await.is_later_than(&before) => {
                    self.means.server = Some(again);
                    self.note_process().await?;
                    return Ok(Ok(()));
                }
                Ok(_) => "the process that answers is the one from before".to_owned(),
                Err(error) => {
                    has_stopped = true;
                    error.to_string()
                }
            };
            let limit = match has_stopped {
                true => restart.limit,
                false => restart.limit.min(STOPPING_LIMIT),
            };
            if began.elapsed() >= limit {
                return Ok(Err(format!(
                    "{} s after the restart command: {why}",
                    limit.as_secs()
                )));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// Returns what the configuration file has to say of values that are not the original ones.
pub(super) fn settings(wanted: &[(Target, KnobValue)]) -> Vec<Setting> {
    let changed = wanted
        .iter()
        .filter(|(target, value)| !same(value, &target.baseline));
    changed
        .filter_map(|(target, value)| setting(target, value))
        .collect()
}

fn setting(target: &Target, value: &KnobValue) -> Option<Setting> {
    match &target.set {
        Route::Option { path, key, suffix } => Some(Setting {
            path: path.clone(),
            key: key.clone(),
            suffix: suffix.clone(),
            value: value.clone(),
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::apply::Means;
    use crate::knob_file::KnobFile;

    const CONF: &str =
        "storage:\n  dbPath: /data\nnet:\n  port: 27017\nsystemLog:\n  quiet: true\n";
    const KNOBS: &str = r#"
[[knob]]
name = "at_run_time"
type = "integer"
low = 1
high = 100
default = 8
set = { command = "true {value}" }

[[knob]]
name = "in_file"
type = "integer"
low = 1
high = 100
default = 8
set = { option = "storage.syncPeriodSecs" }
"#;

    fn configuration_file(root: &Path) -> PathBuf {
        let path = root.join("mongod.conf");
        fs::write(&path, CONF).unwrap();
        path
    }

    fn restart_with(config_file: PathBuf, command: String) -> Restart {
        Restart {
            config_file,
            command,
            limit: Duration::from_secs(20),
        }
    }

    fn applier(root: &Path, restart: Restart) -> Applier {
        let means = Means {
            restart: Some(restart),
            ..Means::default()
        };
        Applier::begin(&KnobFile::parse(KNOBS).unwrap().knobs, means, root).unwrap()
    }

    fn nine(knob: &str) -> Configuration {
        Configuration([(knob.to_owned(), KnobValue::Integer(9))].into())
    }

    #[tokio::test]
    async fn a_file_in_which_nothing_was_set_is_left_to_others() {
        let root = tempfile::tempdir().unwrap();
        let conf = configuration_file(root.path());
        let started = root.path().join("started");
        let command = format!("echo x >> {}", started.display());
        let mut applier = applier(root.path(), restart_with(conf.clone(), command));
        applier.apply(&nine("at_run_time")).await.unwrap();
        let theirs = "storage:\n  dbPath: /elsewhere\n";
        fs::write(&conf, theirs).unwrap();
        assert!(!applier.apply(&nine("at_run_time")).await.unwrap().restarted);
        assert!(!applier.restore_needs_restart());
        let restored = applier.restore().await;
        assert!(restored.is_complete(), "{restored:?}");
        assert_eq!(fs::read_to_string(&conf).unwrap(), theirs);
        assert!(!started.exists(), "it was restarted");
    }

    #[tokio::test]
    async fn what_others_edit_while_a_server_does_not_come_back_stays() {
        let root = tempfile::tempdir().unwrap();
        let conf = configuration_file(root.path());
        let tried = root.path().join("tried");
        let command = format!(
            "test -e {tried} || {{ touch {tried}; echo '# theirs' >> {conf}; exit 1; }}",
            tried = tried.display(),
            conf = conf.display()
        );
        let mut applier = applier(root.path(), restart_with(conf.clone(), command));
        let error = applier.apply(&nine("in_file")).await.unwrap_err();
        assert!(
            matches!(error, ApplyError::DidNotComeBack { put_back: true, .. }),
            "{error}"
        );
        let found = fs::read_to_string(&conf).unwrap();
        assert_eq!(found, CONF.to_owned() + "# theirs\n");
    }

    #[test]
    fn what_others_have_edited_at_the_same_time_is_not_overwritten() {
        let root = tempfile::tempdir().unwrap();
        let conf = configuration_file(root.path());
        let restart = restart_with(conf.clone(), "true".into());
        let refused = restart.write_config("storage: {}\n", "net: {}\n");
        assert!(refused.is_err_and(|error| error.to_string().contains("somebody else")));
        assert_eq!(fs::read_to_string(&conf).unwrap(), CONF);
        restart.write_config(CONF, "net: {}\n").unwrap();
        assert_eq!(fs::read_to_string(&conf).unwrap(), "net: {}\n");
    }
}
