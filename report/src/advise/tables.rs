//! The ways and the queries as tables.

use seekscope_run::units::{format_bytes, format_count, format_ns, whole};
use seekscope_run::{AdviceRecord, ShapeCost};

use super::sentences;
use crate::layout::sentences::format_s;
use crate::numbers::{format_mean_ns, format_number, format_share};
use crate::table::{Cell, Table};

const NOT_ASKED: &str = "cannot be asked";
const UNKNOWN: &str = "unknown";

/// Returns the ways, with what each costs over all queries.
pub(super) fn ways(advice: &AdviceRecord) -> Option<Table> {
    let columns = [
        "WAY OF STORING",
        "BLOCKS PER QUERY",
        "COLD QUERY",
        "COLD QUERY SAVED",
        "TIME PER HOUR",
        "BYTES PER DOCUMENT",
        "INSERT",
    ];
    let mut table = Table::new(1, &columns);
    for way in &advice.ways {
        if let Some(why) = &way.not_measured {
            table.group(format!("{}: not measured, {why}", way.name));
            continue;
        }
        table.row([
            Cell::from(way.name.clone()),
            Cell::or(way.blocks_per_query.map(format_number), NOT_ASKED),
            Cell::or(way.query_ns.map(format_mean_ns), ""),
            Cell::or(way.saved_share.map(saved), ""),
            Cell::or(way.s_per_hour.map(format_s), UNKNOWN),
            Cell::or(
                way.stored_bytes_per_document
                    .map(|bytes| format_count(whole(bytes))),
                UNKNOWN,
            ),
            Cell::or(way.insert_ns.map(format_mean_ns), UNKNOWN),
        ]);
    }
    table.or_nothing()
}

fn saved(share: f64) -> String {
    match share {
        s if s.abs() < 0.0005 => String::new(),
        s if s < 0.0 => format!("{} more", format_share(-s)),
        s => format_share(s),
    }
}

/// Returns the queries, and what each costs in each way.
pub(super) fn queries(advice: &AdviceRecord) -> Option<Table> {
    let columns = ["QUERY", "BLOCKS", "BETWEEN", "COLD IN THE TRIAL", "WARM"];
    let mut table = Table::new(1, &columns);
    for (number, shape) in advice.shapes.iter().enumerate() {
        table.group(sentences::shape(shape));
        for way in &advice.ways {
            let Some(cost) = way.costs.get(number) else {
                continue;
            };
            let cost = cost.as_ref();
            let name = match cost.is_some_and(|cost| cost.collection_scan) {
                true => format!("  {} (no index)", way.name),
                false => format!("  {}", way.name),
            };
            let between = |cost: &ShapeCost| {
                let (low, high) = (cost.blocks_low, cost.blocks_high);
                format!("{} and {}", format_number(low), format_number(high))
            };
            table.row([
                Cell::from(name),
                Cell::or(cost.map(|cost| format_number(cost.blocks)), NOT_ASKED),
                Cell::or(cost.map(between), ""),
                Cell::or(cost.map(|cost| format_ns(cost.cold_ns)), ""),
                Cell::or(cost.map(|cost| format_ns(cost.warm_ns)), ""),
            ]);
        }
    }
    table.or_nothing()
}

/// Returns what is known of the collection, in a sentence.
pub(super) fn collection(advice: &AdviceRecord) -> String {
    let collection = &advice.collection;
    format!(
        "{} has {} documents of {} bytes on average, in {} and {} of indexes.",
        advice.namespace,
        format_count(collection.documents),
        format_count(collection.data_bytes / collection.documents.max(1)),
        format_bytes(collection.storage_bytes),
        format_bytes(collection.index_bytes)
    )
}
