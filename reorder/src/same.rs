//! Compares two definitions. Servers report the same number with different types, and options in any order.

use bson::{Bson, Document};

use crate::replies::says;

/// Reported by an older server: the collection's name, which a copy does not share.
const NOT_PART: &str = "ns";

/// Compares options or an index, with fields in any order.
pub(crate) fn same_definition(a: &Document, b: &Document) -> bool {
    let fields = |d: &Document| d.keys().filter(|k| *k != NOT_PART).count();
    fields(a) == fields(b)
        && a.iter()
            .filter(|(name, _)| *name != NOT_PART)
            .all(|(name, value)| b.get(name).is_some_and(|other| same_value(value, other)))
}

/// Compares sets of indexes, by their names.
pub(crate) fn same_indexes(a: &[Document], b: &[Document]) -> bool {
    a.len() == b.len() && lacking(a, b).is_empty()
}

/// Returns the indexes of the first set that are missing from the second, or differ there.
pub(crate) fn lacking<'a>(a: &'a [Document], b: &[Document]) -> Vec<&'a Document> {
    let is_there = |index: &Document| {
        let name = index.get_str("name").unwrap_or_default();
        let other = b.iter().find(|other| says(other, "name", name));
        other.is_some_and(|other| same_definition(index, other))
    };
    a.iter().filter(|index| !is_there(index)).collect()
}

/// Compares values, with fields of documents in order, since it matters in key patterns.
pub(crate) fn same_value(a: &Bson, b: &Bson) -> bool {
    match (a, b) {
        (Bson::Document(a), Bson::Document(b)) => {
            a.len() == b.len()
                && a.iter()
                    .zip(b)
                    .all(|((x, v), (y, w))| x == y && same_value(v, w))
        }
        (Bson::Array(a), Bson::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(v, w)| same_value(v, w))
        }
        (Bson::Int32(a), Bson::Int64(b)) | (Bson::Int64(b), Bson::Int32(a)) => i64::from(*a) == *b,
        (Bson::Int32(a), Bson::Double(b)) | (Bson::Double(b), Bson::Int32(a)) => {
            f64::from(*a) == *b
        }
        (Bson::Int64(a), Bson::Double(b)) | (Bson::Double(b), Bson::Int64(a)) => *a as f64 == *b,
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use bson::doc;

    use super::*;

    #[test]
    fn order_matters_inside_key_patterns_only() {
        let index = doc! { "v": 2, "key": { "a": 1, "b": -1 }, "name": "i", "ns": "x.y" };
        let same = doc! { "name": "i", "key": { "a": 1.0, "b": -1_i64 }, "v": 2_i64 };
        assert!(same_indexes(
            std::slice::from_ref(&index),
            std::slice::from_ref(&same)
        ));
        for other in [
            doc! { "v": 2, "key": { "b": -1, "a": 1 }, "name": "i" },
            doc! { "v": 2, "key": { "a": 1, "b": -1 }, "name": "j" },
            doc! { "v": 2, "key": { "a": 1, "b": -1 }, "name": "i", "unique": true },
            doc! { "key": { "a": 1, "b": -1 }, "name": "i" },
        ] {
            assert!(!same_indexes(std::slice::from_ref(&index), &[other]));
        }
        assert!(!same_indexes(std::slice::from_ref(&index), &[]));
        let other = doc! { "key": { "c": 1 }, "name": "k" };
        let (both, one) = ([index, other.clone()], [same]);
        assert_eq!(lacking(&both, &one), [&other], "only what differs is named");
        assert!(lacking(&one, &both).is_empty());
    }
}
