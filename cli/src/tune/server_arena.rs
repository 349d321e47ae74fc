//! Runs trials on somebody's server: settings are changed while it runs, or by its configuration file and a
//! restart, and restored at the end.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use seekscope_server::{ProcFs, ServerError};
use seekscope_settings::apply::Means;
use seekscope_settings::{
    Applier, Appliers, ApplyError, HostFiles, KnobEntry, PrimaryChanged, Restart, SetByOthers,
    Traffic, TunerLock,
};
use seekscope_tune::space::Configuration;

use super::arena::{Fit, Unfit};
use super::definition::Definition;
use super::measurement::Load;
use super::memory_watch::MemoryWatch;
use super::putting_back::{PutBack, Resumed, put_back, put_back_earlier, tell_kept_edits, telling};
use super::rolling::{self, Members, Whose};
use crate::args::TuneSessionArgs;
use crate::bench::{Stage, Target};
use crate::exit::{BrokenOff, Elsewhere, NotPermitted, Usage};
use crate::unrestored;

/// Time limit for a restart with recovery of a large cache.
const RESTART_LIMIT: Duration = Duration::from_secs(600);
/// Time limit for each command of a knob.
const SCRIPT_LIMIT: Duration = Duration::from_secs(120);

/// Somebody's server, with what must be restored on it.
pub struct ServerArena {
    target: Target,
    fresh_data: bool,
    applier: Option<Appliers>,
    /// The members whose settings are tried, of a set.
    members: Option<Members>,
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
        let found = Members::find(server, restart, allow_stepdown, Whose::OfPrimary);
        let members = stage.interruption.or(found).await?;
        let names = members.as_ref().map_or(&[][..], Members::names);
        let locks = rolling::lock(lock_folder, server, names)?;
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
            members,
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
        earlier: Option<Resumed<'_>>,
    ) -> Result<()> {
        let means = means(&self.target, definition.restart())?;
        let run = stage.session.directory.path().to_path_buf();
        self.applier = Some(match &self.members {
            Some(members) => {
                let other = earlier.and_then(|earlier| self.other_than_before(earlier.run));
                put_back_earlier(stage, earlier, &means, other.is_some()).await?;
                self.refuse_other_member(earlier)?;
                // The values that the entries have are those of the member that was the primary.
                self.check_reign(stage).await?;
                let begun = members.begin(&self.target, entries, &run);
                let begun = stage.interruption.or(begun).await?;
                refuse_other_baseline(earlier.map(|one| one.run), &begun).await?;
                begun
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

    /// Returns the members that the earlier part of the session set and those that this one sets, if they have none in
    /// common: the set has another primary now.
    pub fn other_than_before(&self, earlier: &Path) -> Option<(String, String)> {
        let members = self.members.as_ref()?;
        let recorded = rolling::members_of(earlier);
        let is_recorded = |name: &String| recorded.iter().any(|(recorded, _)| recorded == name);
        let recorded: Vec<&str> = recorded.iter().map(|(name, _)| name.as_str()).collect();
        let is_other = !recorded.is_empty() && !members.names().iter().any(is_recorded);
        is_other.then(|| (recorded.join(", "), members.names().join(", ")))
    }

    /// Refuses to resume a search on another member than the one that its runs so far were of. A duel is fought anew.
    fn refuse_other_member(&self, earlier: Option<Resumed<'_>>) -> Result<()> {
        let search = earlier.filter(|earlier| !earlier.is_at_duel);
        let Some((former, now)) = search.and_then(|earlier| self.other_than_before(earlier.run))
        else {
            return Ok(());
        };
        Err(Elsewhere(format!(
            "the session tuned {former}, but the primary of the set is {now} now: resume it when the former is the primary again, or begin a new session; --begin-with this run tries its best setting first"
        ))
        .into())
    }

    /// Ends the session if the set has another primary than the one that was set: the load goes there, and what it
    /// measures is not of these settings.
    async fn check_reign(&self, stage: &Stage) -> Result<()> {
        match self.change_of_primary(stage).await? {
            Some(changed) => Err(ended_by(stage, changed)),
            None => Ok(()),
        }
    }

    /// Returns how the primary has changed since settings were made, if it has.
    async fn change_of_primary(&self, stage: &Stage) -> Result<Option<PrimaryChanged>> {
        let asked = async { Ok(self.target.change_of_primary().await) };
        stage.interruption.or(asked).await
    }

    /// Returns whether the run just made is to be made again, because the set had an election meanwhile. Where its
    /// members are restarted in turn they all have the setting, and one that is preferred may take over some seconds later.
    /// Elsewhere an election ends the session.
    pub async fn is_disturbed(&mut self, stage: &Stage) -> Result<Option<PrimaryChanged>> {
        let Some(changed) = self.change_of_primary(stage).await? else {
            return Ok(None);
        };
        if !self.members.as_ref().is_some_and(Members::are_restarted) {
            return Err(ended_by(stage, changed));
        }
        self.target.refresh().await?;
        Ok(Some(changed))
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
        if !self.members.as_ref().is_some_and(Members::are_restarted) {
            self.check_reign(stage).await?;
        }
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
    earlier: Option<Resumed<'_>>,
) -> Result<Appliers> {
    put_back_earlier(stage, earlier, &means, false).await?;
    let folder = stage.session.directory.path();
    let applier = Applier::begin(entries, means, folder)?.into();
    refuse_other_baseline(earlier.map(|one| one.run), &applier).await?;
    Ok(applier)
}

/// Refuses to resume a session on a server that somebody else has set since: its runs so far were not of that.
async fn refuse_other_baseline(earlier: Option<&Path>, applier: &Appliers) -> Result<()> {
    let others = match earlier {
        Some(_) => applier.set_since_read().await,
        None => Vec::new(),
    };
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

/// The error of a session that ends because the set has another primary than the one that was set.
pub fn ended_by(stage: &Stage, changed: PrimaryChanged) -> anyhow::Error {
    let next = format!(
        "seekscope tune --resume {} goes on: with a duel on any primary, with a search once {} is the primary again",
        stage.session.directory.path().display(),
        changed.was
    );
    BrokenOff::by_election("the session", changed, &next)
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
         ({shards}), and put load on the cluster with --command; if that member is then refused as busy, add --busy: not all requests between the cluster's own servers can be told from those of clients",
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
