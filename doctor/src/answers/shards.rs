//! Compares what the shards of a cluster keep with the time that operations took on them.

use schemars::JsonSchema;
use seekscope_run::{COUNTERS_OF_MEMBER, MemberRecord, MemberState};
use serde::{Deserialize, Serialize};

use crate::Evidence;

/// One shard of a cluster, as its router told it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct ShardAnswer {
    pub shard: String,
    /// Bytes of its collections and indexes on disk; null if not known.
    pub disk_bytes: Option<u64>,
    /// `disk_bytes` as a share of those on all shards, 0 to 1; null if those of one are not known.
    pub disk_share: Option<f64>,
    /// Chunks of sharded collections; null if not known.
    pub chunks: Option<u64>,
    /// Whether it is being removed from the cluster.
    pub is_draining: bool,
    /// The share of the time that reads and writes took on the primaries of all shards, 0 to 1; null if the counters
    /// of one are not known, or hardly anything was done.
    pub time_share: Option<f64>,
}

/// Reads and writes of all shards together have to take this long, s per s observed: of less, our own questions and
/// the shards' to each other would be a part.
const TIME_S_PER_S_MIN: f64 = 0.01;

/// Returns the shards in the order of the record; none if no router was asked.
pub(super) fn shards(evidence: &Evidence<'_>) -> Vec<ShardAnswer> {
    let Some(cluster) = evidence.examination().and_then(|e| e.cluster.as_ref()) else {
        return Vec::new();
    };
    let disk_bytes: Vec<Option<u64>> = cluster.shards.iter().map(|s| s.disk_bytes).collect();
    let known = |bytes: &[Option<u64>]| bytes.iter().map(|b| b.map(|b| b as f64)).collect();
    let disk_shares = shares(known(&disk_bytes), 1.0);
    let times = cluster.shards.iter();
    let times = times.map(|shard| time_s_per_s(evidence, &shard.shard));
    let time_shares = shares(times.collect(), TIME_S_PER_S_MIN);
    let all = cluster.shards.iter().zip(disk_shares).zip(time_shares);
    all.map(|((shard, disk_share), time_share)| ShardAnswer {
        shard: shard.shard.clone(),
        disk_bytes: shard.disk_bytes,
        disk_share,
        chunks: shard.chunks,
        is_draining: shard.draining,
        time_share,
    })
    .collect()
}

/// Returns each value as a share of all; `None` if one of them is not known, or all together are less than `total_min`.
fn shares(values: Vec<Option<f64>>, total_min: f64) -> Vec<Option<f64>> {
    let total: Option<f64> = values.iter().copied().sum();
    let total = total.filter(|total| *total >= total_min);
    let share = |value: Option<f64>| Some(value? / total?);
    values.into_iter().map(share).collect()
}

/// Returns how long reads and writes took on the shard's primary, s per s observed.
fn time_s_per_s(evidence: &Evidence<'_>, shard: &str) -> Option<f64> {
    let takes_writes = |member: &&MemberRecord| {
        let states = [MemberState::Primary, MemberState::Standalone];
        member.shard.as_deref() == Some(shard) && states.contains(&member.state)
    };
    let primary = evidence.examination()?.members.iter().find(takes_writes)?;
    let source = format!("{COUNTERS_OF_MEMBER}{}", primary.name);
    let rise = |kind: &str| {
        let name = format!("opLatencies.{kind}.latency");
        evidence.counters.get(&source, &name)?.rate_per_s()
    };
    Some((rise("reads")? + rise("writes")?) / 1e6)
}

#[cfg(test)]
mod tests {
    use seekscope_run::{ClusterRecord, ShardOnDisk};

    use super::*;
    use crate::testing::Recording;

    /// Two shards whose primaries read for this many µs per second.
    fn answers(us_per_s: [f64; 2]) -> Vec<ShardAnswer> {
        let mut recording = Recording::new();
        let examined = recording.examined().clone();
        let names = ["s0", "s1"];
        let member = |at: usize| MemberRecord {
            name: format!("db{at}:27018"),
            shard: Some(names[at].into()),
            state: MemberState::Primary,
            ..examined.clone()
        };
        recording.examination().members = vec![examined.clone(), member(0), member(1)];
        let shards = names.map(|name| ShardOnDisk {
            shard: name.into(),
            disk_bytes: Some(if name == "s0" { 300 } else { 100 }),
            ..ShardOnDisk::default()
        });
        recording.examination().cluster = Some(ClusterRecord {
            shards: shards.into(),
            ..ClusterRecord::default()
        });
        for (at, us) in us_per_s.into_iter().enumerate() {
            let source = format!("{COUNTERS_OF_MEMBER}db{at}:27018");
            recording.values(&source, "opLatencies.reads.latency", |s| us * s);
            recording.values(&source, "opLatencies.writes.latency", |_| 0.0);
        }
        recording.examine(|_, answers| answers.shards.clone())
    }

    #[test]
    fn what_shards_keep_and_the_time_of_their_work() {
        let of = |us_per_s| answers(us_per_s).into_iter().map(|shard| shard.time_share);
        let busy: Vec<Option<f64>> = of([90_000.0, 10_000.0]).collect();
        assert!((busy[0].unwrap() - 0.9).abs() < 1e-9, "{busy:?}");
        assert!((busy[1].unwrap() - 0.1).abs() < 1e-9, "{busy:?}");
        let idle: Vec<Option<f64>> = of([900.0, 100.0]).collect();
        assert_eq!(idle, [None, None]);
        let on_disk = answers([0.0; 2]).into_iter().map(|shard| shard.disk_share);
        assert_eq!(on_disk.collect::<Vec<_>>(), [Some(0.75), Some(0.25)]);
    }
}
