//! MongoDB's catalogue, `_mdb_catalog.wt`: which file holds which collection or index.

use std::collections::BTreeMap;

use bson::{RawBsonRef, RawDocument};

use crate::walk::KeyValue;

/// The name of the catalogue's file.
pub const CATALOGUE_FILE: &str = "_mdb_catalog.wt";

/// The longest entry. No document in MongoDB is longer (its limit for users is 16 MiB).
const MAX_ENTRY_BYTES: usize = (16 << 20) + (16 << 10);
/// The most collections and indexes kept; they take some 150 MB of memory.
const MAX_NAMES: usize = 1 << 20;

/// The contents of the catalogue. It has no entries for views.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Catalogue {
    /// Collections in the order in which their entries were added.
    pub collections: Vec<Collection>,
    /// Number of entries that are not BSON documents, or beyond what is kept.
    pub unreadable: usize,
    /// Number of collections and indexes.
    names: usize,
}

/// A collection and its indexes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collection {
    /// `database.collection`.
    pub namespace: String,
    /// Its file's name without `.wt`, including folders if there are any.
    pub ident: String,
    pub indexes: Vec<Index>,
}

/// An index of a collection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Index {
    pub name: String,
    /// Like [`Collection::ident`].
    pub ident: String,
    /// Whether it has been built; `None` if the entry does not say.
    pub ready: Option<bool>,
}

impl Catalogue {
    /// Reads the table's rows.
    #[must_use]
    pub fn from_rows(rows: &[KeyValue]) -> Catalogue {
        let mut catalogue = Catalogue::default();
        rows.iter().for_each(|(_, entry)| catalogue.add(entry));
        catalogue
    }

    /// Reads the value of a row. An entry without a namespace describes no collection and is left
    /// out.
    pub fn add(&mut self, entry: &[u8]) {
        let kept = entry.len() <= MAX_ENTRY_BYTES && self.names < MAX_NAMES;
        match RawDocument::from_bytes(entry) {
            Ok(entry) if kept => {
                let found = collection(entry);
                self.names += found.as_ref().map_or(0, |found| 1 + found.indexes.len());
                self.collections.extend(found);
            }
            _ => self.unreadable += 1,
        }
    }
}

fn collection(entry: &RawDocument) -> Option<Collection> {
    let namespace = entry.get_str("ns").ok()?.to_owned();
    let ident = entry.get_str("ident").ok()?.to_owned();
    let ready = ready_by_name(entry).unwrap_or_default();
    let mut indexes = Vec::new();
    for (name, ident) in entry
        .get_document("idxIdent")
        .ok()
        .into_iter()
        .flatten()
        .flatten()
    {
        if let RawBsonRef::String(ident) = ident {
            indexes.push(Index {
                name: name.as_str().to_owned(),
                ident: ident.to_owned(),
                ready: ready.get(name.as_str()).copied(),
            });
        }
    }
    Some(Collection {
        namespace,
        ident,
        indexes,
    })
}

/// Reads names and readiness from `md.indexes: [{spec: {name}, ready}]`.
fn ready_by_name(entry: &RawDocument) -> Option<BTreeMap<String, bool>> {
    let indexes = entry.get_document("md").ok()?.get_array("indexes").ok()?;
    let ready = indexes.into_iter().flatten().filter_map(|index| {
        let index = index.as_document()?;
        let name = index.get_document("spec").ok()?.get_str("name").ok()?;
        Some((name.to_owned(), index.get_bool("ready").ok()?))
    });
    Some(ready.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;

    #[test]
    fn collections_and_their_indexes() {
        let entries = [
            doc! { "ns": bson::Bson::Null, "features": 1 },
            doc! { "ns": "a.b", "ident": "collection-1", "idxIdent": { "_id_": "index-2", "x_1": "index-3" },
            "md": { "ns": "a.b", "indexes": [ { "spec": { "name": "x_1" }, "ready": false } ] } },
            doc! { "ns": "a.c", "ident": "db/collection/5" },
            doc! { "ns": "a.view" },
        ];
        let mut rows: Vec<KeyValue> = entries
            .iter()
            .map(|entry| (vec![0x81], entry.to_vec().unwrap()))
            .collect();
        rows.push((vec![0x82], vec![5, 0, 0, 0]));
        let catalogue = Catalogue::from_rows(&rows);
        assert_eq!(catalogue.unreadable, 1);
        let [first, second] = &catalogue.collections[..] else {
            panic!("{catalogue:?}")
        };
        assert_eq!(
            (first.namespace.as_str(), first.ident.as_str()),
            ("a.b", "collection-1")
        );
        let index = |name: &str, ident: &str, ready| Index {
            name: name.into(),
            ident: ident.into(),
            ready,
        };
        assert_eq!(
            first.indexes,
            [
                index("_id_", "index-2", None),
                index("x_1", "index-3", Some(false))
            ]
        );
        assert_eq!(
            (second.namespace.as_str(), second.indexes.len()),
            ("a.c", 0)
        );
    }
}
