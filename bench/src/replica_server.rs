//! A local server as a replica set of one member, which unlike [`seekscope_server::LocalServer`] keeps an
//! oplog, has change streams, can be killed outright, and comes back on the same port and data.

use std::fs::OpenOptions;
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use seekscope_server::Server;
use tokio::process::{Child, Command};

/// Without the first two the server never ends an index build in a small cache. With the third a
/// commit hands its log record to the operating system, so that SIGKILL loses nothing that was
/// acknowledged; without, up to 50 ms of it (`kills` shows both). Syncing the disk at each commit, as
/// `--sync-on-commit` does, guards against power cuts besides, and makes loading fifty times slower.
const WIREDTIGER: &str = "eviction_dirty_trigger=90,eviction_updates_trigger=90,\
     transaction_sync=(enabled=true,method=none)";
const START_LIMIT: Duration = Duration::from_secs(120);
const STOP_LIMIT: Duration = Duration::from_secs(300);

/// How to start it.
#[derive(Debug, Clone)]
pub struct ReplicaServerOptions {
    /// secantusd-rs
    pub binary: PathBuf,
    /// Its data; created if missing. The log goes beside it.
    pub data_directory: PathBuf,
    pub cache_bytes: u64,
    /// Further configuration of WiredTiger; what comes last counts.
    pub engine: &'static str,
}

/// A running server, or one between two starts. Dropping it kills it.
#[derive(Debug)]
pub struct ReplicaServer {
    options: ReplicaServerOptions,
    port: u16,
    child: Option<Child>,
}

impl ReplicaServer {
    /// Starts it on a free port, which it keeps.
    pub async fn start(options: ReplicaServerOptions) -> Result<Self> {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
            .local_addr()?
            .port();
        let mut server = Self {
            options,
            port,
            child: None,
        };
        server.start_again().await?;
        Ok(server)
    }

    /// Starts it after [`Self::kill`] or [`Self::stop`]; its journal is recovered.
    pub async fn start_again(&mut self) -> Result<()> {
        std::fs::create_dir_all(&self.options.data_directory)?;
        let log_file = self.options.data_directory.with_extension("log");
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&log_file)?;
        // An empty configuration, else one in the home folder would be read.
        let configuration = self.options.data_directory.with_extension("toml");
        std::fs::write(&configuration, "")?;
        let mut command = Command::new(&self.options.binary);
        command
            .args(["--host", "127.0.0.1", "--log-level", "WARNING", "--port"])
            .arg(self.port.to_string())
            .arg("--config")
            .arg(configuration)
            .args([
                "--cache-size",
                &format!("{}M", self.options.cache_bytes >> 20),
            ])
            .arg("--storage-path")
            .arg(&self.options.data_directory)
            .env(
                "SECANTUS_WT_CONFIG_EXTRA",
                format!("{WIREDTIGER},{}", self.options.engine),
            )
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .kill_on_drop(true);
        let path = self.options.binary.display();
        self.child = Some(command.spawn().with_context(|| format!("{path}"))?);
        let begun = Instant::now();
        while Server::connect(&self.uri()).await.is_err() {
            let ended = self
                .child
                .as_mut()
                .and_then(|c| c.try_wait().ok().flatten());
            ensure!(
                ended.is_none() && begun.elapsed() < START_LIMIT,
                "the server does not answer ({ended:?}); see {}",
                log_file.display()
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    /// Nothing is sent twice by the driver: whoever sends knows what became of it.
    pub fn uri(&self) -> String {
        let port = self.port;
        format!("mongodb://127.0.0.1:{port}/?directConnection=true&retryWrites=false")
    }

    pub fn data_directory(&self) -> &std::path::Path {
        &self.options.data_directory
    }

    /// Of the running process.
    pub fn pid(&self) -> Result<u32> {
        let id = self.child.as_ref().and_then(Child::id);
        id.context("the server does not run")
    }

    /// SIGKILL, and waits for the end.
    pub async fn kill(&mut self) -> Result<()> {
        if let Some(mut child) = self.child.take() {
            child.kill().await?;
        }
        Ok(())
    }

    /// Lets it write its last checkpoint.
    pub async fn stop(&mut self) -> Result<()> {
        let pid = i32::try_from(self.pid()?).ok().and_then(Pid::from_raw);
        kill_process(pid.context("no process number")?, Signal::TERM)?;
        if let Some(mut child) = self.child.take() {
            let status = tokio::time::timeout(STOP_LIMIT, child.wait()).await;
            let status = status.context("the server does not stop")??;
            ensure!(status.success(), "the server stopped with {status}");
        }
        Ok(())
    }
}
