//! Where trials happen: on a private server, on somebody's, or without a server that seekscope knows of.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use seekscope_settings::{Appliers, KnobEntry, PrimaryChanged, Route};
use seekscope_tune::space::{ChangeCost, Configuration};

use super::definition::Definition;
use super::local_arena::{LocalArena, StartOptions};
use super::measurement::Load;
use super::putting_back::{self, PutBack, Resumed};
use super::server_arena::{self, ServerArena};
use crate::bench::{Stage, Target};

/// The setting cannot be run: a result of the trial, not an error of the session.
#[derive(Debug, PartialEq, Eq)]
pub struct Unfit(pub String);

/// The result of a fallible step of a trial: an error only if the session cannot go on.
pub type Fit<T> = Result<Result<T, Unfit>>;

/// The place where trials happen, with the means of setting its knobs.
pub struct Arena<'a> {
    pub place: Place<'a>,
    /// The knobs, with how each is set.
    pub entries: Vec<KnobEntry>,
    /// A shell command to run before each run.
    pub prepare: Option<String>,
}

/// The kinds of places.
pub enum Place<'a> {
    Local(Box<LocalArena<'a>>),
    Server(Box<ServerArena>),
    /// Only a command, with knobs in its environment or set by commands.
    Nowhere(Option<Box<Appliers>>),
}

impl Place<'_> {
    /// Returns the server, if there is one and it is running.
    pub fn target(&self) -> Option<&Target> {
        match self {
            Self::Local(local) => local.target(),
            Self::Server(server) => Some(server.target()),
            Self::Nowhere(_) => None,
        }
    }

    /// Does the same as [`ServerArena::other_than_before`].
    pub fn other_than_before(&self, earlier: &Path) -> Option<(String, String)> {
        match self {
            Self::Server(server) => server.other_than_before(earlier),
            Self::Local(_) | Self::Nowhere(_) => None,
        }
    }

    /// Saves all original settings and restores what an earlier part of the session left changed; loads the
    /// data on somebody's server.
    pub async fn make_ready(
        &mut self,
        stage: &mut Stage,
        load: &Load,
        entries: &[KnobEntry],
        definition: &Definition,
        earlier: Option<Resumed<'_>>,
    ) -> Result<()> {
        match self {
            Self::Local(_) => Ok(()),
            Self::Server(server) => {
                server
                    .make_ready(stage, load, entries, definition, earlier)
                    .await
            }
            Self::Nowhere(applier) => {
                let means = server_arena::means_alone();
                let begun = server_arena::begin(stage, entries, means, earlier).await?;
                *applier = Some(Box::new(begun));
                Ok(())
            }
        }
    }
}

impl Arena<'_> {
    /// Applies the setting and prepares everything for a run.
    pub async fn prepare(
        &mut self,
        stage: &mut Stage,
        load: &Load,
        values: &Configuration,
    ) -> Fit<()> {
        let ready = match &mut self.place {
            Place::Local(local) => {
                let options = start_options(&self.entries, values, |_| true);
                let of_data =
                    start_options(&self.entries, values, |cost| cost == ChangeCost::Reload);
                local.prepare(stage, load, &options, &of_data).await?
            }
            Place::Server(server) => server.prepare(stage, load, values).await?,
            Place::Nowhere(None) => Ok(()),
            Place::Nowhere(Some(applier)) => server_arena::set(stage, applier, values).await?.fit,
        };
        if let Err(unfit) = ready {
            return Ok(Err(unfit));
        }
        match &self.prepare {
            Some(command) => {
                let environment = self.environment(values, 0);
                super::command_load::prepare(stage, command, &environment).await
            }
            None => Ok(Ok(())),
        }
    }

    /// Restores the original setting at once, before the next run. A private server needs nothing: its next run
    /// uses another process.
    pub async fn withdraw(&mut self, stage: &Stage) -> Result<()> {
        match &mut self.place {
            Place::Local(_) | Place::Nowhere(None) => Ok(()),
            Place::Server(server) => server.withdraw(stage).await,
            Place::Nowhere(Some(applier)) => server_arena::withdraw(stage, applier).await.map(drop),
        }
    }

    /// Returns why the run just made is to be made again, if it is. An error ends the session.
    pub async fn is_disturbed(&mut self, stage: &Stage) -> Result<Option<PrimaryChanged>> {
        match &mut self.place {
            Place::Server(server) => server.is_disturbed(stage).await,
            Place::Local(_) | Place::Nowhere(_) => Ok(None),
        }
    }

    /// Returns the server, if there is one and it is running.
    pub fn target(&self) -> Option<&Target> {
        self.place.target()
    }

    /// Returns the variables for commands: knobs that are set that way, the server, the seed.
    pub fn environment(&self, values: &Configuration, seed: u64) -> BTreeMap<String, String> {
        let mut environment = BTreeMap::from([("SEEKSCOPE_SEED".into(), seed.to_string())]);
        if let Some(target) = self.target() {
            environment.insert("SEEKSCOPE_URI".into(), target.uri.clone());
        }
        for entry in &self.entries {
            if let (Route::Environment { name }, Some(value)) =
                (&entry.set, values.0.get(&entry.knob.name))
            {
                environment.insert(name.clone(), value.to_string());
            }
        }
        environment
    }

    /// Restores everything.
    pub async fn close(self, stage: &Stage) -> Result<PutBack> {
        match self.place {
            Place::Local(local) => local.close().await.map(|()| PutBack::Nothing),
            Place::Server(server) => server.put_back(stage).await,
            Place::Nowhere(None) => Ok(PutBack::Nothing),
            Place::Nowhere(Some(mut applier)) => {
                let interruption = Some(&stage.interruption);
                Ok(putting_back::put_back(stage.progress, &mut applier, interruption).await)
            }
        }
    }
}

/// Returns the options with which a private server is started.
fn start_options(
    entries: &[KnobEntry],
    values: &Configuration,
    wanted: impl Fn(ChangeCost) -> bool,
) -> StartOptions {
    let option = |entry: &KnobEntry| {
        let value = values.0.get(&entry.knob.name)?;
        match &entry.set {
            Route::Local { name, suffix } => Some((name.clone(), format!("{value}{suffix}"))),
            Route::Engine { key, suffix } => {
                Some((format!("wt.{key}"), format!("{value}{suffix}")))
            }
            Route::Parameter { name } => Some((name.clone(), value.to_string())),
            Route::Option { .. }
            | Route::File { .. }
            | Route::Command { .. }
            | Route::Environment { .. } => None,
        }
    };
    let wanted = entries.iter().filter(|entry| wanted(entry.knob.change));
    wanted.filter_map(option).collect()
}
