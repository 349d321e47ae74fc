//! The files of a data directory and what they contain, with names from MongoDB's catalogue if
//! there is one.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use seekscope_run::layout::NameSource;
use seekscope_wiredtiger::FileConfig;
use seekscope_wiredtiger::catalogue::{CATALOGUE_FILE, Catalogue};
use seekscope_wiredtiger::size_storer::{SIZE_STORER_FILE, StoredSize};
use seekscope_wiredtiger::turtle::METADATA_FILE;

use crate::LayoutError;
use crate::snapshot::Snapshot;

const SUGGESTIONS: usize = 5;
/// How the names of the server's own collections begin.
const OF_SERVER: [&str; 3] = ["admin.", "config.", "local."];

/// A file with a tree in it.
#[derive(Debug)]
pub struct TableFile {
    /// Relative to the data directory, e.g. "shop/collection-7-12.wt".
    pub file: String,
    /// `database.collection`; without MongoDB the table's own name; `None` if the catalogue does
    /// not know the file.
    pub namespace: Option<String>,
    /// The index's name, if it is an index.
    pub index: Option<String>,
    /// The configuration when the directory was opened or refreshed; walks look up the newest. An
    /// error if the file cannot be walked: encrypted, or created since the last checkpoint
    /// ([`LayoutError::NotInMetadata`]).
    pub config: Result<Arc<FileConfig>, LayoutError>,
    /// MongoDB's counts of a collection's documents and of their bytes, approximate after a crash.
    pub documents: Option<u64>,
    pub document_bytes: Option<u64>,
}

impl TableFile {
    /// Returns WiredTiger's name for the table: the file's name without ".wt".
    pub fn ident(&self) -> &str {
        ident_of(&self.file)
    }

    /// Returns whether the file exists but its contents are unknown until the next checkpoint.
    fn is_unnamed(&self) -> bool {
        self.namespace.is_none() && matches!(self.config, Err(LayoutError::NotInMetadata { .. }))
    }

    /// Returns `database.collection`, `database.collection/index`, or the ident if neither is
    /// known.
    pub fn name(&self) -> String {
        match (&self.namespace, &self.index) {
            (Some(namespace), Some(index)) => format!("{namespace}/{index}"),
            (Some(namespace), None) => namespace.clone(),
            (None, _) => self.ident().to_owned(),
        }
    }
}

/// Returns whether the file belongs to WiredTiger (`WiredTiger.wt`, its history store) or MongoDB
/// themselves; such files are read when named, but not listed. Tables' names cannot begin with
/// `WiredTiger`.
fn is_own(file: &str) -> bool {
    file.starts_with("WiredTiger") || [CATALOGUE_FILE, SIZE_STORER_FILE].contains(&file)
}

fn ident_of(file: &str) -> &str {
    file.strip_suffix(".wt").unwrap_or(file)
}

/// What MongoDB knows about its files; empty without MongoDB.
#[derive(Debug, Default)]
pub(crate) struct Names {
    pub(crate) catalogue: Option<Catalogue>,
    /// Sizes by ident.
    pub(crate) sizes: BTreeMap<String, StoredSize>,
}

/// All files: user files sorted by name, then those of WiredTiger and MongoDB.
#[derive(Debug, Default)]
pub(crate) struct TableFiles {
    files: Vec<TableFile>,
    own: usize,
}

impl TableFiles {
    /// `on_disk` are the names of all files that may be tables.
    pub(crate) fn new(
        snapshot: &Snapshot,
        names: Names,
        source: NameSource,
        on_disk: Vec<String>,
    ) -> Self {
        let Names { catalogue, sizes } = names;
        let mut known = known_idents(catalogue);
        let mut files: Vec<_> = snapshot
            .metadata
            .files()
            .map(|(file, _)| table_file(file, snapshot, source, known.remove(ident_of(file))))
            .collect();
        if snapshot.metadata.file(METADATA_FILE).is_none() {
            files.push(table_file(METADATA_FILE, snapshot, source, None));
        }
        // Files in the catalogue but not in the metadata were created since the last checkpoint.
        files.extend(
            known.into_iter().map(|(ident, name)| {
                table_file(&format!("{ident}.wt"), snapshot, source, Some(name))
            }),
        );
        // So were files in neither of them, as both describe that checkpoint.
        let listed: HashSet<&str> = files.iter().map(|file| file.file.as_str()).collect();
        let mut unlisted = on_disk;
        unlisted.retain(|file| !is_own(file) && !listed.contains(file.as_str()));
        files.extend(
            unlisted
                .iter()
                .map(|file| table_file(file, snapshot, source, None)),
        );
        for file in files.iter_mut().filter(|file| file.index.is_none()) {
            let size = sizes.get(file.ident());
            file.documents = size.map(|size| size.documents);
            file.document_bytes = size.map(|size| size.document_bytes);
        }
        files.sort_by_cached_key(|file| (is_own(&file.file), file.name(), file.file.clone()));
        let own = files.iter().filter(|file| is_own(&file.file)).count();
        Self { files, own }
    }

    /// Returns the user files.
    pub(crate) fn listed(&self) -> &[TableFile] {
        &self.files[..self.files.len() - self.own]
    }

    /// Finds a file by name, file or ident, in this order; also by its last path component if that
    /// is unique, or by its path.
    pub(crate) fn find(&self, wanted: &str, directory: &Path) -> Result<&TableFile, LayoutError> {
        let by =
            |matches: &dyn Fn(&TableFile) -> bool| self.files.iter().find(|file| matches(file));
        let path = Path::new(wanted);
        let relative = path.strip_prefix(directory).unwrap_or(path);
        let found = by(&|f| f.namespace.as_deref() == Some(wanted) && f.index.is_none())
            .or_else(|| by(&|f| f.name() == wanted))
            .or_else(|| by(&|f| Path::new(&f.file) == relative || Path::new(f.ident()) == relative))
            .or_else(|| self.by_last_component(wanted));
        found.ok_or_else(|| LayoutError::NoSuchTable {
            path: directory.into(),
            wanted: wanted.into(),
            candidates: self.suggestions(wanted),
            unnamed: self
                .listed()
                .iter()
                .filter(|file| file.is_unnamed())
                .count(),
        })
    }

    fn by_last_component(&self, wanted: &str) -> Option<&TableFile> {
        let mut found = self.files.iter().filter(|file| {
            let last = file.file.rsplit('/').next().unwrap_or_default();
            last == wanted || ident_of(last) == wanted
        });
        found.next().filter(|_| found.next().is_none())
    }

    /// Returns the names that are most like what was asked for; of equal ones, those of users before the server's own.
    fn suggestions(&self, wanted: &str) -> Vec<String> {
        let mut names: Vec<_> = self.listed().iter().map(TableFile::name).collect();
        names.sort_by_key(|name| OF_SERVER.iter().any(|database| name.starts_with(database)));
        most_like(wanted, names)
    }
}

/// Returns the names that contain what was asked for or are contained in it, and then those that differ least.
fn most_like(wanted: &str, mut names: Vec<String>) -> Vec<String> {
    let wanted = wanted.to_lowercase();
    let last = wanted.rsplit(['.', '/']).next().unwrap_or_default();
    let likeness = |name: &str| {
        let name = name.to_lowercase();
        let contains = wanted.contains(&name) || !last.is_empty() && name.contains(last);
        match contains {
            true => 1.0,
            false => strsim::jaro_winkler(&wanted, &name),
        }
    };
    names.sort_by(|a, b| likeness(b).total_cmp(&likeness(a)));
    names.truncate(SUGGESTIONS);
    names
}

/// Namespace and index name.
type Name = (String, Option<String>);

fn known_idents(catalogue: Option<Catalogue>) -> BTreeMap<String, Name> {
    let mut known = BTreeMap::new();
    for collection in catalogue.unwrap_or_default().collections {
        for index in collection.indexes {
            let name = (collection.namespace.clone(), Some(index.name));
            known.insert(index.ident, name);
        }
        known.insert(collection.ident, (collection.namespace, None));
    }
    known
}

fn table_file(
    file: &str,
    snapshot: &Snapshot,
    source: NameSource,
    known: Option<Name>,
) -> TableFile {
    let config = snapshot.config(file);
    let from_metadata = || {
        let index = config.as_ref().ok()?.index.as_ref()?;
        Some((index.namespace.clone(), index.index.clone()))
    };
    let (namespace, index) = match (known, source) {
        (Some((namespace, index)), _) => (Some(namespace), index),
        (None, _) if is_own(file) => (None, None),
        (None, NameSource::TableNames) => (Some(ident_of(file).to_owned()), None),
        (None, _) => from_metadata().map_or((None, None), |(n, i)| (Some(n), Some(i))),
    };
    TableFile {
        file: file.to_owned(),
        namespace,
        index,
        config,
        documents: None,
        document_bytes: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_mistyped_is_suggested_first() {
        let names = [
            "a.a",
            "b.b",
            "c.c",
            "d.d",
            "e.e",
            "shop.orders",
            "shop.orders/by_date",
        ];
        let names = || names.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(most_like("shop.odrers", names())[0], "shop.orders");
        assert_eq!(
            most_like("orders", names())[..2],
            ["shop.orders", "shop.orders/by_date"]
        );
        assert_eq!(most_like("shop.odrers", names()).len(), SUGGESTIONS);
    }
}
