//! The ways and the queries as tables.

use seekscope_run::units::{format_bytes, format_count, format_ns, whole};
use seekscope_run::{AdviceRecord, ShapeCost};

use super::sentences::{self, NOTICED};
use crate::layout::sentences::format_s;
use crate::numbers::{format_mean_ns, format_number, format_share};
use crate::table::{Cell, Table};

const NOT_ASKED: &str = "cannot be asked";
const UNKNOWN: &str = "unknown";
/// A smaller share is no difference: predictions differ by more from one trial to the next.
const SAVED_MIN: f64 = 0.05;

/// Returns the ways, with what each costs over all queries; `None` if none was tried to its end.
pub(super) fn ways(advice: &AdviceRecord) -> Option<Table> {
    if sentences::is_nothing_tried(advice) {
        return None;
    }
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
        s if s.abs() < SAVED_MIN => String::new(),
        s if s < 0.0 => format!("{} more", format_share(-s)),
        s => format_share(s),
    }
}

/// Returns the queries, and what each costs in each way; `None` if that is known of none.
pub(super) fn queries(advice: &AdviceRecord) -> Option<Table> {
    advice.ways.iter().find(|way| !way.costs.is_empty())?;
    let columns = ["QUERY", "BLOCKS", "BETWEEN", "COLD IN THE TRIAL", "WARM"];
    let mut table = Table::new(1, &columns);
    for (number, shape) in advice.shapes.iter().enumerate() {
        table.group(sentences::shape(shape));
        let present = advice
            .ways
            .first()
            .and_then(|way| way.costs.get(number)?.as_ref());
        for way in &advice.ways {
            let Some(cost) = way.costs.get(number) else {
                continue;
            };
            let cost = cost.as_ref();
            let name = match cost.and_then(without_index) {
                Some(note) => format!("  {} ({note})", way.name),
                None => format!("  {}", way.name),
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
                Cell::or(cost.map(|cost| warm(cost, present)), ""),
            ]);
        }
    }
    table.or_nothing()
}

/// Says where queries read the whole collection for want of an index: all of them, or those that an index of some documents
/// does not serve.
fn without_index(cost: &ShapeCost) -> Option<&'static str> {
    let uses_one = cost.index_blocks > 0.0 || cost.index_blocks_of_whole.is_some_and(|n| n > 0.0);
    match (cost.collection_scan, uses_one) {
        (false, _) => None,
        (true, true) => Some("no index for some"),
        (true, false) => Some("no index"),
    }
}

/// Returns the time of a query with everything cached, unless it differs from that as it is by no more than such times do by
/// themselves.
fn warm(cost: &ShapeCost, present: Option<&ShapeCost>) -> String {
    let is_alike = |present: &ShapeCost| {
        let change = cost.warm_ns as f64 / present.warm_ns.max(1) as f64 - 1.0;
        !std::ptr::eq(cost, present) && change.abs() <= NOTICED
    };
    match present.filter(|present| is_alike(present)) {
        Some(_) => "about as long".into(),
        None => format_ns(cost.warm_ns),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_index_serves_in_part_is_not_without_one() {
        let of = |collection_scan, index_blocks_of_whole| {
            without_index(&ShapeCost {
                collection_scan,
                index_blocks_of_whole,
                ..ShapeCost::default()
            })
        };
        assert_eq!(of(false, Some(1.0)), None);
        assert_eq!(of(true, Some(0.0)), Some("no index"));
        assert_eq!(of(true, Some(0.25)), Some("no index for some"));
    }

    #[test]
    fn warm_queries_that_differ_by_noise_do_not_differ() {
        let of = |warm_ns| ShapeCost {
            warm_ns,
            ..ShapeCost::default()
        };
        let present = of(400_000);
        assert_eq!(warm(&present, Some(&present)), format_ns(400_000));
        assert_eq!(warm(&of(350_000), Some(&present)), "about as long");
        assert_eq!(warm(&of(200_000), Some(&present)), format_ns(200_000));
        assert_eq!(saved(0.007), "");
    }
}
