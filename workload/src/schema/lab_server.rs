//! Provides the server on which a variant is stored and read: a private one that can be restarted and made
//! cold, or an existing one, which cannot.

use bson::{Document, doc};
use seekscope_run::{Disk, ProcessIo};
use seekscope_server::storage::directory_bytes;
use seekscope_server::{LocalServer, PrivateServer, ProcFs, Server, SlowDisk, page_cache};

use crate::WorkloadError;

/// The server that variants are stored on.
#[derive(Debug)]
pub enum LabServer {
    /// A private server, on an empty data directory for each variant.
    Private(Box<PrivateServer>),
    Foreign(ForeignServer),
}

/// A server that others may use too.
#[derive(Debug)]
pub struct ForeignServer {
    pub server: Server,
    /// Its process, if it runs on this host.
    pub pid: Option<u32>,
}

impl LabServer {
    /// Returns the server with an empty location for a collection.
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

    /// Returns the server with nothing cached except what answers `probe` (a query that finds nothing), so
    /// that the next measurement does not include opening files. An existing server is unchanged.
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

    /// Returns whether caches can be emptied.
    pub fn is_private(&self) -> bool {
        matches!(self, Self::Private(_))
    }

    /// Returns the disks on which a variant is measured: the plain one first.
    pub fn disks(&self) -> Vec<Disk> {
        let slow_disk = match self {
            Self::Private(private) => private.slow_disk.as_ref().map(SlowDisk::disk),
            Self::Foreign(_) => None,
        };
        std::iter::once(Disk::Plain).chain(slow_disk).collect()
    }

    /// Throttles the server's reads, or stops doing so.
    pub fn slow_down(&mut self, slow: bool) -> Result<(), WorkloadError> {
        if let Self::Private(private) = self {
            private.slow_down(slow)?;
        }
        Ok(())
    }

    /// Returns what the server's process has read and written so far, if visible.
    pub fn io(&self) -> Option<ProcessIo> {
        let pid = match self {
            Self::Private(private) => private.running().map(LocalServer::pid),
            Self::Foreign(foreign) => foreign.pid,
        };
        ProcFs::host().io(pid?).ok()
    }

    /// Returns the bytes of a private server's data files on disk, without the journal.
    pub fn data_file_bytes(&self) -> Option<u64> {
        match self {
            Self::Private(private) => directory_bytes(private.data_directory()),
            Self::Foreign(_) => None,
        }
    }

    /// Finishes a variant: its collection is dropped on an existing server, a private one is stopped.
    pub async fn clear(&mut self, database: &str, collection: &str) -> Result<(), WorkloadError> {
        match self {
            Self::Private(private) => {
                private.stop().await?;
                Ok(())
            }
            Self::Foreign(foreign) => drop_collection(&foreign.server, database, collection).await,
        }
    }

    /// Leaves the private server's data in place and returns their folder.
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

/// Drops a collection. If it does not exist, this is a success in some releases and an error in others.
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

/// Returns a query of a collection that finds nothing but opens the files that a query opens.
pub(super) fn probe(collection: &str, index: Document) -> Document {
    let mut filter = Document::new();
    for (field, _) in &index {
        filter.insert(field.clone(), "nothing has this value");
    }
    doc! { "find": collection, "filter": filter, "limit": 1, "singleBatch": true }
}
