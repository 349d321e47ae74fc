//! A server of our own in a workspace: started, stopped with a last checkpoint, and restarted on its data.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::local_server::{LocalServer, LocalServerError, Stopped};
use crate::local_server_options::LocalServerOptions;
use crate::slow_disk::{SlowDisk, SlowDiskError};
use crate::workspace::{Workspace, WorkspaceError};

/// A checkpoint of a large cache on a slow disk takes a while.
const STOP_LIMIT: Duration = Duration::from_secs(300);

/// A server in its workspace. Dropping it ends the server, lifts the throttle and removes the data, in this
/// order.
#[derive(Debug)]
pub struct PrivateServer {
    running: Option<LocalServer>,
    /// Set if reads are throttled; the throttle's group is recorded in the workspace.
    pub slow_disk: Option<SlowDisk>,
    /// The directory that holds its data.
    pub workspace: Workspace,
    /// The options for its next start.
    pub options: LocalServerOptions,
}

impl PrivateServer {
    /// Creates it without starting anything. `options.data_directory` must lie in the workspace, and the
    /// throttle's group must be recorded there.
    pub fn new(
        workspace: Workspace,
        options: LocalServerOptions,
        slow_disk: Option<SlowDisk>,
    ) -> Self {
        Self {
            running: None,
            slow_disk,
            workspace,
            options,
        }
    }

    /// Starts it and waits until it answers.
    ///
    /// # Errors
    /// Fails if it does not start, or the lease cannot be written.
    pub async fn start<E>(&mut self) -> Result<&LocalServer, E>
    where
        E: From<LocalServerError> + From<WorkspaceError>,
    {
        let local = LocalServer::start(&self.options).await?;
        self.workspace.record_server(local.pid())?;
        Ok(self.running.insert(local))
    }

    /// Ends it with a last checkpoint, so that all data is in its files. `None` if it was not running.
    ///
    /// # Errors
    /// Fails if the lease cannot be written.
    pub async fn stop(&mut self) -> Result<Option<Stopped>, WorkspaceError> {
        let Some(local) = self.running.take() else {
            return Ok(None);
        };
        let stopped = local.stop(STOP_LIMIT).await;
        self.workspace.forget_server()?;
        Ok(Some(stopped))
    }

    /// Returns the server while it runs.
    pub fn running(&self) -> Option<&LocalServer> {
        self.running.as_ref()
    }

    /// Returns the directory of its data.
    pub fn data_directory(&self) -> &Path {
        &self.options.data_directory
    }

    /// Starts or stops throttling the reads of the running server. Does nothing without a slow disk.
    ///
    /// # Errors
    /// Fails if the process cannot be moved between control groups.
    pub fn slow_down(&mut self, slow: bool) -> Result<(), SlowDiskError> {
        match (&mut self.slow_disk, &self.running) {
            (Some(slow_disk), Some(local)) if slow => slow_disk.add_process(local.pid()),
            (Some(slow_disk), Some(local)) => slow_disk.release_process(local.pid()),
            _ => Ok(()),
        }
    }

    /// Ends it, leaves its data in place and returns the path.
    pub fn keep(self) -> PathBuf {
        drop(self.running);
        drop(self.slow_disk);
        self.workspace.keep()
    }

    /// Removes its data once it is stopped, so that it starts again without any.
    ///
    /// # Errors
    /// Fails if they cannot be removed.
    pub fn remove_data(&self) -> io::Result<()> {
        match fs::remove_dir_all(self.data_directory()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}
