//! Finds which file of a data directory holds what.

use std::collections::{HashMap, HashSet};
use std::path::{Component, Path};
use std::time::Duration;

use mongodb::bson::{Document, doc};
use seekscope_run::FileRole;
use seekscope_run::units::format_list;

use crate::examination::TableQuestions;
use crate::namespace::Namespace;
use crate::replies::{self, TableUse};
use crate::server::{Server, ServerError};

/// Catalogues are read up to this many collections; the rest are known by file name only.
const COLLECTIONS_MAX: usize = 5_000;
/// A table shared by more collections than this is described by this many names and a count.
const NAMES_SHOWN: usize = 4;
/// How long the server may work on its answer.
const CATALOG_LIMIT: Duration = Duration::from_secs(5);

/// Returns whether the server still has the table `ident` (its file's name without ".wt") of a collection, which the
/// last checkpoint names; `None` if it does not say within some seconds.
pub async fn has_table(server: &Server, namespace: &Namespace, ident: &str) -> Option<bool> {
    let mut questions = TableQuestions::begin(server);
    questions.has_table(namespace, ident).await
}

/// A map from file names to what the files hold. Even an empty map knows the roles that follow from file names.
#[derive(Debug, Clone, Default)]
pub struct FileMap {
    tables: HashMap<String, Vec<TableUse>>,
    /// Whether there were more collections than are read.
    pub truncated: bool,
}

/// What is still unknown after [`FileMap::ask_about_the_rest`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unnamed {
    /// Collections whose files the server was not asked about, because there were too many or it took too long,
    /// or which it would not name.
    pub collections: usize,
    /// The first reason why something is unknown.
    pub why: Option<String>,
    /// Whether the login lacks a right for it.
    pub is_refused: bool,
}

impl FileMap {
    /// Asks the server for its whole catalogue at once, which servers from 6.0 on provide (`$listCatalog`).
    pub async fn of_catalogue(server: &Server) -> Result<Self, ServerError> {
        let failed = |error| server.error("$listCatalog", &error);
        let answer = async {
            let admin = server.database("admin");
            let catalog = admin.aggregate(catalog_stages());
            let mut cursor = catalog.max_time(CATALOG_LIMIT).await.map_err(failed)?;
            let mut entries: Vec<Document> = Vec::new();
            while entries.len() <= COLLECTIONS_MAX && cursor.advance().await.map_err(failed)? {
                entries.push(cursor.deserialize_current().map_err(failed)?);
            }
            Ok(entries)
        };
        let entries = server.within(CATALOG_LIMIT, "$listCatalog", answer).await?;
        Ok(Self::from_catalog(&entries))
    }

    /// Asks the server about collections whose files are not known yet, one at a time and within limits of
    /// number and time, the most used first: each costs the server a little work, and may open files that
    /// nobody used. `named` are asked about in any case, and the answers replace what was known of them.
    pub async fn ask_about_the_rest(&mut self, server: &Server, named: &[Namespace]) -> Unnamed {
        let mut questions = TableQuestions::begin(server);
        for namespace in named {
            if let Some(tables) = questions.tables(namespace).await {
                self.forget(&namespace.to_string());
                self.add(tables);
            }
        }
        let lacking = questions.unknown_collections(&self.collections()).await;
        let mut lacking = lacking.into_iter();
        while let Some(namespace) = lacking.next() {
            if !questions.may_go_on() {
                questions.left_out(1 + lacking.count());
                break;
            }
            if let Some(tables) = questions.tables(&namespace).await {
                self.add(tables);
            }
        }
        questions.end()
    }

    /// Creates a map from the documents of `$listCatalog`.
    pub fn from_catalog(entries: &[Document]) -> Self {
        let mut map = Self {
            truncated: entries.len() > COLLECTIONS_MAX,
            ..Self::default()
        };
        for entry in entries.iter().take(COLLECTIONS_MAX) {
            map.add(replies::catalog_tables(entry));
        }
        map
    }

    /// Adds a table known from elsewhere: its name without ".wt", `database.collection`, and the name of the
    /// index if it is one.
    pub fn add_table(&mut self, ident: &str, namespace: &str, index: Option<&str>) {
        self.add(vec![TableUse {
            ident: ident.into(),
            namespace: namespace.into(),
            index: index.map(String::from),
        }]);
    }

    /// Adds the tables of another map, which take precedence over those known so far. Other tables stay: their
    /// files may have been seen before they were dropped.
    pub fn update(&mut self, newer: Self) {
        self.tables.extend(newer.tables);
        self.truncated |= newer.truncated;
    }

    /// Returns whether the contents of no table are known.
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// Returns the collections whose own files are known.
    fn collections(&self) -> HashSet<String> {
        let uses = self.tables.values().flatten();
        let own = uses.filter(|table| table.index.is_none());
        own.map(|table| table.namespace.clone()).collect()
    }

    fn forget(&mut self, namespace: &str) {
        for uses in self.tables.values_mut() {
            uses.retain(|table| table.namespace != namespace);
        }
        self.tables.retain(|_, uses| !uses.is_empty());
    }

    fn add(&mut self, tables: Vec<TableUse>) {
        for table in tables {
            // Most tables have one use, and a vector that grows begins with room for four.
            let one = || Vec::with_capacity(1);
            self.tables
                .entry(table.ident.clone())
                .or_insert_with(one)
                .push(table);
        }
    }

    /// Returns the role of a file and, if known, `database.collection` or `database.collection/index`. A file
    /// shared by several has their names joined; one shared by very many has none.
    pub fn classify(&self, path: &Path) -> (FileRole, Option<String>) {
        match self.uses_of(path) {
            Some(uses) => (role_of_uses(uses), describe(uses)),
            None => (role_of_name(path), None),
        }
    }

    /// Returns the name of the file (below the data directory, with `.wt`) that holds the collection itself.
    pub fn collection_file(&self, namespace: &Namespace) -> Option<String> {
        let namespace = namespace.to_string();
        let holds = |uses: &[TableUse]| {
            uses.iter()
                .any(|u| u.index.is_none() && u.namespace == namespace)
        };
        self.tables
            .iter()
            .find(|(_, uses)| holds(uses))
            .map(|(ident, _)| format!("{ident}.wt"))
    }

    /// Returns the names of the files that hold the collection's indexes, each once.
    pub fn index_files(&self, namespace: &Namespace) -> Vec<String> {
        let namespace = namespace.to_string();
        let holds = |uses: &[TableUse]| {
            uses.iter()
                .any(|u| u.index.is_some() && u.namespace == namespace)
        };
        let mut files: Vec<String> = self
            .tables
            .iter()
            .filter(|(_, uses)| holds(uses))
            .map(|(ident, _)| format!("{ident}.wt"))
            .collect();
        files.sort();
        files
    }

    /// Returns `database.collection` and, for indexes, the index's name, if the file holds nothing else.
    pub fn only_use(&self, path: &Path) -> Option<(&str, Option<&str>)> {
        match self.uses_of(path)?.as_slice() {
            [only] => Some((only.namespace.as_str(), only.index.as_deref())),
            _ => None,
        }
    }

    /// Finds the uses of a file by looking for a whole table name at the end of the path: `directoryPerDB` and
    /// `directoryForIndexes` put up to two folders into it.
    fn uses_of(&self, path: &Path) -> Option<&Vec<TableUse>> {
        let parts: Vec<String> = names(path.with_extension("").as_path());
        path.extension().filter(|e| *e == "wt")?;
        (1..=3.min(parts.len())).rev().find_map(|length| {
            self.tables
                .get(&parts.get(parts.len() - length..)?.join("/"))
        })
    }
}

/// Returns the stages that read the catalogue. Reading one entry more than the limit reveals that there are
/// more. Whole entries are long: they hold the options of the collection and of each index.
fn catalog_stages() -> [Document; 3] {
    let most = i64::try_from(COLLECTIONS_MAX + 1).unwrap_or(i64::MAX);
    [
        doc! { "$listCatalog": {} },
        doc! { "$limit": most },
        doc! { "$project": replies::catalog_fields() },
    ]
}

fn names(path: &Path) -> Vec<String> {
    let normal = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
        _ => None,
    });
    normal.collect()
}

fn role_of_uses(uses: &[TableUse]) -> FileRole {
    if uses.iter().any(|table| table.index.is_none()) {
        FileRole::Collection
    } else {
        FileRole::Index
    }
}

fn describe(uses: &[TableUse]) -> Option<String> {
    let mut names: Vec<String> = uses
        .iter()
        .map(|table| match &table.index {
            Some(index) => format!("{}/{index}", table.namespace),
            None => table.namespace.clone(),
        })
        .collect();
    names.sort();
    names.dedup();
    (!names.is_empty()).then(|| format_list(&names, NAMES_SHOWN, ", "))
}

/// Returns the role that follows from the naming rules of WiredTiger and the servers.
fn role_of_name(path: &Path) -> FileRole {
    let parts = names(path);
    let (name, folder) = match parts.as_slice() {
        [.., folder, name] => (name.as_str(), folder.as_str()),
        [name] => (name.as_str(), ""),
        [] => return FileRole::Other,
    };
    let is_table = name.ends_with(".wt");
    match name {
        _ if ["WiredTigerLog.", "WiredTigerPreplog.", "WiredTigerTmplog."]
            .iter()
            .any(|p| name.starts_with(p)) =>
        {
            FileRole::Journal
        }
        "WiredTigerHS.wt" | "WiredTigerLAS.wt" => FileRole::HistoryStore,
        "_mdb_catalog.wt" | "sizeStorer.wt" | "mongod.lock" | "storage.bson" => FileRole::Metadata,
        _ if name.starts_with("WiredTiger") => FileRole::Metadata,
        "secantus_index_entries.wt" => FileRole::Index,
        _ if is_table && name.starts_with("secantus_documents_sh") => FileRole::Collection,
        _ if is_table && name.starts_with("secantus_") => FileRole::Metadata,
        _ if is_table && (name.starts_with("collection-") || folder == "collection") => {
            FileRole::Collection
        }
        _ if is_table && (name.starts_with("index-") || folder == "index") => FileRole::Index,
        _ => FileRole::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(path: &str) -> FileRole {
        FileMap::default().classify(Path::new(path)).0
    }

    #[test]
    fn names_alone_tell_the_role() {
        for (path, expected) in [
            ("/d/collection-7-123.wt", FileRole::Collection),
            ("/d/index-8-123.wt", FileRole::Index),
            ("/d/sdu/collection/7-123.wt", FileRole::Collection),
            ("/d/sdu/index/8-123.wt", FileRole::Index),
            ("/d/journal/WiredTigerLog.0000000001", FileRole::Journal),
            ("/d/WiredTigerPreplog.0000000001", FileRole::Journal),
            ("/d/WiredTigerHS.wt", FileRole::HistoryStore),
            ("/d/WiredTigerLAS.wt", FileRole::HistoryStore),
            ("/d/WiredTiger.wt", FileRole::Metadata),
            ("/d/WiredTiger.turtle.set", FileRole::Metadata),
            ("/d/_mdb_catalog.wt", FileRole::Metadata),
            ("/d/sizeStorer.wt", FileRole::Metadata),
            ("/d/mongod.lock", FileRole::Metadata),
            ("/d/diagnostic.data/metrics.2024", FileRole::Other),
            ("/d/secantus_documents_sh6.wt", FileRole::Collection),
            ("/d/secantus_index_entries.wt", FileRole::Index),
            ("/d/secantus_catalog.wt", FileRole::Metadata),
            ("/d/server.log", FileRole::Other),
            ("collection-7.wt", FileRole::Collection),
            ("/", FileRole::Other),
        ] {
            assert_eq!(role(path), expected, "{path}");
        }
    }

    #[test]
    fn the_catalogue_names_collections_and_indexes() {
        let map = FileMap::from_catalog(&[
            doc! { "ns": "sdu.aged", "ident": "collection-7-1", "idxIdent": { "_id_": "index-8-1" } },
            doc! { "ns": "b.c", "ident": "b/collection/9-1", "idxIdent": { "i_1": "b/index/10-1" } },
            doc! { "db": "b", "name": "view", "type": "view" },
        ]);
        let at = |path: &str| map.classify(Path::new(path));
        assert_eq!(
            at("/d/collection-7-1.wt"),
            (FileRole::Collection, Some("sdu.aged".into()))
        );
        assert_eq!(
            at("/d/index-8-1.wt"),
            (FileRole::Index, Some("sdu.aged/_id_".into()))
        );
        assert_eq!(
            at("/d/b/collection/9-1.wt"),
            (FileRole::Collection, Some("b.c".into()))
        );
        assert_eq!(
            at("/d/b/index/10-1.wt"),
            (FileRole::Index, Some("b.c/i_1".into()))
        );
        assert_eq!(at("/d/collection-7-1.txt"), (FileRole::Other, None));
        let only = |path: &str| map.only_use(Path::new(path));
        assert_eq!(only("collection-7-1.wt"), Some(("sdu.aged", None)));
        assert_eq!(only("b/index/10-1.wt"), Some(("b.c", Some("i_1"))));
        assert_eq!(only("collection-8-1.wt"), None);
        assert_eq!(
            map.collection_file(&"sdu.aged".parse().unwrap()).as_deref(),
            Some("collection-7-1.wt")
        );
        assert_eq!(map.collection_file(&"sdu.other".parse().unwrap()), None);
        assert_eq!(
            map.index_files(&"b.c".parse().unwrap()),
            ["b/index/10-1.wt"]
        );
        assert!(map.index_files(&"b.other".parse().unwrap()).is_empty());
    }

    #[test]
    fn no_more_is_asked_for_than_is_read() {
        let [first, limit, fields] = catalog_stages();
        assert_eq!(first, doc! { "$listCatalog": {} });
        assert_eq!(limit, doc! { "$limit": 5_001_i64 });
        let fields = fields.get_document("$project").unwrap();
        let entry = doc! {
            "db": "sdu", "name": "aged", "type": "collection", "ns": "sdu.aged", "md": { "indexes": [] },
            "ident": "collection-7-1", "idxIdent": { "a.b_1": "index-8-1" },
        };
        let projected = entry.clone().into_iter();
        let projected: Document = projected
            .filter(|(name, _)| fields.contains_key(name))
            .collect();
        assert!(!projected.contains_key("md"));
        assert_eq!(
            replies::catalog_tables(&projected),
            replies::catalog_tables(&entry)
        );
    }

    #[test]
    fn shared_tables_name_their_users() {
        let entry = |ns: &str| {
            doc! {
                "ns": ns, "ident": "table:secantus_documents_sh6",
                "idxIdent": { "i_1": "table:secantus_index_entries" },
            }
        };
        let alone = FileMap::from_catalog(&[entry("a.x")]);
        let path = Path::new("/d/secantus_documents_sh6.wt");
        assert_eq!(
            alone.classify(path),
            (FileRole::Collection, Some("a.x".into()))
        );
        let mut updated = alone.clone();
        let mut newer = FileMap::from_catalog(&[entry("a.y")]);
        newer.add_table("collection-1", "a.new", None);
        updated.update(newer);
        let name_of = |path: &str| updated.classify(Path::new(path)).1;
        assert_eq!(name_of("/d/collection-1.wt").as_deref(), Some("a.new"));
        assert_eq!(
            name_of("/d/secantus_documents_sh6.wt").as_deref(),
            Some("a.y")
        );
        let names = ["a.x", "a.y", "a.z", "b.x", "b.y", "b.z"];
        let shared = FileMap::from_catalog(&names.map(entry));
        assert_eq!(
            shared.classify(path).1.as_deref(),
            Some("a.x, a.y, a.z, b.x and 2 more")
        );
        let index = shared.classify(Path::new("/d/secantus_index_entries.wt"));
        assert_eq!(index.0, FileRole::Index);
        assert!(!FileMap::from_catalog(&[entry("a.x")]).truncated);
        assert!(FileMap::from_catalog(&vec![entry("a.x"); 5_001]).truncated);
    }
}
