//! A local server as the only member of a replica set: unlike a standalone one it keeps an oplog and has change
//! streams. It can be stopped, and comes back on the same port and data.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use seekscope_server::{
    LocalServer, LocalServerOptions, ServerBinary, ServerKind, ServerRole, Stopped,
};

use crate::deployment::replica_set::initiate;

/// Makes secantusd-rs hand its log record to the operating system at each commit, so that SIGKILL loses
/// nothing that was acknowledged; otherwise it loses up to 50 ms (`kills` shows both). Syncing the disk at each
/// commit, as its `--sync-on-commit` does, also guards against power cuts, but makes loading fifty times
/// slower. A mongod cuts its oplog at the last point that its journal has for certain, whatever this says.
pub const LOG_AT_COMMIT: &str = "transaction_sync=(enabled=true,method=none)";
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

/// A running server, or one between two starts. Dropping it kills the server.
#[derive(Debug)]
pub struct ReplicaServer {
    options: LocalServerOptions,
    port: u16,
    local: Option<LocalServer>,
}

impl ReplicaServer {
    /// Starts it on a free port, which it keeps.
    pub async fn start(options: ReplicaServerOptions) -> Result<Self> {
        std::fs::create_dir_all(&options.data_directory)?;
        let mut local_options = LocalServerOptions {
            role: ServerRole::Member(SET.into()),
            start_limit: START_LIMIT,
            // As on any server in production.
            diagnostic_data: true,
            ..LocalServerOptions::new(options.binary, options.data_directory, options.cache_bytes)
        };
        if local_options.binary.kind == ServerKind::SecantusdRs {
            local_options.add_engine_entry(LOG_AT_COMMIT);
        }
        // mongod's own option has a minimum of 256 MiB, which WiredTiger's has not.
        local_options.add_engine_entry(&format!("cache_size={}", options.cache_bytes));
        if !options.engine.is_empty() {
            local_options.add_engine_entry(options.engine);
        }
        let local = LocalServer::start(&local_options).await?;
        let port = local.port();
        local_options.port = Some(port);
        let server = Self {
            options: local_options,
            port,
            local: Some(local),
        };
        server.initiated().await?;
        Ok(server)
    }

    /// Starts it after [`Self::stop`].
    pub async fn start_again(&mut self) -> Result<()> {
        ensure!(self.local.is_none(), "the server runs already");
        self.local = Some(LocalServer::start(&self.options).await?);
        self.initiated().await
    }

    async fn initiated(&self) -> Result<()> {
        match &self.local {
            Some(local) if local.kind() == ServerKind::Mongod => {
                initiate(SET, &[local], false).await
            }
            _ => Ok(()),
        }
    }

    /// Nothing is sent twice by the driver: whoever sends knows what became of it.
    pub fn uri(&self) -> String {
        format!(
            "mongodb://127.0.0.1:{}/?directConnection=true&retryWrites=false",
            self.port
        )
    }

    pub fn data_directory(&self) -> &Path {
        &self.options.data_directory
    }

    /// Returns the PID of the running process.
    pub fn pid(&self) -> Result<u32> {
        let local = self.local.as_ref();
        Ok(local.context("the server does not run")?.pid())
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
