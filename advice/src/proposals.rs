//! Which ways of storing fit the shapes of the queries on a collection, each with the reason to try it.

mod indexes;

use bson::Document;
use seekscope_run::QueryShape;

use crate::index_keys::{best_keys, is_served_by};
use crate::sample::SampleFacts;
use crate::way::{DAY_MS, HOUR_MS, MINUTE_MS, SAMPLES, Way, are_same};
use indexes::{covering, free_keys, has_keys, index, indexes_of_all, same_keys};
pub(crate) use indexes::{keys_of, serves_some, serving};

/// The most ways that are tried.
const WAYS_MAX: usize = 8;
/// Documents of this size and more gain little in buckets: few of them fill a page.
const BUCKETED_BYTES_MAX: f64 = 4_096.0;
/// A bucket is read as a whole, and rewritten as a whole for each sample that it gets.
const BUCKET_BYTES_MAX: f64 = 32_768.0;
/// Fewer documents in a bucket save too little.
const BUCKET_DOCUMENTS_MIN: f64 = 4.0;
/// Queries that return this many documents return several.
const SEVERAL: f64 = 2.0;
/// The compressor that is tried: every server that can be connected to has it.
const ZSTD: &str = "zstd";
/// The stretches of time that a bucket may hold, the longest first.
const SPANS_MS: [i64; 7] = [
    30 * DAY_MS,
    7 * DAY_MS,
    DAY_MS,
    6 * HOUR_MS,
    HOUR_MS,
    10 * MINUTE_MS,
    MINUTE_MS,
];

/// A way and why it is tried.
#[derive(Debug, Clone, PartialEq)]
pub struct Proposal {
    pub way: Way,
    pub reason: String,
    /// Whether its order is lost again as documents are added.
    pub decays: bool,
}

/// How the collection is stored now.
#[derive(Debug, Clone, Copy)]
pub struct Present<'a> {
    /// Specifications as `listIndexes` answers.
    pub indexes: &'a [Document],
    /// Whether the documents have to stay in their file: the server keeps them in an order of its own, or no copy could
    /// take their place.
    pub keeps_file: bool,
    /// Whether the server is a shard, which needs an index that begins with its shard key.
    pub is_on_shards: bool,
    /// Whether the documents lie in the order in which a secondary applied them, several at a time: it does not tell
    /// that of their inserts.
    pub is_of_secondary: bool,
    /// The compressor of its blocks; empty if they are not compressed, `None` if it is not known.
    pub compressor: Option<&'a str>,
}

/// Returns the present way and those that fit the shapes, without any twice.
pub fn proposals(
    shapes: &[QueryShape],
    present: Present<'_>,
    facts: &SampleFacts,
) -> Vec<Proposal> {
    let indexes = present.indexes;
    let mut found = vec![Proposal {
        way: Way::Present,
        reason: String::new(),
        decays: false,
    }];
    let of_shapes = shapes.iter().flat_map(|shape| {
        [
            index(shape, present),
            covering(shape, present, facts),
            buckets(shape, facts),
            order(shape, indexes, facts),
        ]
    });
    let of_all = [
        compressor(shapes, present, facts),
        growing_id(shapes, facts).filter(|_| !present.is_of_secondary),
    ];
    // First, because more than one of the others cannot be had at once.
    let first = indexes_of_all(shapes, present);
    let proposals = std::iter::once(first).chain(of_shapes).chain(of_all);
    for proposal in proposals.flatten() {
        let is_possible = proposal.way.keeps_file() || !present.keeps_file;
        let is_new = !found.iter().any(|known| is_same(&known.way, &proposal.way));
        if is_possible && is_new && found.len() < WAYS_MAX {
            found.push(proposal);
        }
    }
    found
}

/// Returns an `_id` that grows, if the present one does not and no query asks for it.
fn growing_id(shapes: &[QueryShape], facts: &SampleFacts) -> Option<Proposal> {
    let id = facts.field("_id")?;
    let is_free = shapes.iter().all(|shape| Way::GrowingId.answers(shape));
    let is_scattered = id.present > 0 && !id.follows_age;
    (is_free && is_scattered).then(|| Proposal {
        way: Way::GrowingId,
        reason: "Each insert goes to another page of the index on _id.".into(),
        decays: false,
    })
}

/// Returns a compressor that makes blocks smaller, if queries return several documents, of which more then lie in one
/// block.
fn compressor(
    shapes: &[QueryShape],
    present: Present<'_>,
    facts: &SampleFacts,
) -> Option<Proposal> {
    let now = present.compressor?;
    let is_smaller = matches!(now, "" | "none" | "snappy");
    let gains = shapes.iter().any(|shape| returns_several(shape, facts));
    (is_smaller && gains).then(|| Proposal {
        way: Way::Compressor { name: ZSTD.into() },
        reason: format!(
            "Blocks compressed by {ZSTD} hold more documents than {}, and the server takes longer to unpack them.",
            match now {
                "snappy" => "those compressed by snappy",
                _ => "those that are not compressed",
            }
        ),
        decays: false,
    })
}

fn is_same(way: &Way, other: &Way) -> bool {
    let (keys, others) = (way.keys(), other.keys());
    way == other
        && keys
            .iter()
            .zip(&others)
            .all(|(keys, others)| are_same(keys, others))
}

/// Returns the order of documents that puts together what a query returns, if it returns several.
fn order(shape: &QueryShape, indexes: &[Document], facts: &SampleFacts) -> Option<Proposal> {
    if !returns_several(shape, facts) {
        return None;
    }
    let best = best_keys(shape);
    // An index can be read backwards, and so can what is stored in its order.
    let known = serving(indexes).find(|known| is_served_by(shape, known));
    let creates_index = known.is_none();
    let keys: Document = match known {
        Some(known) => known.clone().into_iter().take(best.len()).collect(),
        None => free_keys(best.clone(), indexes),
    };
    let first = keys.keys().next()?;
    // A document with a list has several places in such an order.
    let has_lists = |path: &String| facts.field(path).is_some_and(|field| field.lists > 0);
    if keys.keys().any(has_lists) {
        return None;
    }
    // They are in that order already.
    if facts.field(first).is_some_and(|field| field.follows_age) {
        return None;
    }
    let decays = asks_by_age(shape, facts);
    let mut reason = String::from(
        "What a query returns lies scattered in the order of insertion; in that of its index it lies side by side.",
    );
    if creates_index && has_keys(indexes, &best) {
        reason = format!("{reason} {}", same_keys(indexes, &best));
    }
    if decays {
        reason.push_str(
            " New documents are added at the end, so the order is lost again and must be renewed.",
        );
    }
    Some(Proposal {
        way: Way::Order {
            keys,
            creates_index,
        },
        reason,
        decays,
    })
}

/// Returns whether a query asks for a stretch of what grows with age, so that what it returns lies in a stretch of the
/// file. Of an order the first field decides that is not the same for all that match: the next ones only order what is
/// alike in it.
pub fn asks_by_age(shape: &QueryShape, facts: &SampleFacts) -> bool {
    let grows = |field: &String| facts.field(field).is_some_and(|facts| facts.follows_age);
    let is_same = |field: &String| shape.equality.contains(field) && !shape.one_of.contains(field);
    let mut sorted = shape.sort.iter().map(|sort| &sort.field);
    shape.range.iter().any(grows) || sorted.find(|field| !is_same(field)).is_some_and(grows)
}

fn returns_several(shape: &QueryShape, facts: &SampleFacts) -> bool {
    if shape.limit.is_some_and(|limit| limit < SEVERAL) {
        return false;
    }
    if let Some(returned) = shape.returned {
        return returned >= SEVERAL;
    }
    let is_key = |path: &String| {
        let field = facts.field(path);
        let is_unique =
            field.is_some_and(|field| field.present > 0 && field.distinct == field.present);
        is_unique && shape.values_of(path) < SEVERAL
    };
    !shape.range.is_empty() || !shape.equality.iter().any(is_key)
}

/// Returns whether a bucket can have these fields beside its own, none of them within another.
fn fit_side_by_side(keys: &[String], time: &str) -> bool {
    let fields = keys.iter().map(String::as_str);
    let fields: Vec<&str> = fields.chain([time, "_id", SAMPLES]).collect();
    let is_within = |inner: &str, outer: &str| {
        let rest = inner.strip_prefix(outer);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    fields.iter().enumerate().all(|(number, field)| {
        let mut others = fields
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != number);
        !others.any(|(_, other)| is_within(field, other))
    })
}

/// Returns buckets by what is compared and by time, if small documents are read by both.
fn buckets(shape: &QueryShape, facts: &SampleFacts) -> Option<Proposal> {
    if shape.equality.is_empty() || facts.document_bytes() > BUCKETED_BYTES_MAX {
        return None;
    }
    let sorted = shape.sort.iter().map(|sort| &sort.field);
    let mut times = shape.range.iter().chain(sorted);
    let time = times.find_map(|path| {
        let field = facts.field(path)?;
        (field.dates > 0 && field.dates == field.present && field.present == facts.documents)
            .then_some(field)
    })?;
    let (first_ms, last_ms) = time.dates_ms?;
    let seen_ms = last_ms - first_ms;
    let keys: u64 = shape
        .equality
        .iter()
        .filter_map(|path| facts.field(path))
        .map(|field| field.distinct)
        .fold(1, u64::saturating_mul);
    let of_one_key = facts.documents as f64 / keys.min(facts.documents).max(1) as f64;
    let in_bucket = |span_ms: i64| of_one_key * span_ms as f64 / seen_ms.max(1) as f64;
    let fits = |span_ms: &&i64| {
        let documents = in_bucket(**span_ms);
        // The sample must show whole buckets.
        **span_ms <= seen_ms / 2
            && documents >= BUCKET_DOCUMENTS_MIN
            && documents * facts.document_bytes() <= BUCKET_BYTES_MAX
    };
    let span_ms = *SPANS_MS.iter().find(fits)?;
    let way = Way::Buckets {
        keys: shape.equality.clone(),
        time: time.path.clone(),
        span_ms,
    };
    if !way.answers(shape) || !fit_side_by_side(&shape.equality, &time.path) {
        return None;
    }
    Some(Proposal {
        way,
        reason: format!(
            "Documents of {:.0} bytes are read by {} and time; about {:.0} of them fit into one document, which has \
             one key in each index.",
            facts.document_bytes(),
            shape.equality.join(", "),
            in_bucket(span_ms)
        ),
        decays: false,
    })
}

#[cfg(test)]
mod tests;
