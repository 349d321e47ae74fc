//! What is kept of a query: which fields it compares, of which it wants a range, and its order. Never a value.

use std::collections::HashSet;

use bson::{Bson, Document};
use seekscope_run::{LeftOutQueries, QueryShape, ShapeSource, SortField, visible};

use crate::left_out;

/// Bounds of what a hostile reply can make us keep.
const FIELDS_MAX: usize = 20;
const NAME_MAX_BYTES: usize = 200;
const DEPTH_MAX: usize = 5;
const STAGES_MAX: usize = 100;

/// Names that a told query may have beside its filter.
const TOLD_NAMES: [&str; 6] = ["filter", "sort", "projection", "per_s", "returns", "limit"];

/// A query on the command line.
#[derive(Debug, Clone, PartialEq)]
pub enum ToldQuery {
    Tried(QueryShape),
    /// It was understood, but no trial can ask it.
    LeftOut(LeftOutQueries),
}

/// Why a query on the command line was not understood, or cannot be tried.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error(
    "{why}: a filter such as {{\"device\": \"?\", \"ts\": {{\"$gte\": \"?\"}}}} is expected, or the same as \
         {{\"filter\": …, \"sort\": …, \"projection\": …, \"per_s\": 20, \"returns\": 100, \
         \"limit\": 100}}"
)]
pub struct ToldError {
    why: String,
    /// The query, if it was understood.
    left_out: Option<Box<LeftOutQueries>>,
}

/// Reads a query from the command line, which may be one that no trial can ask.
///
/// # Errors
/// Fails on other text.
pub fn told_or_left_out(text: &str) -> Result<ToldQuery, ToldError> {
    match told(text) {
        Ok(shape) => Ok(ToldQuery::Tried(shape)),
        Err(ToldError {
            left_out: Some(left_out),
            ..
        }) => Ok(ToldQuery::LeftOut(*left_out)),
        Err(error) => Err(error),
    }
}

/// Reads a query from the command line: a filter as JSON, or an object with it as `filter` beside `sort`,
/// `projection`, `per_s`, `returns` and `limit`. Values mean nothing, but a list counts with its length.
///
/// # Errors
/// Fails on other text, and on conditions that no trial can make up.
pub fn told(text: &str) -> Result<QueryShape, ToldError> {
    let wrong = |why: String| ToldError {
        why,
        left_out: None,
    };
    let value: serde_json::Value =
        serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
    let Ok(Bson::Document(given)) = bson::serialize_to_bson(&value) else {
        return Err(wrong("no object".into()));
    };
    let is_long = given.get_document("filter").is_ok();
    let is_unknown = |name: &&String| !TOLD_NAMES.contains(&name.as_str());
    if let Some(name) = given.keys().find(is_unknown).filter(|_| is_long) {
        let known = TOLD_NAMES.join(", ");
        return Err(wrong(format!("{} is not one of {known}", visible(name))));
    }
    let filter = match is_long {
        true => given.get_document("filter").cloned().unwrap_or_default(),
        false => given.clone(),
    };
    let per_s = given.get("per_s").filter(|_| is_long);
    let mut shape = of_filter(&filter).map_err(|why| ToldError {
        why: why.to_string(),
        left_out: Some(Box::new(LeftOutQueries {
            shape: left_out::filter(&filter),
            why: why.to_string(),
            per_s: per_s.and_then(seekscope_server::float),
            ..LeftOutQueries::default()
        })),
    })?;
    if is_long {
        if let Some(sort) = given.get("sort") {
            let sort = sort.as_document().and_then(sort_fields);
            shape.sort = sort.ok_or_else(|| wrong("sort is not an order of fields".into()))?;
        }
        if let Some(projection) = given.get("projection") {
            let projection = projection.as_document();
            let projection =
                projection.ok_or_else(|| wrong("projection is not an object of fields".into()))?;
            shape.projection = projected(projection);
        }
        for (name, place) in [
            ("per_s", &mut shape.per_s),
            ("returns", &mut shape.returned),
            ("limit", &mut shape.limit),
        ] {
            if let Some(number) = given.get(name) {
                let number = seekscope_server::float(number).filter(|n| *n > 0.0 && n.is_finite());
                *place =
                    Some(number.ok_or_else(|| wrong(format!("{name} is not a number above 0")))?);
            }
        }
    }
    if shape.is_empty() {
        return Err(wrong("neither a condition nor an order".into()));
    }
    shape.source = ShapeSource::Told;
    Ok(shape)
}

/// Why a query has no shape that a trial could ask.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoShape {
    #[error("{} cannot be made up for a trial", visible(.0))]
    Condition(String),
    #[error("the query is not shown as a whole")]
    NotShown,
    #[error("its texts are compared by a collation of its own, which an index for it needs, too")]
    Collation,
}

/// Returns the shape of a command as the server shows it in its profile and among running operations.
pub fn of_command(command: &Document) -> Result<QueryShape, NoShape> {
    let inner = |name: &str| match command.get(name) {
        None | Some(Bson::Null) => Ok(Document::new()),
        Some(Bson::Document(inner)) => Ok(inner.clone()),
        Some(_) => Err(NoShape::NotShown),
    };
    let name = command.keys().next().ok_or(NoShape::NotShown)?;
    let collation = inner("collation")?;
    if collation
        .get_str("locale")
        .is_ok_and(|locale| locale != "simple")
    {
        return Err(NoShape::Collation);
    }
    let in_order = |filter: &str| {
        let mut shape = of_filter(&inner(filter)?)?;
        let sort = sort_fields(&inner("sort")?);
        shape.sort = sort.ok_or_else(|| NoShape::Condition("its order".into()))?;
        Ok(shape)
    };
    match name.as_str() {
        "find" => {
            let mut shape = in_order("filter")?;
            shape.projection = projected(&inner("projection")?);
            shape.limit = limit_of(command);
            Ok(shape)
        }
        "count" | "distinct" => {
            let mut shape = of_filter(&inner("query")?)?;
            let key = command.get_str("key").map(str::to_owned);
            shape.projection = match name == "count" {
                true => Some(Vec::new()),
                false => key.ok().filter(|key| is_field(key)).map(|key| vec![key]),
            };
            shape.limit = limit_of(command);
            Ok(shape)
        }
        "findAndModify" | "findandmodify" => {
            let mut shape = in_order("query")?;
            // The first in its order is changed, and no other.
            shape.returned = Some(1.0);
            shape.limit = Some(1.0);
            Ok(shape)
        }
        "q" => {
            let mut shape = of_filter(&inner("q")?)?;
            // An update changes the first that matches and no other, unless it says otherwise; a delete has a limit.
            let is_of_one =
                command.contains_key("u") && !command.get_bool("multi").unwrap_or(false);
            shape.limit = match is_of_one {
                true => Some(1.0),
                false => limit_of(command),
            };
            Ok(shape)
        }
        "aggregate" => of_pipeline(command),
        other => Err(NoShape::Condition(other.chars().take(40).collect())),
    }
}

/// Returns the shape of a pipeline that begins with a filter.
fn of_pipeline(command: &Document) -> Result<QueryShape, NoShape> {
    let stages = command
        .get_array("pipeline")
        .map_err(|_| NoShape::NotShown)?;
    let mut stages = stages.iter().take(STAGES_MAX).filter_map(Bson::as_document);
    let first = stages.next().ok_or(NoShape::NotShown)?;
    let filter = first.get_document("$match");
    let filter = filter.map_err(|_| NoShape::Condition("a pipeline without $match".into()))?;
    let mut shape = of_filter(filter)?;
    let mut next = stages.next();
    if let Some(sort) = next.and_then(|stage| stage.get_document("$sort").ok()) {
        shape.sort = sort_fields(sort).unwrap_or_default();
        next = stages.next();
    }
    let mut skipped = 0.0;
    while let Some(stage) = next {
        match first_name(stage) {
            "$skip" => skipped += documents(stage, "$skip").unwrap_or(0.0),
            "$limit" => {
                let limit = documents(stage, "$limit").map(|limit| limit + skipped);
                shape.limit = shape.limit.or(limit);
            }
            _ => break,
        }
        next = stages.next();
    }
    shape.projection = next.and_then(needed_by);
    Ok(shape)
}

/// Returns after how many documents a command stops, those that it skips included.
fn limit_of(command: &Document) -> Option<f64> {
    let skipped = documents(command, "skip").unwrap_or(0.0);
    documents(command, "limit").map(|limit| limit + skipped)
}

/// Returns a number of documents that a command names; 0 stands for none.
fn documents(command: &Document, name: &str) -> Option<f64> {
    let number = command.get(name).and_then(seekscope_server::float);
    number.filter(|number| *number > 0.0 && number.is_finite())
}

/// Returns the shape of a filter.
pub fn of_filter(filter: &Document) -> Result<QueryShape, NoShape> {
    let mut shape = QueryShape::default();
    add(&mut shape, filter, DEPTH_MAX)?;
    let ranges: HashSet<&String> = shape.range.iter().collect();
    shape.equality.retain(|field| !ranges.contains(field));
    shape.one_of.retain(|field| !ranges.contains(field));
    shape
        .one_of_values
        .retain(|field, _| !ranges.contains(field));
    Ok(shape)
}

fn add(shape: &mut QueryShape, filter: &Document, depth: usize) -> Result<(), NoShape> {
    for (name, condition) in filter {
        match (name.as_str(), condition) {
            ("$comment", _) => {}
            ("$and", Bson::Array(parts)) if depth > 0 => {
                for part in parts {
                    let part = part.as_document().ok_or(NoShape::NotShown)?;
                    add(shape, part, depth - 1)?;
                }
            }
            // mongod cuts long queries short in its log.
            ("$truncated", _) => return Err(NoShape::NotShown),
            (name, _) if name.starts_with('$') => {
                return Err(NoShape::Condition(name.chars().take(40).collect()));
            }
            (name, Bson::Document(operators))
                if operators.keys().next().is_some_and(|o| o.starts_with('$')) =>
            {
                for (operator, operand) in operators {
                    let fields = match operator.as_str() {
                        "$eq" | "$in" => &mut shape.equality,
                        "$gt" | "$gte" | "$lt" | "$lte" => &mut shape.range,
                        other => {
                            return Err(NoShape::Condition(other.chars().take(40).collect()));
                        }
                    };
                    keep(fields, name)?;
                    if operator == "$in" {
                        keep(&mut shape.one_of, name)?;
                    }
                    if let ("$in", Bson::Array(values)) = (operator.as_str(), operand) {
                        let values = values.len().max(1) as f64;
                        shape.one_of_values.entry(name.into()).or_insert(values);
                    }
                }
            }
            (_, Bson::RegularExpression(_)) => {
                return Err(NoShape::Condition("a regular expression".into()));
            }
            (name, _) => keep(&mut shape.equality, name)?,
        }
    }
    Ok(())
}

fn keep(fields: &mut Vec<String>, name: &str) -> Result<(), NoShape> {
    if fields.iter().any(|known| known == name) {
        return Ok(());
    }
    if fields.len() >= FIELDS_MAX || name.len() > NAME_MAX_BYTES || name.is_empty() {
        return Err(NoShape::Condition(
            "so many or such long names of fields".into(),
        ));
    }
    fields.push(name.into());
    Ok(())
}

fn first_name(stage: &Document) -> &str {
    stage.keys().next().map_or("", String::as_str)
}

/// Returns the fields that a stage needs of the documents before it; `None` for whole documents.
fn needed_by(stage: &Document) -> Option<Vec<String>> {
    match first_name(stage) {
        "$project" => projected(stage.get_document("$project").ok()?),
        "$count" => Some(Vec::new()),
        // Drivers count documents so.
        "$group" => {
            let group = stage.get_document("$group").ok()?;
            let names_field = |value: &Bson| match value {
                Bson::Document(_) | Bson::Array(_) => true,
                Bson::String(text) => text.starts_with('$'),
                _ => false,
            };
            let counts = |(name, value): (&String, &Bson)| match (name.as_str(), value) {
                ("_id", id) => !names_field(id),
                (_, Bson::Document(by)) => by.get("$sum").is_some_and(|sum| !names_field(sum)),
                _ => false,
            };
            group.iter().all(counts).then(Vec::new)
        }
        _ => None,
    }
}

/// Returns the fields that a projection asks for; `None` where it asks for whole documents, for all but some fields, or
/// for what is computed of them.
fn projected(projection: &Document) -> Option<Vec<String>> {
    let is_asked = |value: &Bson| match value {
        Bson::Boolean(asked) => Some(*asked),
        value => seekscope_server::float(value).map(|number| number != 0.0),
    };
    let mut fields = Vec::new();
    let mut with_id = true;
    for (name, value) in projection.iter().take(FIELDS_MAX + 1) {
        match (name.as_str(), is_asked(value)?) {
            ("_id", asked) => with_id = asked,
            (name, true) if is_field(name) => fields.push(name.to_owned()),
            _ => return None,
        }
    }
    // Without another field, leaving out `_id` leaves all others.
    if fields.is_empty() && !(with_id && projection.contains_key("_id")) {
        return None;
    }
    if with_id {
        fields.push("_id".into());
    }
    (fields.len() <= FIELDS_MAX).then_some(fields)
}

/// Returns whether this may be the path of a field that is kept.
fn is_field(name: &str) -> bool {
    !name.is_empty() && name.len() <= NAME_MAX_BYTES && !name.contains('$')
}

/// Returns the fields of an order; `None` for one that is not of fields.
fn sort_fields(sort: &Document) -> Option<Vec<SortField>> {
    if sort.len() > FIELDS_MAX {
        return None;
    }
    sort.iter()
        .map(|(field, direction)| {
            let direction = seekscope_server::float(direction)?;
            is_field(field).then(|| SortField {
                field: field.clone(),
                descending: direction < 0.0,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use bson::doc;

    use super::*;
    use crate::index_keys::{best_keys, covering_keys};

    fn names(fields: &[&str]) -> Vec<String> {
        fields.iter().map(|field| (*field).into()).collect()
    }

    #[test]
    fn filters_are_told_by_names_alone() {
        let shape = told(r#"{"device": "SECRET", "ts": {"$gte": 5, "$lt": "x"}}"#).unwrap();
        assert_eq!(shape.equality, names(&["device"]));
        assert_eq!(shape.range, names(&["ts"]));
        assert_eq!((shape.per_s, shape.returned), (None, None));
        let long =
            r#"{"filter": {"a": {"$in": [1]}}, "sort": {"b": -1}, "per_s": 2.5, "returns": 7}"#;
        let shape = told(long).unwrap();
        assert_eq!(shape.equality, names(&["a"]));
        assert!(shape.sort[0].descending);
        assert_eq!((shape.per_s, shape.returned), (Some(2.5), Some(7.0)));
        assert_eq!(best_keys(&shape), doc! { "a": 1, "b": -1 });
        // A collection may have a field of that name, which is compared with no document.
        let field = told(r#"{"filter": "?", "x": 1}"#).unwrap();
        assert_eq!(field.equality, names(&["filter", "x"]));
    }

    #[test]
    fn a_query_with_a_collation_has_an_index_of_its_own() {
        let find = |collation: Document| {
            let command = doc! { "find": "c", "filter": { "a": 1 }, "collation": collation };
            of_command(&command)
        };
        assert_eq!(find(doc! { "locale": "en" }), Err(NoShape::Collation));
        assert!(find(doc! { "locale": "simple" }).is_ok() && find(doc! {}).is_ok());
    }

    #[test]
    fn the_fields_that_are_asked_for() {
        let fields = |names: &[&str]| Some(names.iter().map(|n| (*n).to_owned()).collect());
        let find = |projection: Document| {
            let command = doc! { "find": "c", "filter": { "a": 1 }, "projection": projection };
            of_command(&command).unwrap().projection
        };
        assert_eq!(find(doc! {}), None);
        assert_eq!(
            find(doc! { "a": 1, "b.c": true, "_id": 0 }),
            fields(&["a", "b.c"])
        );
        assert_eq!(find(doc! { "b": 1.0 }), fields(&["b", "_id"]));
        assert_eq!(find(doc! { "_id": 1 }), fields(&["_id"]));
        for whole in [
            doc! { "_id": 0 },
            doc! { "b": 0 },
            doc! { "b": 1, "c": { "$slice": 2 } },
            doc! { "b.$": 1 },
            doc! { "b": "$c" },
        ] {
            assert_eq!(find(whole.clone()), None, "{whole}");
        }
        let pipeline = |stages: Vec<Document>| {
            let mut all = vec![doc! { "$match": { "a": 1 } }];
            all.extend(stages);
            let command = doc! { "aggregate": "c", "pipeline": all };
            of_command(&command).unwrap().projection
        };
        assert_eq!(pipeline(vec![]), None);
        let counted = vec![doc! { "$group": { "_id": 1, "n": { "$sum": 1 } } }];
        assert_eq!(pipeline(counted), fields(&[]));
        let limited = vec![
            doc! { "$sort": { "b": 1 } },
            doc! { "$skip": 5 },
            doc! { "$limit": 5 },
            doc! { "$project": { "b": 1, "_id": 0 } },
        ];
        assert_eq!(pipeline(limited), fields(&["b"]));
        let summed = vec![doc! { "$group": { "_id": 1, "n": { "$sum": "$b" } } }];
        assert_eq!(pipeline(summed), None);
        let count = of_command(&doc! { "count": "c", "query": { "a": 1 } }).unwrap();
        assert_eq!(count.projection, fields(&[]));
        let distinct = doc! { "distinct": "c", "key": "b", "query": { "a": 1 } };
        assert_eq!(of_command(&distinct).unwrap().projection, fields(&["b"]));
        let long = r#"{"filter": {"a": 1}, "projection": {"b": 1, "_id": 0}}"#;
        let shape = told(long).unwrap();
        assert_eq!(shape.projection, fields(&["b"]));
        assert_eq!(covering_keys(&shape), Some(doc! { "a": 1, "b": 1 }));
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for text in [
            "",
            "5",
            "{}",
            r#"{"a": {"$regex": "x"}}"#,
            r#"{"$or": [{"a": 1}]}"#,
            r#"{"filter": {"a": 1}, "per_s": -1}"#,
            r#"{"filter": {"a": 1}, "sort": {"b": "up"}}"#,
            r#"{"filter": {"a": 1}, "limit": 0}"#,
            r#"{"filter": {"a": 1}, "skip": 5}"#,
        ] {
            assert!(told(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_no_trial_can_ask_is_understood() {
        for (text, shape, per_s) in [
            (r#"{"$or": [{"a": 1}]}"#, r#"{"$or":[{"a":"?"}]}"#, None),
            (
                r#"{"filter": {"a": {"$regex": "SECRET"}}, "per_s": 5}"#,
                r#"{"a":{"$regex":"?"}}"#,
                Some(5.0),
            ),
        ] {
            let Ok(ToldQuery::LeftOut(found)) = told_or_left_out(text) else {
                panic!("{text}");
            };
            assert_eq!((found.shape.as_str(), found.per_s), (shape, per_s));
            assert!(found.why.contains("cannot be made up"), "{found:?}");
        }
        assert!(told_or_left_out("{}").is_err());
        assert!(matches!(
            told_or_left_out(r#"{"a": 1}"#),
            Ok(ToldQuery::Tried(_))
        ));
    }

    #[test]
    fn commands_as_servers_show_them() {
        let of = |command: Document| of_command(&command).unwrap();
        let find = of(
            doc! { "find": "c", "filter": { "$and": [{ "a": 1 }, { "b": { "$lt": 2 } }] },
            "sort": { "b": 1 } },
        );
        assert_eq!((find.equality, find.range), (names(&["a"]), names(&["b"])));
        let pipeline = of(
            doc! { "aggregate": "c", "pipeline": [{ "$match": { "a": 1 } }, { "$group": { "_id": 1 } }] },
        );
        assert_eq!(pipeline.equality, names(&["a"]));
        let update = of(doc! { "q": { "_id": 5 }, "u": { "$set": { "a": "SECRET" } } });
        assert_eq!(update.equality, names(&["_id"]));
        for command in [
            doc! {},
            doc! { "find": "c", "filter": "cut off" },
            doc! { "insert": "c" },
            doc! { "aggregate": "c", "pipeline": [] },
        ] {
            assert!(of_command(&command).is_err(), "{command}");
        }
    }

    #[test]
    fn a_list_counts_with_its_length() {
        let values = |query: &str| {
            let shape = told(query).unwrap();
            (shape.values_of("a"), shape.has_unknown_list())
        };
        assert_eq!(values(r#"{"a": {"$in": ["?", "?", "?"]}}"#), (3.0, false));
        assert_eq!(values(r#"{"a": {"$in": []}}"#), (1.0, false));
        assert_eq!(values(r#"{"a": {"$in": "?"}}"#), (1.0, true));
        assert_eq!(values(r#"{"a": "?"}"#), (1.0, false));
        // A range of the same field is what is asked for.
        let ranged = told(r#"{"a": {"$in": [1, 2], "$gt": 1}}"#).unwrap();
        assert_eq!(ranged.one_of, names(&[]));
        assert_eq!(ranged.values_of("a"), 1.0);
        let find = doc! { "find": "c", "filter": { "a": { "$in": ["SECRET", "x"] } } };
        let shape = of_command(&find).unwrap();
        assert_eq!(shape.values_of("a"), 2.0);
        assert!(!format!("{shape:?}").contains("SECRET"));
    }

    #[test]
    fn a_limit_is_known() {
        let of = |command: Document| of_command(&command).unwrap().limit;
        let find = |limit: i32, skip: i32| {
            of(doc! { "find": "c", "filter": { "a": 1 }, "skip": skip, "limit": limit })
        };
        assert_eq!(
            (find(10, 0), find(10, 90), find(0, 90)),
            (Some(10.0), Some(100.0), None)
        );
        let pipeline = |stages: Vec<Document>| {
            let mut all = vec![doc! { "$match": { "a": 1 } }];
            all.extend(stages);
            of(doc! { "aggregate": "c", "pipeline": all })
        };
        let limit = || doc! { "$limit": 5_i64 };
        assert_eq!(pipeline(vec![limit()]), Some(5.0));
        let paged = vec![
            doc! { "$sort": { "b": 1 } },
            doc! { "$skip": 20 },
            limit(),
            doc! { "$skip": 2 },
        ];
        assert_eq!(pipeline(paged), Some(25.0));
        let grouped = doc! { "$group": { "_id": "$b" } };
        assert_eq!(pipeline(vec![grouped, limit()]), None);
        let update = |multi: bool| of(doc! { "q": { "a": 1 }, "u": { "b": 1 }, "multi": multi });
        assert_eq!((update(false), update(true)), (Some(1.0), None));
        let delete = |limit: i32| of(doc! { "q": { "a": 1 }, "limit": limit });
        assert_eq!((delete(1), delete(0)), (Some(1.0), None));
        let told = told(r#"{"filter": {"a": 1}, "returns": 3, "limit": 5}"#).unwrap();
        assert_eq!((told.returned, told.limit), (Some(3.0), Some(5.0)));
    }
}
