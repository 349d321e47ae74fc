//! Evaluates a server's answers on where a collection is (is it sharded?) and on its indexes.

use bson::{Bson, Document};

use crate::replies::is_set;

/// Deepest nesting that is searched; replies are nested a few levels deep.
const DEPTH_MAX: u32 = 40;

/// Why a collection cannot be replaced by a copy.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Obstacle {
    pub(crate) why: String,
    /// It is that the collection is sharded, or that the server is a shard.
    pub(crate) is_of_shards: bool,
}

impl Obstacle {
    pub(crate) fn new(why: &str) -> Self {
        Self {
            why: why.into(),
            is_of_shards: false,
        }
    }

    fn of_shards(why: &str) -> Self {
        Self {
            is_of_shards: true,
            ..Self::new(why)
        }
    }
}

/// Returns why a collection's location prevents renaming another over it, from the answer to `collStats` and
/// whether the server is a shard; `None` where nothing does.
pub(crate) fn obstacle(coll_stats: &Document, is_shard: bool) -> Option<Obstacle> {
    if is_set(coll_stats, "sharded") {
        return Some(Obstacle::of_shards(
            "it is sharded, and no collection can take the place of a sharded one; resync the members of each \
             shard one after the other, or from MongoDB 8.0 on use reshardCollection with the same key and \
             forceRedistribution",
        ));
    }
    let builds = coll_stats.get_array("indexBuilds");
    if builds.is_ok_and(|builds| !builds.is_empty()) {
        return Some(Obstacle::new("an index is being built on it"));
    }
    is_shard.then(|| {
        Obstacle::of_shards(
            "the server is a shard: a rename would not be known to its cluster; connect to mongos for \
             a collection that is not sharded, else resync the members of each shard one after the other",
        )
    })
}

/// Returns whether the answer to `explain` says that a document may appear in this index several times,
/// because it holds the elements of arrays.
pub(crate) fn is_multikey(explained: &Document, index: &str) -> bool {
    says_multikey(explained, index, DEPTH_MAX)
}

fn says_multikey(stage: &Document, index: &str, depth: u32) -> bool {
    let is_index = stage.get_str("indexName").is_ok_and(|name| name == index);
    if is_index && is_set(stage, "isMultiKey") {
        return true;
    }
    let Some(depth) = depth.checked_sub(1) else {
        return false;
    };
    stage.values().any(|value| match value {
        Bson::Document(inner) => says_multikey(inner, index, depth),
        Bson::Array(inner) => inner
            .iter()
            .filter_map(Bson::as_document)
            .any(|inner| says_multikey(inner, index, depth)),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use bson::doc;

    use super::*;

    /// Answers as given by mongos for a collection on two shards, by a shard for itself, and by other members
    /// of replica sets.
    #[test]
    fn shards_are_told_by_their_answers() {
        let plain = doc! { "ns": "shop.orders", "count": 3, "ok": 1.0 };
        let sharded = doc! {
            "sharded": true, "ns": "shop.orders", "shards": { "s0": {}, "s1": {} }, "ok": 1.0,
        };
        assert_eq!(obstacle(&plain, false), None);
        assert_eq!(obstacle(&doc! { "sharded": false }, false), None);
        let found = obstacle(&sharded, false).unwrap();
        assert!(found.is_of_shards);
        let why = found.why;
        assert!(
            why.contains("resync") && why.contains("reshardCollection"),
            "{why}"
        );
        let found = obstacle(&plain, true).unwrap();
        assert!(found.is_of_shards && found.why.contains("connect to mongos"));
        let building = doc! { "indexBuilds": ["a_1"] };
        let found = obstacle(&building, true).unwrap();
        assert!(!found.is_of_shards && found.why.contains("index"));
    }

    #[test]
    fn an_index_of_array_elements_is_found_in_any_plan() {
        let scan = |name: &str, multi: bool| {
            doc! { "stage": "FETCH", "inputStage": {
                "stage": "IXSCAN", "indexName": name, "isMultiKey": multi,
            } }
        };
        let classic = |plan| doc! { "queryPlanner": { "winningPlan": plan } };
        assert!(is_multikey(&classic(scan("a_1", true)), "a_1"));
        assert!(!is_multikey(&classic(scan("a_1", false)), "a_1"));
        assert!(!is_multikey(&classic(scan("b_1", true)), "a_1"), "another");
        // Slot-based engine, also through mongos.
        let slots = doc! { "winningPlan": { "queryPlan": scan("a_1", true), "slotBasedPlan": {} } };
        assert!(is_multikey(&doc! { "queryPlanner": slots }, "a_1"));
        let routed = doc! { "shards": [{ "shardName": "s0", "winningPlan": scan("a_1", true) }] };
        assert!(is_multikey(&classic(routed), "a_1"));
        let endless = (0..1000).fold(scan("a_1", true), |inner, _| doc! { "inputStage": inner });
        assert!(!is_multikey(&endless, "a_1"));
    }
}
