//! Which indexes are proposed, and which of the present ones they make superfluous.

use std::collections::HashSet;

use bson::{Bson, Document};
use seekscope_run::QueryShape;

use super::{Present, Proposal};
use crate::index_keys::{best_keys, covering_keys, is_served_by};
use crate::sample::SampleFacts;
use crate::way::{Way, are_same};

/// The most indexes of one way: each one more is written with every insert.
const INDEXES_MAX: usize = 4;
/// An index of more fields costs inserts and memory more than it saves reads.
const COVERED_FIELDS_MAX: usize = 8;
/// Options of an index that leaves out documents, compares texts by other rules than queries, or is not used at all.
const SERVES_SOME: [&str; 4] = ["partialFilterExpression", "sparse", "collation", "hidden"];
/// Begins what is said where an index of the wanted keys does not serve all queries.
pub(super) const SAME_KEYS: &str = "The index of the same keys";

/// Returns one index for each shape that neither a present one nor another of them serves, if these are several.
pub(super) fn indexes_of_all(shapes: &[QueryShape], present: Present<'_>) -> Option<Proposal> {
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
    let mut reason =
        String::from("No index serves these queries, and none could serve all of them.");
    for old in each.iter().filter_map(|keys| shorter(present, keys)) {
        reason = format!("{reason} {}", superfluous(&old));
    }
    (2..=INDEXES_MAX).contains(&each.len()).then(|| Proposal {
        way: Way::Indexes { each },
        reason,
        decays: false,
    })
}

pub(crate) fn keys_of(index: &Document) -> Option<&Document> {
    index.get_document("key").ok()
}

/// Returns whether an index serves some queries on its fields only.
pub(crate) fn serves_some(index: &Document) -> bool {
    SERVES_SOME.iter().any(|option| has_option(index, option))
}

/// Returns the keys of the indexes that can serve every query on their fields.
pub(crate) fn serving(indexes: &[Document]) -> impl Iterator<Item = &Document> {
    let serving = indexes.iter().filter(|index| !serves_some(index));
    serving.filter_map(keys_of)
}

pub(super) fn has_keys(indexes: &[Document], keys: &Document) -> bool {
    let mut known = indexes.iter().filter_map(keys_of);
    known.any(|known| are_same(known, keys))
}

/// Returns keys of a new index that serves the same queries as one with `keys` would. Where an index that serves some of
/// them only has these keys, they are others: not every server makes a second one. An index can be read backwards, so
/// that the opposite directions do as well; and with `_id` behind, the keys are others, too.
pub(super) fn free_keys(keys: Document, indexes: &[Document]) -> Document {
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

pub(super) fn index(shape: &QueryShape, present: Present<'_>) -> Option<Proposal> {
    let indexes = present.indexes;
    if serving(indexes).any(|keys| is_served_by(shape, keys)) {
        return None;
    }
    let keys = best_keys(shape);
    let has_same_fields = |known: &Document| {
        let directed = |field| known.get(field).is_some_and(|d| d.as_i32().is_some());
        !are_same(known, &keys) && known.len() == keys.len() && keys.keys().all(directed)
    };
    let same = replaceable(present, has_same_fields);
    let first = same.as_ref().and_then(|known| known.keys().next());
    let begins_otherwise = first.is_some_and(|first| !shape.equality.contains(first));
    let mut reason = match shape.equality.first() {
        _ if has_keys(indexes, &keys) => same_keys(indexes, &keys),
        Some(compared) if begins_otherwise => format!(
            "The index on the same fields does not begin with {compared}, which is compared, so a query reads keys of \
             other values as well."
        ),
        _ if same.is_some() => {
            "The index on the same fields has them in another order or direction.".into()
        }
        _ => lacking(shape, indexes),
    };
    let keys = free_keys(keys, indexes);
    let replaces = same.or_else(|| shorter(present, &keys));
    if let Some(old) = replaces.as_ref().filter(|old| is_beginning(old, &keys)) {
        reason = format!("{reason} {}", superfluous(old));
    }
    Some(Proposal {
        way: Way::Index {
            keys,
            replaces,
            covers: false,
        },
        reason,
        decays: false,
    })
}

/// Returns what the indexes lack that serve each query on their fields.
fn lacking(shape: &QueryShape, indexes: &[Document]) -> String {
    let without_range = QueryShape {
        range: Vec::new(),
        ..shape.clone()
    };
    let compared_alone = QueryShape {
        sort: Vec::new(),
        ..without_range.clone()
    };
    let has_order = serving(indexes).any(|keys| is_served_by(&without_range, keys));
    let behind = match (shape.sort.is_empty(), shape.range.is_empty()) {
        (true, true) => return "No index begins with the fields that are compared.".into(),
        (false, true) => "the order",
        (false, false) if !has_order => "the order",
        _ => "the range",
    };
    if shape.equality.is_empty() {
        return format!("No index begins with {behind}.");
    }
    let known = serving(indexes).find(|keys| is_served_by(&compared_alone, keys));
    match known {
        Some(known) => format!(
            "The index {known} begins with the fields that are compared, but lacks {behind} after them."
        ),
        None => {
            format!("No index begins with the fields that are compared, followed by {behind}.")
        }
    }
}

/// Says what keeps the index of the same keys from serving all queries.
pub(super) fn same_keys(indexes: &[Document], keys: &Document) -> String {
    let known = indexes
        .iter()
        .find(|index| keys_of(index).is_some_and(|known| are_same(known, keys)));
    let has = |option: &str| known.is_some_and(|known| has_option(known, option));
    let leaves_out = has("partialFilterExpression") || has("sparse");
    let serves = match (has("hidden"), leaves_out) {
        (true, false) if !has("collation") => {
            return format!(
                "{SAME_KEYS} is hidden, so it serves no query: unhide it instead (unhideIndex). The new one has other keys \
                 (the opposite directions, or _id appended), because many servers refuse a second index with these."
            );
        }
        (true, _) => "is hidden, so it serves no query",
        (false, true) => "leaves out documents, so it serves only some queries",
        (false, false) => "has a collation of its own, so it serves only some queries",
    };
    format!(
        "{SAME_KEYS} {serves}. Many servers refuse a second index with these keys; the new one has different keys (the opposite directions, or _id appended), which serve the queries equally well."
    )
}

/// Returns whether an index has an option that is not off.
fn has_option(index: &Document, option: &str) -> bool {
    !matches!(index.get(option), None | Some(Bson::Boolean(false)))
}

/// Returns the longest index that one with these keys makes superfluous, as it begins with the same ones.
fn shorter(present: Present<'_>, keys: &Document) -> Option<Document> {
    let lengths = (1..keys.len()).rev();
    let mut found = lengths.filter_map(|length| {
        replaceable(present, |known| {
            known.len() == length && is_beginning(known, keys)
        })
    });
    found.next()
}

/// Returns whether an index with `keys` begins with these, all in the same or all in the opposite directions.
fn is_beginning(first: &Document, keys: &Document) -> bool {
    let signs = first.iter().zip(keys).map(|((field, direction), other)| {
        let both = direction.as_i32().zip(other.1.as_i32());
        both.filter(|_| field == other.0)
            .map(|(own, other)| own.signum() * other.signum())
    });
    let signs: Option<HashSet<i32>> = signs.collect();
    first.len() < keys.len() && signs.is_some_and(|signs| signs.len() == 1)
}

fn superfluous(old: &Document) -> String {
    format!(
        "It makes the index {old} superfluous, whose fields it begins with: it serves the same queries."
    )
}

/// Returns an index that holds all that a query asks for, if it asks for more than the best one holds. Of a field that
/// holds lists it does not hold the list, and for one that a document lacks it has null, which is another answer.
pub(super) fn covering(
    shape: &QueryShape,
    present: Present<'_>,
    facts: &SampleFacts,
) -> Option<Proposal> {
    let indexes = present.indexes;
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
        "With {} added, the index contains everything that the query asks for, and no document has to be read.",
        added.join(", ")
    );
    if has_keys(indexes, &keys) {
        reason = format!("{reason} {}", same_keys(indexes, &keys));
    }
    let keys = free_keys(keys, indexes);
    let replaces = shorter(present, &keys);
    if let Some(old) = &replaces {
        reason = format!("{reason} {}", superfluous(old));
    }
    Some(Proposal {
        way: Way::Index {
            keys,
            replaces,
            covers: true,
        },
        reason,
        decays: false,
    })
}

/// Returns the keys of an index that another one may replace: it serves every query on its fields, and nothing but
/// queries needs it. Which index a shard needs for its shard key is not known here.
fn replaceable(present: Present<'_>, is_replaced: impl Fn(&Document) -> bool) -> Option<Document> {
    let has_no_other_use = |index: &&Document| {
        let has_other = ["unique", "expireAfterSeconds"]
            .iter()
            .any(|option| has_option(index, option));
        !has_other && index.get_str("name").is_ok_and(|name| name != "_id_")
    };
    let indexes = present.indexes.iter().filter(has_no_other_use);
    let serving = indexes.filter(|index| !serves_some(index));
    let mut replaceable = serving
        .filter_map(keys_of)
        .filter(|_| !present.is_on_shards);
    replaceable.find(|keys| is_replaced(keys)).cloned()
}
