//! Everything that lives through the trials: servers with a collection of the user's, writers who know what they
//! wrote, and what all was like before.

use std::path::PathBuf;

use anyhow::Result;
use seekscope_server::Server;
use seekscope_stats::SplitMix64;
use tokio::task::JoinHandle;

use super::combination::{During, Shape};
use super::documents::create;
use super::examination::{Definitions, Documents};
use super::expected::Expected;
use super::pause::Gate;
use super::seekscope::Seekscope;
use super::servers::{Servers, Settings};
use super::table::Trial;
use super::writers::{Record, Writers};
use crate::deployment::MongoPrograms;

/// How the trials are made.
#[derive(Debug, Clone)]
pub struct Setting {
    /// The binary under test.
    pub seekscope: PathBuf,
    pub programs: MongoPrograms,
    /// An empty folder for data, logs and runs.
    pub folder: PathBuf,
    /// Members of the replica set.
    pub members: usize,
    /// Shards of a cluster, which then takes the set's place; 0 for none.
    pub shards: usize,
    pub documents: i64,
    pub writers: i64,
    pub seed: u64,
}

impl Setting {
    pub fn shape(&self) -> Shape {
        Shape {
            kind: self.programs.mongod.kind,
            members: self.members,
            shards: self.shards,
        }
    }
}

/// What lives through the trials.
pub(super) struct World {
    pub(super) setting: Setting,
    pub(super) servers: Servers,
    pub(super) seekscope: Seekscope,
    pub(super) random: SplitMix64,
    gate: Gate,
    pauser: JoinHandle<()>,
    records: Vec<Record>,
    /// The definitions before anything was done.
    original: Definitions,
    settings: Settings,
}

impl Drop for World {
    fn drop(&mut self) {
        self.pauser.abort();
    }
}

impl World {
    pub(super) async fn make(setting: &Setting) -> Result<Self> {
        let folder = setting.folder.canonicalize()?;
        let servers =
            Servers::start(&setting.programs, setting.shape(), folder.join("servers")).await?;
        let client = Server::connect(servers.uri()).await?;
        create(&client, setting.documents).await?;
        let seekscope = Seekscope::new(&setting.seekscope, &folder)?;
        let gate = Gate::default();
        Ok(Self {
            pauser: seekscope.pause.serve(gate.clone()),
            seekscope,
            gate,
            records: Record::shares(setting.documents, setting.writers),
            original: Definitions::read(&client).await?,
            settings: servers.settings().await?,
            random: SplitMix64::new(setting.seed),
            setting: Setting {
                folder,
                ..setting.clone()
            },
            servers,
        })
    }

    /// Moves data and logs out of the way of a new world, whose servers are others.
    pub(super) fn keep_aside(self, number: u64) -> Result<()> {
        let folder = self.setting.folder.clone();
        drop(self);
        let aside = folder.join(format!("wrong-{number}"));
        std::fs::create_dir(&aside)?;
        for name in ["servers", "runs", "state"] {
            let from = folder.join(name);
            if from.exists() {
                std::fs::rename(from, aside.join(name))?;
            }
        }
        Ok(())
    }

    pub(super) async fn client(&self) -> Result<Server> {
        Ok(Server::connect(self.servers.uri()).await?)
    }

    pub(super) async fn definitions(&self) -> Result<Definitions> {
        Definitions::read(&self.client().await?).await
    }

    /// What is set otherwise than it was before anything was done.
    pub(super) async fn changed_settings(&self) -> Result<Vec<String>> {
        Ok(self.servers.settings().await?.differences(&self.settings))
    }

    pub(super) async fn start_writers(&mut self) -> Result<Writers> {
        let records = std::mem::take(&mut self.records);
        let seed = self.random.next_u64();
        Writers::start(&self.servers.durable_uri(), records, &self.gate, seed).await
    }

    /// Stops the writers, looks at everything, and adds what it finds.
    pub(super) async fn examine(
        &mut self,
        writers: Writers,
        during: Option<During>,
        trial: &mut Trial,
    ) -> Result<()> {
        self.records = writers.stop().await?;
        let client = self.client().await?;
        let now = Definitions::read(&client).await?;
        trial.left.extend(now.differences(&self.original));
        if during.is_some_and(|during| during != During::Reorder) && now.replaced(&self.original) {
            trial.left.push("the collection is another one".into());
        }
        let records = self.records.iter_mut();
        let mut expected: Vec<&mut Expected> = records.map(|record| &mut record.expected).collect();
        trial.documents = Documents::examine(&client, &mut expected).await?;
        for record in &mut self.records {
            trial.done += std::mem::take(&mut record.done);
            trial.in_doubt += std::mem::take(&mut record.in_doubt);
            trial.refused += std::mem::take(&mut record.refused);
            trial.impossible.append(&mut record.impossible);
        }
        Ok(())
    }
}
