//! Where a variant is stored and read: a private server that can be started anew and made cold, or
//! somebody's server, which can not.

use bson::{Document, doc};
use seekscope_run::{Disk, ProcessIo};
use seekscope_server::storage::directory_bytes;
use seekscope_server::{LocalServer, PrivateServer, ProcFs, Server, SlowDisk, page_cache};

use crate::WorkloadError;

/// The server that variants are stored on.
#[derive(Debug)]
pub enum LabServer {
    /// On an empty data directory for each variant.
    Private(Box<PrivateServer>),
    Foreign(ForeignServer),
}

/// A server that others may use too.
#[derive(Debug)]
pub struct ForeignServer {
    pub server: Server,
    /// Its process, where it runs on this host.
    pub pid: Option<u32>,
}

impl LabServer {
    /// An empty place for a collection.
    pub async fn fresh(
        &mut self,
        database: &str,
        collection: &str,
    ) -> Result<Server, WorkloadError> {
        match self {
            Self::Private(private) => {
                private.stop().await?;
                private
                    .remove_data()
                    .map_err(|source| WorkloadError::Files {
                        path: private.data_directory().into(),
                        source,
                    })?;
                start(private).await
            }
            Self::Foreign(foreign) => {
                drop_collection(&foreign.server, database, collection).await?;
                Ok(foreign.server.clone())
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
            Self::Private(private) => {
                private.stop().await?;
                start(private).await?
            }
            Self::Foreign(foreign) => foreign.server.clone(),
        };
        server.command(database, probe).await?;
        self.evict()?;
        self.slow_down(disk.is_emulated())?;
        Ok(server)
    }

    /// Empties the page cache of the private server's files.
    pub fn evict(&self) -> Result<(), WorkloadError> {
        if let Self::Private(private) = self {
            page_cache::evict(private.data_directory())?;
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
            Self::Private(private) => private.slow_disk.as_ref().map(SlowDisk::disk),
            Self::Foreign(_) => None,
        };
        std::iter::once(Disk::Plain).chain(slow_disk).collect()
    }

    /// Throttles the server's reads, or no longer.
    pub fn slow_down(&mut self, slow: bool) -> Result<(), WorkloadError> {
        if let Self::Private(private) = self {
            private.slow_down(slow)?;
        }
        Ok(())
    }

    /// What the server's process has read and written so far, where it can be seen.
    pub fn io(&self) -> Option<ProcessIo> {
        let pid = match self {
            Self::Private(private) => private.running().map(LocalServer::pid),
            Self::Foreign(foreign) => foreign.pid,
        };
        ProcFs::host().io(pid?).ok()
    }

    /// Bytes that the data files take on disk, journal left out, of a private server.
    pub fn data_file_bytes(&self) -> Option<u64> {
        match self {
            Self::Private(private) => directory_bytes(private.data_directory()),
            Self::Foreign(_) => None,
        }
    }

    /// Ends with a variant: its collection is dropped on somebody's server, a private one is stopped.
    pub async fn clear(&mut self, database: &str, collection: &str) -> Result<(), WorkloadError> {
        match self {
            Self::Private(private) => {
                private.stop().await?;
                Ok(())
            }
            Self::Foreign(foreign) => drop_collection(&foreign.server, database, collection).await,
        }
    }

    /// Leaves the private server's data in place and gives their folder.
    pub fn keep(self) -> Option<std::path::PathBuf> {
        match self {
            Self::Private(private) => Some(private.keep()),
            Self::Foreign(_) => None,
        }
    }
}

async fn start(private: &mut PrivateServer) -> Result<Server, WorkloadError> {
    let local = private.start::<WorkloadError>().await?;
    Ok(Server::connect(&local.uri()).await?)
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
