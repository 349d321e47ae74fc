//! Creates the copy with the options of the original, and gives it the same indexes.

use bson::{Bson, Document, doc};
use seekscope_server::float;

use crate::replies::{is_set, says};
use crate::same::{lacking, same_definition, same_indexes};
use crate::site::Site;
use crate::{Definition, ReorderError};

/// About fifty years: while an index of the copy has this value, nothing expires the copy's documents. Some
/// servers, 4.4 among them, reject more seconds than have passed since 1970. An older date would at worst
/// make the counts differ, and nothing would be swapped.
const NEVER_S: i32 = 1_600_000_000;
const EXPIRES: &str = "expireAfterSeconds";

/// Creates the empty copy.
pub(crate) async fn create_copy(site: &Site, definition: &Definition) -> Result<(), ReorderError> {
    let mut command = doc! { "create": site.copy_name() };
    command.extend(definition.options.clone());
    // Servers have created version 2 by default since 3.4.
    let id_index = definition.indexes.iter().find(|index| is_of_id(index));
    if let Some(index) = id_index.filter(|index| index.get("v") == Some(&Bson::Int32(1))) {
        command.insert("idIndex", without_namespace(index));
    }
    site.command(command).await?;
    Ok(())
}

/// The indexes of the copy besides that of `_id`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Built {
    pub(crate) indexes: u64,
    /// Whether the server built any of them now. Those of an interrupted run may have been complete.
    pub(crate) anew: bool,
}

impl Built {
    /// Returns whether there are indexes, all of which an interrupted run had built.
    pub(crate) fn were_there(&self) -> bool {
        self.indexes > 0 && !self.anew
    }
}

/// Builds all indexes with one command, so that the copy is read once. TTL indexes expire nothing yet.
pub(crate) async fn build(site: &Site, definition: &Definition) -> Result<Built, ReorderError> {
    let specs = specs(definition);
    let indexes = specs.len() as u64;
    let anew = indexes > 0 && create(site, specs).await?;
    Ok(Built { indexes, anew })
}

/// Builds indexes of the copy. Returns whether there are more than before.
pub(crate) async fn create(site: &Site, specs: Vec<Document>) -> Result<bool, ReorderError> {
    let mut command = doc! { "createIndexes": site.copy_name(), "indexes": specs };
    // By default all members that vote must have built them, of which one may be down, or delayed by hours.
    if site.replica_set || site.router {
        command.insert("commitQuorum", "majority");
    }
    let reply = site.command(command).await?;
    let count = |name: &str| reply.get(name).and_then(float);
    let counts = count("numIndexesBefore").zip(count("numIndexesAfter"));
    // A router answers for each shard, without these counts.
    Ok(counts.is_none_or(|(before, after)| before != after))
}

/// Returns the specifications of all indexes except that of `_id`, as the copy is given them.
pub(crate) fn specs(definition: &Definition) -> Vec<Document> {
    let others = definition.indexes.iter().filter(|index| !is_of_id(index));
    let specs = others.map(|index| {
        let mut spec = without_namespace(index);
        if spec.contains_key(EXPIRES) {
            spec.insert(EXPIRES, NEVER_S);
        }
        // Without a collation it would be given the collection's.
        if definition.options.contains_key("collation") && !spec.contains_key("collation") {
            spec.insert("collation", doc! { "locale": "simple" });
        }
        spec
    });
    specs.collect()
}

/// Lets the TTL indexes of the copy expire documents as the original's do. Call this only when nothing is
/// compared any more.
pub(crate) async fn let_expire(site: &Site, definition: &Definition) -> Result<(), ReorderError> {
    set_expiry(site, definition, |found| found.clone()).await
}

/// Reverts [`let_expire`].
pub(crate) async fn let_nothing_expire(
    site: &Site,
    definition: &Definition,
) -> Result<(), ReorderError> {
    set_expiry(site, definition, |_| Bson::Int32(NEVER_S)).await
}

async fn set_expiry(
    site: &Site,
    definition: &Definition,
    expiry: impl Fn(&Bson) -> Bson,
) -> Result<(), ReorderError> {
    for index in &definition.indexes {
        if let (Some(found), Ok(name)) = (index.get(EXPIRES), index.get_str("name")) {
            let index = doc! { "name": name, EXPIRES: expiry(found) };
            site.command(doc! { "collMod": site.copy_name(), "index": index })
                .await?;
        }
    }
    Ok(())
}

pub(crate) fn has_ttl(definition: &Definition) -> bool {
    definition
        .indexes
        .iter()
        .any(|index| index.contains_key(EXPIRES))
}

/// Returns whether there is a unique index besides that of `_id`.
pub(crate) fn has_unique(definition: &Definition) -> bool {
    let mut others = definition.indexes.iter().filter(|index| !is_of_id(index));
    others.any(|index| is_set(index, "unique"))
}

/// Checks that options and indexes of the copy are those of the original, and that the original's have not
/// changed.
pub(crate) async fn check(site: &Site, definition: &Definition) -> Result<(), ReorderError> {
    let now = Definition::of(site, site.target_name()).await?;
    if !same(&now, definition) {
        return Err(site.aborted("somebody changed its options or indexes meanwhile"));
    }
    let copy = Definition::of(site, site.copy_name()).await?;
    if let Some(what) = difference(definition, &copy) {
        return Err(site.aborted(format!("the server made the copy with other {what}")));
    }
    Ok(())
}

pub(crate) fn same(a: &Definition, b: &Definition) -> bool {
    difference(a, b).is_none()
}

/// Returns how the second differs from the first.
pub(crate) fn difference(a: &Definition, b: &Definition) -> Option<String> {
    if !same_definition(&a.options, &b.options) {
        return Some(format!("options: {} instead of {}", b.options, a.options));
    }
    let list = |indexes: Vec<&Document>| {
        let texts: Vec<String> = indexes.into_iter().map(ToString::to_string).collect();
        texts.join(", ")
    };
    (!same_indexes(&a.indexes, &b.indexes)).then(|| {
        let (found, wanted) = (
            lacking(&b.indexes, &a.indexes),
            lacking(&a.indexes, &b.indexes),
        );
        format!("indexes: [{}] instead of [{}]", list(found), list(wanted))
    })
}

fn is_of_id(index: &Document) -> bool {
    says(index, "name", "_id_") || is_set(index, "clustered")
}

fn without_namespace(index: &Document) -> Document {
    let mut spec = index.clone();
    spec.remove("ns");
    spec
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specs_expire_nothing_and_keep_the_simple_collation() {
        let definition = Definition {
            namespace: "a.b".parse().unwrap(),
            identity: "u".into(),
            options: doc! { "collation": { "locale": "de" } },
            indexes: vec![
                doc! { "v": 2, "key": { "_id": 1 }, "name": "_id_", "ns": "a.b" },
                doc! { "v": 2, "key": { "t": 1 }, "name": "t", "ns": "a.b", EXPIRES: 5 },
                doc! { "key": { "u": 1 }, "name": "u", "collation": { "locale": "de" } },
            ],
            multikey: Vec::new(),
            obstacle: None,
            can_be_followed: false,
        };
        let expected = [
            doc! { "v": 2, "key": { "t": 1 }, "name": "t", EXPIRES: NEVER_S,
            "collation": { "locale": "simple" } },
            doc! { "key": { "u": 1 }, "name": "u", "collation": { "locale": "de" } },
        ];
        assert_eq!(specs(&definition), expected);
        assert!(has_ttl(&definition));
    }
}
