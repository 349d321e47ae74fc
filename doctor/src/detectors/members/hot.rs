//! `shards.hot`: most of the work on a collection is done by one shard, although its data are on several.

use seekscope_run::units::format_count;
use seekscope_run::{Finding, ShardShare, SpreadCollection};

use super::{Detector, distribution_of, time_on, time_share, zoned};
use crate::answers::mongod_version;
use crate::wording::{mongosh, percent};
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &["shards.hot"],
    detect,
};

/// With fewer operations, chance decides where they go.
const OPERATIONS_MIN: u64 = 200;
/// The share of them that one shard has to get, and how many times an equal share that is.
const SHARE_MIN: f64 = 0.5;
const TIMES_MIN: f64 = 1.6;
/// How many times the shard's share of the data. With less the work is as uneven as the data, which `shards.uneven` tells.
const TIMES_OF_DATA_MIN: f64 = 1.3;

/// The first version that can give a collection another shard key.
const RESHARDS_SINCE: u32 = 5;

fn detect(evidence: &Evidence<'_>, answers: &Answers) -> Vec<Finding> {
    let cluster = evidence.examination().and_then(|e| e.cluster.as_ref());
    let collections = cluster.iter().flat_map(|cluster| &cluster.collections);
    let found = collections.filter_map(|collection| {
        let hot = Hot::of(collection)?;
        let does_more = time_share(answers, hot.shard)
            .is_none_or(|share| share * answers.shards.len() as f64 > 1.0);
        does_more.then(|| finding(evidence, answers, collection, &hot))
    });
    found.collect()
}

/// The operations of one kind on a collection, of which a shard gets most.
#[derive(Debug)]
struct Hot<'a> {
    shard: &'a str,
    /// "writes to" or "reads of".
    what: &'static str,
    operations: u64,
    /// The same on all shards.
    operations_of_all: u64,
    /// Its share of the chunks or, if that is larger, of the bytes, 0 to 1.
    data_share: f64,
    /// How many shards have chunks of the collection.
    shards: usize,
}

impl<'a> Hot<'a> {
    fn of(collection: &'a SpreadCollection) -> Option<Self> {
        // The copies that a move makes are writes, too.
        if collection.moved_chunks != Some(0) {
            return None;
        }
        let writes = Self::of_kind(collection, "writes to", |share| share.writes);
        writes.or_else(|| Self::of_kind(collection, "reads of", |share| share.reads))
    }

    fn of_kind(
        collection: &'a SpreadCollection,
        what: &'static str,
        operations: impl Fn(&ShardShare) -> Option<u64>,
    ) -> Option<Self> {
        let with_chunks = |share: &&ShardShare| share.chunks.is_some_and(|chunks| chunks > 0);
        let parts: Vec<&ShardShare> = collection.shards.iter().filter(with_chunks).collect();
        if parts.len() < 2 {
            return None;
        }
        let counts: Vec<u64> = parts
            .iter()
            .map(|share| operations(share))
            .collect::<Option<_>>()?;
        let operations_of_all = total(counts.iter().copied());
        let (share, operations) = parts.iter().zip(counts).max_by_key(|(_, count)| *count)?;
        let of_all = |part: fn(&ShardShare) -> Option<u64>| {
            let all = total(parts.iter().filter_map(|share| part(share)));
            part(share).map_or(0.0, |own| own as f64 / all.max(1) as f64)
        };
        let hot = Self {
            shard: &share.shard,
            what,
            operations,
            operations_of_all,
            data_share: of_all(|share| share.chunks).max(of_all(|share| share.data_bytes)),
            shards: parts.len(),
        };
        let least = SHARE_MIN.max(TIMES_MIN / parts.len() as f64);
        let is_hot = operations_of_all >= OPERATIONS_MIN
            && hot.share() >= least.max(TIMES_OF_DATA_MIN * hot.data_share);
        is_hot.then_some(hot)
    }

    /// Its share of the operations, 0 to 1.
    fn share(&self) -> f64 {
        self.operations as f64 / self.operations_of_all.max(1) as f64
    }
}

/// Adds counts that servers told, which may be anything.
fn total(counts: impl Iterator<Item = u64>) -> u64 {
    counts.fold(0, u64::saturating_add)
}

fn finding(
    evidence: &Evidence<'_>,
    answers: &Answers,
    collection: &SpreadCollection,
    hot: &Hot<'_>,
) -> Finding {
    let key = &collection.key;
    let is_ordered = !key.contains(r#":"hashed""#);
    let reason = match (collection.zones.is_empty(), is_ordered) {
        (false, _) => zoned(collection),
        (true, true) => format!(
            "The shard key is {key}. Either its values grow with each new document, as times, counters and ObjectIds \
             do, so that what is new belongs to the last chunk; or much of the work is about few values or \
             neighbouring ones. More shards do not help with either."
        ),
        (true, false) => format!(
            "The shard key is {key}, which scatters neighbouring values: much of the work is about few values, each \
             of which is on one shard."
        ),
    };
    let remedy = match mongod_version(evidence) {
        Some(major) if major < RESHARDS_SINCE => {
            "A hashed key spreads values that grow; a further field spreads documents that have the same value \
             (refineCollectionShardKey, since MongoDB 4.4). Before MongoDB 5.0 any other change of the key means to \
             copy the documents into a new collection."
        }
        _ => {
            "A hashed key spreads values that grow (reshardCollection, since MongoDB 5.0); a further field spreads \
             documents that have the same value (refineCollectionShardKey)."
        }
    };
    let mut sentences = vec![
        format!(
            "While the cluster was watched, {} did {} of {} {} it, and has {} of its chunks or data ($collStats).",
            hot.shard,
            format_count(hot.operations),
            format_count(hot.operations_of_all),
            hot.what,
            percent(hot.data_share)
        ),
        reason,
        remedy.into(),
    ];
    sentences.extend(time_on(answers, hot.shard));
    Finding {
        id: "shards.hot".into(),
        subject: collection.namespace.clone(),
        title: format!(
            "{} of the {} {} go to one of {} shards, {}",
            percent(hot.share()),
            hot.what,
            collection.namespace,
            hot.shards,
            hot.shard
        ),
        evidence: sentences,
        confidence: match collection.zones.is_empty() {
            true => "medium".into(),
            false => "low".into(),
        },
        risk: "The command only reads. To change the key is to write all documents anew, and queries that name the \
               present one may then go to all shards."
            .into(),
        command: mongosh(evidence.uri(), &distribution_of(&collection.namespace)),
        ..Finding::default()
    }
}

#[cfg(test)]
mod tests {
    use seekscope_run::ClusterRecord;

    use super::*;
    use crate::testing::Recording;

    /// A collection that is spread evenly over shards with this many reads and writes each.
    fn collection(operations: &[(u64, u64)]) -> SpreadCollection {
        let names = ["s0", "s1", "s2", "s3"];
        let share = |(name, (reads, writes)): (&&str, &(u64, u64))| ShardShare {
            shard: (*name).into(),
            chunks: Some(4),
            data_bytes: Some(1 << 30),
            reads: Some(*reads),
            writes: Some(*writes),
            ..ShardShare::default()
        };
        SpreadCollection {
            namespace: "shop.events".into(),
            key: r#"{"at":1}"#.into(),
            shards: names.iter().zip(operations).map(share).collect(),
            moved_chunks: Some(0),
            ..SpreadCollection::default()
        }
    }

    fn found(collection: SpreadCollection, version: &str) -> Vec<Finding> {
        let mut recording = Recording::new();
        recording.examined().target.version = version.into();
        recording.examination().cluster = Some(ClusterRecord {
            collections: vec![collection],
            ..ClusterRecord::default()
        });
        recording.findings(&DETECTOR)
    }

    #[test]
    fn ill() {
        let growing = || collection(&[(400, 100), (300, 4_900)]);
        let all = found(growing(), "4.4.6");
        assert_eq!(
            all[0].title,
            "98 % of the writes to shop.events go to one of 2 shards, s1"
        );
        let said = all[0].evidence.join(" ");
        for words in [
            "s1 did 4,900 of 5,000 writes to it, and has 50 % of its chunks or data",
            r#"The shard key is {"at":1}. Either its values grow"#,
            "Before MongoDB 5.0",
        ] {
            assert!(said.contains(words), "{said}");
        }
        let said = found(growing(), "6.0.1")[0].evidence.join(" ");
        assert!(said.contains("reshardCollection"), "{said}");
        let mut hashed = growing();
        hashed.key = r#"{"customer":"hashed"}"#.into();
        let said = found(hashed, "6.0.1")[0].evidence.join(" ");
        assert!(said.contains("about few values, each"), "{said}");
        let mut zoned = growing();
        zoned.zones = vec!["eu".into()];
        assert_eq!(found(zoned, "6.0.1")[0].confidence, "low");
        let reads = found(collection(&[(10, 90), (990, 110)]), "6.0.1");
        assert!(reads[0].title.starts_with("99 % of the reads of"));
        // Half of it where four shards share the work.
        let four = [(0, 500), (0, 500), (0, 500), (0, 2_000)];
        assert_eq!(found(collection(&four), "6.0.1").len(), 1);
    }

    #[test]
    fn healthy() {
        let none = |collection| assert_eq!(found(collection, "4.4.6"), []);
        none(collection(&[(900, 2_000), (500, 2_900)]));
        none(collection(&[(0, 0), (0, 190)]));
        // As the data: those of moved chunks may still be on the other.
        let mut as_chunks = collection(&[(0, 100), (0, 900)]);
        as_chunks.shards[1].chunks = Some(20);
        none(as_chunks);
        // The others have no chunk yet.
        let mut lone = collection(&[(0, 0), (0, 9_000)]);
        lone.shards[0].chunks = Some(0);
        none(lone);
        for moved in [None, Some(1)] {
            let mut moving = collection(&[(0, 0), (0, 9_000)]);
            moving.moved_chunks = moved;
            none(moving);
        }
        let mut asked_once = collection(&[(0, 0), (0, 9_000)]);
        (asked_once.shards[0].reads, asked_once.shards[0].writes) = (None, None);
        none(asked_once);
        assert_eq!(Recording::new().findings(&DETECTOR), []);
    }
}
