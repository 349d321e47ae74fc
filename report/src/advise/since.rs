//! What became of an earlier run's advice.

use seekscope_run::units::{format_count, whole};
use seekscope_run::{AdviceRecord, AdviceSince, CollectionUse};

use crate::numbers::{format_mean_ns, format_number, format_rate, format_share};
use crate::page::Block;
use crate::table::{Cell, Table};

/// A reduction is as predicted if it is at least this much of the predicted one.
const AS_PREDICTED: f64 = 0.75;
/// A smaller one is none.
const SAVED_MIN: f64 = 0.05;
const UNKNOWN: &str = "unknown";

/// Returns what became of it in one sentence.
pub(super) fn headline(advice: &AdviceRecord, since: &AdviceSince) -> String {
    let namespace = &advice.namespace;
    let pages = |used: Option<CollectionUse>| used.and_then(|used| used.pages_per_read());
    let known = since
        .measured_saved
        .zip(pages(since.before).zip(pages(advice.collection.used)));
    let Some((saved, (before, now))) = known else {
        let why = since
            .cannot_tell
            .as_deref()
            .unwrap_or("too little is known");
        return format!("Whether the advice for {namespace} has come true cannot be told: {why}");
    };
    let how = match saved {
        s if s >= AS_PREDICTED * since.predicted_saved => "As predicted",
        s if s >= SAVED_MIN => "Less than predicted",
        _ => "Not as predicted",
    };
    let change = match saved {
        s if s.abs() < SAVED_MIN => "as many as before".into(),
        s if s < 0.0 => format!("{} more", format_share(-s)),
        s => format!("{} fewer", format_share(s)),
    };
    format!(
        "{how}: a read of {namespace} makes the server read {} pages from its files instead of {}, {change}; {} fewer \
         were predicted",
        format_number(now),
        format_number(before),
        format_share(since.predicted_saved)
    )
}

/// Returns everything after the headline.
pub(super) fn blocks(advice: &AdviceRecord, since: &AdviceSince) -> Vec<Block> {
    let mut blocks = Block::tables([Some(table(since.before, advice.collection.used))]);
    blocks.extend(Block::sentences([
        format!("The run {} advised {}.", since.run, since.way),
        "The prediction is of blocks that a query reads while nothing is cached; the pages are those that the server's \
         cache lacked. Fewer blocks leave more room in the cache, so that more may be saved than predicted. Reads are \
         all queries on the collection, and requests for more of their answers."
            .into(),
    ]));
    blocks
}

fn table(before: Option<CollectionUse>, now: Option<CollectionUse>) -> Table {
    let mut table = Table::new(1, &["", "THEN", "NOW"]);
    type Figure = fn(CollectionUse) -> Option<String>;
    let figures: [(&str, Figure); 5] = [
        ("Watched for", |used| {
            Some(format!("{} s", format_count(whole(used.elapsed_s))))
        }),
        ("Reads per second", |used| {
            Some(format_rate(used.reads_per_s()))
        }),
        ("Writes per second", |used| {
            Some(format_rate(used.writes_per_s()))
        }),
        ("Pages per read", |used| {
            used.pages_per_read().map(format_number)
        }),
        ("Time of a read in the server", |used| {
            used.read_ns().map(format_mean_ns)
        }),
    ];
    for (name, figure) in figures {
        table.row([
            Cell::from(name),
            Cell::or(before.and_then(figure), UNKNOWN),
            Cell::or(now.and_then(figure), UNKNOWN),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use seekscope_run::AdvisedCollection;

    use super::*;

    fn said(measured_saved: Option<f64>) -> String {
        let used = |pages| {
            Some(CollectionUse {
                reads: 100,
                pages_read: Some(pages),
                ..CollectionUse::default()
            })
        };
        let advice = AdviceRecord {
            namespace: "shop.orders".into(),
            collection: AdvisedCollection {
                used: used(50),
                ..AdvisedCollection::default()
            },
            ..AdviceRecord::default()
        };
        let since = AdviceSince {
            predicted_saved: 0.9,
            before: used(1_000),
            measured_saved,
            cannot_tell: measured_saved
                .is_none()
                .then(|| "3 reads are too few".into()),
            ..AdviceSince::default()
        };
        headline(&advice, &since)
    }

    #[test]
    fn what_came_of_it_is_one_sentence() {
        let expected = "As predicted: a read of shop.orders makes the server read 0.50 pages from its files instead of \
                        10.0, 95.0 % fewer; 90.0 % fewer were predicted";
        assert_eq!(said(Some(0.95)), expected);
        for (saved, begins, has) in [
            (Some(0.3), "Less than predicted", "30.0 % fewer"),
            (Some(0.01), "Not as predicted", "as many as before"),
            (Some(-0.5), "Not as predicted", "50.0 % more"),
            (None, "Whether", "cannot be told: 3 reads are too few"),
        ] {
            let said = said(saved);
            assert!(said.starts_with(begins) && said.contains(has), "{said}");
        }
    }
}
