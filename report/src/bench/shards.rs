//! Shows the shards behind a router: where the documents are, and what each shard did.

use seekscope_run::units::format_count;
use seekscope_run::{BenchSharding, BenchStep, RouterCost, ShardFigures, ShardedCollection};

use super::{BenchReportInput, tables};
use crate::numbers::{format_mean_ns, format_rate, format_share};
use crate::table::{Cell, Table};

const NOTHING: &str = "–";

/// Returns the documents of each collection by shard, after each load.
pub(super) fn spread(input: &BenchReportInput<'_>) -> Option<Table> {
    let sharding = input.measurement()?.sharding.as_ref()?;
    let mut table = Table::new(1, &["shard", "chunks", "documents", "share"]);
    for collection in &sharding.collections {
        table.group(heading(sharding, collection));
        for shard in &collection.shards {
            table.row([
                format!("  {}", shard.shard).into(),
                Cell::or(shard.chunks.map(format_count), NOTHING),
                Cell::or(shard.documents.map(format_count), NOTHING),
                Cell::or(shard.share.map(format_share), NOTHING),
            ]);
        }
        let chunks: Option<u64> = collection.shards.iter().map(|shard| shard.chunks).sum();
        table.row([
            "  all".into(),
            Cell::or(chunks.map(format_count), NOTHING),
            Cell::or(collection.documents.map(format_count), NOTHING),
            Cell::Missing(""),
        ]);
        if let Some(copies) = collection.orphans.filter(|copies| *copies > 0) {
            table.row([
                "  copies among them".into(),
                Cell::Missing(""),
                format_count(copies).into(),
                Cell::Missing(""),
            ]);
        }
    }
    table.or_nothing()
}

fn heading(sharding: &BenchSharding, collection: &ShardedCollection) -> String {
    let when = match collection.after.as_str() {
        "" => "as found".to_string(),
        after => format!("after {after}"),
    };
    let variant = match collection.variant.as_str() {
        "" => String::new(),
        variant => format!(" on {variant}"),
    };
    format!(
        "{}{variant}, {} by {}, {when}",
        collection.name,
        <&str>::from(sharding.kind),
        sharding.key
    )
}

/// Returns what each shard did during each step by its own counters, and the client's rate for all together.
pub(super) fn figures<'a>(steps: impl IntoIterator<Item = &'a BenchStep>) -> Option<Table> {
    let mut table = Table::new(
        1,
        &[
            "shard",
            "operations/s",
            "inserts",
            "queries",
            "updates",
            "deletes",
            "mean read",
            "mean write",
        ],
    );
    for step in steps {
        let shards = step.shards.as_ref().map_or(&[][..], |all| &all.shards);
        if shards.is_empty() {
            continue;
        }
        table.group(tables::step_name(step));
        for shard in shards {
            table.row(cells(shard));
        }
        let all = [
            "  client, all".into(),
            format_rate(step.throughput_per_s).into(),
        ];
        let blank = std::iter::repeat_n(Cell::Missing(""), 6);
        table.row(all.into_iter().chain(blank));
    }
    table.or_nothing()
}

fn cells(shard: &ShardFigures) -> [Cell; 8] {
    let count = |count: Option<u64>| Cell::or(count.map(format_count), NOTHING);
    let mean = |ns: Option<f64>| Cell::or(ns.map(format_mean_ns), NOTHING);
    [
        format!("  {}", shard.shard).into(),
        Cell::or(shard.operations_per_s.map(format_rate), NOTHING),
        count(shard.inserts),
        count(shard.queries),
        count(shard.updates),
        count(shard.deletes),
        mean(shard.read_latency_ns),
        mean(shard.write_latency_ns),
    ]
}

/// Says what the router adds to a read of each shard's documents.
pub(super) fn router(input: &BenchReportInput<'_>) -> Vec<String> {
    let sharding = input.measurement().and_then(|m| m.sharding.as_ref());
    let costs = sharding.into_iter().flat_map(|sharding| &sharding.router);
    costs.map(router_sentence).collect()
}

fn router_sentence(cost: &RouterCost) -> String {
    let sure = match cost.added_low_ns.zip(cost.added_high_ns) {
        Some((low, high)) => format!(
            ", 95 % interval {} to {}",
            format_signed_ns(low),
            format_signed_ns(high)
        ),
        None => ", too few for an interval".into(),
    };
    let of = match cost.variant.as_str() {
        "" => String::new(),
        variant => format!(" of {variant}"),
    };
    let added = format_signed_ns(cost.added_ns);
    let adds = match is_told(cost) {
        true => format!("the mongos adds {added}"),
        false => format!("the difference of {added} is too little to tell what the mongos adds"),
    };
    format!(
        "A read of one cached document of {} takes {} through the mongos{of} and {} directly from {}: {adds} ({} reads \
         each way, in turn{sure}).",
        cost.collection,
        format_mean_ns(cost.through_router_ns),
        format_mean_ns(cost.direct_ns),
        cost.shard,
        format_count(cost.pairs),
    )
}

/// Returns whether the difference has an interval, and that does not hold 0.
fn is_told(cost: &RouterCost) -> bool {
    let interval = cost.added_low_ns.zip(cost.added_high_ns);
    interval.is_some_and(|(low, high)| low > 0.0 || high < 0.0)
}

fn format_signed_ns(ns: f64) -> String {
    match ns < 0.0 {
        true => format!("-{}", format_mean_ns(-ns)),
        false => format_mean_ns(ns),
    }
}

#[cfg(test)]
mod tests {
    use seekscope_run::StepShards;

    use super::*;

    #[test]
    fn a_difference_that_may_be_none_is_not_stated() {
        let added = |low_ns| {
            router_sentence(&RouterCost {
                added_ns: 677_000.0,
                added_low_ns: Some(low_ns),
                added_high_ns: Some(1_760_000.0),
                ..RouterCost::default()
            })
        };
        assert!(added(1_000.0).contains("the mongos adds 677 µs"));
        let unsure = added(-408_000.0);
        assert!(unsure.contains("677 µs is too little to tell"), "{unsure}");
        assert!(unsure.contains("-408 µs to 1.76 ms"), "{unsure}");
    }

    #[test]
    fn a_shard_that_did_not_answer_has_no_figures() {
        let known = ShardFigures {
            shard: "a".into(),
            inserts: Some(1_000),
            operations_per_s: Some(100.0),
            read_latency_ns: Some(250_000.0),
            ..ShardFigures::default()
        };
        let unknown = ShardFigures {
            shard: "b".into(),
            ..ShardFigures::default()
        };
        let step = BenchStep {
            name: "load".into(),
            shards: Some(StepShards {
                shards: vec![known, unknown],
                ..StepShards::default()
            }),
            ..BenchStep::default()
        };
        let table = figures([&step, &BenchStep::default()]).unwrap();
        assert_eq!(table.rows.len(), 4);
        let shown = format!("{:?}", table.rows);
        assert!(
            shown.contains("1,000") && shown.contains("250 µs"),
            "{shown}"
        );
        assert!(shown.contains(NOTHING));
        assert_eq!(figures([&BenchStep::default()]), None);
    }
}
