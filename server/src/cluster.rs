//! Asks a router how collections are sharded and where their chunks and documents are. All questions only read.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use mongodb::bson::{Bson, DateTime, Document, doc};
use seekscope_run::{FailedMoves, SentOperations, ShardShare};

use crate::cursor::SHARDS_MAX;
use crate::examination::OWN_DATABASES;
use crate::namespace::Namespace;
use crate::replies::{first_batch, float, number};
use crate::server::{Server, ServerError};

/// The database in which a cluster keeps its own records.
const CONFIG: &str = "config";
/// The most sharded collections that are read, and the most pairs of a collection and a shard.
const COLLECTIONS_MAX: usize = 10_000;
const PAIRS_MAX: usize = 200_000;
/// The most kinds of operations that a router is expected to count.
const KINDS_MAX: usize = 20;
/// A shard deletes what it gave away a quarter of an hour later, and that may take a while.
const HOUR_MS: i64 = 3_600_000;

/// A sharded collection, as the cluster has recorded it.
#[derive(Debug, Clone, PartialEq)]
pub struct Sharded {
    /// The pattern of its shard key.
    pub key: Document,
    /// Chunks belong to the collection's name before MongoDB 5.0 and to this since.
    uuid: Option<Bson>,
}

/// Returns how a collection is sharded; `None` if it is not, or does not exist.
pub async fn sharded(
    server: &Server,
    namespace: &Namespace,
) -> Result<Option<Sharded>, ServerError> {
    // Before MongoDB 5.0 entries of dropped collections stay; since 8.0 some that are not sharded have one.
    let filter = doc! {
        "_id": namespace.to_string(),
        "dropped": { "$ne": true },
        "unsplittable": { "$ne": true },
    };
    let command = doc! { "find": "collections", "filter": filter, "limit": 1 };
    let reply = server.command_in_time(CONFIG, command).await?;
    let found = first_batch(&reply).next().and_then(|entry| {
        Some(Sharded {
            key: entry.get_document("key").ok()?.clone(),
            uuid: entry.get("uuid").cloned(),
        })
    });
    Ok(found)
}

/// Returns whether two patterns of a shard key mean the same: shells send `1.0` for `1`.
pub fn is_same_key(a: &Document, b: &Document) -> bool {
    let is_same = |a: &Bson, b: &Bson| a == b || (float(a).is_some() && float(a) == float(b));
    let mut pairs = a.iter().zip(b);
    a.len() == b.len() && pairs.all(|(a, b)| a.0 == b.0 && is_same(a.1, b.1))
}

/// Returns the number of chunks by shard; none if the collection is not sharded. A shard without chunks is not listed.
pub async fn chunks_by_shard(
    server: &Server,
    namespace: &Namespace,
) -> Result<BTreeMap<String, u64>, ServerError> {
    let Some(sharded) = sharded(server, namespace).await? else {
        return Ok(BTreeMap::new());
    };
    let chunks = Chunks::count(server, of_collection(namespace, &sharded)).await?;
    Ok(chunks.of(&namespace.to_string(), sharded.uuid.as_ref()))
}

fn of_collection(namespace: &Namespace, sharded: &Sharded) -> Document {
    let by_name = doc! { "ns": namespace.to_string() };
    match &sharded.uuid {
        Some(uuid) => doc! { "$or": [by_name, { "uuid": uuid.clone() }] },
        None => by_name,
    }
}

/// One shard's part of a collection, as the shard counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Part {
    pub documents: u64,
    /// Size of the documents, not compressed, bytes.
    pub data_bytes: u64,
    /// What they and their indexes take on disk, with the free space in their files, bytes.
    pub disk_bytes: u64,
    /// Operations of users that read or wrote it since the shard started. Neither moves of chunks nor expiring documents
    /// are counted.
    pub reads: u64,
    pub writes: u64,
}

/// Returns the parts of a collection by shard: copies that moves of chunks have left are included. A shard without the
/// collection is not listed.
pub async fn parts_by_shard(
    server: &Server,
    namespace: &Namespace,
) -> Result<BTreeMap<String, Part>, ServerError> {
    let stage = doc! { "$collStats": { "storageStats": {}, "latencyStats": {} } };
    // Statistics of the files make a reply of many kilobytes for each shard.
    let parts = doc! { "$project": {
        "shard": 1, "documents": "$storageStats.count", "bytes": "$storageStats.size",
        "disk": { "$add": ["$storageStats.storageSize", "$storageStats.totalIndexSize"] },
        "reads": "$latencyStats.reads.ops", "writes": "$latencyStats.writes.ops",
    } };
    let command = doc! {
        "aggregate": namespace.collection(), "pipeline": [stage, parts], "cursor": {},
    };
    let entries = server.documents_in_time(namespace.database(), command, SHARDS_MAX);
    let part = |entry: &Document| {
        let shard = entry.get_str("shard").ok()?.to_string();
        let part = Part {
            documents: entry.get("documents").and_then(number)?,
            data_bytes: entry.get("bytes").and_then(number)?,
            disk_bytes: entry.get("disk").and_then(number)?,
            reads: entry.get("reads").and_then(number).unwrap_or(0),
            writes: entry.get("writes").and_then(number).unwrap_or(0),
        };
        Some((shard, part))
    };
    Ok(entries.await?.iter().filter_map(part).collect())
}

/// Returns each shard's share of a collection: of `shards`, and of others that have chunks or documents. What is not
/// known is `None`.
pub fn shares(
    chunks: Option<&BTreeMap<String, u64>>,
    parts: Option<&BTreeMap<String, Part>>,
    shards: impl IntoIterator<Item = String>,
) -> Vec<ShardShare> {
    let with_chunks = chunks.into_iter().flat_map(BTreeMap::keys);
    let with_documents = parts.into_iter().flat_map(BTreeMap::keys);
    let mut names: BTreeSet<String> = with_chunks.chain(with_documents).cloned().collect();
    names.extend(shards);
    let nothing = Part::default();
    let share = |shard: String| {
        let part = parts.map(|parts| parts.get(&shard).copied().unwrap_or(nothing));
        ShardShare {
            chunks: chunks.map(|chunks| chunks.get(&shard).copied().unwrap_or(0)),
            documents: part.map(|part| part.documents),
            data_bytes: part.map(|part| part.data_bytes),
            disk_bytes: part.map(|part| part.disk_bytes),
            shard,
            ..ShardShare::default()
        }
    };
    names.into_iter().map(share).collect()
}

/// Returns the bytes on disk by shard, of all databases but the cluster's own.
pub async fn disk_bytes_by_shard(server: &Server) -> Result<BTreeMap<String, u64>, ServerError> {
    let reply = server
        .command_in_time("admin", doc! { "listDatabases": 1 })
        .await?;
    let mut by_shard = BTreeMap::new();
    let databases = reply.get_array("databases").into_iter().flatten();
    for database in databases.filter_map(Bson::as_document) {
        let is_own = OWN_DATABASES.contains(&database.get_str("name").unwrap_or_default());
        let shards = database.get_document("shards").into_iter().flatten();
        for (shard, bytes) in shards.filter(|_| !is_own).take(SHARDS_MAX) {
            let sum: &mut u64 = by_shard.entry(shard.clone()).or_default();
            *sum = sum.saturating_add(number(bytes).unwrap_or(0));
        }
    }
    Ok(by_shard)
}

/// A sharded collection and its chunks.
#[derive(Debug, Clone, PartialEq)]
pub struct Chunked {
    /// `database.collection`.
    pub namespace: String,
    /// The pattern of its shard key.
    pub key: Document,
    /// Whether the balancer was told to leave it alone.
    pub balancing_off: bool,
    /// Number of chunks by shard.
    pub chunks: BTreeMap<String, u64>,
    /// Number of chunks that were found too large to move.
    pub jumbo_chunks: u64,
}

impl Chunked {
    /// Returns how many chunks more than the mean of `shards` shards the one with most of them has.
    fn surplus(&self, shards: usize) -> u64 {
        let most = self.chunks.values().max().copied().unwrap_or(0);
        most.saturating_sub(self.chunks.values().sum::<u64>() / shards.max(1) as u64)
    }
}

/// Returns the sharded collections of users, those first of which one of the `shards` shards has most too many chunks.
pub async fn chunked(server: &Server, shards: usize) -> Result<Vec<Chunked>, ServerError> {
    let filter = doc! { "dropped": { "$ne": true }, "unsplittable": { "$ne": true } };
    let parts = doc! { "key": 1, "uuid": 1, "noBalance": 1 };
    let find = doc! { "find": "collections", "filter": filter, "projection": parts };
    let entries = server
        .documents_in_time(CONFIG, find, COLLECTIONS_MAX)
        .await?;
    let chunks = Chunks::count(server, doc! {}).await?;
    let jumbo = Chunks::count(server, doc! { "jumbo": true }).await?;
    let chunked = |entry: &Document| {
        let namespace = entry.get_str("_id").ok()?;
        let uuid = entry.get("uuid");
        Some(Chunked {
            key: entry.get_document("key").ok()?.clone(),
            balancing_off: entry.get_bool("noBalance").unwrap_or(false),
            chunks: chunks.of(namespace, uuid),
            jumbo_chunks: jumbo.of(namespace, uuid).values().sum(),
            namespace: namespace.to_string(),
        })
    };
    let all = entries.iter().filter_map(chunked);
    let of_users = all.filter(|one| !one.namespace.starts_with("config."));
    let mut of_users: Vec<Chunked> = of_users.collect();
    of_users.sort_by_key(|one| Reverse((one.surplus(shards), one.chunks.values().sum::<u64>())));
    Ok(of_users)
}

/// Returns the zones of collections, by `database.collection`.
pub async fn zones(server: &Server) -> Result<BTreeMap<String, BTreeSet<String>>, ServerError> {
    let find = doc! { "find": "tags", "projection": { "ns": 1, "tag": 1, "_id": 0 } };
    let mut zones: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for range in server.documents_in_time(CONFIG, find, PAIRS_MAX).await? {
        if let (Ok(namespace), Ok(zone)) = (range.get_str("ns"), range.get_str("tag")) {
            let of_collection = zones.entry(namespace.to_string()).or_default();
            of_collection.insert(zone.to_string());
        }
    }
    Ok(zones)
}

/// Returns the shards that are being removed, each with the databases that have it as primary shard.
pub async fn draining(server: &Server) -> Result<BTreeMap<String, Vec<String>>, ServerError> {
    let find =
        doc! { "find": "shards", "filter": { "draining": true }, "projection": { "_id": 1 } };
    let shards = server.documents_in_time(CONFIG, find, SHARDS_MAX).await?;
    let names = shards.iter().filter_map(|shard| shard.get_str("_id").ok());
    let mut draining: BTreeMap<String, Vec<String>> =
        names.map(|name| (name.to_string(), Vec::new())).collect();
    if draining.is_empty() {
        return Ok(draining);
    }
    let names: Vec<&String> = draining.keys().collect();
    let find = doc! { "find": "databases", "filter": { "primary": { "$in": names } } };
    for database in server
        .documents_in_time(CONFIG, find, COLLECTIONS_MAX)
        .await?
    {
        let primary = database.get_str("primary").ok();
        let databases = primary.and_then(|shard| draining.get_mut(shard));
        if let (Some(databases), Ok(name)) = (databases, database.get_str("_id")) {
            databases.push(name.to_string());
        }
    }
    Ok(draining)
}

/// Returns the largest size of a chunk that was set, bytes; `None` where the server's default applies.
pub async fn chunk_bytes_set(server: &Server) -> Result<Option<u64>, ServerError> {
    let entry = setting(server, "chunksize").await?;
    let mebibytes = entry.and_then(|entry| entry.get("value").and_then(number));
    Ok(mebibytes.map(|mebibytes| mebibytes.saturating_mul(1 << 20)))
}

/// Returns whether the balancer is on.
pub async fn balancer_on(server: &Server) -> Result<Option<bool>, ServerError> {
    let reply = server
        .command_in_time("admin", doc! { "balancerStatus": 1 })
        .await?;
    Ok(reply.get_str("mode").ok().map(|mode| mode == "full"))
}

/// Returns the only hours in which the balancer may work, as they were set; `None` if it always may.
pub async fn balancer_window(server: &Server) -> Result<Option<String>, ServerError> {
    let entry = setting(server, "balancer").await?;
    let window = entry
        .as_ref()
        .map(|entry| entry.get_document("activeWindow"));
    let hours = window.and_then(Result::ok).and_then(|window| {
        let hour = |name| window.get_str(name).ok();
        Some(format!("{}-{}", hour("start")?, hour("stop")?))
    });
    Ok(hours)
}

/// Returns a setting of the cluster; `None` if it was never set.
async fn setting(server: &Server, name: &str) -> Result<Option<Document>, ServerError> {
    let find = doc! { "find": "settings", "filter": { "_id": name }, "limit": 1 };
    let reply = server.command_in_time(CONFIG, find).await?;
    Ok(first_batch(&reply).next().cloned())
}

/// Returns the operations that this router has sent to shards since it started; none if it does not count them, as before
/// MongoDB 4.4.
pub async fn sent(server: &Server) -> Result<Vec<SentOperations>, ServerError> {
    let status = doc! { "serverStatus": 1, "metrics": 0, "tcmalloc": 0 };
    let reply = server.command_in_time("admin", status).await?;
    let by_kind = reply
        .get_document("shardingStatistics")
        .and_then(|statistics| statistics.get_document("numHostsTargeted"));
    let by_kind = by_kind.into_iter().flatten().take(KINDS_MAX);
    let sent = |(kind, counts): (&String, &Bson)| {
        let counts = counts.as_document()?;
        let count = |name| counts.get(name).and_then(number);
        Some(SentOperations {
            kind: kind.clone(),
            all_shards: count("allShards")?,
            several_shards: count("manyShards")?,
            one_shard: count("oneShard")?,
            not_sharded: count("unsharded")?,
        })
    };
    Ok(by_kind.filter_map(sent).collect())
}

/// The collections whose moves are counted.
#[derive(Debug, Clone, Copy)]
pub enum MovedOf<'a> {
    /// These, as `database.collection`.
    Collections(&'a [String]),
    /// All but the cluster's own.
    Users,
}

/// What the cluster's log calls an attempt to move a chunk that was given up.
const MOVE_FAILED: &str = "moveChunk.error";

/// Chunks that were ever moved, as far back as the cluster's log reaches.
#[derive(Debug, Default)]
pub struct Moves(BTreeMap<String, MovesOfCollection>);

#[derive(Debug, Default)]
struct MovesOfCollection {
    chunks: u64,
    /// Shards that gave some away in the last hour.
    from_lately: BTreeSet<String>,
    last_moved: Option<DateTime>,
    /// Attempts of the last hour that failed, with the time of the last one.
    failed_lately: Vec<(DateTime, FailedMoves)>,
}

impl Moves {
    fn read(grouped: &[Document]) -> Self {
        let mut moves = Self::default();
        for group in grouped {
            let count = |name| group.get(name).and_then(number);
            let (Ok(of), Some(chunks)) = (group.get_document("_id"), count("chunks")) else {
                continue;
            };
            let Ok(namespace) = of.get_str("ns") else {
                continue;
            };
            let of_collection = moves.0.entry(namespace.to_string()).or_default();
            let name = |field| of.get_str(field).unwrap_or_default().to_string();
            let (from, to) = (name("from"), name("to"));
            let lately = count("lately").unwrap_or(0);
            let last = group.get_datetime("last").ok().copied();
            if name("what") == MOVE_FAILED {
                let attempts = lately;
                let failed = last.map(|last| (last, FailedMoves { from, to, attempts }));
                let failed = failed.filter(|_| attempts > 0);
                of_collection.failed_lately.extend(failed);
                continue;
            }
            of_collection.chunks = of_collection.chunks.saturating_add(chunks);
            of_collection.last_moved = of_collection.last_moved.max(last);
            if lately > 0 && !from.is_empty() {
                of_collection.from_lately.insert(from);
            }
        }
        moves
    }

    /// Returns the number of chunks of all collections.
    pub fn chunks(&self) -> u64 {
        let chunks = self.0.values().map(|moves| moves.chunks);
        chunks.fold(0, u64::saturating_add)
    }

    /// Returns the number of chunks of one collection.
    pub fn chunks_of(&self, namespace: &str) -> u64 {
        self.0.get(namespace).map_or(0, |moves| moves.chunks)
    }

    /// Returns the attempts of the last hour to move chunks of a collection that failed and were not followed by one that
    /// did not.
    pub fn failed_lately(&self, namespace: &str) -> Vec<FailedMoves> {
        let Some(moves) = self.0.get(namespace) else {
            return Vec::new();
        };
        let failed = moves.failed_lately.iter();
        failed
            .filter(|(last, _)| Some(*last) > moves.last_moved)
            .map(|(_, failed)| failed.clone())
            .collect()
    }

    /// Returns the shards from which chunks of a collection were moved within the last hour.
    pub fn from_lately(&self, namespace: &str) -> impl Iterator<Item = &String> {
        let moves = self.0.get(namespace).into_iter();
        moves.flat_map(|moves| &moves.from_lately)
    }
}

/// Reads how many chunks were moved, and which could not be, from the cluster's log.
pub async fn moves(server: &Server, of: MovedOf<'_>) -> Result<Moves, ServerError> {
    let namespaces = match of {
        MovedOf::Collections(names) => doc! { "$in": names },
        MovedOf::Users => doc! { "$not": { "$regex": "^config\\." } },
    };
    let hour_ago = doc! { "$subtract": ["$$NOW", HOUR_MS] };
    let is_late = doc! { "$cond": [{ "$gte": ["$time", hour_ago] }, 1_i64, 0_i64] };
    let pipeline = [
        doc! { "$match": { "what": { "$in": ["moveChunk.commit", MOVE_FAILED] }, "ns": namespaces } },
        doc! { "$group": {
            "_id": { "what": "$what", "ns": "$ns", "from": "$details.from", "to": "$details.to" },
            "chunks": { "$sum": 1_i64 },
            "lately": { "$sum": is_late },
            "last": { "$max": "$time" },
        } },
    ];
    let command = doc! { "aggregate": "changelog", "pipeline": pipeline.to_vec(), "cursor": {} };
    let grouped = server.documents_in_time(CONFIG, command, PAIRS_MAX);
    Ok(Moves::read(&grouped.await?))
}

/// Numbers of chunks by shard, by the name or the UUID of the collection that they belong to.
#[derive(Debug, Default)]
struct Chunks(HashMap<String, BTreeMap<String, u64>>);

impl Chunks {
    /// Counts the chunks that match.
    async fn count(server: &Server, filter: Document) -> Result<Self, ServerError> {
        let by = doc! { "ns": "$ns", "uuid": "$uuid", "shard": "$shard" };
        let pipeline = [
            doc! { "$match": filter },
            doc! { "$group": { "_id": by, "count": { "$sum": 1_i64 } } },
        ];
        let command = doc! { "aggregate": "chunks", "pipeline": pipeline.to_vec(), "cursor": {} };
        let counted = server.documents_in_time(CONFIG, command, PAIRS_MAX);
        Ok(Self::read(&counted.await?))
    }

    fn read(counted: &[Document]) -> Self {
        let mut chunks = Self::default();
        for entry in counted {
            let Ok(of) = entry.get_document("_id") else {
                continue;
            };
            // A chunk has either of the two.
            let owner = of.get("uuid").or(of.get("ns")).map(ToString::to_string);
            let count = entry.get("count").and_then(number);
            if let (Some(owner), Ok(shard), Some(count)) = (owner, of.get_str("shard"), count) {
                chunks.add(owner, shard, count);
            }
        }
        chunks
    }

    fn add(&mut self, owner: String, shard: &str, count: u64) {
        let by_shard = self.0.entry(owner).or_default();
        let sum = by_shard.entry(shard.to_string()).or_default();
        *sum = sum.saturating_add(count);
    }

    /// Returns those of one collection.
    fn of(&self, namespace: &str, uuid: Option<&Bson>) -> BTreeMap<String, u64> {
        let owners = [
            Some(Bson::from(namespace).to_string()),
            uuid.map(ToString::to_string),
        ];
        let owned = owners
            .iter()
            .flatten()
            .filter_map(|owner| self.0.get(owner));
        let mut chunks = BTreeMap::new();
        for (shard, count) in owned.flatten() {
            let sum: &mut u64 = chunks.entry(shard.clone()).or_default();
            *sum = sum.saturating_add(*count);
        }
        chunks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_shells_and_ours_are_the_same() {
        let same = |a, b| is_same_key(&a, &b);
        assert!(same(doc! { "a": 1 }, doc! { "a": 1.0 }));
        assert!(same(doc! { "a": "hashed" }, doc! { "a": "hashed" }));
        for other in [
            doc! { "a": "hashed" },
            doc! { "b": 1 },
            doc! { "a": 1, "b": 1 },
            doc! { "a": -1 },
            doc! {},
        ] {
            assert!(!same(doc! { "a": 1 }, other.clone()), "{other}");
        }
    }

    #[test]
    fn chunks_belong_to_a_name_or_an_id() {
        let counted = |of: Document, count: i64| doc! { "_id": of, "count": count };
        let all = [
            counted(doc! { "ns": "a.b", "shard": "s1" }, 2),
            counted(doc! { "uuid": 7, "shard": "s1" }, 3),
            counted(doc! { "uuid": 7, "shard": "s2" }, 4),
            counted(doc! { "ns": "a.b", "shard": 9 }, 5),
            counted(doc! { "ns": "a.c", "uuid": 8, "shard": "s1" }, -6),
            doc! { "_id": 1 },
        ];
        let chunks = Chunks::read(&all);
        let of = |namespace, uuid: Option<i32>| {
            let chunks = chunks.of(namespace, uuid.map(Bson::Int32).as_ref());
            chunks.into_values().collect::<Vec<u64>>()
        };
        assert_eq!(of("a.b", None), [2]);
        assert_eq!(of("a.x", Some(7)), [3, 4]);
        assert_eq!(of("a.b", Some(7)), [5, 4]);
        assert_eq!(of("a.c", Some(8)), [0; 0]);
    }

    #[test]
    fn moves_are_of_a_collection_and_away_from_a_shard() {
        let group = |namespace: Bson, from: &str, chunks: i64, lately: i64| {
            doc! { "_id": { "ns": namespace, "from": from }, "chunks": chunks, "lately": lately }
        };
        let moves = Moves::read(&[
            group("a.b".into(), "s0", 5, 2),
            group("a.b".into(), "s1", 3, 0),
            group("a.c".into(), "s1", 1, 1),
            group(7.into(), "s1", 1, 1),
            group("a.d".into(), "s1", -1, 1),
            doc! {},
        ]);
        assert_eq!((moves.chunks(), moves.chunks_of("a.b")), (9, 8));
        let lately: Vec<&String> = moves.from_lately("a.b").collect();
        assert_eq!(lately, ["s0"]);
        assert_eq!(moves.chunks_of("a.d"), 0);
    }

    #[test]
    fn attempts_that_failed_count_until_a_move_succeeds() {
        let group = |what: &str, namespace: &str, last_s: i64, lately: i64| {
            let by = doc! { "what": what, "ns": namespace, "from": "s0", "to": "s1" };
            let last = DateTime::from_millis(last_s * 1_000);
            doc! { "_id": by, "chunks": lately.max(1), "lately": lately, "last": last }
        };
        let moves = Moves::read(&[
            group(MOVE_FAILED, "a.b", 20, 3),
            group("moveChunk.commit", "a.b", 10, 1),
            group(MOVE_FAILED, "a.c", 20, 3),
            group("moveChunk.commit", "a.c", 30, 1),
            group(MOVE_FAILED, "a.long_ago", 20, 0),
        ]);
        let failed = FailedMoves {
            from: "s0".into(),
            to: "s1".into(),
            attempts: 3,
        };
        assert_eq!(moves.failed_lately("a.b"), [failed]);
        assert_eq!((moves.chunks(), moves.chunks_of("a.b")), (2, 1));
        for namespace in ["a.c", "a.long_ago", "a.other"] {
            assert_eq!(moves.failed_lately(namespace), []);
        }
    }

    #[test]
    fn hostile_replies_are_survived() {
        let counted = |shard: Bson, count: Bson| doc! { "_id": { "ns": "a.b", "shard": shard }, "count": count };
        let entries = [
            counted("s1".into(), 5.into()),
            counted(7.into(), 5.into()),
            counted("s2".into(), (-5).into()),
            counted("s3".into(), 5.0.into()),
            doc! {},
        ];
        assert_eq!(
            Chunks::read(&entries).of("a.b", None),
            BTreeMap::from([("s1".into(), 5), ("s3".into(), 5)])
        );
    }
}
