//! What a benchmark writes to and marks as its own: a MongoDB database or a Cassandra keyspace.

use anyhow::Result;
use seekscope_cassandra::OwnedKeyspace;
use seekscope_run::Verification;
use seekscope_server::Server;
use seekscope_workload::ownership::{DataSet, OwnedDatabase};
use seekscope_workload::{ExpectedData, VerificationOptions, verify};

use super::target::Target;

/// What a benchmark writes to and may remove. Its functions are those of [`OwnedDatabase`].
pub enum Owned {
    Database(Server, OwnedDatabase),
    Keyspace(OwnedKeyspace),
}

impl Owned {
    pub async fn open(target: &Target, name: &str) -> Result<Self> {
        if let Some(cassandra) = target.cassandra(name)? {
            return Ok(Self::Keyspace(OwnedKeyspace::open(&cassandra).await?));
        }
        let server = target.server()?;
        let database = OwnedDatabase::open(server, name).await?;
        Ok(Self::Database(server.clone(), database))
    }

    pub fn data_set(&self, name: &str) -> Option<&DataSet> {
        match self {
            Self::Database(_, database) => database.data_set(name),
            Self::Keyspace(keyspace) => keyspace.data_set(name),
        }
    }

    pub async fn record(&mut self, data_set: DataSet) -> Result<()> {
        match self {
            Self::Database(_, database) => database.record(data_set).await?,
            Self::Keyspace(keyspace) => keyspace.record(data_set).await?,
        }
        Ok(())
    }

    pub async fn set_loaded(&mut self, name: &str) -> Result<()> {
        match self {
            Self::Database(_, database) => database.set_loaded(name).await?,
            Self::Keyspace(keyspace) => keyspace.set_loaded(name).await?,
        }
        Ok(())
    }

    pub async fn advance(&mut self, name: &str, next_insert: u64) -> Result<()> {
        match self {
            Self::Database(_, database) => database.advance(name, next_insert).await?,
            Self::Keyspace(keyspace) => keyspace.advance(name, next_insert).await?,
        }
        Ok(())
    }

    pub async fn drop_data_set(&mut self, name: &str) -> Result<()> {
        match self {
            Self::Database(_, database) => database.drop_data_set(name).await?,
            Self::Keyspace(keyspace) => keyspace.drop_data_set(name).await?,
        }
        Ok(())
    }

    pub async fn verify(
        &self,
        expected: &[&dyn ExpectedData],
        options: &VerificationOptions,
    ) -> Result<Verification> {
        Ok(match self {
            Self::Database(server, database) => {
                verify(server, database.name(), expected, options).await?
            }
            Self::Keyspace(keyspace) => {
                seekscope_cassandra::verify(keyspace, expected, options).await?
            }
        })
    }

    /// Returns the number of documents, by the server's own count where it keeps one; 0 if there is no such
    /// collection.
    pub async fn count(&self, collection: &str) -> Result<u64> {
        Ok(match self {
            Self::Database(server, database) => server.count(database.name(), collection).await?,
            Self::Keyspace(keyspace) => keyspace.count(collection).await?,
        })
    }
}
