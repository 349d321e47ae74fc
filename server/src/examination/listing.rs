//! Lists the collections of a server.

use std::collections::HashSet;

use mongodb::bson::{Document, doc};

use super::asking::{Asker, NoAnswer};
use super::rights;
use crate::namespace::Namespace;
use crate::replies::number;

const DATABASES_MAX: usize = 500;
pub(super) const COLLECTIONS_LISTED_MAX: usize = 200_000;
/// With at most this many databases, all collections are read, in any order.
const FEW_DATABASES: usize = 3;
/// Databases that the server keeps for itself. The oplog is examined separately.
pub(crate) const OWN_DATABASES: [&str; 3] = ["admin", "config", "local"];
pub(super) const BUCKETS: &str = "system.buckets.";

/// Which collections are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// Collections of users, without those that the server keeps for itself.
    Users,
    /// Every collection that has files.
    All,
}

/// Returns all collections that have files of their own. With `by_size`, those of the largest database come
/// first if there are more than a few databases; the server's own come last.
pub(super) async fn list(asker: &mut Asker, scope: Scope, by_size: bool) -> Vec<Namespace> {
    let what = "which collections exist";
    let names = doc! { "listDatabases": 1, "nameOnly": true };
    let reply = asker.ask_or_note("admin", names, what).await;
    let mut found = databases(&reply, scope);
    // Adding up sizes takes the server long if there are very many collections.
    if by_size
        && found.len() > FEW_DATABASES
        && let Ok(reply) = asker.ask("admin", doc! { "listDatabases": 1 }).await
    {
        found = databases(&reply, scope);
    }
    let mut all = Vec::new();
    for database in found.into_iter().take(DATABASES_MAX) {
        if !asker.has_time() || all.len() >= COLLECTIONS_LISTED_MAX {
            break;
        }
        let command =
            doc! { "listCollections": 1, "nameOnly": true, "authorizedCollections": true };
        match asker
            .ask_for_all(&database, command, COLLECTIONS_LISTED_MAX)
            .await
        {
            Ok(entries) => all.extend(collections(&database, &entries, scope)),
            // The role that we print grants nothing on them.
            Err(NoAnswer::NotAllowed { .. }) if OWN_DATABASES.contains(&database.as_str()) => {}
            Err(error) => asker.note(what, &error, rights::remedy("listCollections")),
        }
    }
    all.truncate(COLLECTIONS_LISTED_MAX);
    all
}

fn databases(reply: &Document, scope: Scope) -> Vec<String> {
    let list = reply.get_array("databases").into_iter().flatten();
    let mut sized: Vec<(bool, u64, &str)> = list
        .filter_map(|entry| {
            let entry = entry.as_document()?;
            let bytes = entry.get("sizeOnDisk").and_then(number).unwrap_or(0);
            let name = entry.get_str("name").ok()?;
            Some((!OWN_DATABASES.contains(&name), bytes, name))
        })
        .filter(|(is_users, _, _)| *is_users || scope == Scope::All)
        .collect();
    sized.sort_by_key(|(is_users, bytes, _)| std::cmp::Reverse((*is_users, *bytes)));
    sized.into_iter().map(|(_, _, name)| name.into()).collect()
}

/// Returns those that have files of their own: no views, and of users' collections no system collections except
/// the buckets of time series.
fn collections(database: &str, entries: &[Document], scope: Scope) -> Vec<Namespace> {
    let named: Vec<(&str, &str)> = entries
        .iter()
        .filter_map(|entry| {
            let kind = entry.get_str("type").unwrap_or("collection");
            Some((entry.get_str("name").ok()?, kind))
        })
        .collect();
    let names: HashSet<&str> = named.iter().map(|(name, _)| *name).collect();
    let is_of_interest = |name: &str| {
        scope == Scope::All || !name.starts_with("system.") || name.starts_with(BUCKETS)
    };
    let has_file = |name: &str, kind: &str| match kind {
        "collection" => is_of_interest(name),
        "timeseries" => !names.contains(format!("{BUCKETS}{name}").as_str()),
        _ => false,
    };
    let with_files = named.iter().filter(|(name, kind)| has_file(name, kind));
    let namespaces = with_files.filter_map(|(name, _)| Namespace::new(database, name).ok());
    namespaces.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_mongod_4_2() {
        let reply = doc! { "databases": [
            { "name": "admin", "sizeOnDisk": 40_960.0 }, { "name": "other", "sizeOnDisk": 40_960.0 },
            { "name": "local", "sizeOnDisk": 73_728.0 }, { "name": "sdu", "sizeOnDisk": 21_356_544.0 }, 5,
        ], "totalSize": 21_528_576.0, "ok": 1.0 };
        assert_eq!(databases(&reply, Scope::Users), ["sdu", "other"]);
        let entry = |name: &str, kind: &str| doc! { "name": name, "type": kind };
        let entries = [
            entry("append", "collection"),
            entry("some", "view"),
            entry("system.views", "collection"),
            entry("weather", "timeseries"),
            entry("system.buckets.weather", "collection"),
            entry("new", "timeseries"),
            doc! { "name": "old" },
            entry(".odd", "collection"),
        ];
        let found = collections("sdu", &entries, Scope::Users);
        let names: Vec<&str> = found.iter().map(Namespace::collection).collect();
        assert_eq!(names, ["append", "system.buckets.weather", "new", "old"]);
    }

    #[test]
    fn what_is_the_servers_own_comes_last() {
        let reply = doc! { "databases": [
            { "name": "local", "sizeOnDisk": 900 }, { "name": "small", "sizeOnDisk": 1 },
            { "name": "large", "sizeOnDisk": 500_i64 }, { "name": "admin" },
        ] };
        let all = databases(&reply, Scope::All);
        assert_eq!(all, ["large", "small", "local", "admin"]);
        let entries = [
            doc! { "name": "a", "type": "collection" },
            doc! { "name": "v", "type": "view" },
            doc! { "name": "system.views", "type": "collection" },
            doc! { "name": "system.buckets.t" },
            doc! { "name": "t", "type": "timeseries" },
        ];
        let all = collections("d", &entries, Scope::All);
        let names: Vec<&str> = all.iter().map(Namespace::collection).collect();
        assert_eq!(names, ["a", "system.views", "system.buckets.t"]);
    }

    #[test]
    fn hostile_replies_are_survived() {
        assert!(databases(&doc! { "databases": { "a": 1 } }, Scope::All).is_empty());
        let odd = [doc! { "name": 5 }, doc! {}];
        assert!(collections("a", &odd, Scope::All).is_empty());
    }
}
