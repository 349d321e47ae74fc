//! Finds what a running operation selects documents by: the names of its fields, never their values.

mod conditions;
mod joins;

use mongodb::bson::{Bson, Document};
use seekscope_run::{ConditionSeen, FilterSeen, KeySeen};

use self::conditions::{beyond_an_index, is_comparison, is_pattern_anywhere, of_elements};
use self::joins::joins;
use super::collation::collation;
use crate::replies::{at, number};

/// Bounds what a hostile reply can make us keep. A longer name is counted, but not kept.
const FIELDS_MAX: usize = 20;
const NAME_MAX_CHARS: usize = 100;
const DEPTH_MAX: usize = 5;
const NATURAL: &str = "$natural";
const STAGES_MAX: usize = 100;
/// Documents of an answer that is short beside what a sort reads.
const SHORT_MAX: u64 = 10_000;
/// Skipping fewer documents takes next to no time.
const SKIPPED_MIN: u64 = 1_000;

/// Stages that turn the matches into other or fewer documents.
const REDUCING: [&str; 9] = [
    "$group",
    "$count",
    "$bucket",
    "$bucketAuto",
    "$sortByCount",
    "$facet",
    "$sample",
    "$out",
    "$merge",
];

/// Returns the filter of an operation as `currentOp` shows it; `None` if it shows no command or only a part of
/// one, or if the command is of an unknown kind.
pub(super) fn filter(operation: &Document) -> Option<FilterSeen> {
    let command = command_of(operation)?;
    let is_natural = |name: &str| {
        let order = command.get_document(name);
        order.is_ok_and(|order| order.contains_key(NATURAL))
    };
    Some(FilterSeen {
        collation: collation(command),
        natural: ["sort", "hint"].into_iter().any(is_natural),
        ..of_command(command)?
    })
}

fn command_of(operation: &Document) -> Option<&Document> {
    let document = |path: &[&str]| at(operation, path).and_then(Bson::as_document);
    // A getmore is judged by the command that opened its cursor; servers up to 3.4 call a command `query`.
    document(&["cursor", "originatingCommand"])
        .or_else(|| document(&["originatingCommand"]))
        .or_else(|| document(&["command"]).filter(|command| !command.is_empty()))
        .or_else(|| document(&["query"]))
}

fn of_command(command: &Document) -> Option<FilterSeen> {
    let of = |name: &str, reduced: bool| {
        let mut found = FilterSeen {
            reduced,
            ..FilterSeen::default()
        };
        match command.get(name) {
            None | Some(Bson::Null) => {}
            Some(filter) => add(&mut found, filter.as_document()?, DEPTH_MAX),
        }
        Some(found)
    };
    match command.keys().next()?.as_str() {
        "find" => {
            let is_limited =
                has(command, "limit") || command.get_bool("singleBatch").unwrap_or(false);
            let is_cut_off = has(command, "sort") && is_limited;
            let is_short = is_cut_off && command.get("limit").is_some_and(is_short);
            let sort = command.get_document("sort").ok().filter(|_| is_short);
            if sort.is_some_and(|sort| sort.keys().any(|name| kept_whole(name).is_none())) {
                return None;
            }
            Some(FilterSeen {
                keys: sort.and_then(keys).unwrap_or_default(),
                skips: command.get("skip").is_some_and(is_long_skip),
                limited: is_limited && !has(command, "sort"),
                ..of("filter", is_cut_off)?
            })
        }
        "aggregate" => of_pipeline(command.get_array("pipeline").ok()?),
        "findAndModify" | "findandmodify" => of("query", false),
        "distinct" => Some(FilterSeen {
            keys: Vec::from_iter(
                command
                    .get_str("key")
                    .ok()
                    .and_then(|name| key(name, false)),
            ),
            distinct: true,
            ..of("query", true)?
        }),
        "count" | "mapReduce" | "mapreduce" => of("query", true),
        // A single update or delete from a batch.
        "q" => of("q", false),
        _ => None,
    }
}

/// Returns whether a limit is so small that an index spares most of the reading. A document that is found by an index
/// is read on its own, so a long answer takes as long with one as without, and longer.
fn is_short(limit: &Bson) -> bool {
    number(limit).is_some_and(|limit| limit <= SHORT_MAX)
}

fn is_long_skip(skip: &Bson) -> bool {
    number(skip).is_some_and(|skip| skip >= SKIPPED_MIN)
}

/// Returns the keys of a sort; `None` of one that no index has, such as a score, or whose names are not kept.
fn keys(sort: &Document) -> Option<Vec<KeySeen>> {
    let keys = sort.iter().take(FIELDS_MAX).map(|(name, direction)| {
        let is_descending = match direction {
            Bson::Int32(n) => *n < 0,
            Bson::Int64(n) => *n < 0,
            Bson::Double(n) => *n < 0.0,
            _ => return None,
        };
        key(name, is_descending).filter(|key| !key.field.starts_with('$'))
    });
    keys.collect()
}

fn key(name: &str, descending: bool) -> Option<KeySeen> {
    let field = kept_whole(name)?;
    Some(KeySeen { field, descending })
}

/// Returns a name that an index may be made of; `None` if it is too long to be kept.
fn kept_whole(name: &str) -> Option<String> {
    (kept(name) == name).then(|| name.into())
}

/// Returns a name, unless it is too long to be kept.
fn kept(name: &str) -> &str {
    match name.chars().count() <= NAME_MAX_CHARS {
        true => name,
        false => "?",
    }
}

fn has(command: &Document, name: &str) -> bool {
    command.get(name).is_some_and(|value| *value != Bson::Null)
}

/// Reads the `$match` stages at the beginning of a pipeline; what is filtered after a group has already been
/// read. The server may move a `$match` that comes after other stages to the beginning: then nothing is known.
fn of_pipeline(stages: &[Bson]) -> Option<FilterSeen> {
    let stages: Vec<&Document> = stages
        .iter()
        .take(STAGES_MAX)
        .map(Bson::as_document)
        .collect::<Option<_>>()?;
    let has_stage = |name: &str| stages.iter().any(|stage| stage.contains_key(name));
    let reduced =
        REDUCING.into_iter().any(has_stage) || (has_stage("$sort") && has_stage("$limit"));
    let matches = stages
        .iter()
        .map_while(|stage| stage.get_document("$match").ok());
    let mut found = FilterSeen::default();
    matches.for_each(|filter| add(&mut found, filter, DEPTH_MAX));
    let reduces = |stage: &&&Document| REDUCING.iter().any(|name| stage.contains_key(*name));
    let before = stages.iter().take_while(|stage| !reduces(stage));
    let is_without_effect = |stage: &&Document| {
        let filter = stage.get_document("$match");
        filter.is_ok_and(Document::is_empty)
    };
    let mut matching = before.filter(|stage| stage.contains_key("$match"));
    if found.fields.is_empty() && matching.any(|stage| !is_without_effect(stage)) {
        return None;
    }
    // Right after what it matches, before anything makes other documents of these.
    let mut rest = stages
        .iter()
        .skip_while(|stage| stage.contains_key("$match"));
    let sort = rest
        .next()
        .and_then(|stage| stage.get_document("$sort").ok());
    let limit = rest.next().and_then(|stage| stage.get("$limit"));
    let sort = sort.filter(|_| limit.is_some_and(is_short));
    let mut skipped = stages.iter().filter_map(|stage| stage.get("$skip"));
    // What only passes some documents on, before anything needs all of them.
    let mut passing = stages.iter().take_while(|stage| {
        let passes = [
            "$match",
            "$skip",
            "$limit",
            "$project",
            "$unset",
            "$addFields",
            "$set",
        ];
        passes.iter().any(|name| stage.contains_key(*name))
    });
    Some(FilterSeen {
        reduced,
        limited: passing.any(|stage| stage.contains_key("$limit")),
        keys: sort.and_then(keys).unwrap_or_default(),
        joins: joins(&stages),
        skips: skipped.any(is_long_skip),
        ..found
    })
}

/// Adds the fields of a filter. Conditions of `$and` count like top-level ones.
fn add(found: &mut FilterSeen, filter: &Document, depth: usize) {
    for (name, condition) in filter {
        let parts = condition.as_array().filter(|_| name == "$and" && depth > 0);
        if let Some(parts) = parts {
            let parts = parts.iter().filter_map(Bson::as_document);
            parts.for_each(|part| add(found, part, depth - 1));
            continue;
        }
        match of_elements(condition).filter(|_| depth > 0) {
            Some(of_elements) => {
                found.elements = true;
                let of_field = of_elements
                    .iter()
                    .map(|(inner, condition)| (format!("{name}.{inner}"), condition));
                of_field.for_each(|(name, condition)| add_condition(found, &name, condition));
            }
            None => add_condition(found, name, condition),
        }
    }
}

fn add_condition(found: &mut FilterSeen, name: &str, condition: &Bson) {
    let name = kept(name);
    if found.fields.len() >= FIELDS_MAX || found.fields.iter().any(|known| known == name) {
        return;
    }
    found.fields.push(name.into());
    if is_pattern_anywhere(condition) {
        found.patterns.push(name.into());
    }
    if name.starts_with('$') {
        return;
    }
    if let Some(operator) = beyond_an_index(condition) {
        found.beyond.push(ConditionSeen {
            field: name.into(),
            operator: kept(operator).into(),
        });
    } else if is_comparison(condition) {
        found.equal.push(name.into());
    }
}

#[cfg(test)]
mod tests {
    use mongodb::bson::{Regex, doc};
    use seekscope_run::JoinSeen;

    use super::*;

    fn of(command: Document) -> Option<(String, bool)> {
        let found = filter(&doc! { "op": "command", "command": command })?;
        assert!(!format!("{found:?}").contains("SECRET"), "{found:?}");
        Some((found.fields.join(" "), found.reduced))
    }

    fn seen(fields: &str, reduced: bool) -> Option<(String, bool)> {
        Some((fields.into(), reduced))
    }

    #[test]
    fn names_are_kept_and_values_are_not() {
        let find = doc! { "find": "orders", "filter": { "customer": "SECRET", "$or": [ { "a": "SECRET" } ] } };
        assert_eq!(of(find), seen("customer $or", false));
        let both = doc! { "$and": [ { "a": 1 }, { "b.c": { "$gt": "SECRET" } }, { "a": 2 } ] };
        assert_eq!(
            of(doc! { "find": "orders", "filter": both }),
            seen("a b.c", false)
        );
        assert_eq!(
            of(doc! { "q": { "a": "SECRET" }, "u": { "$set": { "b": "SECRET" } } }),
            seen("a", false)
        );
        let top = doc! { "find": "orders", "filter": { "a": 1 }, "sort": { "b": 1 }, "limit": 5 };
        assert_eq!(of(top), seen("a", true));
    }

    #[test]
    fn the_keys_of_a_short_answer_are_kept() {
        let keys = |command: Document| -> String {
            let found = filter(&doc! { "op": "command", "command": command }).unwrap();
            let keys = found.keys.iter();
            let keys =
                keys.map(|key| format!("{}{}", if key.descending { "-" } else { "" }, key.field));
            keys.collect::<Vec<_>>().join(" ")
        };
        let sort = doc! { "k": 1, "d": -1.0 };
        assert_eq!(
            keys(doc! { "find": "a", "sort": sort.clone(), "limit": 5 }),
            "k -d"
        );
        assert_eq!(keys(doc! { "find": "a", "sort": sort.clone() }), "");
        let long = doc! { "find": "a", "sort": sort.clone(), "limit": 500_000 };
        assert_eq!(keys(long), "");
        let score = doc! { "s": { "$meta": "textScore" } };
        assert_eq!(keys(doc! { "find": "a", "sort": score, "limit": 5 }), "");
        let sorted = |stages: Vec<Document>| keys(doc! { "aggregate": "a", "pipeline": stages });
        let (sort, limit) = (doc! { "$sort": sort }, doc! { "$limit": 5 });
        assert_eq!(sorted(vec![sort.clone(), limit.clone()]), "k -d");
        let matched = doc! { "$match": { "x": 1 } };
        assert_eq!(sorted(vec![matched, sort.clone(), limit.clone()]), "k -d");
        let group = doc! { "$group": { "_id": "$x" } };
        assert_eq!(sorted(vec![group, sort.clone(), limit]), "");
        assert_eq!(
            sorted(vec![sort.clone(), doc! { "$limit": 500_000_i64 }]),
            ""
        );
        assert_eq!(sorted(vec![sort]), "");
        assert_eq!(keys(doc! { "distinct": "a", "key": "status" }), "status");
    }

    #[test]
    fn patterns_that_may_begin_anywhere_and_long_skips_are_noted() {
        let of = |command: Document| {
            let found = filter(&doc! { "op": "command", "command": command }).unwrap();
            (found.patterns.join(" "), found.skips)
        };
        let regex = |pattern: &str| Regex {
            pattern: pattern.try_into().unwrap(),
            options: "".try_into().unwrap(),
        };
        let find = |condition: Bson| of(doc! { "find": "a", "filter": { "name": condition } });
        for anywhere in [
            Bson::from(regex("SECRET")),
            doc! { "$regex": "SECRET" }.into(),
            doc! { "$regex": regex("SECRET") }.into(),
        ] {
            assert_eq!(find(anywhere), ("name".into(), false));
        }
        for at_beginning in [
            Bson::from(regex("^SECRET")),
            doc! { "$regex": "^SECRET" }.into(),
            5.into(),
        ] {
            assert_eq!(find(at_beginning), (String::new(), false));
        }
        assert_eq!(
            find(doc! { "$regex": "^SECRET", "$options": "i" }.into()),
            ("name".into(), false),
            "in any letters"
        );
        let page =
            |skip: i64| of(doc! { "find": "a", "sort": { "a": 1 }, "skip": skip, "limit": 20 });
        assert!(page(150_000).1 && !page(40).1);
        let stages = vec![
            doc! { "$match": { "a": 1 } },
            doc! { "$skip": 5_000 },
            doc! { "$limit": 5 },
        ];
        assert!(of(doc! { "aggregate": "a", "pipeline": stages }).1);
    }

    #[test]
    fn fields_that_are_compared_for_equality_are_told_from_others() {
        let filter = doc! {
            "a": "SECRET", "b": { "$in": ["SECRET"] }, "c": { "$gte": 5 }, "d": { "$ne": 1 }, "e": { "x": 1 },
            "f": { "$exists": true }, "$or": [{ "g": 1 }],
        };
        let find = doc! { "find": "a", "filter": filter };
        let found = super::filter(&doc! { "op": "command", "command": find }).unwrap();
        assert_eq!(found.equal, ["a", "b", "e"]);
    }

    #[test]
    fn what_takes_every_document_has_no_fields() {
        assert_eq!(of(doc! { "find": "orders" }), seen("", false));
        assert_eq!(of(doc! { "count": "orders", "query": {} }), seen("", true));
        let group = doc! { "$group": { "_id": "$SECRET", "n": { "$sum": 1 } } };
        let all = doc! { "aggregate": "orders", "pipeline": [ group.clone() ] };
        assert_eq!(of(all), seen("", true));
        let count = vec![
            doc! { "$match": {} },
            doc! { "$group": { "_id": 1, "n": { "$sum": 1 } } },
        ];
        let counted = doc! { "aggregate": "orders", "pipeline": count };
        assert_eq!(of(counted), seen("", true), "what drivers send to count");
        let late = doc! { "aggregate": "orders", "pipeline": [ group, { "$match": { "n": 5 } } ] };
        assert_eq!(of(late), seen("", true));
        let sorted = vec![doc! { "$sort": { "a": 1 } }, doc! { "$match": { "n": 5 } }];
        assert_eq!(of(doc! { "aggregate": "orders", "pipeline": sorted }), None);
    }

    #[test]
    fn the_beginning_of_a_pipeline_selects() {
        let pipeline = vec![
            doc! { "$match": { "day": "SECRET" } },
            doc! { "$match": { "shop": 7 } },
            doc! { "$group": { "_id": 1 } },
        ];
        let command = doc! { "aggregate": "orders", "pipeline": pipeline };
        assert_eq!(of(command.clone()), seen("day shop", true));
        let getmore = doc! {
            "op": "getmore", "command": { "getMore": 5_i64, "collection": "orders" },
            "cursor": { "originatingCommand": command },
        };
        assert_eq!(filter(&getmore).unwrap().fields, ["day", "shop"]);
    }

    #[test]
    fn joined_collections_are_kept_with_the_field_that_is_compared() {
        let lookup = doc! { "from": "customers", "localField": "no", "foreignField": "customer.no", "as": "SECRET" };
        let graph = doc! {
            "from": "people", "startWith": "SECRET", "connectFromField": "boss", "connectToField": "name", "as": "SECRET"
        };
        let own = doc! { "from": "items", "let": { "a": 1 }, "pipeline": [], "as": "SECRET" };
        let both = doc! { "$and": [{ "$gt": ["$n", 5] }, { "$eq": ["$$no", "$item.no"] }] };
        let by_expression = doc! {
            "from": "parts", "let": { "no": "$no" }, "pipeline": [{ "$match": { "$expr": both } }], "as": "SECRET"
        };
        let stages = [
            doc! { "$lookup": &lookup },
            doc! { "$graphLookup": graph },
            doc! { "$lookup": own },
            doc! { "$lookup": by_expression },
            doc! { "$lookup": lookup },
            doc! { "$lookup": "SECRET" },
        ];
        let command = doc! { "aggregate": "orders", "pipeline": stages.to_vec() };
        let found = filter(&doc! { "op": "command", "command": command }).unwrap();
        assert!(!format!("{found:?}").contains("SECRET"), "{found:?}");
        let join = |collection: &str, field: &str| JoinSeen {
            collection: collection.into(),
            field: field.into(),
        };
        let expected = [
            join("customers", "customer.no"),
            join("people", "name"),
            join("parts", "item.no"),
        ];
        assert_eq!(found.joins, expected);
    }

    #[test]
    fn what_is_not_known_is_not_taken_for_every_document() {
        let cut_off = doc! { "$truncated": "{ find: \"orders\", filter: { a: SECRET" };
        assert_eq!(of(cut_off), None);
        assert_eq!(of(doc! { "insert": "orders" }), None);
        assert_eq!(of(doc! {}), None);
        assert_eq!(filter(&doc! { "op": "update" }), None);
        let odd = doc! { "aggregate": "orders", "pipeline": [5] };
        assert_eq!(of(odd), None);
        assert_eq!(of(doc! { "find": "orders", "filter": 5 }), None);
    }

    #[test]
    fn names_are_bounded() {
        let mut filter = Document::new();
        filter.insert("x".repeat(1000), 1);
        (0..100).for_each(|n| drop(filter.insert(format!("f{n}"), 1)));
        let fields_of = |filter: &Document| {
            let find = doc! { "find": "orders", "filter": filter.clone() };
            super::filter(&doc! { "op": "command", "command": find })
                .unwrap()
                .fields
        };
        let fields = fields_of(&filter);
        assert_eq!((fields[0].as_str(), fields.len()), ("?", FIELDS_MAX));
        let mut nested = doc! { "a": 1 };
        for _ in 0..50 {
            nested = doc! { "$and": [nested] };
        }
        assert_eq!(fields_of(&nested), ["$and"]);
    }

    #[test]
    fn conditions_that_no_ordinary_index_narrows_down_are_noted_with_their_operators() {
        let filter = doc! {
            "a": 1, "b": { "$gte": 5, "$lt": 9 }, "c": { "$size": 3 }, "d": { "$exists": true }, "e": { "$not": { "$gt": 5 } },
            "f": { "$geoWithin": { "$centerSphere": "SECRET" } }, "g": { "$all": [1, 2] }, "h": { "$elemMatch": { "$gt": 5 } },
        };
        let find = doc! { "find": "a", "filter": filter };
        let found = super::filter(&doc! { "op": "command", "command": find }).unwrap();
        let beyond = found
            .beyond
            .iter()
            .map(|c| format!("{} {}", c.field, c.operator));
        let expected = ["c $size", "d $exists", "e $not", "f $geoWithin"];
        assert_eq!(beyond.collect::<Vec<_>>(), expected);
        let elements =
            doc! { "lines": { "$elemMatch": { "sku": "SECRET", "count": { "$gt": 5 } } } };
        let find = doc! { "find": "a", "filter": elements };
        let found = super::filter(&doc! { "op": "command", "command": find }).unwrap();
        assert_eq!(found.fields, ["lines.sku", "lines.count"]);
        assert_eq!(found.equal, ["lines.sku"]);
        assert!(found.elements);
    }

    #[test]
    fn the_order_of_the_collection_and_long_names_make_no_keys() {
        let of = |command: Document| {
            super::filter(&doc! { "op": "command", "command": command }).unwrap()
        };
        let natural = of(doc! { "find": "a", "sort": { "$natural": -1 }, "limit": 10 });
        assert!(natural.natural && natural.keys.is_empty(), "{natural:?}");
        let hinted =
            of(doc! { "find": "a", "sort": { "n": -1 }, "limit": 10, "hint": { "$natural": 1 } });
        assert!(hinted.natural);
        let long = doc! { "find": "a", "sort": { "x".repeat(200): 1 }, "limit": 10 };
        let long = super::filter(&doc! { "op": "command", "command": long });
        assert_eq!(long, None, "what it takes is not known");
    }

    #[test]
    fn what_ends_after_some_documents_does_not_want_all() {
        let of = |command: Document| {
            super::filter(&doc! { "op": "command", "command": command })
                .unwrap()
                .limited
        };
        assert!(of(doc! { "find": "a", "skip": 5, "limit": 10 }));
        assert!(!of(doc! { "find": "a", "sort": { "n": 1 }, "limit": 10 }));
        let piped = |stages: Vec<Document>| of(doc! { "aggregate": "a", "pipeline": stages });
        let (limit, group) = (doc! { "$limit": 5 }, doc! { "$group": { "_id": "$a" } });
        assert!(piped(vec![
            doc! { "$skip": 5 },
            limit.clone(),
            group.clone()
        ]));
        assert!(!piped(vec![group, limit]));
    }
}
