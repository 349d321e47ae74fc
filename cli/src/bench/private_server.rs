//! Private servers with the settings that a benchmark asks for.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use seekscope_run::{CacheState, Limitation};
use seekscope_server::{
    LocalServer, LocalServerOptions, PrivateServer, ServerBinary, Stopped, Workspace, page_cache,
};

use super::{folder_copy, setting};
use crate::args::BenchTargetArgs;
use crate::environment::Environment;

const CACHE_BYTES: u64 = 1 << 30;

/// Returns the options for starting a server in the workspace: the command line's settings, followed by `more`.
pub fn options(
    args: &BenchTargetArgs,
    more: &[(String, String)],
    environment: &Environment,
    workspace: &Workspace,
) -> Result<LocalServerOptions> {
    let binary = ServerBinary::find(
        args.server_binary.as_deref(),
        Some(&environment.search_path),
        &environment.tool_folders,
    )?;
    let mut options = LocalServerOptions::new(
        binary,
        workspace.data_directory(),
        args.cache.unwrap_or(CACHE_BYTES),
    );
    for (name, value) in args.server_setting.iter().chain(more) {
        setting::apply(&mut options, name, value)?;
    }
    Ok(options)
}

/// A private server. Its processes and files vanish when it is dropped.
#[derive(Debug)]
pub struct BenchServer(PrivateServer);

impl BenchServer {
    /// Starts a server below `parent` with the command line's settings, followed by `more`.
    pub async fn start(
        args: &BenchTargetArgs,
        more: &[(String, String)],
        parent: &Path,
        environment: &Environment,
    ) -> Result<Self> {
        let workspace = Workspace::create(parent, &environment.lease_folder)?;
        let options = options(args, more, environment, &workspace)?;
        let mut server = PrivateServer::new(workspace, options, None);
        server.start::<anyhow::Error>().await?;
        Ok(Self(server))
    }

    /// Returns the connection string; `None` while the server is stopped.
    pub fn uri(&self) -> Option<String> {
        self.0.running().map(LocalServer::uri)
    }

    /// Returns the server's data directory.
    pub fn data_directory(&self) -> &Path {
        self.0.data_directory()
    }

    /// Stops the server with a final checkpoint; returns a limitation if it did not end properly.
    pub async fn stop(&mut self) -> Result<Option<Limitation>> {
        let stopped = self.0.stop().await?;
        let unclean = stopped.filter(|stopped| *stopped != Stopped::Clean);
        Ok(unclean.map(|stopped| Limitation {
            what: "the local server did not shut down cleanly".into(),
            why: format!("{stopped:?}"),
            remedy: "run it again on a less busy machine".into(),
        }))
    }

    /// Sets the data of the stopped server aside, so that it starts with none. Returns the folder that holds
    /// them.
    pub fn set_data_aside(&mut self, name: &str) -> Result<PathBuf> {
        let aside = self.0.workspace.path().join(name);
        let data = self.data_directory();
        std::fs::rename(data, &aside)
            .with_context(|| format!("cannot move {} to {}", data.display(), aside.display()))?;
        Ok(aside)
    }

    /// Gives the stopped server a copy of data that was set aside, none of it in the page cache. Blocks.
    pub fn restore_data(&self, aside: &Path) -> Result<CacheState> {
        let data = self.data_directory();
        let removed = self.0.remove_data();
        removed.with_context(|| format!("cannot empty {}", data.display()))?;
        folder_copy::copy(aside, data)?;
        page_cache::evict(aside)?;
        Ok(page_cache::evict(data)?.state())
    }

    /// Starts the stopped server with these settings instead of its former ones.
    pub async fn start_as(
        &mut self,
        args: &BenchTargetArgs,
        more: &[(String, String)],
        environment: &Environment,
    ) -> Result<()> {
        self.0.options = options(args, more, environment, &self.0.workspace)?;
        self.0.start::<anyhow::Error>().await?;
        Ok(())
    }

    /// Restarts the server with none of its files in the page cache.
    pub async fn restart_cold(&mut self) -> Result<CacheState> {
        self.stop().await?;
        let evicted = page_cache::evict(self.data_directory())?;
        self.0.start::<anyhow::Error>().await?;
        Ok(evicted.state())
    }

    /// Keeps the data in place and returns where it is. Call this once the server is stopped.
    pub fn keep(self) -> PathBuf {
        self.0.keep()
    }
}
