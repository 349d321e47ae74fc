//! What is timed.

use std::time::Instant;

use anyhow::{Result, ensure};
use bson::{Document, doc};
use mongodb::Database;
use seekscope_server::Server;

use super::aged::namespace;

/// The index to build, on a field that every document has.
const INDEX: &str = "i_1";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Activity {
    /// A scan of the whole collection for a value that does not occur: the server reads everything and returns nothing.
    Scan,
    IndexBuild,
}

impl Activity {
    pub const ALL: [Self; 2] = [Self::Scan, Self::IndexBuild];

    pub fn name(self) -> &'static str {
        match self {
            Self::Scan => "scan",
            Self::IndexBuild => "index build",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|activity| activity.name() == name)
    }

    /// Runs it through a server's database [`namespace`]; returns how long it took, s.
    pub async fn run(self, database: &Database) -> Result<f64> {
        let namespace = namespace()?;
        let begun = Instant::now();
        match self {
            Self::Scan => {
                let find = doc! { "absent": true };
                let collection = database.collection::<Document>(namespace.collection());
                let found = collection.find_one(find).await?;
                ensure!(found.is_none(), "found {found:?}");
            }
            Self::IndexBuild => {
                let indexes = [doc! { "key": { "i": 1 }, "name": INDEX }];
                let build =
                    doc! { "createIndexes": namespace.collection(), "indexes": &indexes[..] };
                database.run_command(build).await?;
            }
        }
        Ok(begun.elapsed().as_secs_f64())
    }

    /// Removes what it left.
    pub async fn undo(self, server: &Server) -> Result<()> {
        if self == Self::IndexBuild {
            seekscope_workload::drop_index(server, &namespace()?, INDEX).await?;
        }
        Ok(())
    }
}
