//! Runs trials on a private server: each gets a fresh copy of the loaded data and a server started with its
//! setting.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Result;
use seekscope_server::{LocalServerError, ProcFs};

use super::arena::{Fit, Unfit};
use super::measurement::Load;
use super::memory_watch::MemoryWatch;
use crate::args::{BenchTargetArgs, TuneLocalArgs};
use crate::bench::{Stage, Target};
use crate::environment::Environment;
use crate::exit::message_of;

/// Small enough that data for a short trial does not fit.
const CACHE_BYTES: u64 = 256 << 20;

/// Start options by name, in the form of `bench --server-setting`.
pub type StartOptions = Vec<(String, String)>;

/// A private server, with the loaded data that every trial copies.
pub struct LocalArena<'a> {
    args: BenchTargetArgs,
    environment: &'a Environment,
    target: Option<Target>,
    /// Loaded data, by the options that affect new data only.
    loaded: BTreeMap<StartOptions, PathBuf>,
    /// Load the data again for each trial.
    fresh_data: bool,
    loads: u32,
}

impl<'a> LocalArena<'a> {
    /// Starts the server as `args` say.
    pub async fn start(
        stage: &Stage,
        args: &TuneLocalArgs,
        fresh_data: bool,
        environment: &'a Environment,
    ) -> Result<Self> {
        let args = start_args(args);
        let _step = stage.progress.step("starting a private local server");
        let parent = stage.session.data_folder(args.data_dir.as_deref())?;
        let target = Target::start_local(&args, "", &[], &parent, environment);
        let target = stage.interruption.or(target).await?;
        Ok(Self {
            args,
            environment,
            target: Some(target),
            loaded: BTreeMap::new(),
            fresh_data,
            loads: 0,
        })
    }

    pub fn target(&self) -> Option<&Target> {
        self.target.as_ref()
    }

    /// Starts the server with `options`; `of_data` are those among them that affect new data only.
    pub async fn prepare(
        &mut self,
        stage: &mut Stage,
        load: &Load,
        options: &StartOptions,
        of_data: &StartOptions,
    ) -> Fit<()> {
        let data = match load {
            // A command brings its own data, and finds it as it left it.
            Load::Command { .. } => None,
            Load::Workload(_) if self.fresh_data => None,
            Load::Workload(_) => match self.loaded.get(of_data) {
                Some(data) => Some(data.clone()),
                None => match self.load(stage, load, of_data).await? {
                    Ok(data) => data,
                    Err(unfit) => return Ok(Err(unfit)),
                },
            },
        };
        if let Err(unfit) = self.start_as(stage, options, data).await? {
            return Ok(Err(unfit));
        }
        if let (Load::Workload(workload), true, Some(target)) =
            (load, self.fresh_data, self.target.as_ref())
        {
            self.loads += 1;
            let name = format!("load {}", self.loads);
            return watch(target).load(workload, stage, target, &name).await;
        }
        Ok(Ok(()))
    }

    /// Loads with these options and sets the data aside.
    async fn load(
        &mut self,
        stage: &mut Stage,
        load: &Load,
        of_data: &StartOptions,
    ) -> Fit<Option<PathBuf>> {
        let Load::Workload(workload) = load else {
            return Ok(Ok(None));
        };
        if let Err(unfit) = self.start_as(stage, of_data, None).await? {
            return Ok(Err(unfit));
        }
        let Some(target) = self.target.as_mut() else {
            return Ok(Ok(None));
        };
        self.loads += 1;
        let name = format!("load {}", self.loads);
        let loaded = watch(target).load(workload, stage, target, &name).await?;
        if let Err(unfit) = loaded {
            return Ok(Err(unfit));
        }
        let aside = target
            .set_data_aside(&format!("loaded-{}", self.loads))
            .await?;
        if let Some(data) = &aside {
            self.loaded.insert(of_data.clone(), data.clone());
        }
        Ok(Ok(aside))
    }

    async fn start_as(
        &mut self,
        stage: &mut Stage,
        options: &StartOptions,
        data: Option<PathBuf>,
    ) -> Fit<()> {
        let Some(target) = self.target.as_mut() else {
            return Ok(Ok(()));
        };
        // Tuned options replace those of the command line.
        let mut args = self.args.clone();
        let is_tuned = |name: &String| options.iter().any(|(tuned, _)| tuned == name);
        args.server_setting.retain(|(name, _)| !is_tuned(name));
        let started = target.start_as(&args, options, data.as_deref(), self.environment);
        match stage.interruption.or(started).await {
            Ok(limitation) => {
                if let Some(limitation) = limitation {
                    stage.limit(limitation);
                }
                Ok(Ok(()))
            }
            Err(error) if error.is::<LocalServerError>() => {
                let why = message_of(&error);
                // A mongod that refuses an option ends with where to read about them.
                let mut lines = why.lines().filter(|line| !line.starts_with("try '"));
                let short = lines.next_back().unwrap_or_default();
                Ok(Err(Unfit(format!("the server did not start: {short}"))))
            }
            Err(error) => Err(error),
        }
    }

    /// Stops the server and removes its data.
    pub async fn close(mut self) -> Result<()> {
        if let Some(target) = self.target.take() {
            target.close(false).await?;
        }
        Ok(())
    }
}

/// Returns a watch on the server as it runs now.
fn watch(target: &Target) -> MemoryWatch {
    MemoryWatch::of(&ProcFs::host(), target.facts.pid)
}

/// Returns the arguments with which `bench` would start it.
pub fn start_args(args: &TuneLocalArgs) -> BenchTargetArgs {
    BenchTargetArgs {
        uri: None,
        database: String::new(),
        drop: false,
        keep: false,
        pid: None,
        server_binary: args.server_binary.clone(),
        cache: Some(args.cache.unwrap_or(CACHE_BYTES)),
        server_setting: args.server_setting.clone(),
        data_dir: args.data_dir.clone(),
        cold: false,
    }
}
