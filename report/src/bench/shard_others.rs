//! Tells what shards did, by their own counters, that the client did not ask for.
//!
//! A router may send an operation to several shards, so of the kinds of operations that the client sent only what
//! exceeds the most that these can have become is of others. Of the other kinds all is.

use seekscope_run::units::{format_count, format_list, whole};
use seekscope_run::{BenchMeasurement, BenchStep, OperationResult, ShardFigures};

use crate::numbers::counted;

/// Share of the client's operations from which on those of others are told.
const SHARE_MIN: f64 = 0.03;
/// Fewest operations that are told.
const OPERATIONS_MIN: f64 = 50.0;
/// Shards that are named.
const SHARDS_MAX: usize = 6;

/// Returns a sentence for each step in which the shards did noticeably more than the client's work.
pub(super) fn sentences(bench: &BenchMeasurement) -> Vec<String> {
    let sharding = bench.sharding.as_ref();
    let by_id = sharding.is_some_and(|sharding| sharding.key == "_id");
    let steps = bench.steps.iter();
    steps.filter_map(|step| sentence(step, by_id)).collect()
}

/// Reads a count of a shard.
type Counted = fn(&ShardFigures) -> Option<u64>;

/// The kinds of operations that servers count, with their names and how a shard's are read.
const KINDS: [(&str, Counted); 4] = [
    ("insert", |shard| shard.inserts),
    ("query", |shard| shard.queries),
    ("update", |shard| shard.updates),
    ("delete", |shard| shard.deletes),
];

/// What the client sent of each kind.
#[derive(Debug, Clone, Copy, Default)]
struct Sent {
    operations: [f64; KINDS.len()],
    /// The most that they can be on all shards together.
    at_most: [f64; KINDS.len()],
}

impl Sent {
    /// `by_id`: the documents are assigned to shards by their _id, by which operations name them. `None` if it is not
    /// known what some operation sends.
    fn by(step: &BenchStep, by_id: bool, shards: usize) -> Option<Self> {
        let mut sent = Self::default();
        // Their requests are counted by themselves.
        let single = step.operations.iter().filter(|one| !one.is_transaction);
        for operation in single {
            let (kind, reaches_all) = match operation.name.as_str() {
                "INSERT" => (0, false),
                "READ" => (1, !by_id),
                "SCAN" => (1, true),
                "UPDATE" => (2, !by_id),
                _ => return None,
            };
            let count = most(operation);
            let reached = if reaches_all { shards as f64 } else { 1.0 };
            sent.operations[kind] += count;
            sent.at_most[kind] += count * reached;
        }
        Some(sent)
    }
}

/// Returns the operations, or documents of a batch, that may have been done: those that failed, too.
fn most(operation: &OperationResult) -> f64 {
    let done = match operation.name.as_str() {
        "INSERT" => operation.documents.max(operation.count),
        _ => operation.count,
    };
    (done + operation.errors) as f64
}

fn sentence(step: &BenchStep, by_id: bool) -> Option<String> {
    let found = step.shards.as_ref()?;
    let shards = &found.shards;
    let sent = Sent::by(step, by_id, shards.len())?;
    // The shards are asked every second: their figures may begin before the warm-up has ended.
    let measured_s = shards
        .iter()
        .filter_map(|shard| shard.measured_s)
        .fold(0.0, f64::max);
    let begun_ns = step.warm_up_ended_ns.unwrap_or(step.started_ns);
    let client_s = step.ended_ns.saturating_sub(begun_ns) as f64 / 1e9;
    let longer = (measured_s / client_s).max(1.0);
    let slack = 1.0 + 2.0 * (longer - 1.0);
    let alone = shards.iter().map(|shard| {
        let unsent = KINDS
            .iter()
            .zip(sent.operations)
            .filter(|(_, sent)| *sent <= 0.0);
        let counts = unsent.filter_map(|((_, of), _)| of(shard));
        (shard.shard.as_str(), counts.sum::<u64>())
    });
    let alone: Vec<(&str, u64)> = alone.filter(|(_, count)| *count > 0).collect();
    let beyond = KINDS.iter().enumerate().filter_map(|(at, (name, of))| {
        let counted: Option<u64> = shards.iter().map(of).sum();
        let beyond = counted? as f64 - sent.at_most[at] * slack;
        (sent.operations[at] > 0.0 && beyond >= 1.0).then_some((*name, beyond))
    });
    let beyond: Vec<(&str, f64)> = beyond.collect();
    let of_others = alone.iter().map(|(_, count)| *count as f64).sum::<f64>()
        + beyond.iter().map(|(_, count)| count).sum::<f64>();
    let client: f64 = sent.operations.iter().sum();
    let is_told = client_s > 0.0 && of_others >= OPERATIONS_MIN && of_others >= SHARE_MIN * client;
    is_told.then(|| told(step, &alone, &beyond, found.moved_chunks.unwrap_or(0)))
}

fn told(step: &BenchStep, alone: &[(&str, u64)], beyond: &[(&str, f64)], moved: u64) -> String {
    let mut parts = Vec::new();
    if !alone.is_empty() {
        let of_each: Vec<String> = alone
            .iter()
            .map(|(shard, count)| format!("{shard} did {}", counted(*count, "operation")))
            .collect();
        parts.push(format!(
            "{} of kinds that this benchmark did not send",
            format_list(&of_each, SHARDS_MAX, ", ")
        ));
    }
    parts.extend(beyond.iter().map(|(kind, count)| {
        let count = format_count(whole(*count));
        format!("the shards together count {count} more operations of the kind {kind} than it can have sent")
    }));
    let whose = match moved {
        0 => "They come from other clients or from the cluster itself".to_string(),
        moved => format!(
            "They come from the moves of {}, from other clients or from the cluster itself",
            counted(moved, "chunk")
        ),
    };
    format!(
        "During \"{}\" {}. {whose}, and are included in the table's figures for each shard.",
        step.name,
        parts.join(", and ")
    )
}

#[cfg(test)]
mod tests {
    use seekscope_run::{BenchSharding, StepShards};

    use super::*;

    fn operation(name: &str, count: u64) -> OperationResult {
        OperationResult {
            name: name.into(),
            count,
            ..OperationResult::default()
        }
    }

    fn said(
        operations: Vec<OperationResult>,
        shards: [ShardFigures; 2],
        moved: u64,
    ) -> Vec<String> {
        let step = BenchStep {
            name: "load".into(),
            ended_ns: 10_000_000_000,
            operations,
            shards: Some(StepShards {
                shards: shards.into(),
                moved_chunks: Some(moved),
                ..StepShards::default()
            }),
            ..BenchStep::default()
        };
        sentences(&BenchMeasurement {
            sharding: Some(BenchSharding {
                key: "_id".into(),
                ..BenchSharding::default()
            }),
            steps: vec![step],
            ..BenchMeasurement::default()
        })
    }

    fn shard(name: &str, [inserts, queries, updates]: [u64; 3]) -> ShardFigures {
        ShardFigures {
            shard: name.into(),
            measured_s: Some(10.0),
            inserts: Some(inserts),
            queries: Some(queries),
            updates: Some(updates),
            deletes: Some(0),
            ..ShardFigures::default()
        }
    }

    #[test]
    fn what_a_load_did_not_send_is_of_others() {
        let load = || vec![operation("INSERT", 20_000)];
        let shards = [
            shard("s0", [9_972, 274, 300]),
            shard("s1", [10_028, 270, 287]),
        ];
        assert_eq!(
            said(load(), shards, 0),
            [
                "During \"load\" s0 did 574 operations, s1 did 557 operations of kinds that this benchmark did not send. \
                 They come from other clients or from the cluster itself, and are included in the table's figures for each shard."
            ]
        );
        let quiet = [shard("s0", [9_972, 20, 5]), shard("s1", [10_028, 9, 0])];
        assert_eq!(said(load(), quiet, 0), Vec::<String>::new());
        let moved = [shard("s0", [8_239, 0, 0]), shard("s1", [13_325, 0, 0])];
        let said = said(load(), moved, 5);
        assert!(
            said[0].contains("count 1,564 more operations of the kind insert"),
            "{said:?}"
        );
        assert!(said[0].contains("the moves of 5 chunks"), "{said:?}");
    }

    #[test]
    fn what_a_router_sends_to_every_shard_is_of_the_client() {
        let scans = || vec![operation("SCAN", 1_000)];
        let all = || [shard("s0", [0, 1_000, 0]), shard("s1", [0, 1_000, 0])];
        assert_eq!(said(scans(), all(), 0), Vec::<String>::new());
        assert_eq!(said(vec![operation("READ", 1_000)], all(), 0).len(), 1);
        assert_eq!(
            said(vec![operation("count", 9)], all(), 0),
            Vec::<String>::new()
        );
    }
}
