//! Finds the values of a shard key between which lie equal numbers of documents.

use std::cmp::Ordering;

use bson::Bson;
use seekscope_server::float;

/// Why there are no such values.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SplitError {
    #[error(
        "its values are not known before they are written, so that only a hashed \
             shard key spreads them"
    )]
    NoValues,
    #[error("its values have several types, or a type whose order seekscope does not know")]
    NoOrder,
    #[error("its distinct values make {ranges} ranges, which are too few for {shards} shards")]
    TooFewValues { ranges: usize, shards: usize },
}

/// Returns values that split documents with these values of the key into `chunks` ranges with about equal numbers of
/// documents, ascending. Where values repeat there are fewer ranges, but at least one for each of `shards`.
///
/// # Errors
/// Fails if the values are unknown, have no order, or are too few.
pub fn split_points(
    mut values: Vec<Bson>,
    chunks: usize,
    shards: usize,
) -> Result<Vec<Bson>, SplitError> {
    let first = values.first().ok_or(SplitError::NoValues)?.clone();
    if values.iter().any(|value| order(&first, value).is_none()) {
        return Err(SplitError::NoOrder);
    }
    values.sort_by(in_order);
    // The least value splits nothing off, and each splits once.
    let mut last = &values[0];
    let mut points = Vec::new();
    for chunk in 1..chunks {
        let point = &values[values.len() * chunk / chunks];
        if in_order(point, last) == Ordering::Greater {
            points.push(point.clone());
            last = point;
        }
    }
    let ranges = points.len() + 1;
    match ranges < shards {
        true => Err(SplitError::TooFewValues { ranges, shards }),
        false => Ok(points),
    }
}

fn in_order(a: &Bson, b: &Bson) -> Ordering {
    order(a, b).unwrap_or(Ordering::Equal)
}

/// Compares values as MongoDB does; `None` for those of different types and of types that are no usual keys.
fn order(a: &Bson, b: &Bson) -> Option<Ordering> {
    match (a, b) {
        (Bson::String(a), Bson::String(b)) => Some(a.cmp(b)),
        (Bson::DateTime(a), Bson::DateTime(b)) => Some(a.cmp(b)),
        (Bson::ObjectId(a), Bson::ObjectId(b)) => Some(a.cmp(b)),
        (Bson::Binary(a), Bson::Binary(b)) => {
            let rank = |binary: &bson::Binary| (binary.bytes.len(), u8::from(binary.subtype));
            Some(rank(a).cmp(&rank(b)).then_with(|| a.bytes.cmp(&b.bytes)))
        }
        _ => match (integer(a), integer(b)) {
            (Some(a), Some(b)) => Some(a.cmp(&b)),
            _ => float(a)?.partial_cmp(&float(b)?),
        },
    }
}

fn integer(value: &Bson) -> Option<i64> {
    value.as_i64().or_else(|| value.as_i32().map(i64::from))
}

#[cfg(test)]
mod tests {
    use bson::spec::BinarySubtype;
    use proptest::prelude::*;

    use super::*;

    fn texts(all: &[&str]) -> Vec<Bson> {
        all.iter()
            .map(|text| Bson::String((*text).into()))
            .collect()
    }

    #[test]
    fn keys_are_split_in_the_servers_order() {
        // Digits without leading zeros sort as texts do.
        let keys = texts(&["user9", "user10", "user2", "user30"]);
        assert_eq!(split_points(keys, 2, 2), Ok(texts(&["user30"])));
        let binary = |bytes: &[u8]| {
            Bson::Binary(bson::Binary {
                subtype: BinarySubtype::Generic,
                bytes: bytes.to_vec(),
            })
        };
        // Shorter binary data come first.
        let values = vec![binary(&[1, 1]), binary(&[9]), binary(&[0, 0]), binary(&[5])];
        assert_eq!(split_points(values, 2, 2), Ok(vec![binary(&[0, 0])]));
        let mixed = vec![
            Bson::Int32(3),
            Bson::Double(1.5),
            Bson::Int64(2),
            Bson::Int32(1),
        ];
        assert_eq!(split_points(mixed, 2, 2), Ok(vec![Bson::Int64(2)]));
    }

    #[test]
    fn what_cannot_be_split_says_why() {
        assert_eq!(split_points(Vec::new(), 4, 2), Err(SplitError::NoValues));
        let several = vec![Bson::Int32(1), Bson::String("a".into())];
        assert_eq!(split_points(several, 2, 2), Err(SplitError::NoOrder));
        let not_a_number = vec![Bson::Double(f64::NAN), Bson::Double(1.0)];
        assert_eq!(split_points(not_a_number, 2, 2), Err(SplitError::NoOrder));
        let flags = vec![Bson::Boolean(true), Bson::Boolean(false)];
        assert_eq!(split_points(flags, 2, 2), Err(SplitError::NoOrder));
        let same = vec![Bson::Int32(7); 100];
        let few = SplitError::TooFewValues {
            ranges: 1,
            shards: 2,
        };
        assert_eq!(split_points(same, 4, 2), Err(few));
    }

    #[test]
    fn values_that_repeat_split_once() {
        let mut values = vec![Bson::Int32(1); 90];
        values.extend(vec![Bson::Int32(2); 10]);
        assert_eq!(
            split_points(values.clone(), 10, 1),
            Ok(vec![Bson::Int32(2)])
        );
        assert_eq!(split_points(values, 2, 1), Ok(Vec::new()));
    }

    proptest! {
        #[test]
        fn ranges_hold_equal_numbers(
            mut values in prop::collection::hash_set(any::<i64>(), 1..500),
            chunks in 1_usize..40,
        ) {
            values.insert(0);
            let all: Vec<Bson> = values.iter().copied().map(Bson::Int64).collect();
            let points = split_points(all, chunks, 1).unwrap();
            let mut bounds: Vec<i64> = points.iter().map(|point| point.as_i64().unwrap()).collect();
            prop_assert!(bounds.is_sorted() && bounds.len() < chunks);
            prop_assert_eq!(bounds.len() + 1, chunks.min(values.len()));
            bounds.insert(0, i64::MIN);
            for (at, low) in bounds.iter().enumerate() {
                let high = bounds.get(at + 1).copied();
                let inside = values.iter().filter(|n| *n >= low && high.is_none_or(|high| **n < high));
                let even = values.len() as f64 / chunks.min(values.len()) as f64;
                prop_assert!((inside.count() as f64 - even).abs() < 2.0);
            }
        }
    }
}
