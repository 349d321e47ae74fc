//! `shards.uneven`: a shard of a cluster keeps far more than its share of the data.

use seekscope_run::units::{format_bytes, format_count};
use seekscope_run::{ClusterRecord, Finding, ShardOnDisk, ShardShare, SpreadCollection};

use super::{Detector, distribution_of, time_on, zoned};
use crate::answers::mongod_version;
use crate::wording::{mongosh, percent};
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &["shards.uneven"],
    detect,
};

/// How many times an equal share a shard has to keep.
const TIMES_MIN: f64 = 1.5;
/// What it keeps beyond an equal share, in chunks: with less the balancer does not begin to move any.
const CHUNKS_MIN: u64 = 3;
/// Before MongoDB 6.0 the balancer goes by the number of chunks, however small they are. Less than this beyond an equal
/// share is too little to matter, bytes.
const COUNTED_BYTES_MIN: u64 = 16 << 20;
/// The size of a chunk where nothing else was set, bytes: before MongoDB 6.0, and since.
const CHUNK_BYTES_BEFORE_6: u64 = 64 << 20;
const CHUNK_BYTES_SINCE_6: u64 = 128 << 20;
/// Below this many times an equal share of chunks they are spread evenly.
const EVEN_MAX: f64 = 1.2;

/// Where one in this many chunks of the shard, or more, was moved meanwhile, the spread is another one in the end.
const MOVED_PARTS: u64 = 4;

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
    /// How many shards were compared.
    shards: usize,
}

fn detect(evidence: &Evidence<'_>, answers: &Answers) -> Vec<Finding> {
    let Some(cluster) = evidence.examination().and_then(|e| e.cluster.as_ref()) else {
        return Vec::new();
    };
    let goes_by_number = matches!(mongod_version(evidence), Some(..6));
    let default = match goes_by_number {
        true => CHUNK_BYTES_BEFORE_6,
        false => CHUNK_BYTES_SINCE_6,
    };
    let spread = Spread {
        cluster,
        answers,
        uri: evidence.uri(),
        goes_by_number,
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
    /// Whether the balancer goes by the number of chunks, not by their bytes.
    goes_by_number: bool,
    /// The fewest bytes beyond an equal share that count as too much.
    excess_bytes_min: u64,
}

impl<'a> Spread<'a> {
    /// Returns the shard with most of the parts, if that is too much. Nothing is concluded if one of them is not known.
    /// Shards that are being removed are left out: what they keep has to go, and nothing comes to them.
    fn overfull(
        &self,
        parts: impl Iterator<Item = (&'a str, Option<u64>)>,
        excess_bytes_min: u64,
    ) -> Option<Overfull<'a>> {
        let parts: Option<Vec<(&str, u64)>> = parts
            .filter(|(shard, _)| self.stays(shard))
            .map(|(shard, bytes)| Some((shard, bytes?)))
            .collect();
        let parts = parts?;
        let total: u128 = parts.iter().map(|(_, bytes)| u128::from(*bytes)).sum();
        let equal = u64::try_from(total / parts.len().max(1) as u128).ok()?;
        let (shard, bytes) = *parts.iter().max_by_key(|(_, bytes)| *bytes)?;
        let excess_bytes = bytes.saturating_sub(equal);
        let is_too_much =
            excess_bytes >= excess_bytes_min.max(1) && bytes as f64 > TIMES_MIN * equal as f64;
        is_too_much.then_some(Overfull {
            shard,
            share: bytes as f64 / total as f64,
            excess_bytes,
            shards: parts.len(),
        })
    }

    fn stays(&self, shard: &str) -> bool {
        let mut shards = self.cluster.shards.iter();
        !shards.any(|known| known.shard == shard && known.draining)
    }

    /// Returns how much beyond an equal share a shard has to keep of a collection, bytes.
    fn excess_bytes_min_of(&self, collection: &SpreadCollection) -> u64 {
        let shards = collection.shards.iter();
        let chunks: Vec<u64> = shards
            .filter(|share| self.stays(&share.shard))
            .map(|share| share.chunks.unwrap_or(0))
            .collect();
        let equal = chunks.iter().sum::<u64>() / chunks.len().max(1) as u64;
        let most = chunks.iter().max().copied().unwrap_or(0);
        match self.goes_by_number && most.saturating_sub(equal) >= CHUNKS_MIN {
            true => self.excess_bytes_min.min(COUNTED_BYTES_MIN),
            false => self.excess_bytes_min,
        }
    }

    /// Finds a shard that keeps too much of a sharded collection.
    fn of_sharded(&self, collection: &'a SpreadCollection) -> Option<Finding> {
        let shares = || collection.shards.iter();
        let own = shares().map(|share| (share.shard.as_str(), own_bytes(collection, share)));
        let all = shares().map(|share| (share.shard.as_str(), share.data_bytes));
        let excess_bytes_min = self.excess_bytes_min_of(collection);
        self.overfull(own, excess_bytes_min)?;
        let overfull = self.overfull(all, excess_bytes_min)?;
        let reason = Reason::of(self.cluster, collection, overfull.shard);
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
        let mut sentences = vec![
            format!(
                "The collection is sharded by {}. Of its documents {} ($collStats, config.chunks).",
                collection.key,
                parts.join(", ")
            ),
            reason.sentence(self.cluster, collection),
        ];
        sentences.extend(time_on(self.answers, overfull.shard));
        let script = distribution_of(&collection.namespace);
        let title = format!(
            "{} of {} are on one of {} shards, {}",
            percent(overfull.share),
            collection.namespace,
            overfull.shards,
            overfull.shard
        );
        // Where nobody answered in the end, the spread is that of the beginning.
        let moved = collection.moved_chunks.unwrap_or(0);
        let own = collection
            .shards
            .iter()
            .find(|share| share.shard == overfull.shard);
        let is_past = own.is_some_and(|own| {
            own.writes.is_none() && moved * MOVED_PARTS >= own.chunks.unwrap_or(0).max(1)
        });
        if is_past {
            sentences.push(format!(
                "That was so when the watch began; {} of its chunks were moved since.",
                format_count(moved)
            ));
        }
        let confidence = match reason {
            Reason::Zones => "low",
            _ if is_past => "low",
            _ => "high",
        };
        Some(Finding {
            confidence: confidence.into(),
            ..self.finding(&collection.namespace, title, sentences, &script)
        })
    }

    /// Finds a shard that keeps too much because of collections that are not sharded.
    fn of_others(&self) -> Option<Finding> {
        if !self.cluster.lists_all() {
            return None;
        }
        let shards = &self.cluster.shards;
        let on_disk = shards.iter().map(|s| (s.shard.as_str(), s.disk_bytes));
        let overfull = self.overfull(on_disk, self.excess_bytes_min)?;
        let not_sharded = shards
            .iter()
            .map(|shard| (shard.shard.as_str(), self.not_sharded_bytes(shard)));
        let of_others = self.overfull(not_sharded, self.excess_bytes_min)?;
        let is_cause = of_others.excess_bytes >= overfull.excess_bytes / 2;
        if of_others.shard != overfull.shard || !is_cause {
            return None;
        }
        let each = shards.iter().take(SHARDS_TOLD).map(|shard| {
            let bytes = |bytes: Option<u64>| bytes.map_or(UNKNOWN.into(), format_bytes);
            let (all, others) = (shard.disk_bytes, self.not_sharded_bytes(shard));
            format!(
                "{} keeps {}, of which {} are of collections that are not sharded",
                shard.shard,
                bytes(all),
                bytes(others)
            )
        });
        let each: Vec<String> = each.collect();
        let mut sentences = vec![
            format!("On disk {} (listDatabases, $collStats).", each.join("; ")),
            NOT_SHARDED.into(),
        ];
        sentences.extend(time_on(self.answers, overfull.shard));
        let title = format!(
            "{} of the data are on one of {} shards, {}, mostly in collections that are not sharded",
            percent(overfull.share),
            overfull.shards,
            overfull.shard
        );
        Some(self.finding(overfull.shard, title, sentences, "sh.status()"))
    }

    /// Returns what the collections of a shard that are not sharded take on disk, bytes.
    fn not_sharded_bytes(&self, shard: &ShardOnDisk) -> Option<u64> {
        let collections = self.cluster.collections.iter();
        let shares = collections.flat_map(|collection| &collection.shards);
        let of_shard = shares.filter(|share| share.shard == shard.shard);
        let sharded: Option<u64> = of_shard.map(|share| share.disk_bytes).sum();
        // The two are not of the same moment.
        Some(shard.disk_bytes?.saturating_sub(sharded?))
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
}

/// Returns the bytes that are surely the shard's own. After chunks were moved away it keeps copies for a while: at most of
/// what the other shards have.
fn own_bytes(collection: &SpreadCollection, share: &ShardShare) -> Option<u64> {
    let bytes = share.data_bytes?;
    if !collection.moved_from.contains(&share.shard) {
        return Some(bytes);
    }
    let all: Option<u64> = collection.shards.iter().map(|share| share.data_bytes).sum();
    Some(bytes.saturating_sub(all? - bytes))
}

/// Why a collection is spread unevenly, as far as the cluster's records show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reason {
    /// Somebody ordered where its documents belong.
    Zones,
    OneChunk,
    UnlikeChunks,
    Jumbo(u64),
    BalancingOff,
    BalancerOff,
    UnderWay,
    Failing,
    Window,
    Idle,
    NotKnown,
}

impl Reason {
    /// Returns the first that applies: what keeps the balancer from helping comes before what the balancer does.
    fn of(cluster: &ClusterRecord, collection: &SpreadCollection, shard: &str) -> Self {
        let chunks = |of: &ShardShare| of.chunks.unwrap_or(0);
        let all: u64 = collection.shards.iter().map(chunks).sum();
        let own = collection.shards.iter().find(|share| share.shard == shard);
        let equal = all as f64 / collection.shards.len().max(1) as f64;
        let is_even = all > 0 && (own.map_or(0, chunks) as f64) < EVEN_MAX * equal;
        let moved = collection.moved_chunks.unwrap_or(0);
        match (cluster.balancer_on, collection.jumbo_chunks) {
            _ if !collection.zones.is_empty() => Self::Zones,
            _ if all == 1 => Self::OneChunk,
            _ if is_even => Self::UnlikeChunks,
            (_, Some(jumbo @ 1..)) => Self::Jumbo(jumbo),
            _ if collection.balancing_off => Self::BalancingOff,
            (Some(false), _) => Self::BalancerOff,
            _ if moved > 0 => Self::UnderWay,
            _ if !collection.failed_moves.is_empty() => Self::Failing,
            (Some(true), _) if cluster.balancer_window.is_some() => Self::Window,
            (Some(true), _) => Self::Idle,
            (None, _) => Self::NotKnown,
        }
    }

    fn sentence(self, cluster: &ClusterRecord, collection: &SpreadCollection) -> String {
        match self {
            Self::Zones => zoned(collection),
            Self::OneChunk => "All of it is one chunk, so that there is nothing to balance: either it was never \
                               split, or all documents have the same value of the shard key, which only another \
                               shard key changes."
                .into(),
            Self::UnlikeChunks => "The chunks are spread evenly, but those of this shard hold more: \
                                                  many documents with the same or neighbouring values of the shard \
                                                  key, or chunks that were never split."
                .into(),
            Self::Jumbo(1) => "One of its chunks is marked as too large to move (jumbo): the balancer leaves it where \
                               it is until it is split."
                .into(),
            Self::Jumbo(count) => format!(
                "{} of its chunks are marked as too large to move (jumbo): the balancer leaves them where they are \
                 until they are split.",
                format_count(count)
            ),
            Self::BalancingOff => "The balancer was told to leave this collection alone (sh.enableBalancing ends that)."
                .into(),
            Self::BalancerOff => "The balancer is off, so that nothing evens this out (sh.startBalancer() turns it on)."
                .into(),
            Self::UnderWay => "Chunks of it were moved while the cluster was watched, so this may be evened out by and by."
                .into(),
            Self::Failing => {
                "Attempts to move its chunks fail, as another finding says.".into()
            }
            Self::Window => format!(
                "The balancer is on, but may work only at certain hours ({}).",
                cluster.balancer_window.as_deref().unwrap_or_default()
            ),
            Self::Idle => "The balancer is on and moved none of its chunks in that time (sh.status() tells what it \
                           did last)."
                .into(),
            Self::NotKnown => "Whether the balancer is on is not known.".into(),
        }
    }
}

const RISK: &str = "The command only reads. Moving chunks reads them on one shard and writes them on another; do that \
                    when both have little to do.";
const NOT_SHARDED: &str = "Collections that are not sharded stay on the primary shard of their database: shard the \
                           largest, or give some databases another primary shard (movePrimary).";
#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Recording;

    const MIB: u64 = 1 << 20;

    type Change<'a> = &'a dyn Fn(&mut ClusterRecord);

    /// A cluster of two shards with a collection of these sizes and numbers of chunks.
    fn cluster(data_mib: [u64; 2], chunks: [u64; 2]) -> Recording {
        let names = ["s0", "s1"];
        let share = |at: usize| ShardShare {
            shard: names[at].into(),
            chunks: Some(chunks[at]),
            data_bytes: Some(data_mib[at] * MIB),
            disk_bytes: Some(data_mib[at] * MIB / 2),
            ..ShardShare::default()
        };
        let on_disk = |at: usize| ShardOnDisk {
            shard: names[at].into(),
            disk_bytes: Some(data_mib[at] * MIB / 2),
            ..ShardOnDisk::default()
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
                moved_chunks: Some(0),
                ..SpreadCollection::default()
            }],
            sharded_collections: Some(1),
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
        let said = |chunks: [u64; 2], change: Change<'_>| {
            let mut recording = cluster([900, 100], chunks);
            change(record(&mut recording));
            let found = recording.findings(&DETECTOR);
            found
                .first()
                .map(|f| (f.evidence[1].clone(), f.confidence.clone()))
        };
        let uneven = [30, 4];
        let cases: [(&str, [u64; 2], Change<'_>); 9] = [
            ("moved none of its chunks", uneven, &|_| {}),
            ("chunks are spread evenly", [10, 10], &|_| {}),
            ("All of it is one chunk", [1, 0], &|c| {
                c.balancer_on = Some(false);
            }),
            ("evened out by and by", uneven, &|c| {
                c.collections[0].moved_chunks = Some(3);
            }),
            ("balancer is off", uneven, &|c| c.balancer_on = Some(false)),
            ("hours (23:00-06:00)", uneven, &|c| {
                c.balancer_window = Some("23:00-06:00".into());
            }),
            ("sh.enableBalancing ends that", uneven, &|c| {
                c.collections[0].balancing_off = true;
            }),
            ("2 of its chunks are marked as too large", uneven, &|c| {
                c.collections[0].jumbo_chunks = Some(2);
            }),
            // What other collections did says nothing of this one.
            ("moved none of its chunks", uneven, &|c| {
                c.moved_chunks = Some(3);
            }),
        ];
        for (words, chunks, change) in cases {
            let (sentence, confidence) = said(chunks, change).unwrap();
            assert!(sentence.contains(words), "{sentence}");
            assert_eq!(confidence, "high");
        }
        let evened = said(uneven, &|c| c.collections[0].moved_chunks = Some(25));
        assert_eq!(evened.unwrap().1, "low");
        let zoned = said(uneven, &|c| c.collections[0].zones = vec!["eu".into()]);
        let (sentence, confidence) = zoned.unwrap();
        assert!(sentence.contains("(eu)"), "{sentence}");
        assert_eq!(confidence, "low");
    }

    #[test]
    fn copies_of_what_moved_away_are_not_data_of_the_shard() {
        let from_s0 = |data_mib| {
            let mut recording = cluster(data_mib, [10, 10]);
            record(&mut recording).collections[0].moved_from = vec!["s0".into()];
            recording
        };
        assert_eq!(from_s0([900, 400]).findings(&DETECTOR), []);
        let more_than_copies = from_s0([1_900, 100]).findings(&DETECTOR);
        assert!(more_than_copies[0].title.starts_with("95 %"));
        let mut recording = cluster([900, 100], [10, 10]);
        record(&mut recording).collections[0].moved_from = vec!["s1".into()];
        assert_eq!(recording.findings(&DETECTOR).len(), 1);
    }

    #[test]
    fn a_shard_that_is_being_removed_has_no_share() {
        let mut recording = cluster([900, 100], [30, 4]);
        record(&mut recording).shards[1].draining = true;
        assert_eq!(recording.findings(&DETECTOR), []);
    }

    #[test]
    fn data_that_is_not_sharded_is_told_from_chunks() {
        let mut recording = cluster([500, 500], [8, 8]);
        record(&mut recording).shards[1].disk_bytes = Some(4_000 * MIB);
        let found = recording.findings(&DETECTOR);
        assert_eq!(found.len(), 1, "{found:#?}");
        assert!(found[0].title.ends_with("collections that are not sharded"));
        assert_eq!(found[0].subject, "s1");
        let said = found[0].evidence.join(" ");
        assert!(said.contains("of which 3.66 GiB are of"), "{said}");
        // Free space that moved chunks left in the files of a sharded collection.
        record(&mut recording).collections[0].shards[1].disk_bytes = Some(4_000 * MIB);
        assert_eq!(recording.findings(&DETECTOR), []);
        let unknown: [Change<'_>; 2] = [&|c| c.sharded_collections = None, &|c| {
            c.sharded_collections = Some(2)
        }];
        for change in unknown {
            let mut recording = cluster([500, 500], [8, 8]);
            record(&mut recording).shards[1].disk_bytes = Some(4_000 * MIB);
            change(record(&mut recording));
            assert_eq!(recording.findings(&DETECTOR), []);
        }
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
        // And they are small where nothing has grown: what counts is their number.
        let mut small = cluster([52, 0], [13, 0]);
        assert_eq!(small.findings(&DETECTOR), []);
        small.examined().target.version = "4.4.6".into();
        assert_eq!(small.findings(&DETECTOR).len(), 1);
        let mut tiny = cluster([20, 0], [13, 0]);
        tiny.examined().target.version = "4.4.6".into();
        assert_eq!(tiny.findings(&DETECTOR), []);
        let mut unknown = cluster([900, 100], [30, 4]);
        record(&mut unknown).collections[0].shards[1].data_bytes = None;
        record(&mut unknown).shards[1].disk_bytes = None;
        assert_eq!(unknown.findings(&DETECTOR), []);
    }
}
