//! Which ways of storing fit the shapes of the queries on a collection, each with the reason to try it.

use bson::{Bson, Document};
use seekscope_run::QueryShape;

use crate::index_keys::{best_keys, covering_keys, is_served_by};
use crate::sample::SampleFacts;
use crate::way::{DAY_MS, HOUR_MS, MINUTE_MS, SAMPLES, Way, are_same};

/// The most ways that are tried.
const WAYS_MAX: usize = 8;
/// The most indexes of one way: each one more is written with every insert.
const INDEXES_MAX: usize = 4;
/// Documents of this size and more gain little in buckets: few of them fill a page.
const BUCKETED_BYTES_MAX: f64 = 4_096.0;
/// A bucket is read as a whole, and rewritten as a whole for each sample that it gets.
const BUCKET_BYTES_MAX: f64 = 32_768.0;
/// Fewer documents in a bucket save too little.
const BUCKET_DOCUMENTS_MIN: f64 = 4.0;
/// An index of more fields costs inserts and memory more than it saves reads.
const COVERED_FIELDS_MAX: usize = 8;
/// Queries that return so many documents return several.
const SEVERAL: f64 = 2.0;
/// The compressor that is tried: every server that can be connected to has it.
const ZSTD: &str = "zstd";
/// Options of an index that leaves out documents, compares texts by other rules than queries, or is not used at all.
const SERVES_SOME: [&str; 4] = ["partialFilterExpression", "sparse", "collation", "hidden"];
/// Said where an index of the wanted keys has such an option.
const SAME_KEYS: &str = "The index of the same keys is hidden, or it leaves out documents or compares texts by rules of \
                         its own, so it serves some queries only. Many servers refuse a second one of these keys; the \
                         new one has others (the opposite directions, or _id behind), which serve the queries as well. \
                         If the present one is hidden and nothing else, unhide it instead (unhideIndex).";
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
            index(shape, indexes),
            covering(shape, indexes, facts),
            buckets(shape, facts),
            order(shape, indexes, facts),
        ]
    });
    let of_all = [
        compressor(shapes, present, facts),
        growing_id(shapes, facts).filter(|_| !present.is_of_secondary),
    ];
    // First, because more than one of the others cannot be had at once.
    let first = indexes_of_all(shapes, indexes);
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

/// Returns one index for each shape that neither a present one nor another of them serves, if these are several.
fn indexes_of_all(shapes: &[QueryShape], present: &[Document]) -> Option<Proposal> {
    let mut each: Vec<Document> = Vec::new();
    for shape in shapes {
        let is_served = each.iter().any(|keys| is_served_by(shape, keys));
        if let Some(proposal) = index(shape, present).filter(|_| !is_served) {
            each.extend(proposal.way.keys());
        }
    }
    // An index may serve shapes that came before it.
    let serves_more = |number: usize| {
        let mut served = shapes.iter().filter(|s| is_served_by(s, &each[number]));
        served.any(|shape| {
            let mut others = each.iter().enumerate();
            !others.any(|(other, keys)| other != number && is_served_by(shape, keys))
        })
    };
    let each: Vec<Document> = (0..each.len())
        .filter(|number| serves_more(*number))
        .map(|number| each[number].clone())
        .collect();
    (2..=INDEXES_MAX).contains(&each.len()).then(|| Proposal {
        way: Way::Indexes { each },
        reason: "No index serves these queries, and none could serve all of them.".into(),
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

fn keys_of(index: &Document) -> Option<&Document> {
    index.get_document("key").ok()
}

/// Returns whether an index serves some queries on its fields only.
pub(crate) fn serves_some(index: &Document) -> bool {
    SERVES_SOME
        .iter()
        .any(|option| !matches!(index.get(option), None | Some(Bson::Boolean(false))))
}

/// Returns the keys of the indexes that can serve every query on their fields.
fn serving(indexes: &[Document]) -> impl Iterator<Item = &Document> {
    let serving = indexes.iter().filter(|index| !serves_some(index));
    serving.filter_map(keys_of)
}

fn has_keys(indexes: &[Document], keys: &Document) -> bool {
    let mut known = indexes.iter().filter_map(keys_of);
    known.any(|known| are_same(known, keys))
}

/// Returns keys of a new index that serves the same queries as one with `keys` would. Where an index that serves some of
/// them only has these keys, they are others: not every server makes a second one. An index can be read backwards, so
/// that the opposite directions do as well; and with `_id` behind, the keys are others, too.
fn free_keys(keys: Document, indexes: &[Document]) -> Document {
    if !has_keys(indexes, &keys) {
        return keys;
    }
    let opposite = |(field, direction): (&String, &Bson)| {
        let is_ascending = direction.as_i32().is_some_and(|direction| direction > 0);
        (
            field.clone(),
            Bson::Int32(if is_ascending { -1 } else { 1 }),
        )
    };
    let reversed: Document = keys.iter().map(opposite).collect();
    let mut longer = keys.clone();
    if !keys.contains_key("_id") {
        longer.insert("_id", 1);
    }
    let others = [reversed, longer];
    let free = others.into_iter().find(|keys| !has_keys(indexes, keys));
    free.unwrap_or(keys)
}

fn index(shape: &QueryShape, indexes: &[Document]) -> Option<Proposal> {
    if serving(indexes).any(|keys| is_served_by(shape, keys)) {
        return None;
    }
    let keys = best_keys(shape);
    let has_same_fields = |known: &Document| {
        let directed = |field| known.get(field).is_some_and(|d| d.as_i32().is_some());
        !are_same(known, &keys) && known.len() == keys.len() && keys.keys().all(directed)
    };
    let replaces = replaceable(indexes, has_same_fields);
    let first = replaces.as_ref().and_then(|known| known.keys().next());
    let begins_otherwise = first.is_some_and(|first| !shape.equality.contains(first));
    let reason = match shape.equality.first() {
        _ if has_keys(indexes, &keys) => SAME_KEYS.into(),
        Some(compared) if begins_otherwise => format!(
            "The index on the same fields does not begin with {compared}, which is compared, so a query reads keys of \
             other values as well."
        ),
        _ if replaces.is_some() => {
            "The index on the same fields has them in another order or direction.".into()
        }
        _ => "No index has the fields that are compared first, and the range after them.".into(),
    };
    Some(Proposal {
        way: Way::Index {
            keys: free_keys(keys, indexes),
            replaces,
            covers: false,
        },
        reason,
        decays: false,
    })
}

/// Returns an index that holds all that a query asks for, if it asks for more than the best one holds. Of a field that
/// holds lists it does not hold the list, and for one that a document lacks it has null, which is another answer.
fn covering(shape: &QueryShape, indexes: &[Document], facts: &SampleFacts) -> Option<Proposal> {
    let keys = covering_keys(shape)?;
    let served = best_keys(shape).len();
    let is_held = |path: &String| {
        let field = facts.field(path);
        field.is_some_and(|field| field.lists == 0 && field.present == facts.documents)
    };
    let mut projected = shape.projection.iter().flatten();
    let covers = |known: &Document| {
        let holds = |field| known.get(field).is_some_and(|d| d.as_i32().is_some());
        is_served_by(shape, known) && keys.keys().all(holds)
    };
    let is_possible = keys.len() <= COVERED_FIELDS_MAX && projected.all(is_held);
    if keys.len() == served || !is_possible || serving(indexes).any(covers) {
        return None;
    }
    let added: Vec<&str> = keys.keys().skip(served).map(String::as_str).collect();
    let mut reason = format!(
        "With {} in the index as well, it holds all that the query asks for, and no document is read.",
        added.join(", ")
    );
    if has_keys(indexes, &keys) {
        reason = format!("{reason} {SAME_KEYS}");
    }
    let begins_alike = |known: &Document| {
        known.len() < keys.len() && known.iter().eq(keys.iter().take(known.len()))
    };
    let replaces = replaceable(indexes, begins_alike);
    Some(Proposal {
        way: Way::Index {
            keys: free_keys(keys, indexes),
            replaces,
            covers: true,
        },
        reason,
        decays: false,
    })
}

/// Returns the keys of an index that another one may replace: it serves every query on its fields, and nothing but
/// queries needs it.
fn replaceable(indexes: &[Document], is_replaced: impl Fn(&Document) -> bool) -> Option<Document> {
    let has_no_other_use = |index: &&Document| {
        let options = ["unique", "expireAfterSeconds"];
        let has = |option: &&str| !matches!(index.get(option), None | Some(Bson::Boolean(false)));
        !options.iter().any(has) && index.get_str("name").is_ok_and(|name| name != "_id_")
    };
    let candidates: Vec<Document> = indexes.iter().filter(has_no_other_use).cloned().collect();
    serving(&candidates).find(|keys| is_replaced(keys)).cloned()
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
        reason = format!("{reason} {SAME_KEYS}");
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
/// file.
pub fn asks_by_age(shape: &QueryShape, facts: &SampleFacts) -> bool {
    let grows = |field: &String| facts.field(field).is_some_and(|facts| facts.follows_age);
    shape.range.iter().any(grows) || shape.sort.iter().any(|sort| grows(&sort.field))
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
