//! A server that has just started, on files of which nothing is in the page cache, on the disk as it is or
//! throttled like a hard disk, with as much memory as wanted.

use std::path::Path;

use anyhow::{Result, ensure};
use seekscope_server::{ProcFs, Server, ServerBinary, Workspace, page_cache};

use super::Activity;
use super::aged::namespace;
use super::confinement::Confinement;
use super::disk_limits::DiskLimits;
use crate::replica_server::{ReplicaServer, ReplicaServerOptions};

/// Files in use (locks, the turtle) stay.
const RESIDENT_MAX_BYTES: u64 = 1 << 20;

/// What the server finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Conditions {
    pub disk: DiskLimits,
    /// The memory limit of the server and whoever joins it, page cache included, counted from when it has started.
    pub memory_bytes: Option<u64>,
    /// See [`ReplicaServerOptions::engine`].
    pub engine: &'static str,
}

/// Where servers run.
#[derive(Debug)]
pub struct Hosts {
    pub binary: ServerBinary,
    pub cache_bytes: u64,
    pub workspace: Workspace,
}

/// One that is about to be measured.
#[derive(Debug)]
pub struct ColdServer {
    pub local: ReplicaServer,
    pub server: Server,
    pub confinement: Confinement,
}

/// One measurement.
#[derive(Debug, Clone, Copy)]
pub struct Measured {
    pub seconds: f64,
    /// The server's CPU time meanwhile.
    pub cpu_s: f64,
}

impl Hosts {
    pub fn options(&self, data: &Path) -> ReplicaServerOptions {
        ReplicaServerOptions {
            binary: self.binary.clone(),
            data_directory: data.to_owned(),
            cache_bytes: self.cache_bytes,
            engine: "",
        }
    }

    /// Starts a server on `data`.
    pub async fn start(&mut self, data: &Path, conditions: Conditions) -> Result<ColdServer> {
        let options = ReplicaServerOptions {
            engine: conditions.engine,
            ..self.options(data)
        };
        let local = ReplicaServer::start(options).await?;
        let server = Server::connect(&local.uri()).await?;
        // After the start, which reads some files.
        let left = page_cache::evict(data)?;
        ensure!(
            left.resident_bytes < RESIDENT_MAX_BYTES,
            "still in the page cache: {left:?}"
        );
        let workspace = &mut self.workspace;
        let confinement = Confinement::begin(workspace, local.pid()?, data, &conditions)?;
        Ok(ColdServer {
            local,
            server,
            confinement,
        })
    }

    /// Start, activity, end.
    pub async fn measure(
        &mut self,
        data: &Path,
        conditions: Conditions,
        activity: Activity,
    ) -> Result<Measured> {
        let cold = self.start(data, conditions).await?;
        let pid = cold.local.pid()?;
        let before_ns = ProcFs::host().cpu_ns(pid)?;
        let database = cold.server.database(namespace()?.database());
        let seconds = activity.run(&database).await?;
        let cpu_s = (ProcFs::host().cpu_ns(pid)? - before_ns) as f64 / 1e9;
        self.end(cold, activity).await?;
        Ok(Measured { seconds, cpu_s })
    }

    /// Removes what the activity left, and lets the server write its last checkpoint, fast.
    pub async fn end(&mut self, cold: ColdServer, activity: Activity) -> Result<()> {
        let ColdServer {
            mut local,
            server,
            confinement,
        } = cold;
        confinement.end(&mut self.workspace)?;
        activity.undo(&server).await?;
        local.stop().await
    }
}
