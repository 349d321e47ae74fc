//! The servers that are killed: a replica set, or shards with a mongos. Like a service manager, they are restarted
//! also when a command asks for it, by a file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use bson::{Bson, Document, doc};
use seekscope_run::MemberState;
use seekscope_server::{Server, ServerKind};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use super::combination::{Shape, Victim};
use crate::deployment::{Deployment, DeploymentOptions, MongoPrograms, Topology};

const POLL: Duration = Duration::from_millis(50);
/// How often an election is waited for, a second each.
const ELECTIONS_MAX: u32 = 60;
/// What stands beside the parameters in the answer.
const NOT_SET: [&str; 6] = [
    "operationTime",
    "$clusterTime",
    "lastCommittedOpTime",
    "$configServerState",
    "$gleStats",
    "ok",
];

/// Running servers; dropping them kills them.
#[derive(Debug)]
pub struct Servers {
    deployment: Arc<Mutex<Deployment>>,
    shape: Shape,
    folder: PathBuf,
    uri: String,
    restarter: JoinHandle<()>,
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.restarter.abort();
    }
}

impl Servers {
    /// Starts them below `folder`.
    pub async fn start(programs: &MongoPrograms, shape: Shape, folder: PathBuf) -> Result<Self> {
        std::fs::create_dir_all(&folder)?;
        let topology = match (shape.shards, shape.members) {
            (0, members) => Topology::ReplicaSet { members },
            (shards, _) => Topology::Sharded { shards },
        };
        let options = DeploymentOptions {
            config_files: shape.kind == ServerKind::Mongod,
            ..DeploymentOptions::default()
        };
        let deployment = Deployment::start(programs, topology, &options, &folder).await?;
        // Nothing is sent twice by the driver: whoever sends knows what became of it.
        let joint = if deployment.uri().contains('?') {
            '&'
        } else {
            '?'
        };
        let uri = format!("{}{joint}retryWrites=false", deployment.uri());
        let deployment = Arc::new(Mutex::new(deployment));
        Ok(Self {
            restarter: tokio::spawn(restart_where_asked(deployment.clone(), folder.clone())),
            deployment,
            shape,
            folder,
            uri,
        })
    }

    /// How many shards there are; none in a replica set.
    pub fn shards(&self) -> usize {
        self.shape.shards
    }

    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// Returns the connection string for clients whose acknowledged writes must survive a kill: mongod rolls back
    /// what its journal, or the majority of the set, does not have.
    pub fn durable_uri(&self) -> String {
        match self.shape.kind {
            ServerKind::SecantusdRs => self.uri.clone(),
            ServerKind::Mongod => format!("{}&journal=true&w=majority", self.uri),
        }
    }

    /// Returns the value for `--config-file`.
    pub fn config_files(&self) -> String {
        format!("{}/mongod-{{port}}.conf", self.folder.display())
    }

    /// Returns the value for `--restart-command`.
    pub fn restart_command(&self) -> String {
        let asked = format!("{}/restart-{{port}}", self.folder.display());
        format!("touch '{asked}'; while [ -e '{asked}' ]; do sleep 0.05; done")
    }

    /// SIGKILL to one, and waits for its end. Of several that could be meant, the one at `turn`. Returns its name.
    pub async fn kill(&self, victim: Victim, turn: usize) -> Result<String> {
        for _ in 0..ELECTIONS_MAX {
            let mut deployment = self.deployment.lock().await;
            let state = match victim {
                Victim::Secondary => MemberState::Secondary,
                _ => MemberState::Primary,
            };
            let name = match victim {
                Victim::Mongos => Some("mongos".to_owned()),
                _ if self.shape.kind == ServerKind::SecantusdRs => Some("member-0".to_owned()),
                _ => {
                    let found = deployment.member_in(state, turn).await?;
                    found.map(|member| member.name.clone())
                }
            };
            if let Some(name) = name {
                deployment.kill(&name)?;
                return Ok(name);
            }
            drop(deployment);
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        anyhow::bail!("there is no {} to be killed", victim.name())
    }

    pub async fn start_again(&self) -> Result<()> {
        self.deployment.lock().await.start_again().await
    }

    pub async fn until_whole(&self) -> Result<()> {
        self.deployment.lock().await.until_whole().await
    }

    /// What every server is set to.
    pub async fn settings(&self) -> Result<Settings> {
        let deployment = self.deployment.lock().await;
        let mut settings = Settings::default();
        for member in deployment.members() {
            let server = Server::connect(&member.process.uri()).await?;
            let parameters = doc! { "getParameter": "*" };
            // Some compatible servers do not have it.
            let mut reply = server
                .command("admin", parameters)
                .await
                .unwrap_or_default();
            NOT_SET.iter().for_each(|name| drop(reply.remove(*name)));
            let status = server.command("admin", doc! { "serverStatus": 1 }).await?;
            if let Some(bytes) = cache_bytes(&status) {
                // The engine can have another cache than the text of its configuration says.
                reply.insert("bytes of the cache", bytes);
            }
            settings.parameters.insert(member.name.clone(), reply);
        }
        for entry in std::fs::read_dir(&self.folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|ending| ending == "conf") {
                let text = std::fs::read_to_string(&path)?;
                settings.files.insert(path, text);
            }
        }
        Ok(settings)
    }
}

fn cache_bytes(status: &Document) -> Option<Bson> {
    let engine = status.get_document("wiredTiger").ok()?;
    let cache = engine.get_document("cache").ok()?;
    cache.get("maximum bytes configured").cloned()
}

/// Parameters by server, and configuration files.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings {
    parameters: BTreeMap<String, Document>,
    files: BTreeMap<PathBuf, String>,
}

impl Settings {
    /// Each difference as a sentence.
    pub fn differences(&self, before: &Self) -> Vec<String> {
        let mut found = Vec::new();
        let nothing = Document::new();
        for (name, then) in &before.parameters {
            let now = self.parameters.get(name).unwrap_or(&nothing);
            for (key, value) in then {
                let value_now = now.get(key);
                if value_now != Some(value) {
                    let now = value_now.map_or("nothing".into(), Bson::to_string);
                    found.push(format!("{name}: {key} is {now}, was {value}"));
                }
            }
        }
        for (path, then) in &before.files {
            if self.files.get(path) != Some(then) {
                found.push(format!("{} is another text", path.display()));
            }
        }
        found
    }
}

/// Stops and starts the server whose port a file names, and removes the file then.
async fn restart_where_asked(deployment: Arc<Mutex<Deployment>>, folder: PathBuf) {
    loop {
        for port in asked(&folder) {
            let mut deployment = deployment.lock().await;
            if let Err(why) = restart(&mut deployment, port).await {
                // Whoever asked sees that the server is not there; why stands beside its log.
                let _ = std::fs::write(folder.join("restart.failed"), format!("{why:#}"));
            }
            let _ = std::fs::remove_file(folder.join(format!("restart-{port}")));
        }
        tokio::time::sleep(POLL).await;
    }
}

fn asked(folder: &Path) -> Vec<u16> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let ports = entries.filter_map(|entry| {
        let name = entry.file_name();
        name.to_str()?.strip_prefix("restart-")?.parse().ok()
    });
    ports.collect()
}

/// A server that was killed is started, as by a service manager.
async fn restart(deployment: &mut Deployment, port: u16) -> Result<()> {
    let mut members = deployment.members().iter();
    let running = members.find(|member| member.process.port() == port);
    if let Some(name) = running.map(|member| member.name.clone()) {
        deployment.stop(&name).await?;
    }
    let started = deployment.start_again().await;
    started.with_context(|| format!("restarting the server at port {port}"))
}
