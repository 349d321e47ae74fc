//! `shards.uneven`: a shard of a cluster keeps far more than its share of the data.

use seekscope_run::units::{format_bytes, format_count};
use seekscope_run::{ClusterRecord, Finding, ShardShare, SpreadCollection};

use super::Detector;
use crate::answers::mongod_version;
use crate::wording::{mongosh, mongosh_collection, percent};
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &["shards.uneven"],
    detect,
};

/// How many times an equal share a shard has to keep.
const TIMES_MIN: f64 = 1.5;
/// What it keeps beyond an equal share, in chunks: with less the balancer does not begin to move any.
const CHUNKS_MIN: u64 = 3;
/// The size of a chunk where nothing else was set, bytes: before MongoDB 6.0, and since.
const CHUNK_BYTES_BEFORE_6: u64 = 64 << 20;
const CHUNK_BYTES_SINCE_6: u64 = 128 << 20;
/// Below so many times an equal share of chunks they are spread evenly.
const EVEN_MAX: f64 = 1.2;

const UNKNOWN: &str = "an unknown amount";
/// Shards in one sentence, so that it stays readable.
const SHARDS_TOLD: usize = 6;

/// The shard that keeps too much.
struct Overfull<'a> {
    shard: &'a str,
    /// Share of all, 0 to 1.
    share: f64,
    /// Bytes beyond an equal share.
    excess_bytes: u64,
}

fn detect(evidence: &Evidence<'_>, answers: &Answers) -> Vec<Finding> {
    let Some(cluster) = evidence.examination().and_then(|e| e.cluster.as_ref()) else {
        return Vec::new();
    };
    let default = match mongod_version(evidence) {
        Some(..6) => CHUNK_BYTES_BEFORE_6,
        _ => CHUNK_BYTES_SINCE_6,
    };
    let spread = Spread {
        cluster,
        answers,
        uri: evidence.uri(),
        excess_bytes_min: CHUNKS_MIN.saturating_mul(cluster.chunk_bytes.unwrap_or(default)),
    };
    let collections = cluster.collections.iter();
    let mut findings: Vec<Finding> = collections.filter_map(|c| spread.of_sharded(c)).collect();
    findings.extend(spread.of_others());
    findings
}

/// How a cluster's data is spread.
struct Spread<'a> {
    cluster: &'a ClusterRecord,
    answers: &'a Answers,
    uri: &'a str,
    /// With less beyond an equal share a shard does not keep too much.
    excess_bytes_min: u64,
}

impl<'a> Spread<'a> {
    /// Returns the shard with most of the parts, if that is too much. Nothing is concluded if one of them is not known.
    fn overfull(
        &self,
        parts: impl Iterator<Item = (&'a str, Option<u64>)>,
    ) -> Option<Overfull<'a>> {
        let parts: Option<Vec<(&str, u64)>> =
            parts.map(|(shard, bytes)| Some((shard, bytes?))).collect();
        let parts = parts?;
        let total: u128 = parts.iter().map(|(_, bytes)| u128::from(*bytes)).sum();
        let equal = u64::try_from(total / parts.len().max(1) as u128).ok()?;
        let (shard, bytes) = *parts.iter().max_by_key(|(_, bytes)| *bytes)?;
        let excess_bytes = bytes.saturating_sub(equal);
        let is_too_much =
            excess_bytes >= self.excess_bytes_min.max(1) && bytes as f64 > TIMES_MIN * equal as f64;
        is_too_much.then_some(Overfull {
            shard,
            share: bytes as f64 / total as f64,
            excess_bytes,
        })
    }

    fn overfull_of(&self, collection: &'a SpreadCollection) -> Option<Overfull<'a>> {
        let shares = collection.shards.iter();
        self.overfull(shares.map(|share| (share.shard.as_str(), share.data_bytes)))
    }

    /// Finds a shard that keeps too much of a sharded collection.
    fn of_sharded(&self, collection: &'a SpreadCollection) -> Option<Finding> {
        let overfull = self.overfull_of(collection)?;
        let parts = collection.shards.iter().take(SHARDS_TOLD).map(|share| {
            let bytes = share.data_bytes.map_or(UNKNOWN.into(), format_bytes);
            let chunks = match share.chunks {
                Some(1) => "one chunk".into(),
                Some(count) => format!("{} chunks", format_count(count)),
                None => "an unknown number of chunks".into(),
            };
            format!("{} has {bytes} in {chunks}", share.shard)
        });
        let parts: Vec<String> = parts.collect();
        let mut sentences = vec![format!(
            "The collection is sharded by {}. Of its documents {} ($collStats, config.chunks).",
            collection.key,
            parts.join(", ")
        )];
        sentences.extend(self.time_on(overfull.shard));
        sentences.push(self.why(collection, overfull.shard).into());
        let script = format!(
            "{}.getShardDistribution()",
            mongosh_collection(&collection.namespace)
        );
        let title = format!(
            "{} of {} are on one of {} shards, {}",
            percent(overfull.share),
            collection.namespace,
            collection.shards.len(),
            overfull.shard
        );
        Some(self.finding(&collection.namespace, title, sentences, &script))
    }

    /// Finds a shard that keeps too much although the sharded collections do not account for it.
    fn of_others(&self) -> Option<Finding> {
        let shards = &self.cluster.shards;
        let on_disk = shards.iter().map(|s| (s.shard.as_str(), s.disk_bytes));
        let overfull = self.overfull(on_disk)?;
        let sharded = self.cluster.collections.iter();
        let sharded = sharded.filter_map(|collection| self.overfull_of(collection));
        let on_the_same = sharded.filter(|sharded| sharded.shard == overfull.shard);
        let explained: u64 = on_the_same.map(|sharded| sharded.excess_bytes).sum();
        let all_are_known = self.cluster.collections_left_out == 0;
        if !all_are_known || explained >= overfull.excess_bytes / 2 {
            return None;
        }
        let each = shards.iter().take(SHARDS_TOLD).map(|shard| {
            let bytes = shard.disk_bytes.map_or(UNKNOWN.into(), format_bytes);
            format!("{} keeps {bytes}", shard.shard)
        });
        let each: Vec<String> = each.collect();
        let mut sentences = vec![format!(
            "On disk {} (listDatabases), and the collections that are sharded do not account for the difference.",
            each.join(", ")
        )];
        sentences.extend(self.time_on(overfull.shard));
        sentences.push(NOT_SHARDED.into());
        let title = format!(
            "{} of the data are on one of {} shards, {}, mostly in collections that are not sharded",
            percent(overfull.share),
            shards.len(),
            overfull.shard
        );
        Some(self.finding(overfull.shard, title, sentences, "sh.status()"))
    }

    fn finding(
        &self,
        subject: &str,
        title: String,
        evidence: Vec<String>,
        script: &str,
    ) -> Finding {
        Finding {
            id: "shards.uneven".into(),
            subject: subject.into(),
            title,
            evidence,
            confidence: "high".into(),
            risk: RISK.into(),
            command: mongosh(self.uri, script),
            ..Finding::default()
        }
    }

    /// Says what the shard had to do in the time observed.
    fn time_on(&self, shard: &str) -> Option<String> {
        let mut answers = self.answers.shards.iter();
        let share = answers.find(|answer| answer.shard == shard)?.time_share?;
        Some(format!(
            "Of the time that reads and writes took on all shards, {} passed on this one (opLatencies).",
            percent(share)
        ))
    }

    /// Says why the collection is spread so, as far as the cluster's records show it.
    fn why(&self, collection: &SpreadCollection, shard: &str) -> &'static str {
        let chunks = |of: &ShardShare| of.chunks.unwrap_or(0);
        let all: u64 = collection.shards.iter().map(chunks).sum();
        let own = collection.shards.iter().find(|share| share.shard == shard);
        let equal = all as f64 / collection.shards.len().max(1) as f64;
        if all > 0 && (own.map_or(0, chunks) as f64) < EVEN_MAX * equal {
            return UNLIKE_CHUNKS;
        }
        match (self.cluster.balancer_on, self.cluster.moved_chunks) {
            (Some(false), _) => BALANCER_OFF,
            (_, Some(1..)) => UNDER_WAY,
            (Some(true), _) => BALANCER_IDLE,
            (None, _) => "Whether the balancer is on is not known.",
        }
    }
}

const RISK: &str = "The command only reads. Moving chunks reads them on one shard and writes them on another; do that \
                    when both have little to do.";
const NOT_SHARDED: &str = "Collections that are not sharded stay on the primary shard of their database: shard the \
                           largest, or give some databases another primary shard (movePrimary).";
const UNLIKE_CHUNKS: &str = "The chunks are spread evenly, but those of this shard hold more: many documents with the \
                             same or neighbouring values of the shard key, or chunks that were never split.";
const BALANCER_OFF: &str =
    "The balancer is off, so that nothing evens this out (sh.startBalancer() turns it on).";
const UNDER_WAY: &str =
    "Chunks were moved while the cluster was watched, so this may be evened out by and by.";
const BALANCER_IDLE: &str = "The balancer is on and moved nothing in that time: it may be confined to a window, turned \
                             off for this collection, or its chunks may be too large to move (sh.status() tells).";

#[cfg(test)]
mod tests {
    use seekscope_run::ShardOnDisk;

    use super::*;
    use crate::testing::Recording;

    const MIB: u64 = 1 << 20;

    /// A cluster of two shards with a collection of these sizes and numbers of chunks.
    fn cluster(data_mib: [u64; 2], chunks: [u64; 2]) -> Recording {
        let names = ["s0", "s1"];
        let share = |at: usize| ShardShare {
            shard: names[at].into(),
            chunks: Some(chunks[at]),
            data_bytes: Some(data_mib[at] * MIB),
            ..ShardShare::default()
        };
        let on_disk = |at: usize| ShardOnDisk {
            shard: names[at].into(),
            disk_bytes: Some(data_mib[at] * MIB / 2),
        };
        let mut recording = Recording::new();
        recording.examination().cluster = Some(ClusterRecord {
            balancer_on: Some(true),
            moved_chunks: Some(0),
            shards: vec![on_disk(0), on_disk(1)],
            collections: vec![SpreadCollection {
                namespace: "shop.orders".into(),
                key: r#"{"customer":1}"#.into(),
                shards: vec![share(0), share(1)],
            }],
            ..ClusterRecord::default()
        });
        recording
    }

    fn record(recording: &mut Recording) -> &mut ClusterRecord {
        recording.examination().cluster.as_mut().unwrap()
    }

    #[test]
    fn ill() {
        let mut recording = cluster([900, 100], [30, 4]);
        record(&mut recording).balancer_on = Some(false);
        let found = recording.findings(&DETECTOR);
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(found[0].subject, "shop.orders");
        let title = "90 % of shop.orders are on one of 2 shards, s0";
        assert_eq!(found[0].title, title);
        let said = found[0].evidence.join(" ");
        assert!(said.contains("s1 has 100 MiB in 4 chunks"), "{said}");
        assert!(said.contains("balancer is off"), "{said}");
    }

    #[test]
    fn the_reason_is_what_the_records_show() {
        let said = |recording: &Recording| recording.findings(&DETECTOR)[0].evidence.join(" ");
        let even = said(&cluster([900, 100], [10, 10]));
        assert!(even.contains("chunks are spread evenly"), "{even}");
        let mut moving = cluster([900, 100], [30, 4]);
        record(&mut moving).moved_chunks = Some(3);
        assert!(said(&moving).contains("evened out by and by"));
        let idle = said(&cluster([900, 100], [30, 4]));
        assert!(idle.contains("moved nothing"), "{idle}");
    }

    #[test]
    fn data_that_is_not_sharded_is_told_from_chunks() {
        let mut recording = cluster([500, 500], [8, 8]);
        record(&mut recording).shards[1].disk_bytes = Some(4_000 * MIB);
        let found = recording.findings(&DETECTOR);
        assert_eq!(found.len(), 1, "{found:#?}");
        assert!(found[0].title.ends_with("collections that are not sharded"));
        assert_eq!(found[0].subject, "s1");
    }

    #[test]
    fn healthy() {
        assert_eq!(Recording::new().findings(&DETECTOR), []);
        assert_eq!(cluster([500, 450], [8, 8]).findings(&DETECTOR), []);
        // Less than the balancer would move.
        assert_eq!(cluster([200, 10], [3, 1]).findings(&DETECTOR), []);
        let mut large_chunks = cluster([900, 100], [30, 4]);
        record(&mut large_chunks).chunk_bytes = Some(256 * MIB);
        assert_eq!(large_chunks.findings(&DETECTOR), []);
        // Chunks were half as large before.
        let mut older = cluster([600, 100], [10, 2]);
        assert_eq!(older.findings(&DETECTOR), []);
        older.examined().target.version = "4.4.6".into();
        assert_eq!(older.findings(&DETECTOR).len(), 1);
        let mut unknown = cluster([900, 100], [30, 4]);
        record(&mut unknown).collections[0].shards[1].data_bytes = None;
        record(&mut unknown).shards[1].disk_bytes = None;
        assert_eq!(unknown.findings(&DETECTOR), []);
    }
}
