//! The figures that a server keeps for one collection and its indexes.

use std::time::Duration;

use mongodb::bson::{Bson, DateTime, Document, doc};
use seekscope_run::{CollectionFacts, IndexFacts, IndexOption};

use super::asking::{Asker, NoAnswer};
use super::collation::collation;
use crate::cursor::SHARDS_MAX;
use crate::replies::{at, is_clustered, number, storage_stats};

/// A collection may have 64; a hostile reply any number.
const INDEXES_MAX: usize = 100;
const TEXT_MAX_CHARS: usize = 500;

/// The figures of one collection at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Statistics {
    pub(super) facts: CollectionFacts,
    /// Bytes since the server started.
    pub(super) read_into_cache_bytes: Option<u64>,
    pub(super) written_from_cache_bytes: Option<u64>,
    /// How long the answer took.
    pub(super) took: Duration,
}

/// Asks for the statistics: one document for each shard that has the collection.
pub(super) async fn ask(
    asker: &mut Asker,
    database: &str,
    collection: &str,
) -> Result<Vec<Document>, NoAnswer> {
    let stage = doc! { "$collStats": { "storageStats": {} } };
    let command = doc! { "aggregate": collection, "pipeline": [stage], "cursor": {} };
    match asker.ask_for_all(database, command, SHARDS_MAX).await {
        Ok(entries) => {
            let stats = storage_stats(&entries);
            if !stats.is_empty() {
                return Ok(stats);
            }
        }
        // Servers before 3.4 have no such stage; others not for every kind of collection.
        Err(error) if error.is_unknown() => {}
        Err(error) => return Err(error),
    }
    Ok(vec![
        asker
            .ask(database, doc! { "collStats": collection })
            .await?,
    ])
}

/// Asks for the keys and uses of a collection's indexes.
pub(super) async fn ask_indexes(
    asker: &mut Asker,
    database: &str,
    collection: &str,
) -> Result<Vec<Document>, NoAnswer> {
    let stages = [doc! { "$indexStats": {} }];
    let command = doc! { "aggregate": collection, "pipeline": stages.to_vec(), "cursor": {} };
    match asker.ask_for_all(database, command, INDEXES_MAX * 10).await {
        Ok(indexes) if !indexes.is_empty() => return Ok(indexes),
        Ok(_) => {}
        Err(NoAnswer::NotAllowed { .. }) => {}
        Err(error) if error.is_unknown() => {}
        Err(error) => return Err(error),
    }
    let command = doc! { "listIndexes": collection };
    asker.ask_for_all(database, command, INDEXES_MAX).await
}

impl Statistics {
    /// Sums the figures over shards; `namespace` is what was asked for.
    pub(super) fn read(namespace: &str, shards: &[Document]) -> Self {
        let mut all = Self {
            facts: CollectionFacts {
                namespace: namespace.into(),
                sharded: shards.len() > 1,
                time_series: namespace.contains(".system.buckets."),
                ..CollectionFacts::default()
            },
            ..Self::default()
        };
        for stats in shards {
            all.add(stats);
        }
        all
    }

    fn add(&mut self, stats: &Document) {
        let count = |path: &[&str]| at(stats, path).and_then(number);
        let flag = |name: &str| stats.get_bool(name).unwrap_or(false);
        let facts = &mut self.facts;
        // What lies in the file of a time series are its buckets.
        let documents = count(&["count"]).or_else(|| count(&["timeseries", "bucketCount"]));
        for (sum, value) in [
            (&mut facts.documents, documents),
            (&mut facts.data_bytes, count(&["size"])),
            (&mut facts.storage_bytes, count(&["storageSize"])),
        ] {
            *sum = sum.saturating_add(value.unwrap_or(0));
        }
        facts.capped |= flag("capped");
        facts.clustered |= is_clustered(stats);
        facts.sharded |= flag("sharded");
        facts.time_series |= stats.contains_key("timeseries");
        let engine = stats.get_document("wiredTiger").ok();
        facts.compressor = facts.compressor.take().or_else(|| compressor(engine?));
        let cached = |name: &str| count(&["wiredTiger", "cache", name]);
        for (sum, value) in [
            (&mut facts.reusable_bytes, engine.and_then(reusable_bytes)),
            (
                &mut facts.in_cache_bytes,
                cached("bytes currently in the cache"),
            ),
            (
                &mut self.read_into_cache_bytes,
                cached("bytes read into cache"),
            ),
            (
                &mut self.written_from_cache_bytes,
                cached("bytes written from cache"),
            ),
        ] {
            add_known(sum, value);
        }
        self.add_index_sizes(stats);
    }

    fn add_index_sizes(&mut self, stats: &Document) {
        let building: Vec<&str> = stats
            .get_array("indexBuilds")
            .map(|names| names.iter().filter_map(Bson::as_str).collect())
            .unwrap_or_default();
        for (name, bytes) in stats.get_document("indexSizes").into_iter().flatten() {
            let details = at(stats, &["indexDetails", name]).and_then(Bson::as_document);
            let Some(index) = self.index(name) else {
                return;
            };
            index.bytes = index.bytes.saturating_add(number(bytes).unwrap_or(0));
            index.building |= building.contains(&name.as_str());
            add_known(&mut index.reusable_bytes, details.and_then(reusable_bytes));
        }
    }

    /// Adds the contents of `$indexStats` or `listIndexes` as of this moment.
    pub(super) fn add_indexes(&mut self, entries: &[Document], now: DateTime) {
        for entry in entries {
            let (Ok(name), Ok(keys)) = (entry.get_str("name"), entry.get_document("key")) else {
                continue;
            };
            let Some(index) = self.index(name) else {
                return;
            };
            index.keys = key_text(keys);
            index.building |= entry.get_bool("building").unwrap_or(false);
            // `$indexStats` tells what the index is like in a document of its own, from MongoDB 4.2.4 on.
            let spec = entry.get_document("spec").unwrap_or(entry);
            index.options = options(spec);
            index.collation = collation(spec);
            add_known(
                &mut index.uses,
                at(entry, &["accesses", "ops"]).and_then(number),
            );
            let since = at(entry, &["accesses", "since"]).and_then(|since| since.as_datetime());
            let counted_ms = since.map(|since| {
                now.timestamp_millis()
                    .saturating_sub(since.timestamp_millis())
                    .max(0)
            });
            // Of several members, take the one that has counted for the shortest time.
            let counted_s = counted_ms.map(|ms| ms as f64 / 1e3);
            index.counted_s = match (index.counted_s, counted_s) {
                (Some(known), Some(other)) => Some(known.min(other)),
                (known, other) => known.or(other),
            };
        }
    }

    /// Copies what was known earlier about the indexes apart from their sizes; for a server that does not give
    /// sizes, copies everything.
    pub(super) fn take_over_indexes(&mut self, earlier: &Self) {
        let known = &earlier.facts.indexes;
        let indexes = &mut self.facts.indexes;
        if indexes.is_empty() {
            indexes.clone_from(known);
        }
        for index in indexes {
            if let Some(known) = known.iter().find(|known| known.name == index.name) {
                index.keys.clone_from(&known.keys);
                index.options.clone_from(&known.options);
                index.collation.clone_from(&known.collation);
                index.uses = known.uses;
                index.counted_s = known.counted_s;
            }
        }
    }

    /// Returns whether the keys of all its indexes are known.
    pub(super) fn knows_keys(&self) -> bool {
        self.facts
            .indexes
            .iter()
            .all(|index| !index.keys.is_empty())
    }

    /// Returns the index of this name, created if it is new; `None` beyond the limit.
    fn index(&mut self, name: &str) -> Option<&mut IndexFacts> {
        let name = shortened(name);
        let indexes = &mut self.facts.indexes;
        let found = indexes.iter().position(|index| index.name == name);
        let position = match found {
            Some(position) => position,
            None if indexes.len() < INDEXES_MAX => {
                indexes.push(IndexFacts {
                    name,
                    ..IndexFacts::default()
                });
                indexes.len() - 1
            }
            None => return None,
        };
        indexes.get_mut(position)
    }
}

fn add_known(sum: &mut Option<u64>, value: Option<u64>) {
    if let Some(value) = value {
        *sum = Some(sum.unwrap_or(0).saturating_add(value));
    }
}

/// Returns the reusable bytes from the engine's section for a table.
fn reusable_bytes(engine: &Document) -> Option<u64> {
    number(at(
        engine,
        &["block-manager", "file bytes available for reuse"],
    )?)
}

fn compressor(engine: &Document) -> Option<String> {
    let text = engine.get_str("creationString").ok()?;
    let (_, rest) = text.split_once("block_compressor=")?;
    let name = rest.split([',', ')']).next().unwrap_or_default();
    Some(match name.trim_matches('"') {
        "" => "none".into(),
        name => shortened(name),
    })
}

/// Returns a key pattern as JSON. Its values are directions and kinds of index; anything else is left out.
pub(super) fn key_text(keys: &Document) -> String {
    let fields = keys.iter().map(|(name, value)| {
        let name = serde_json::Value::from(name.as_str());
        match value {
            Bson::String(kind) => format!("{name}:{}", serde_json::Value::from(kind.as_str())),
            Bson::Double(direction) => format!("{name}:{direction}"),
            Bson::Int32(_) | Bson::Int64(_) => format!("{name}:{value}"),
            _ => format!("{name}:null"),
        }
    });
    shortened(&format!("{{{}}}", fields.collect::<Vec<_>>().join(",")))
}

fn shortened(text: &str) -> String {
    text.chars().take(TEXT_MAX_CHARS).collect()
}

/// Reads the options of an index from its specification.
fn options(spec: &Document) -> Vec<IndexOption> {
    let is_set = |name: &str| spec.get_bool(name).unwrap_or(false);
    [
        (IndexOption::Unique, is_set("unique")),
        (
            IndexOption::Expiring,
            spec.contains_key("expireAfterSeconds"),
        ),
        (IndexOption::Sparse, is_set("sparse")),
        (
            IndexOption::Partial,
            spec.contains_key("partialFilterExpression"),
        ),
        (IndexOption::Hidden, is_set("hidden")),
    ]
    .into_iter()
    .filter_map(|(option, is_one)| is_one.then_some(option))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answer of mongod 4.2.2 to `collStats` with `indexDetails`, without the fields that nobody reads.
    fn stats_of_4_2() -> Document {
        doc! {
            "ns": "sdu.updated4pct", "size": 3_803_028, "count": 1500, "avgObjSize": 2535,
            "storageSize": 7_290_880, "capped": false,
            "wiredTiger": {
                "creationString": "allocation_size=4KB,block_allocation=best,block_compressor=snappy,\
                                   cache_resident=false",
                "uri": "statistics:table:collection-14--5495675770773988953",
                "block-manager": {
                    "file bytes available for reuse": 3_502_080, "file size in bytes": 7_290_880,
                },
                "cache": {
                    "bytes currently in the cache": 8208, "bytes read into cache": 1296,
                    "bytes written from cache": 0,
                },
            },
            "nindexes": 2,
            "indexDetails": {
                "_id_": { "block-manager": { "file bytes available for reuse": 8192 } },
                "d_-1": { "block-manager": { "file bytes available for reuse": 12_288 } },
            },
            "indexBuilds": ["d_-1"], "totalIndexSize": 65_536,
            "indexSizes": { "_id_": 28_672, "d_-1": 36_864.0 }, "scaleFactor": 1, "ok": 1.0,
        }
    }

    #[test]
    fn one_collection() {
        let read = Statistics::read("sdu.updated4pct", &[stats_of_4_2()]);
        let facts = &read.facts;
        assert_eq!((facts.documents, facts.data_bytes), (1500, 3_803_028));
        assert_eq!(facts.storage_bytes, 7_290_880);
        assert_eq!(facts.reusable_bytes, Some(3_502_080));
        assert_eq!(facts.compressor.as_deref(), Some("snappy"));
        assert_eq!(facts.in_cache_bytes, Some(8208));
        assert_eq!(read.read_into_cache_bytes, Some(1296));
        assert!(!facts.capped && !facts.sharded && !facts.time_series && !facts.clustered);
        let building = &facts.indexes[1];
        assert_eq!(
            (building.bytes, building.reusable_bytes),
            (36_864, Some(12_288))
        );
        assert!(building.building && !facts.indexes[0].building);
    }

    #[test]
    fn shards_are_added_up() {
        let read = Statistics::read("sdu.updated4pct", &[stats_of_4_2(), stats_of_4_2()]);
        assert!(read.facts.sharded);
        assert_eq!(read.facts.storage_bytes, 2 * 7_290_880);
        assert_eq!(read.facts.reusable_bytes, Some(2 * 3_502_080));
        assert_eq!(read.facts.indexes.len(), 2);
        assert_eq!(read.facts.indexes[0].bytes, 2 * 28_672);
    }

    #[test]
    fn keys_and_uses() {
        let mut read = Statistics::read("sdu.updated4pct", &[stats_of_4_2()]);
        let uses = |ops: i64, since_ms| {
            doc! {
                "name": "d_-1", "key": { "d": -1, "t": "text", "x\"y": 1.0, "odd": { "secret": 5 } },
                "accesses": { "ops": ops, "since": DateTime::from_millis(since_ms) },
                "spec": { "partialFilterExpression": { "secret": "value" } },
            }
        };
        let now = DateTime::from_millis(90_000);
        read.add_indexes(&[uses(3, 0), uses(4, 30_000), doc! { "name": 5 }], now);
        let index = &read.facts.indexes[1];
        assert_eq!(index.keys, r#"{"d":-1,"t":"text","x\"y":1,"odd":null}"#);
        assert_eq!((index.uses, index.counted_s), (Some(7), Some(60.0)));
        assert_eq!(read.facts.indexes[0].uses, None, "unknown is not zero");
    }

    #[test]
    fn indexes_are_asked_about_once() {
        let mut earlier = Statistics::read("sdu.updated4pct", &[stats_of_4_2()]);
        let entry = |name: &str| {
            let accesses = doc! { "ops": 3, "since": DateTime::from_millis(0) };
            doc! { "name": name, "key": { "d": -1 }, "accesses": accesses }
        };
        earlier.add_indexes(&[entry("_id_")], DateTime::from_millis(9_000));
        assert!(!earlier.knows_keys(), "of d_-1");
        earlier.add_indexes(&[entry("d_-1")], DateTime::from_millis(9_000));

        let mut stats = stats_of_4_2();
        stats.insert("indexSizes", doc! { "d_-1": 50_000, "new_1": 4_096 });
        let mut later = Statistics::read("sdu.updated4pct", &[stats]);
        later.take_over_indexes(&earlier);
        let [kept, new] = &later.facts.indexes[..] else {
            panic!("{later:?}");
        };
        assert_eq!((kept.bytes, kept.keys.as_str()), (50_000, r#"{"d":-1}"#));
        assert_eq!((kept.uses, kept.counted_s), (Some(3), Some(9.0)));
        assert_eq!((new.bytes, new.uses), (4_096, None));
        assert!(!later.knows_keys(), "of the new one");

        let mut without_sizes = Statistics::default();
        without_sizes.take_over_indexes(&earlier);
        assert_eq!(without_sizes.facts.indexes, earlier.facts.indexes);
    }

    #[test]
    fn the_documents_of_a_time_series_are_its_buckets() {
        let stats = doc! {
            "size": 5_000, "storageSize": 4_096, "timeseries": { "bucketCount": 7, "avgBucketSize": 714 },
        };
        let facts = Statistics::read("a.system.buckets.b", &[stats]).facts;
        assert_eq!((facts.documents, facts.data_bytes), (7, 5_000));
        assert!(facts.time_series);
    }

    #[test]
    fn hostile_replies_are_survived() {
        let sizes: Document = (0..10_000)
            .map(|n| (format!("i{n}"), Bson::Int64(i64::MAX)))
            .collect();
        let odd = doc! {
            "count": -5, "size": f64::NAN, "storageSize": i64::MAX, "wiredTiger": "x",
            "indexSizes": sizes, "indexDetails": 5, "indexBuilds": { "a": 1 },
        };
        let read = Statistics::read("a.b", &[odd.clone(), odd.clone(), odd]);
        assert_eq!((read.facts.documents, read.facts.data_bytes), (0, 0));
        assert_eq!(read.facts.indexes.len(), INDEXES_MAX);
        assert_eq!(read.facts.reusable_bytes, None);
    }
}
