//! Runs trials on somebody's server: settings are changed while it runs, or by its configuration file and a
//! restart, and restored at the end.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use seekscope_server::{ProcFs, ServerError};
use seekscope_settings::apply::{Means, Waiting};
use seekscope_settings::{
    Applier, Appliers, ApplyError, HostFiles, KnobEntry, Restart, Restored, SetByOthers, Traffic,
    TunerLock,
};
use seekscope_tune::space::Configuration;

use super::arena::{Fit, Unfit};
use super::definition::Definition;
use super::measurement::Load;
use super::memory_watch::MemoryWatch;
use super::rolling::{self, Rolling};
use crate::args::TuneSessionArgs;
use crate::bench::{Stage, Target};
use crate::exit::{Elsewhere, NotPermitted, Usage};
use crate::interruption::Interruption;
use crate::progress::Progress;
use crate::unrestored;

/// Time limit for a restart with recovery of a large cache.
const RESTART_LIMIT: Duration = Duration::from_secs(600);
/// A wait is told of as often as this.
const TELLING: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(50);
/// Time limit for each command of a knob.
const SCRIPT_LIMIT: Duration = Duration::from_secs(120);

/// Somebody's server, with what must be restored on it.
pub struct ServerArena {
    target: Target,
    fresh_data: bool,
    applier: Option<Appliers>,
    /// The members that are restarted in turn, of a set.
    rolling: Option<Rolling>,
    /// Keep other sessions from tuning this server, or each member, or this host meanwhile.
    locks: Vec<TunerLock>,
    host_lock: Option<TunerLock>,
    loads: u32,
}

impl ServerArena {
    /// Connects, and refuses a server that others tune or use. The pair says how it is restarted, and whether the
    /// primary of a set may step down for it.
    pub async fn connect(
        stage: &Stage,
        uri: &str,
        args: &TuneSessionArgs,
        (restart, allow_stepdown): (Option<Restart>, bool),
        fresh_data: bool,
        lock_folder: &Path,
    ) -> Result<Self> {
        let _step = stage.progress.step("connecting");
        let target = stage
            .interruption
            .or(Target::connect(uri, "", None))
            .await?;
        refuse_router(&target)?;
        let server = target.server()?;
        let found = Rolling::find(server, restart, allow_stepdown);
        let rolling = stage.interruption.or(found).await?;
        let members = rolling.as_ref().map_or(&[][..], Rolling::members);
        let locks = rolling::lock(lock_folder, server, members)?;
        for lock in &locks {
            unrestored::refuse(lock, args.resume.as_deref())?;
        }
        let host_lock = match args.knobs.host {
            true => Some(TunerLock::host(lock_folder)?),
            false => None,
        };
        if !args.knobs.busy {
            let asked = async { Traffic::of(server).await.map_err(with_all_rights) };
            refuse_if_busy(&stage.interruption.or(asked).await?)?;
        }
        Ok(Self {
            target,
            fresh_data,
            applier: None,
            rolling,
            locks,
            host_lock,
            loads: 0,
        })
    }

    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Saves all original settings, and loads the workload's data.
    pub async fn make_ready(
        &mut self,
        stage: &mut Stage,
        load: &Load,
        entries: &[KnobEntry],
        definition: &Definition,
        earlier: Option<&Path>,
    ) -> Result<()> {
        let means = means(&self.target, definition.restart())?;
        let run = stage.session.directory.path().to_path_buf();
        self.applier = Some(match &self.rolling {
            Some(rolling) => {
                put_back_earlier(stage, earlier, &means).await?;
                let begun = rolling.begin(&self.target, entries, &run);
                stage.interruption.or(begun).await?
            }
            None => begin(stage, entries, means, earlier).await?,
        });
        for lock in &mut self.locks {
            lock.name_run(&run).context("cannot write the lock")?;
        }
        self.try_right(stage).await?;
        self.try_restart(stage).await?;
        match load {
            Load::Workload(_) if !self.fresh_data => match self.load(stage, load).await? {
                Ok(()) => Ok(()),
                Err(Unfit(why)) => Err(anyhow::anyhow!("the data were not loaded: {why}")),
            },
            _ => Ok(()),
        }
    }

    /// Finds out whether the login may set anything, before time goes into loading and baselines.
    async fn try_right(&self, stage: &Stage) -> Result<()> {
        let Some(applier) = &self.applier else {
            return Ok(());
        };
        let tried = async {
            let tried = applier.try_right().await;
            tried.map_err(|error| match error {
                ApplyError::Server(error) => with_all_rights(error),
                other => other.into(),
            })
        };
        stage.interruption.or(tried).await
    }

    /// Tries the command that restarts the server, likewise.
    async fn try_restart(&mut self, stage: &Stage) -> Result<()> {
        let Some(applier) = self.applier.as_mut().filter(|applier| applier.restarts()) else {
            return Ok(());
        };
        let waiting = applier.waiting();
        let _step = stage.progress.step("trying --restart-command");
        let tried = async { Ok(applier.try_restart().await?) };
        let tried = stage.interruption.or(tried);
        if telling(stage.progress, &waiting, tried).await? {
            self.target.refresh().await?;
        }
        Ok(())
    }

    async fn load(&mut self, stage: &mut Stage, load: &Load) -> Fit<()> {
        let Load::Workload(workload) = load else {
            return Ok(Ok(()));
        };
        self.loads += 1;
        let memory = MemoryWatch::of(&ProcFs::host(), self.target.facts.pid);
        let name = format!("load {}", self.loads);
        memory.load(workload, stage, &self.target, &name).await
    }

    /// Applies the setting and reads it back; reloads the data if that was asked for.
    pub async fn prepare(
        &mut self,
        stage: &mut Stage,
        load: &Load,
        values: &Configuration,
    ) -> Fit<()> {
        let Some(applier) = self.applier.as_mut() else {
            return Ok(Ok(()));
        };
        let set = set(stage, applier, values).await?;
        if set.restarted {
            self.target.refresh().await?;
        }
        if let Err(unfit) = set.fit {
            return Ok(Err(unfit));
        }
        if !self.fresh_data {
            return Ok(Ok(()));
        }
        let loaded = self.load(stage, load).await?;
        if loaded.is_err() {
            self.withdraw(stage).await?;
        }
        Ok(loaded)
    }

    /// Restores all settings to those at the start, within the session.
    pub async fn withdraw(&mut self, stage: &Stage) -> Result<()> {
        if let Some(applier) = &mut self.applier
            && withdraw(stage, applier).await?
        {
            self.target.refresh().await?;
        }
        Ok(())
    }

    /// Restores everything.
    pub async fn put_back(mut self, stage: &Stage) -> Result<PutBack> {
        let restored = match &mut self.applier {
            Some(applier) => put_back(stage.progress, applier, Some(&stage.interruption)).await,
            None => PutBack::Nothing,
        };
        drop((self.locks, self.host_lock));
        Ok(restored)
    }
}

/// The result of applying a configuration.
pub struct Set {
    pub fit: Result<(), Unfit>,
    /// The server is another process now.
    pub restarted: bool,
}

/// Applies a configuration and reads it back. Returns an error only if nothing can be measured or restored.
pub async fn set(stage: &Stage, applier: &mut Appliers, values: &Configuration) -> Result<Set> {
    refuse_set_by_others(applier).await?;
    let waiting = applier.waiting();
    let applied = async { Ok(applier.apply(values).await) };
    let applied = stage.interruption.or(applied);
    let applied = telling(stage.progress, &waiting, applied).await?;
    tell_kept_edits(stage.progress, applier);
    match applied {
        Ok(applied) => Ok(Set {
            fit: Ok(()),
            restarted: applied.restarted,
        }),
        Err(
            error @ (ApplyError::DidNotComeBack {
                put_back: false, ..
            }
            | ApplyError::Server(_)
            | ApplyError::NotSpared { .. }
            | ApplyError::MemberDown { .. }
            | ApplyError::NoPrimary { .. }
            | ApplyError::Originals(_)),
        ) => Err(error.into()),
        Err(error) => Ok(Set {
            restarted: matches!(error, ApplyError::DidNotComeBack { .. }),
            fit: Err(Unfit(error.to_string())),
        }),
    }
}

/// Ends a session in which somebody else has set what it tunes: the run before was not of what it seems to be of, and
/// the next one would overwrite what they set.
async fn refuse_set_by_others(applier: &Appliers) -> Result<()> {
    let others = applier.set_by_others().await;
    if others.is_empty() {
        return Ok(());
    }
    let set = others.iter().map(
        |SetByOthers {
             knob,
             found,
             applied,
             ..
         }| { format!("{knob} is {found}, and was set to {applied} for the last run") },
    );
    let set: Vec<String> = set.collect();
    Err(Elsewhere(format!(
        "somebody else sets what this session tunes ({}): it ends, and leaves that to them",
        set.join("; ")
    ))
    .into())
}

/// Says which configuration files somebody else has edited meanwhile.
fn tell_kept_edits(progress: Progress, applier: &mut Appliers) {
    for edits in applier.take_kept_edits() {
        progress.complain(edits.in_words());
    }
}

/// Restores all settings to those at the start. Returns whether the server is another process now.
pub async fn withdraw(stage: &Stage, applier: &mut Appliers) -> Result<bool> {
    // A knob without a value is set to its original.
    let set = set(stage, applier, &Configuration::default()).await?;
    match set.fit {
        Ok(()) => Ok(set.restarted),
        Err(Unfit(why)) => Err(anyhow::anyhow!(
            "the setting could not be taken back: {why}"
        )),
    }
}

/// Saves the original settings in the run's folder, after restoring what `earlier` left changed.
pub async fn begin(
    stage: &Stage,
    entries: &[KnobEntry],
    means: Means,
    earlier: Option<&Path>,
) -> Result<Appliers> {
    put_back_earlier(stage, earlier, &means).await?;
    let folder = stage.session.directory.path();
    let applier = Applier::begin(entries, means, folder)?;
    if earlier.is_some() {
        refuse_other_baseline(&applier.set_since_read().await)?;
    }
    Ok(applier.into())
}

/// Refuses to resume a session on a server that somebody else has set since: its runs so far were not of that.
fn refuse_other_baseline(others: &[SetByOthers]) -> Result<()> {
    if others.is_empty() {
        return Ok(());
    }
    let set = others.iter().map(|other| {
        let SetByOthers {
            knob,
            found,
            original,
            ..
        } = other;
        format!("{knob} is {found} and was {original} when the session began")
    });
    let set: Vec<String> = set.collect();
    Err(Elsewhere(format!(
        "{}: the session's baseline is no longer what there is. Begin a new one, with --begin-with and this run if its \
         best setting is to be tried first",
        set.join(", ")
    ))
    .into())
}

/// Does the work, and says what it waits for where that takes long.
pub async fn telling<T>(progress: Progress, waiting: &Waiting, work: impl Future<Output = T>) -> T {
    let mut work = std::pin::pin!(work);
    loop {
        match tokio::time::timeout(TELLING, &mut work).await {
            Ok(done) => return done,
            Err(_) => {
                if let Some((what, waited)) = waiting.now() {
                    let waited_s = waited.as_secs();
                    progress.say(format!(
                        "  waiting for {what}, {waited_s} s; Ctrl-C ends it"
                    ));
                }
            }
        }
    }
}

/// Refuses a mongos: what a mongod can be set to, it does not have.
pub fn refuse_router(target: &Target) -> Result<()> {
    let Some(routed) = target.routed() else {
        return Ok(());
    };
    let shards: Vec<String> = routed.shards.iter().map(ToString::to_string).collect();
    let shards = match shards.as_slice() {
        [] => "the login may not list them".into(),
        shards => shards.join(", "),
    };
    Err(Usage(format!(
        "{} is a mongos, which keeps no data and has none of the knobs of a mongod: name a member of its shards \
         ({shards}), and put load on the cluster with --command",
        target.facts.uri
    ))
    .into())
}

fn refuse_if_busy(traffic: &Traffic) -> Result<()> {
    if !traffic.is_busy() {
        return Ok(());
    }
    Err(Elsewhere(format!(
        "the server takes other traffic ({:.0} operations per second): its clients would feel every \
         setting, and every figure would be of both. Tune a copy of it, or allow it with --busy",
        traffic.operations_per_s
    ))
    .into())
}

/// Names all rights that a session needs, where the login lacks one of them: whoever grants them does it once.
fn with_all_rights(error: ServerError) -> anyhow::Error {
    match error {
        ServerError::NotAuthorised {
            uri,
            command,
            has_user: true,
        } => NotPermitted(format!(
            "{uri}: the user may not run {command}; grant the user all that tune needs: the built-in roles \
             clusterMonitor and hostManager, for a --workload also readWrite and dbAdmin on its database, and for \
             --allow-stepdown clusterManager"
        ))
        .into(),
        other => other.into(),
    }
}

/// Returns the means by which settings are applied to this target.
pub fn means(target: &Target, restart: Option<Restart>) -> Result<Means> {
    let device = target.device().map(|device| device.device);
    Ok(Means {
        server: Some(target.server()?.clone()),
        host: target.facts.pid.map(|_| HostFiles::host(device)),
        restart,
        script_limit: SCRIPT_LIMIT,
    })
}

/// Returns the means by which settings are applied if there is no server to ask.
pub fn means_alone() -> Means {
    Means {
        script_limit: SCRIPT_LIMIT,
        ..Means::default()
    }
}

/// Returns how the server picks up its configuration file.
pub fn restart(config_file: Option<&PathBuf>, command: Option<&String>) -> Option<Restart> {
    Some(Restart {
        config_file: config_file?.clone(),
        command: command?.clone(),
        limit: RESTART_LIMIT,
    })
}

/// Waits for a signal that comes during a wait. One that came before asked for settings to be put back.
async fn next_signal(interruption: Option<&Interruption>, waiting: &Waiting) {
    let Some(interruption) = interruption.filter(|one| one.signal().is_none()) else {
        return std::future::pending().await;
    };
    interruption.first().await;
    // What takes no time is put back nevertheless.
    while waiting.now().is_none() {
        tokio::time::sleep(POLL).await;
    }
}

/// Leaves what somebody else has set since the last configuration was applied as it is. Returns it in words.
pub async fn leave_to_others(applier: &mut Appliers) -> Vec<String> {
    let others = applier.set_by_others().await;
    applier.leave(&others).await;
    let restarts = applier.restore_restarts();
    others.iter().map(|other| left(other, restarts)).collect()
}

/// Says what is left as somebody else has set it. `restarts` says that the rest is put back by a restart.
fn left(other: &SetByOthers, restarts: bool) -> String {
    let SetByOthers {
        knob,
        member,
        found,
        applied,
        original,
        is_until_restart,
    } = other;
    let until = match restarts && *is_until_restart {
        true => " until the restart that puts the rest back",
        false => "",
    };
    let on = match member.as_str() {
        "" => String::new(),
        member => format!(" on {member}"),
    };
    format!(
        "{knob} stays {found}{on}{until}: somebody else has set it since seekscope set {applied}; before that it was {original}"
    )
}

/// How putting settings back has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutBack {
    /// No setting was changed.
    Nothing,
    Everything,
    /// Everything but for what somebody else has set since, which is theirs.
    ButForOthers,
    /// Some setting is not as it was.
    NotAll,
}

impl PutBack {
    /// Returns whether every setting that was changed is its owner's again; `None` if none was changed.
    pub fn is_complete(self) -> Option<bool> {
        match self {
            Self::Nothing => None,
            Self::Everything | Self::ButForOthers => Some(true),
            Self::NotAll => Some(false),
        }
    }
}

/// Restores what the applier has changed, but for what somebody else has set since, and reports it. A signal ends the
/// wait for a restart, if there was none before; the settings that remain are outstanding then.
pub async fn put_back(
    progress: Progress,
    applier: &mut Appliers,
    interruption: Option<&Interruption>,
) -> PutBack {
    put_back_in_words(progress, applier, interruption).await.0
}

/// Does the same, and returns what was put back or stays in words, too.
pub async fn put_back_in_words(
    progress: Progress,
    applier: &mut Appliers,
    interruption: Option<&Interruption>,
) -> (PutBack, Vec<String>) {
    if !applier.is_outstanding() {
        let put_back = match (applier.is_restored(), applier.has_left_some()) {
            (true, true) => PutBack::ButForOthers,
            (true, false) => PutBack::Everything,
            (false, _) => PutBack::Nothing,
        };
        return (put_back, Vec::new());
    }
    let left = leave_to_others(applier).await;
    put_back_rest(progress, applier, interruption, left).await
}

/// Does the same where what somebody else has set since is left to them already, which `left` says.
pub async fn put_back_rest(
    progress: Progress,
    applier: &mut Appliers,
    interruption: Option<&Interruption>,
    left: Vec<String>,
) -> (PutBack, Vec<String>) {
    for left in &left {
        progress.complain(left);
    }
    let restored = {
        let _step = progress.step("putting settings back");
        let waiting = applier.waiting();
        tokio::select! {
            biased;
            () = next_signal(interruption, &waiting) => {
                progress.complain("The wait was ended; nothing more is put back.");
                return (PutBack::NotAll, left);
            }
            restored = telling(progress, &waiting, applier.restore()) => restored,
        }
    };
    tell_kept_edits(progress, applier);
    let told = restored_in_words(&restored);
    for line in &told {
        progress.say(format!("  {line}"));
    }
    if let Some(why) = &restored.not_noted {
        progress.say(format!("  That could not be written down: {why}"));
    }
    let put_back = match (restored.is_complete(), left.is_empty()) {
        (false, _) => PutBack::NotAll,
        (true, true) => PutBack::Everything,
        (true, false) => PutBack::ButForOthers,
    };
    (put_back, told.into_iter().chain(left).collect())
}

/// Says of each knob what was done.
fn restored_in_words(restored: &Restored) -> Vec<String> {
    let in_words = |(knob, result): &(String, Result<(), String>)| match result {
        Ok(()) => {
            let words = restored.put_back.get(knob);
            format!("{knob}: {}", words.map_or("as it was", String::as_str))
        }
        Err(why) => format!("{knob}: NOT put back: {why}"),
    };
    restored.knobs.iter().map(in_words).collect()
}

/// Restores what a session left changed before it is resumed, so that it starts from its original state.
async fn put_back_earlier(stage: &Stage, earlier: Option<&Path>, means: &Means) -> Result<()> {
    let Some(run) = earlier else {
        return Ok(());
    };
    let Some(mut applier) = rolling::resume(run, means.clone())? else {
        return Ok(());
    };
    match put_back(stage.progress, &mut applier, Some(&stage.interruption)).await {
        PutBack::NotAll => Err(Usage(format!(
            "{}: not all that the session had changed could be put back; see above, and run --restore",
            run.display()
        ))
        .into()),
        _ => Ok(()),
    }
}
