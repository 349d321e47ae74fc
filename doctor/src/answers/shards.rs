//! Compares what the shards of a cluster keep with the time that operations took on them.

use schemars::JsonSchema;
use seekscope_run::{COUNTERS_OF_MEMBER, ClusterRecord, MemberRecord, MemberState};
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
    /// The share of the time that reads and writes took on the primaries of all shards, 0 to 1; null if the counters
    /// of one are not known, or there were none.
    pub time_share: Option<f64>,
}

/// Returns the shards in the order of the record; none if no router was asked.
pub(super) fn shards(evidence: &Evidence<'_>) -> Vec<ShardAnswer> {
    let Some(cluster) = evidence.examination().and_then(|e| e.cluster.as_ref()) else {
        return Vec::new();
    };
    let disk_bytes: Vec<Option<u64>> = cluster.shards.iter().map(|s| s.disk_bytes).collect();
    let known = |bytes: &[Option<u64>]| bytes.iter().map(|b| b.map(|b| b as f64)).collect();
    let disk_shares = shares(known(&disk_bytes));
    let times = cluster.shards.iter();
    let times = times.map(|shard| time_us(evidence, &shard.shard));
    let time_shares = shares(times.collect());
    let all = cluster.shards.iter().zip(disk_shares).zip(time_shares);
    all.map(|((shard, disk_share), time_share)| ShardAnswer {
        shard: shard.shard.clone(),
        disk_bytes: shard.disk_bytes,
        disk_share,
        chunks: chunks(cluster, &shard.shard),
        time_share,
    })
    .collect()
}

/// Returns each value as a share of all; `None` if one of them is not known, or all are 0.
fn shares(values: Vec<Option<f64>>) -> Vec<Option<f64>> {
    let total: Option<f64> = values.iter().copied().sum();
    let total = total.filter(|total| *total > 0.0);
    let share = |value: Option<f64>| Some(value? / total?);
    values.into_iter().map(share).collect()
}

fn chunks(cluster: &ClusterRecord, shard: &str) -> Option<u64> {
    let shares = cluster.collections.iter().flat_map(|c| &c.shards);
    let of_shard = shares.filter(|share| share.shard == shard);
    let complete = cluster.collections_left_out == 0;
    of_shard
        .map(|share| share.chunks)
        .sum::<Option<u64>>()
        .filter(|_| complete)
}

/// Returns how long reads and writes took on the shard's primary in the time observed, µs.
fn time_us(evidence: &Evidence<'_>, shard: &str) -> Option<f64> {
    let takes_writes = |member: &&MemberRecord| {
        let states = [MemberState::Primary, MemberState::Standalone];
        member.shard.as_deref() == Some(shard) && states.contains(&member.state)
    };
    let primary = evidence.examination()?.members.iter().find(takes_writes)?;
    let source = format!("{COUNTERS_OF_MEMBER}{}", primary.name);
    let rise = |kind: &str| {
        let name = format!("opLatencies.{kind}.latency");
        evidence.counters.get(&source, &name)?.increase()
    };
    Some(rise("reads")? + rise("writes")?)
}
