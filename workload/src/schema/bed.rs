//! Where a variant is stored and read: a private server that can be started anew and made cold, or
//! somebody's server, which can not.

use std::fs;
use std::path::Path;
use std::time::Duration;

use bson::{Document, doc};
use seekscope_run::{Disk, ProcessIo};
use seekscope_server::storage::directory_bytes;
use seekscope_server::{
    LocalServer, LocalServerOptions, ProcFs, Server, SlowDisk, Workspace, page_cache,
};

use crate::WorkloadError;

/// A checkpoint of a large cache on a slow disk takes its time.
const STOP_LIMIT: Duration = Duration::from_secs(300);

/// See the module.
#[derive(Debug)]
pub enum Bed {
    Private(Box<PrivateBed>),
    Foreign(ForeignBed),
}

/// A server of our own on an empty data directory for each variant. Dropping it ends the server,
/// lifts the throttle and removes the data, in this order.
#[derive(Debug)]
pub struct PrivateBed {
    running: Option<(LocalServer, Server)>,
    slow_disk: Option<SlowDisk>,
    workspace: Workspace,
    options: LocalServerOptions,
}

/// A server that others may use too.
#[derive(Debug)]
pub struct ForeignBed {
    pub server: Server,
    /// Its process, where it runs on this host.
    pub pid: Option<u32>,
}

impl PrivateBed {
    /// Nothing is started yet. `options.data_directory` must lie in the workspace, and the throttle's
    /// group be recorded there.
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

    async fn start(&mut self) -> Result<Server, WorkloadError> {
        let local = LocalServer::start(&self.options).await?;
        self.workspace.record_server(local.pid())?;
        let server = Server::connect(&local.uri()).await?;
        self.running = Some((local, server.clone()));
        Ok(server)
    }

    /// Ends the server with a checkpoint, so that all data is in its files.
    async fn stop(&mut self) -> Result<(), WorkloadError> {
        if let Some((local, _)) = self.running.take() {
            local.stop(STOP_LIMIT).await;
            self.workspace.forget_server()?;
        }
        Ok(())
    }

    fn pid(&self) -> Option<u32> {
        self.running.as_ref().map(|(local, _)| local.pid())
    }

    fn data_directory(&self) -> &Path {
        &self.options.data_directory
    }
}

impl Bed {
    /// An empty place for a collection.
    pub async fn fresh(
        &mut self,
        database: &str,
        collection: &str,
    ) -> Result<Server, WorkloadError> {
        match self {
            Self::Private(bed) => {
                bed.stop().await?;
                let folder = bed.data_directory();
                match fs::remove_dir_all(folder) {
                    Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                        return Err(WorkloadError::Files {
                            path: folder.into(),
                            source: error,
                        });
                    }
                    _ => {}
                }
                bed.start().await
            }
            Self::Foreign(bed) => {
                drop_collection(&bed.server, database, collection).await?;
                Ok(bed.server.clone())
            }
        }
    }

    /// The server with nothing cached but what answers `probe` (a query that finds nothing): what is
    /// measured next is not the opening of files. Somebody's server stays as it is.
    pub async fn cold(
        &mut self,
        disk: &Disk,
        database: &str,
        probe: Document,
    ) -> Result<Server, WorkloadError> {
        let server = match self {
            Self::Private(bed) => {
                bed.stop().await?;
                bed.start().await?
            }
            Self::Foreign(bed) => bed.server.clone(),
        };
        server.command(database, probe).await?;
        self.evict()?;
        self.slow_down(disk.is_emulated())?;
        Ok(server)
    }

    /// Empties the page cache of the private server's files.
    pub fn evict(&self) -> Result<(), WorkloadError> {
        if let Self::Private(bed) = self {
            page_cache::evict(bed.data_directory())?;
        }
        Ok(())
    }

    /// Can caches be emptied?
    pub fn is_private(&self) -> bool {
        matches!(self, Self::Private(_))
    }

    /// On which disks a variant is measured: the plain one first.
    pub fn disks(&self) -> Vec<Disk> {
        let slow_disk = match self {
            Self::Private(bed) => bed.slow_disk.as_ref().map(SlowDisk::disk),
            Self::Foreign(_) => None,
        };
        std::iter::once(Disk::Plain).chain(slow_disk).collect()
    }

    /// Throttles the server's reads, or no longer.
    pub fn slow_down(&mut self, slow: bool) -> Result<(), WorkloadError> {
        let Self::Private(bed) = self else {
            return Ok(());
        };
        let pid = bed.pid();
        if let (Some(slow_disk), Some(pid)) = (&mut bed.slow_disk, pid) {
            if slow {
                slow_disk.add_process(pid)?;
            } else {
                slow_disk.release_process(pid)?;
            }
        }
        Ok(())
    }

    /// What the server's process has read and written so far, where it can be seen.
    pub fn io(&self) -> Option<ProcessIo> {
        let pid = match self {
            Self::Private(bed) => bed.pid(),
            Self::Foreign(bed) => bed.pid,
        };
        ProcFs::host().io(pid?).ok()
    }

    /// Bytes that the data files take on disk, journal left out, of a private server.
    pub fn data_file_bytes(&self) -> Option<u64> {
        match self {
            Self::Private(bed) => directory_bytes(bed.data_directory()),
            Self::Foreign(_) => None,
        }
    }

    /// Ends with a variant: its collection is dropped on somebody's server, a private one is stopped.
    pub async fn clear(&mut self, database: &str, collection: &str) -> Result<(), WorkloadError> {
        match self {
            Self::Private(bed) => bed.stop().await,
            Self::Foreign(bed) => drop_collection(&bed.server, database, collection).await,
        }
    }

    /// Leaves the private server's data in place and gives their folder.
    pub fn keep(self) -> Option<std::path::PathBuf> {
        match self {
            Self::Private(bed) => {
                drop(bed.running);
                drop(bed.slow_disk);
                Some(bed.workspace.keep())
            }
            Self::Foreign(_) => None,
        }
    }
}

/// Dropping one that does not exist is success in some releases and an error in others.
async fn drop_collection(
    server: &Server,
    database: &str,
    collection: &str,
) -> Result<(), WorkloadError> {
    let dropped = server
        .database(database)
        .collection::<Document>(collection)
        .drop()
        .await;
    Ok(dropped.map_err(|error| server.error("drop", &error))?)
}

/// A query of a collection that finds nothing but opens what a query opens.
pub(super) fn probe(collection: &str, index: Document) -> Document {
    let mut filter = Document::new();
    for (field, _) in &index {
        filter.insert(field.clone(), "nothing has this value");
    }
    doc! { "find": collection, "filter": filter, "limit": 1, "singleBatch": true }
}
