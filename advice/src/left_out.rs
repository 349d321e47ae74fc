//! What is kept of a query that no trial can ask: its fields and operators. Never a value.

use bson::{Bson, Document};
use seekscope_run::{LeftOutQueries, QueryShape};
use serde_json::{Map, Value, json};

/// Bounds of what a hostile reply can make us keep.
const TEXT_MAX: usize = 200;
const DEPTH_MAX: usize = 5;
const PARTS_MAX: usize = 20;
/// Stands for any value.
const ANY: &str = "?";
/// Operators whose operands are filters.
const OF_FILTERS: [&str; 4] = ["$and", "$or", "$nor", "$elemMatch"];

/// Describes a command that has no shape; empty if it is not shown.
pub fn command(command: &Document) -> String {
    let inner = |name: &str| command.get_document(name).map(filter).unwrap_or_default();
    match command.keys().next().map_or("", String::as_str) {
        "find" => inner("filter"),
        "count" | "distinct" | "findAndModify" | "findandmodify" => inner("query"),
        "q" => inner("q"),
        "aggregate" => pipeline(command),
        other => cut(other),
    }
}

/// Describes a pipeline by the filter that it begins with, else by the names of its stages.
fn pipeline(command: &Document) -> String {
    let stages = command.get_array("pipeline").into_iter().flatten();
    let stages: Vec<&Document> = stages.filter_map(Bson::as_document).collect();
    let first = stages
        .first()
        .and_then(|first| first.get_document("$match").ok());
    let names = stages.iter().filter_map(|stage| stage.keys().next());
    let names: Vec<&str> = names.take(PARTS_MAX).map(String::as_str).collect();
    match first {
        Some(first) => filter(first),
        None => cut(&format!("a pipeline of {}", names.join(", "))),
    }
}

/// Describes a filter as `--query` takes it, such as `{"name":{"$regex":"?"}}`.
pub fn filter(filter: &Document) -> String {
    cut(&conditions(filter, DEPTH_MAX).to_string())
}

/// Describes a query that a trial could ask.
pub fn shape(shape: &QueryShape) -> String {
    let compared = shape.equality.iter().map(|field| {
        let is_list = shape.one_of.contains(field);
        (
            field.clone(),
            if is_list {
                json!({ "$in": ANY })
            } else {
                ANY.into()
            },
        )
    });
    let ranges = shape
        .range
        .iter()
        .map(|field| (field.clone(), json!({ "$gte": ANY })));
    let filter: Map<String, Value> = compared.chain(ranges).collect();
    let sort = shape.sort.iter().map(|sort| {
        let direction = if sort.descending { -1 } else { 1 };
        (sort.field.clone(), direction.into())
    });
    let sort: Map<String, Value> = sort.collect();
    cut(&match sort.is_empty() {
        true => Value::from(filter).to_string(),
        false => json!({ "filter": filter, "sort": sort }).to_string(),
    })
}

/// Returns the rate of all queries, those that are left out included, per second; `None` if the rate of some is unknown.
pub fn rate_of_all(shapes: &[QueryShape], left_out: &[LeftOutQueries]) -> Option<f64> {
    let rates = shapes.iter().map(|shape| shape.per_s);
    rates.chain(left_out.iter().map(|one| one.per_s)).sum()
}

fn conditions(filter: &Document, depth: usize) -> Value {
    let conditions = filter.iter().take(PARTS_MAX);
    let conditions = conditions.map(|(name, value)| (name.clone(), condition(name, value, depth)));
    Value::Object(conditions.collect())
}

fn condition(name: &str, value: &Bson, depth: usize) -> Value {
    let Some(depth) = depth.checked_sub(1) else {
        return ANY.into();
    };
    let has_filters = OF_FILTERS.contains(&name);
    match value {
        Bson::Array(parts) if has_filters => {
            // A query with more parts of one kind is of the same kind.
            let mut kinds: Vec<Value> = Vec::new();
            for part in parts.iter().filter_map(Bson::as_document) {
                let kind = conditions(part, depth);
                if kinds.len() < PARTS_MAX && !kinds.contains(&kind) {
                    kinds.push(kind);
                }
            }
            kinds.into()
        }
        Bson::Document(inner) if has_filters || has_operators(inner) => conditions(inner, depth),
        Bson::RegularExpression(_) => json!({ "$regex": ANY }),
        _ => ANY.into(),
    }
}

fn has_operators(value: &Document) -> bool {
    !value.is_empty() && value.keys().all(|key| key.starts_with('$'))
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(TEXT_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use bson::doc;

    use super::*;
    use crate::shape::told;

    #[test]
    fn fields_and_operators_are_kept_and_no_value() {
        let regex = Bson::RegularExpression(bson::Regex {
            pattern: "SECRET".try_into().unwrap(),
            options: "i".try_into().unwrap(),
        });
        for (found, expected) in [
            (
                doc! { "name": { "$regex": "SECRET", "$options": "i" } },
                r#"{"name":{"$options":"?","$regex":"?"}}"#,
            ),
            (
                doc! { "name": regex, "a": "SECRET" },
                r#"{"a":"?","name":{"$regex":"?"}}"#,
            ),
            (
                doc! { "$or": [{ "a": "SECRET" }, { "a": "SECRET 2" }, { "b": { "$gt": "SECRET" } }] },
                r#"{"$or":[{"a":"?"},{"b":{"$gt":"?"}}]}"#,
            ),
            (
                doc! { "a": { "SECRET": 1 }, "$where": "SECRET" },
                r#"{"$where":"?","a":"?"}"#,
            ),
            (
                doc! { "a": { "$elemMatch": { "b": "SECRET" } }, "$expr": { "$gt": ["$a", "SECRET"] } },
                r#"{"$expr":{"$gt":"?"},"a":{"$elemMatch":{"b":"?"}}}"#,
            ),
        ] {
            let said = filter(&found);
            let as_json = |text: &str| serde_json::from_str::<Value>(text).unwrap();
            assert_eq!(as_json(&said), as_json(expected));
        }
        let long = doc! { "a".repeat(500): 1 };
        assert_eq!(filter(&long).chars().count(), TEXT_MAX + 1);
        let mut deep = doc! { "a": "SECRET" };
        for _ in 0..100 {
            deep = doc! { "$and": [deep] };
        }
        assert!(!filter(&deep).contains("SECRET"));
    }

    #[test]
    fn commands_are_described_by_what_they_look_for() {
        let regex = || doc! { "a": { "$regex": "SECRET" } };
        let expected = r#"{"a":{"$regex":"?"}}"#;
        for told in [
            doc! { "find": "c", "filter": regex() },
            doc! { "count": "c", "query": regex() },
            doc! { "q": regex(), "u": { "b": "SECRET" } },
            doc! { "aggregate": "c", "pipeline": [{ "$match": regex() }] },
        ] {
            assert_eq!(command(&told), expected);
        }
        let grouped = doc! { "aggregate": "c", "pipeline": [{ "$group": { "_id": "SECRET" } }, { "$sort": { "a": 1 } }] };
        assert_eq!(command(&grouped), "a pipeline of $group, $sort");
        assert_eq!(command(&doc! { "find": "c", "filter": "cut off" }), "");
    }

    #[test]
    fn a_shape_is_described_as_it_may_be_told() {
        let query = r#"{"filter":{"a":"?","b":{"$gte":"?"}},"sort":{"c":-1}}"#;
        let described = shape(&told(query).unwrap());
        assert_eq!(shape(&told(&described).unwrap()), described);
        assert!(described.contains(r#""c":-1"#), "{described}");
    }
}
