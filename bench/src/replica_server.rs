//! A local server as the only member of a replica set, which unlike a standalone one keeps an oplog, has
//! change streams, can be killed outright, and comes back on the same port and data.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use seekscope_server::{
    LocalServer, LocalServerOptions, ServerBinary, ServerKind, ServerRole, Stopped,
};

use crate::deployment::replica_set::initiate;

/// With this a commit of secantusd-rs hands its log record to the operating system, so that SIGKILL loses
/// nothing that was acknowledged; without, up to 50 ms of it (`kills` shows both). Syncing the disk at each
/// commit, as its `--sync-on-commit` does, guards against power cuts besides, and makes loading fifty times
/// slower. A mongod cuts its oplog at the last point that its journal has for certain, whatever this says;
/// see [`ReplicaServer::durable_uri`].
const LOG_AT_COMMIT: &str = "transaction_sync=(enabled=true,method=none)";
const SET: &str = "seekscope";
const START_LIMIT: Duration = Duration::from_secs(120);
const STOP_LIMIT: Duration = Duration::from_secs(300);

/// How to start it.
#[derive(Debug, Clone)]
pub struct ReplicaServerOptions {
    pub binary: ServerBinary,
    /// Its data; created if missing. The log goes beside it.
    pub data_directory: PathBuf,
    pub cache_bytes: u64,
    /// Further configuration of WiredTiger; what comes last counts.
    pub engine: &'static str,
}

/// A running server, or one between two starts. Dropping it kills it.
#[derive(Debug)]
pub struct ReplicaServer {
    options: LocalServerOptions,
    port: u16,
    local: Option<LocalServer>,
}

impl ReplicaServer {
    /// Starts it on a free port, which it keeps.
    pub async fn start(options: ReplicaServerOptions) -> Result<Self> {
        let (binary, data) = (options.binary, options.data_directory);
        let mut local_options = LocalServerOptions {
            role: ServerRole::Member(SET.into()),
            start_limit: START_LIMIT,
            // As on any server in production.
            diagnostic_data: true,
            ..LocalServerOptions::new(binary, data, options.cache_bytes)
        };
        if local_options.binary.kind == ServerKind::SecantusdRs {
            local_options.add_engine_entry(LOG_AT_COMMIT);
        }
        // mongod's own option has a minimum of 256 MiB, which WiredTiger's has not.
        local_options.add_engine_entry(&format!("cache_size={}", options.cache_bytes));
        if !options.engine.is_empty() {
            local_options.add_engine_entry(options.engine);
        }
        let local = start(&local_options).await?;
        let port = local.port();
        local_options.port = Some(port);
        Ok(Self {
            options: local_options,
            port,
            local: Some(local),
        })
    }

    /// Starts it after [`Self::kill`] or [`Self::stop`]; its journal is recovered.
    pub async fn start_again(&mut self) -> Result<()> {
        ensure!(self.local.is_none(), "the server runs already");
        self.local = Some(start(&self.options).await?);
        Ok(())
    }

    /// Nothing is sent twice by the driver: whoever sends knows what became of it.
    pub fn uri(&self) -> String {
        let port = self.port;
        format!("mongodb://127.0.0.1:{port}/?directConnection=true&retryWrites=false")
    }

    /// For those whose acknowledged writes must be there after [`Self::kill`]: mongod takes back what its
    /// journal does not have.
    pub fn durable_uri(&self) -> String {
        let journal = match self.options.binary.kind {
            ServerKind::Mongod => "&journal=true",
            ServerKind::SecantusdRs => "",
        };
        format!("{}{journal}", self.uri())
    }

    pub fn data_directory(&self) -> &Path {
        &self.options.data_directory
    }

    /// Of the running process.
    pub fn pid(&self) -> Result<u32> {
        let local = self.local.as_ref().context("the server does not run")?;
        Ok(local.pid())
    }

    /// SIGKILL, and waits for the end.
    pub fn kill(&mut self) {
        drop(self.local.take());
    }

    /// Lets it write its last checkpoint.
    pub async fn stop(&mut self) -> Result<()> {
        let local = self.local.take().context("the server does not run")?;
        let log = local.log_file().to_owned();
        let stopped = local.stop(STOP_LIMIT).await;
        let log = log.display();
        ensure!(
            stopped == Stopped::Clean,
            "the server did not stop well ({stopped:?}); see {log}"
        );
        Ok(())
    }
}

/// Starts it, and waits until it takes writes: secantusd-rs does so at once.
async fn start(options: &LocalServerOptions) -> Result<LocalServer> {
    let local = LocalServer::start(options).await?;
    if local.kind() == ServerKind::Mongod {
        initiate(SET, &[&local], false).await?;
    }
    Ok(local)
}
