//! Ways of storing a collection that fit the shapes of its queries, each with the reason to try it.

use bson::{Bson, Document};
use seekscope_run::{QueryShape, WayKind};

use crate::sample::SampleFacts;
use crate::shape::{best_keys, is_served_by};

/// The most ways that are tried.
const WAYS_MAX: usize = 8;
/// Documents of this size and more gain little in buckets: few of them fill a page.
const BUCKETED_BYTES_MAX: f64 = 4_096.0;
/// A bucket is read as a whole, and rewritten as a whole for each sample that it gets.
const BUCKET_BYTES_MAX: f64 = 32_768.0;
/// Fewer documents in a bucket save too little.
const BUCKET_DOCUMENTS_MIN: f64 = 4.0;
/// Field of a bucket that holds its documents.
pub(crate) const SAMPLES: &str = "samples";
/// Options of an index that leaves out documents, compares texts by other rules than queries, or is not used at all.
const SERVES_SOME: [&str; 4] = ["partialFilterExpression", "sparse", "collation", "hidden"];
const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;
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

/// A way of storing a collection.
#[derive(Debug, Clone, PartialEq)]
pub enum Way {
    /// As it is stored now.
    Present,
    /// With another index, which replaces an index of the same fields, if there is one.
    Index {
        keys: Document,
        replaces: Option<Document>,
    },
    /// With its documents in the order of an index, which is created if there is none.
    Order { keys: Document, creates_index: bool },
    /// With the documents of one key and one stretch of time in one document.
    Buckets {
        keys: Vec<String>,
        time: String,
        span_ms: i64,
    },
}

/// A way and why it is tried.
#[derive(Debug, Clone, PartialEq)]
pub struct Proposal {
    pub way: Way,
    pub reason: String,
    /// Whether its order is lost again as documents are added.
    pub decays: bool,
}

impl Way {
    pub fn kind(&self) -> WayKind {
        match self {
            Self::Present => WayKind::Present,
            Self::Index { .. } => WayKind::Index,
            Self::Order { .. } => WayKind::Order,
            Self::Buckets { .. } => WayKind::Buckets,
        }
    }

    /// Returns what it is, in a few words.
    pub fn name(&self) -> String {
        match self {
            Self::Present => "as it is".into(),
            Self::Index { keys, .. } => format!("index {}", keys),
            Self::Order { keys, .. } => format!("documents in the order of {}", keys),
            Self::Buckets { keys, span_ms, .. } => {
                format!(
                    "one document per {} and {}",
                    keys.join(", "),
                    span(*span_ms)
                )
            }
        }
    }

    /// Returns whether the documents stay in the file in which they are.
    pub fn keeps_file(&self) -> bool {
        matches!(self, Self::Present | Self::Index { .. })
    }

    /// Returns the keys of the index that it needs.
    pub fn keys(&self) -> Option<Document> {
        match self {
            Self::Present => None,
            Self::Index { keys, .. } | Self::Order { keys, .. } => Some(keys.clone()),
            Self::Buckets { keys, time, .. } => {
                let fields = keys.iter().chain(std::iter::once(time));
                Some(
                    fields
                        .map(|field| (field.clone(), Bson::Int32(1)))
                        .collect(),
                )
            }
        }
    }

    /// Returns whether the index that it needs has to be created.
    pub fn creates_index(&self) -> bool {
        match self {
            Self::Present => false,
            Self::Index { .. } | Self::Buckets { .. } => true,
            Self::Order { creates_index, .. } => *creates_index,
        }
    }

    /// Returns whether queries of this shape can be asked.
    pub fn answers(&self, shape: &QueryShape) -> bool {
        let Self::Buckets { keys, time, .. } = self else {
            return true;
        };
        let compares_keys = shape.equality.len() == keys.len()
            && shape.equality.iter().all(|field| keys.contains(field));
        let sorts = |field: &String| field == time || keys.contains(field);
        compares_keys
            && shape.range.iter().all(|field| field == time)
            && shape.sort.iter().all(|sort| sorts(&sort.field))
    }
}

/// Returns a stretch of time in words.
fn span(ms: i64) -> String {
    for (unit_ms, name) in [(DAY_MS, "day"), (HOUR_MS, "hour"), (MINUTE_MS, "minute")] {
        if ms >= unit_ms {
            let count = ms / unit_ms;
            return match count {
                1 => name.into(),
                _ => format!("{count} {name}s"),
            };
        }
    }
    format!("{ms} ms")
}

/// Returns the present way and those that fit the shapes, without any twice. `indexes` are specifications as
/// `listIndexes` answers; `has_fixed_order` if the server keeps the documents in an order of its own.
pub fn proposals(
    shapes: &[QueryShape],
    indexes: &[Document],
    facts: &SampleFacts,
    has_fixed_order: bool,
) -> Vec<Proposal> {
    let mut found = vec![Proposal {
        way: Way::Present,
        reason: String::new(),
        decays: false,
    }];
    for shape in shapes {
        let wanted = [
            index(shape, indexes),
            buckets(shape, facts).filter(|_| !has_fixed_order),
            order(shape, indexes, facts).filter(|_| !has_fixed_order),
        ];
        for proposal in wanted.into_iter().flatten() {
            if found.len() < WAYS_MAX
                && !found.iter().any(|known| is_same(&known.way, &proposal.way))
            {
                found.push(proposal);
            }
        }
    }
    found
}

fn is_same(way: &Way, other: &Way) -> bool {
    let keys = way.keys().zip(other.keys());
    way == other && keys.is_none_or(|(keys, others)| are_same(&keys, &others))
}

/// Returns whether these are the keys of one index: other than for documents, their order counts.
pub(crate) fn are_same(keys: &Document, others: &Document) -> bool {
    keys.iter().eq(others.iter())
}

fn keys_of(index: &Document) -> Option<&Document> {
    index.get_document("key").ok()
}

/// Returns the keys of the indexes that can serve every query on their fields.
fn serving(indexes: &[Document]) -> impl Iterator<Item = &Document> {
    let serves_all = |index: &&Document| {
        !SERVES_SOME
            .iter()
            .any(|option| !matches!(index.get(option), None | Some(Bson::Boolean(false))))
    };
    indexes.iter().filter(serves_all).filter_map(keys_of)
}

fn index(shape: &QueryShape, indexes: &[Document]) -> Option<Proposal> {
    if serving(indexes).any(|keys| is_served_by(shape, keys)) {
        return None;
    }
    let keys = best_keys(shape);
    let is_replaceable = |index: &&Document| {
        !index.get_bool("unique").unwrap_or(false)
            && index.get_str("name").is_ok_and(|name| name != "_id_")
    };
    let has_same_fields = |known: &&Document| {
        let directed = |field| known.get(field).is_some_and(|d| d.as_i32().is_some());
        !are_same(known, &keys) && known.len() == keys.len() && keys.keys().all(directed)
    };
    let replaceable: Vec<Document> = indexes.iter().filter(is_replaceable).cloned().collect();
    let replaces = serving(&replaceable).find(has_same_fields).cloned();
    let has_same_keys = indexes
        .iter()
        .filter_map(keys_of)
        .any(|known| are_same(known, &keys));
    let first = replaces.as_ref().and_then(|known| known.keys().next());
    let begins_otherwise = first.is_some_and(|first| !shape.equality.contains(first));
    let reason = match shape.equality.first() {
        _ if has_same_keys => {
            "The index of the same keys is hidden, or it leaves out documents or compares texts by rules of its own, so \
             it serves some queries only. Where the server refuses a second one of these keys, unhide it or make it \
             anew without these options."
                .into()
        }
        Some(compared) if begins_otherwise => format!(
            "The index on the same fields does not begin with {compared}, which is compared, so a query reads keys of \
             other values as well."
        ),
        _ if replaces.is_some() => {
            "The index on the same fields has them in another order.".into()
        }
        _ => "No index has the fields that are compared first, and the range after them.".into(),
    };
    Some(Proposal {
        way: Way::Index { keys, replaces },
        reason,
        decays: false,
    })
}

/// Returns the order of documents that puts together what a query returns, if it returns several.
fn order(shape: &QueryShape, indexes: &[Document], facts: &SampleFacts) -> Option<Proposal> {
    if !returns_several(shape, facts) {
        return None;
    }
    let keys = best_keys(shape);
    let first = keys.keys().next()?;
    // They are in that order already.
    if facts.field(first).is_some_and(|field| field.follows_age) {
        return None;
    }
    let decays = asks_by_age(shape, facts);
    let mut reason = String::from(
        "What a query returns lies scattered in the order of insertion; in that of its index it lies side by side.",
    );
    if decays {
        reason.push_str(
            " New documents are added at the end, so the order is lost again and must be renewed.",
        );
    }
    let begins = |known: &Document| known.iter().take(keys.len()).eq(keys.iter());
    let creates_index = !serving(indexes).any(begins);
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
    if let Some(returned) = shape.returned {
        return returned >= 2.0;
    }
    let is_key = |path: &String| {
        facts
            .field(path)
            .is_some_and(|field| field.present > 0 && field.distinct == field.present)
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
mod tests {
    use bson::doc;

    use super::*;
    use crate::sample::FieldFacts;
    use crate::shape::told;

    fn series() -> SampleFacts {
        let ts = FieldFacts {
            path: "ts".into(),
            present: 100_000,
            dates: 100_000,
            distinct: 1_000,
            follows_age: true,
            dates_ms: Some((0, 1_000 * MINUTE_MS)),
        };
        let device = FieldFacts {
            path: "device".into(),
            present: 100_000,
            distinct: 100,
            ..FieldFacts::default()
        };
        SampleFacts {
            documents: 100_000,
            bytes: 100_000 * 150,
            fields: vec![ts, device],
        }
    }

    fn ways(query: &str, indexes: &[Document], facts: &SampleFacts) -> Vec<Way> {
        let found = proposals(&[told(query).unwrap()], indexes, facts, false);
        found
            .into_iter()
            .skip(1)
            .map(|proposal| proposal.way)
            .collect()
    }

    #[test]
    fn series_are_put_into_buckets_and_in_order() {
        let served = [doc! { "name": "a", "key": { "device": 1, "ts": 1 } }];
        let found = ways(
            r#"{"device": "?", "ts": {"$gte": "?"}}"#,
            &served,
            &series(),
        );
        let buckets = Way::Buckets {
            keys: vec!["device".into()],
            time: "ts".into(),
            span_ms: HOUR_MS,
        };
        assert_eq!(
            found,
            [
                buckets,
                Way::Order {
                    keys: doc! { "device": 1, "ts": 1 },
                    creates_index: false,
                }
            ]
        );
    }

    #[test]
    fn an_index_that_begins_with_the_date_is_turned_round() {
        let turned = [doc! { "name": "a", "key": { "ts": 1, "device": 1 } }];
        let found = ways(
            r#"{"device": "?", "ts": {"$gte": "?"}}"#,
            &turned,
            &series(),
        );
        let expected = Way::Index {
            keys: doc! { "device": 1, "ts": 1 },
            replaces: Some(doc! { "ts": 1, "device": 1 }),
        };
        assert_eq!(found[0], expected);
        // A unique index says something of the data.
        let unique = [doc! { "name": "a", "key": { "ts": 1, "device": 1 }, "unique": true }];
        let found = ways(
            r#"{"device": "?", "ts": {"$gte": "?"}}"#,
            &unique,
            &series(),
        );
        assert!(
            matches!(&found[0], Way::Index { replaces: None, .. }),
            "{found:?}"
        );
    }

    #[test]
    fn an_index_that_serves_some_queries_is_no_index_for_all() {
        let query = r#"{"device": "?", "ts": {"$gte": "?"}}"#;
        for (option, value) in [
            ("partialFilterExpression", doc! { "ts": 1 }.into()),
            ("sparse", true.into()),
            ("collation", doc! { "locale": "de" }.into()),
            ("hidden", Bson::Boolean(true)),
        ] {
            let index = |keys: Document| {
                let mut index = doc! { "name": "a", "key": keys };
                index.insert(option, value.clone());
                [index]
            };
            let keys = doc! { "device": 1, "ts": 1 };
            let new = Way::Index {
                keys: keys.clone(),
                replaces: None,
            };
            for known in [keys.clone(), doc! { "ts": 1, "device": 1 }] {
                assert_eq!(ways(query, &index(known), &series())[0], new, "{option}");
            }
            let found = ways(query, &index(keys), &series());
            assert!(found[2].creates_index(), "{option}: {found:?}");
        }
        let hashed = [doc! { "name": "a", "key": { "device": "hashed" } }];
        let found = ways(r#"{"device": "?"}"#, &hashed, &series());
        assert!(
            matches!(&found[0], Way::Index { replaces: None, .. }),
            "{found:?}"
        );
    }

    #[test]
    fn indexes_of_the_same_fields_in_another_order_are_others() {
        let shapes = [
            r#"{"a": 1, "b": {"$gt": 1}}"#,
            r#"{"b": 1, "a": {"$gt": 1}}"#,
        ];
        let shapes = shapes.map(|query| told(query).unwrap());
        let found = proposals(&shapes, &[], &series(), true);
        assert_eq!(found.len(), 3, "{found:?}");
    }

    #[test]
    fn fields_of_a_bucket_lie_side_by_side() {
        for (keys, time, fits) in [
            (["m.d"], "ts", true),
            (["m"], "m.ts", false),
            (["_id.d"], "ts", false),
            (["samples"], "ts", false),
            (["samples2"], "ts", true),
        ] {
            assert_eq!(
                fit_side_by_side(&keys.map(String::from), time),
                fits,
                "{keys:?}"
            );
        }
    }

    #[test]
    fn a_capped_collection_is_given_indexes_alone() {
        let shapes = [told(r#"{"device": "?", "ts": {"$gte": "?"}}"#).unwrap()];
        let found = proposals(&shapes, &[], &series(), true);
        let kinds: Vec<WayKind> = found.iter().map(|proposal| proposal.way.kind()).collect();
        assert_eq!(kinds, [WayKind::Present, WayKind::Index]);
    }

    #[test]
    fn what_is_stored_well_gets_no_proposal() {
        let served = [doc! { "name": "_id_", "key": { "_id": 1 } }];
        let key = FieldFacts {
            path: "_id".into(),
            present: 100_000,
            distinct: 100_000,
            ..FieldFacts::default()
        };
        let mut facts = series();
        facts.fields.push(key);
        assert_eq!(ways(r#"{"_id": "?"}"#, &served, &facts), []);
        let by_time = [doc! { "name": "a", "key": { "ts": 1 } }];
        assert_eq!(ways(r#"{"ts": {"$gte": "?"}}"#, &by_time, &facts), []);
    }
}
