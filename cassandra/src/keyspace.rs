//! Manages a keyspace that benchmarks own, and that records this itself, as they do in MongoDB's databases
//! ([`seekscope_workload::ownership`]).
//!
//! The table [`OWNER`] lists each of our tables before it is created, and each data set before it is loaded.
//! A keyspace that holds an unlisted table is refused, and only what is listed is ever dropped.

use std::collections::HashSet;
use std::sync::Arc;

use seekscope_client::{Failure, FailureKind};
use seekscope_run::units::format_list;
use seekscope_workload::DataSet;
use serde::{Deserialize, Serialize};

use crate::document::KEY_COLUMN;
use crate::session::{CqlSession, malformed};
use crate::table::{Table, quoted};
use crate::{CqlError, CqlTarget};

/// The table of entries, in the keyspace itself.
pub const OWNER: &str = "seekscope_owner";
/// Kind of entry for a table.
const TABLE: &str = "table";
const DATA_SET: &str = "data set";
/// Number of foreign tables' names that an error shows.
const NAMES_SHOWN: usize = 5;

/// What must be known to read a table of ours.
#[derive(Debug, Default, Serialize, Deserialize)]
struct TableEntry {
    /// Text columns whose documents have binary data there.
    binary: HashSet<String>,
}

/// A keyspace that is entirely ours.
#[derive(Debug)]
pub struct OwnedKeyspace {
    pub(crate) session: Arc<CqlSession>,
    data_sets: Vec<DataSet>,
}

impl OwnedKeyspace {
    /// Connects, checks that the keyspace is missing, empty or all ours, and creates it if it is missing.
    pub async fn open(target: &CqlTarget) -> Result<Self, CqlError> {
        let session = CqlSession::connect(target).await;
        let session = Arc::new(session.map_err(CqlError::request("connecting"))?);
        claim(&session).await?;
        let mut keyspace = Self {
            session,
            data_sets: Vec::new(),
        };
        keyspace.read_data_sets().await?;
        Ok(keyspace)
    }

    /// Returns the data sets in it.
    pub fn data_sets(&self) -> &[DataSet] {
        &self.data_sets
    }

    pub fn data_set(&self, name: &str) -> Option<&DataSet> {
        self.data_sets.iter().find(|d| d.name == name)
    }

    /// Writes a data set's entry, replacing any earlier one with that name; to be called before its first row
    /// is written.
    pub async fn record(&mut self, data_set: DataSet) -> Result<(), CqlError> {
        let of_another = |d: &&DataSet| {
            let shared = d
                .collections
                .iter()
                .any(|c| data_set.collections.contains(c));
            d.name != data_set.name && shared
        };
        if let Some(other) = self.data_sets.iter().find(of_another) {
            return Err(self.refused(
                &data_set.name,
                &format!("the tables belong to {}", other.name),
            ));
        }
        self.write(&data_set).await?;
        self.data_sets.retain(|d| d.name != data_set.name);
        self.data_sets.push(data_set);
        Ok(())
    }

    /// Records that all rows are loaded.
    pub async fn set_loaded(&mut self, name: &str) -> Result<(), CqlError> {
        self.change(name, |d| d.loaded = true).await
    }

    /// Records how far inserts have got.
    pub async fn advance(&mut self, name: &str, next_insert: u64) -> Result<(), CqlError> {
        self.change(name, |d| d.next_insert = d.next_insert.max(next_insert))
            .await
    }

    /// Drops a data set's tables, then its entry.
    pub async fn drop_data_set(&mut self, name: &str) -> Result<(), CqlError> {
        let Some(data_set) = self.data_set(name).cloned() else {
            return Ok(());
        };
        // From here on it is unfit for measurements, however far this gets.
        self.change(name, |d| d.loaded = false).await?;
        let failed = || CqlError::request("dropping a data set");
        for table in &data_set.collections {
            drop_table(&self.session, table).await.map_err(failed())?;
        }
        let forgotten = delete_entry(&self.session, DATA_SET, name).await;
        forgotten.map_err(failed())?;
        self.data_sets.retain(|d| d.name != name);
        Ok(())
    }

    /// Returns the number of rows of a table; 0 if it does not exist.
    pub async fn count(&self, table: &str) -> Result<u64, CqlError> {
        let failed = || CqlError::request("counting rows");
        let all = tables(&self.session).await.map_err(failed())?;
        if !all.iter().any(|name| name == table) {
            return Ok(0);
        }
        let place = format!(
            "{}.{}",
            quoted(&self.session.target.keyspace),
            quoted(table)
        );
        let counted = self.session.count(&place, &quoted(KEY_COLUMN)).await;
        counted.map_err(failed())
    }

    /// Drops the keyspace.
    pub async fn drop(self) -> Result<(), CqlError> {
        let keyspace = quoted(&self.session.target.keyspace);
        // Another program may have created a table meanwhile.
        check(&self.session).await?;
        let cql = format!("DROP KEYSPACE {keyspace}");
        let dropped = self.session.setup(&cql, ()).await;
        dropped.map_err(CqlError::request("DROP KEYSPACE"))?;
        Ok(())
    }

    async fn change(&mut self, name: &str, apply: impl Fn(&mut DataSet)) -> Result<(), CqlError> {
        self.read_data_sets().await?;
        if let Some(mut data_set) = self.data_set(name).cloned() {
            apply(&mut data_set);
            self.record(data_set).await?;
        }
        Ok(())
    }

    async fn write(&self, data_set: &DataSet) -> Result<(), CqlError> {
        let entry = serde_json::to_string(data_set)
            .map_err(|error| self.refused(&data_set.name, &error.to_string()))?;
        write_entry(&self.session, DATA_SET, &data_set.name, &entry)
            .await
            .map_err(CqlError::request("noting a data set"))
    }

    async fn read_data_sets(&mut self) -> Result<(), CqlError> {
        let read = entries(&self.session, DATA_SET).await;
        let read = read.map_err(CqlError::request("reading the owner's entries"))?;
        let parsed = read.iter().map(|(_, entry)| serde_json::from_str(entry));
        self.data_sets = parsed
            .collect::<Result<_, _>>()
            .map_err(|why| self.refused(OWNER, &format!("seekscope did not write this ({why})")))?;
        Ok(())
    }

    fn refused(&self, table: &str, why: &str) -> CqlError {
        CqlError::Keyspace {
            keyspace: self.session.target.keyspace.clone(),
            table: table.into(),
            why: why.into(),
        }
    }
}

/// Makes the keyspace ours, unless it holds anything of others.
pub(crate) async fn claim(session: &CqlSession) -> Result<(), CqlError> {
    check(session).await?;
    let keyspace = quoted(&session.target.keyspace);
    let create = format!(
        "CREATE KEYSPACE IF NOT EXISTS {keyspace} WITH replication = \
         {{'class': 'SimpleStrategy', 'replication_factor': {}}}",
        session.target.replication
    );
    let made = session.setup(&create, ()).await;
    made.map_err(CqlError::request("CREATE KEYSPACE"))?;
    let create = format!(
        "CREATE TABLE IF NOT EXISTS {keyspace}.{} \
         (kind text, name text, entry text, PRIMARY KEY (kind, name))",
        quoted(OWNER)
    );
    let made = session.setup(&create, ()).await;
    made.map_err(CqlError::request("CREATE TABLE"))?;
    Ok(())
}

async fn check(session: &CqlSession) -> Result<(), CqlError> {
    let failed = || CqlError::request("looking into the keyspace");
    let found = tables(session).await.map_err(failed())?;
    let ours = if found.iter().any(|table| table == OWNER) {
        entries(session, TABLE).await.map_err(failed())?
    } else {
        Vec::new()
    };
    let is_ours = |table: &String| table == OWNER || ours.iter().any(|(name, _)| name == table);
    let mut foreign: Vec<String> = found.into_iter().filter(|t| !is_ours(t)).collect();
    if foreign.is_empty() {
        return Ok(());
    }
    foreign.sort_unstable();
    Err(CqlError::ForeignKeyspace {
        keyspace: session.target.keyspace.clone(),
        count: foreign.len(),
        tables: format_list(&foreign, NAMES_SHOWN, ", "),
    })
}

/// Creates a table for documents like `first`, unless it exists.
pub(crate) async fn make_table(session: &CqlSession, table: &Table) -> Result<(), Failure> {
    let _one_at_a_time = session.making_tables.lock().await;
    if tables(session).await?.contains(&table.name) {
        return Ok(());
    }
    let entry = TableEntry {
        binary: table.binary.clone(),
    };
    let entry = serde_json::to_string(&entry).map_err(|error| malformed(&error))?;
    write_entry(session, TABLE, &table.name, &entry).await?;
    session
        .setup(&table.cql(&session.target.keyspace), ())
        .await?;
    session.forget_prepared();
    Ok(())
}

/// Drops a table of ours; a missing one is not an error.
pub(crate) async fn drop_table(session: &CqlSession, table: &str) -> Result<(), Failure> {
    let is_listed = entries(session, TABLE)
        .await?
        .iter()
        .any(|(name, _)| name == table);
    if !is_listed || table == OWNER {
        return Ok(());
    }
    let place = format!("{}.{}", quoted(&session.target.keyspace), quoted(table));
    session
        .setup(&format!("DROP TABLE IF EXISTS {place}"), ())
        .await?;
    session.forget_prepared();
    delete_entry(session, TABLE, table).await
}

/// Returns which columns of a table of ours hold binary data as text.
pub(crate) async fn binary_columns(
    session: &CqlSession,
    table: &str,
) -> Result<HashSet<String>, Failure> {
    let entries = entries(session, TABLE).await?;
    let Some((_, entry)) = entries.iter().find(|(name, _)| name == table) else {
        return Err(Failure::of(
            FailureKind::Server,
            "NoTable",
            format!("the table {table} does not exist, or seekscope did not create it"),
        ));
    };
    let entry: TableEntry = serde_json::from_str(entry).map_err(|error| malformed(&error))?;
    Ok(entry.binary)
}

pub(crate) async fn tables(session: &CqlSession) -> Result<Vec<String>, Failure> {
    let rows = session.setup_rows(
        "SELECT table_name FROM system_schema.tables WHERE keyspace_name = ?",
        (&session.target.keyspace,),
    );
    let rows = rows.await?;
    let names = rows
        .rows::<(String,)>()
        .map_err(|error| malformed(&error))?;
    let names = names.map(|row| row.map(|(name,)| name));
    names
        .collect::<Result<_, _>>()
        .map_err(|error| malformed(&error))
}

/// Returns name and content of all entries of a kind.
async fn entries(session: &CqlSession, kind: &str) -> Result<Vec<(String, String)>, Failure> {
    let select = format!("SELECT name, entry FROM {} WHERE kind = ?", owner(session));
    let rows = session.setup_rows(&select, (kind,)).await?;
    let entries = rows.rows().map_err(|error| malformed(&error))?;
    entries
        .collect::<Result<_, _>>()
        .map_err(|error| malformed(&error))
}

async fn write_entry(
    session: &CqlSession,
    kind: &str,
    name: &str,
    entry: &str,
) -> Result<(), Failure> {
    let insert = format!(
        "INSERT INTO {} (kind, name, entry) VALUES (?, ?, ?)",
        owner(session)
    );
    session.setup(&insert, (kind, name, entry)).await.map(drop)
}

async fn delete_entry(session: &CqlSession, kind: &str, name: &str) -> Result<(), Failure> {
    let delete = format!("DELETE FROM {} WHERE kind = ? AND name = ?", owner(session));
    session.setup(&delete, (kind, name)).await.map(drop)
}

fn owner(session: &CqlSession) -> String {
    format!("{}.{}", quoted(&session.target.keyspace), quoted(OWNER))
}
