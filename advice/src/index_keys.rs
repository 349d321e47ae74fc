//! Which index serves a shape, and whether one that there is does.

use std::collections::HashSet;

use bson::{Bson, Document};
use seekscope_run::{QueryShape, SortField};

/// Returns the keys of the index that serves a shape best: what is compared, then the order, then a range. Behind a range
/// keys are in no order of their own, so another range bounds nothing there.
pub fn best_keys(shape: &QueryShape) -> Document {
    let mut keys = Document::new();
    for field in &shape.equality {
        keys.insert(field.clone(), 1);
    }
    for SortField { field, descending } in &shape.sort {
        if !keys.contains_key(field) {
            keys.insert(field.clone(), if *descending { -1 } else { 1 });
        }
    }
    let is_ranged = shape.range.iter().any(|field| keys.contains_key(field));
    if let Some(field) = shape.range.first().filter(|_| !is_ranged) {
        keys.insert(field.clone(), 1);
    }
    keys
}

/// Returns the keys of an index that has all that a query asks for, the best for its shape first; `None` if it asks for
/// whole documents.
pub fn covering_keys(shape: &QueryShape) -> Option<Document> {
    let mut keys = best_keys(shape);
    for field in shape.range.iter().chain(shape.projection.as_ref()?) {
        if !keys.contains_key(field) {
            keys.insert(field.clone(), 1);
        }
    }
    Some(keys)
}

/// Returns whether an index with these keys serves a shape as well as the best one: its first keys are the compared
/// fields in any order and direction, and then come the order and the ranges. It may be read backwards: the directions of
/// the order are all as wanted or all reversed.
pub fn is_served_by(shape: &QueryShape, keys: &Document) -> bool {
    let best = best_keys(shape);
    let compared = shape.equality.len();
    let plain = |value: Option<&Bson>| value.and_then(seekscope_server::float).is_some();
    let first: HashSet<&String> = keys.keys().take(compared).collect();
    let has_compared = shape.equality.iter().all(|field| first.contains(field));
    let rest = best.keys().skip(compared);
    let rest_follows = rest.eq(keys
        .keys()
        .skip(compared)
        .take(best.len().saturating_sub(compared)));
    has_compared
        && rest_follows
        && best.keys().all(|field| plain(keys.get(field)))
        && gives_order(shape, keys)
}

/// Returns whether an index whose first keys are the compared fields and then the order gives that order, read forwards or
/// backwards.
fn gives_order(shape: &QueryShape, keys: &Document) -> bool {
    let ascends = |direction: &Bson| seekscope_server::float(direction).is_some_and(|d| d > 0.0);
    let sorted = shape
        .sort
        .iter()
        .filter(|sort| !shape.equality.contains(&sort.field));
    let own = keys.values().skip(shape.equality.len());
    let as_wanted = sorted
        .zip(own)
        .map(|(wanted, own)| ascends(own) != wanted.descending);
    let as_wanted: HashSet<bool> = as_wanted.collect();
    as_wanted.len() <= 1
}

#[cfg(test)]
mod tests {
    use bson::doc;

    use super::*;
    use crate::shape::told;

    #[test]
    fn an_index_serves_in_any_order_of_what_is_compared() {
        let shape = told(r#"{"a": 1, "b": 1, "c": {"$gt": 1}}"#).unwrap();
        for keys in [
            doc! { "a": 1, "b": 1, "c": 1 },
            doc! { "b": -1, "a": 1, "c": 1, "d": 1 },
        ] {
            assert!(is_served_by(&shape, &keys), "{keys}");
        }
        for keys in [
            doc! { "c": 1, "a": 1, "b": 1 },
            doc! { "a": 1 },
            doc! { "a": "hashed", "b": 1, "c": 1 },
        ] {
            assert!(!is_served_by(&shape, &keys), "{keys}");
        }
    }

    #[test]
    fn a_range_behind_a_range_is_no_key_of_the_best_index() {
        let two = told(
            r#"{"filter": {"a": 1, "b": {"$gt": 1}, "c": {"$gt": 1}}, "projection": {"a": 1, "_id": 0}}"#,
        );
        let two = two.unwrap();
        assert_eq!(best_keys(&two), doc! { "a": 1, "b": 1 });
        assert!(is_served_by(&two, &doc! { "a": 1, "b": 1 }));
        assert_eq!(covering_keys(&two), Some(doc! { "a": 1, "b": 1, "c": 1 }));
        let sorted = told(r#"{"filter": {"b": {"$gt": 1}, "c": {"$gt": 1}}, "sort": {"c": 1}}"#);
        assert_eq!(best_keys(&sorted.unwrap()), doc! { "c": 1 });
    }

    #[test]
    fn an_index_that_is_read_backwards_gives_the_order_as_well() {
        let shape =
            |sort: &str| told(&format!(r#"{{"filter": {{"a": 1}}, "sort": {sort}}}"#)).unwrap();
        let by_b = shape(r#"{"b": 1}"#);
        for keys in [
            doc! { "a": 1, "b": 1 },
            doc! { "a": 1, "b": -1 },
            doc! { "a": -1, "b": 1, "c": 1 },
        ] {
            assert!(is_served_by(&by_b, &keys), "{keys}");
        }
        for keys in [
            doc! { "b": -1, "a": 1 },
            doc! { "a": 1, "c": 1, "b": 1 },
            doc! { "a": 1 },
        ] {
            assert!(!is_served_by(&by_b, &keys), "{keys}");
        }
        let by_both = shape(r#"{"b": 1, "c": -1}"#);
        for keys in [
            doc! { "a": 1, "b": 1, "c": -1 },
            doc! { "a": 1, "b": -1, "c": 1 },
            doc! { "a": -1, "b": -1, "c": 1, "d": 1 },
        ] {
            assert!(is_served_by(&by_both, &keys), "{keys}");
        }
        for keys in [
            doc! { "a": 1, "b": 1, "c": 1 },
            doc! { "a": -1, "b": -1, "c": -1 },
        ] {
            assert!(!is_served_by(&by_both, &keys), "{keys}");
        }
        // What is compared is in order anyway, and a range may be read in either direction.
        let compared = shape(r#"{"b": 1, "a": -1}"#);
        assert!(is_served_by(&compared, &doc! { "a": 1, "b": 1 }));
        let ranged = told(r#"{"filter": {"a": 1, "c": {"$gt": 1}}, "sort": {"b": -1}}"#).unwrap();
        assert!(is_served_by(&ranged, &doc! { "a": 1, "b": 1, "c": 1 }));
    }
}
