//! Defines which values of a document count as metrics, and in which order.
//!
//! Documents are walked depth first, in the order of their fields: numbers, truth values (0 and 1) and dates
//! (ms since 1970) are one metric each, a timestamp is two (seconds, increment); nothing else counts. Fractions
//! are cut off, as the server does.

use bson::RawDocument;
use bson::raw::RawBsonRef;

use crate::FtdcError;

/// Servers' documents nest about ten levels.
const DEPTH_MAX: usize = 40;
/// A large server has about ten thousand.
pub(crate) const METRICS_MAX: usize = 200_000;
/// Name of a timestamp's second metric, below its own name.
const INCREMENT: &str = "increment";

/// Calls `each` with the path and value of every metric of a document.
pub(crate) fn visit<'a>(
    document: &'a RawDocument,
    each: &mut impl FnMut(&[&'a str], i64),
) -> Result<(), FtdcError> {
    let mut counted = 0;
    let mut each = |path: &[&'a str], value: i64| {
        counted += 1;
        each(path, value);
        counted < METRICS_MAX
    };
    visit_below(document, &mut Vec::new(), &mut each)
}

fn visit_below<'a>(
    document: &'a RawDocument,
    path: &mut Vec<&'a str>,
    each: &mut impl FnMut(&[&'a str], i64) -> bool,
) -> Result<(), FtdcError> {
    if path.len() >= DEPTH_MAX {
        return Err(damaged("it is nested too deep"));
    }
    for element in document {
        let (name, value) = element.map_err(|_| damaged("its reference document is damaged"))?;
        path.push(name.as_str());
        match value {
            RawBsonRef::Document(inner) => visit_below(inner, path, each)?,
            // An array is a document whose field names are numbers.
            RawBsonRef::Array(inner) => {
                let inner = RawDocument::from_bytes(inner.as_bytes())
                    .map_err(|_| damaged("its reference document is damaged"))?;
                visit_below(inner, path, each)?;
            }
            RawBsonRef::Timestamp(stamp) => {
                let mut go_on = each(path, i64::from(stamp.time));
                path.push(INCREMENT);
                go_on &= each(path, i64::from(stamp.increment));
                path.pop();
                bounded(go_on)?;
            }
            other => {
                if let Some(value) = number(other) {
                    bounded(each(path, value))?;
                }
            }
        }
        path.pop();
    }
    Ok(())
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a cast from f64 cuts off, keeps to the bounds of the type and makes 0 of NaN, which is \
              what the server does"
)]
fn number(value: RawBsonRef<'_>) -> Option<i64> {
    match value {
        RawBsonRef::Int32(n) => Some(i64::from(n)),
        RawBsonRef::Int64(n) => Some(n),
        RawBsonRef::Double(n) => Some(n as i64),
        RawBsonRef::Boolean(is_so) => Some(i64::from(is_so)),
        RawBsonRef::DateTime(date) => Some(date.timestamp_millis()),
        RawBsonRef::Decimal128(n) => Some(n.to_string().parse::<f64>().unwrap_or(0.0) as i64),
        _ => None,
    }
}

fn bounded(go_on: bool) -> Result<(), FtdcError> {
    if go_on {
        Ok(())
    } else {
        Err(damaged("it has too many metrics"))
    }
}

fn damaged(why: &'static str) -> FtdcError {
    FtdcError::Damaged { why }
}

#[cfg(test)]
mod tests {
    use bson::{DateTime, Timestamp, doc, oid::ObjectId};

    use super::*;
    use crate::writing;

    fn visited(document: &bson::Document) -> Result<Vec<(String, i64)>, FtdcError> {
        let bytes = writing::bytes(document);
        let mut found = Vec::new();
        let each = &mut |path: &[&str], value| found.push((path.join("."), value));
        visit(RawDocument::from_bytes(&bytes).unwrap(), each)?;
        Ok(found)
    }

    #[test]
    fn kinds_and_their_order() {
        let decimal: bson::Decimal128 = "12.5".parse().unwrap();
        let document = doc! {
            "start": DateTime::from_millis(-4), "text": "5", "none": bson::Bson::Null,
            "in": { "a": 1, "b": 2_i64, "deep": { "c": -3.9 } },
            "list": [true, { "x": false }, "y", 7], "id": ObjectId::new(),
            "ts": Timestamp { time: 8, increment: 9 }, "nan": f64::NAN, "large": 1e300, "decimal": decimal,
        };
        let expected = [
            ("start", -4),
            ("in.a", 1),
            ("in.b", 2),
            ("in.deep.c", -3),
            ("list.0", 1),
            ("list.1.x", 0),
            ("list.3", 7),
            ("ts", 8),
            ("ts.increment", 9),
            ("nan", 0),
            ("large", i64::MAX),
            ("decimal", 12),
        ];
        let expected = expected.map(|(name, value)| (name.to_string(), value));
        assert_eq!(visited(&document).unwrap(), expected);
    }

    #[test]
    fn nesting_is_bounded() {
        let mut deep = doc! { "n": 1 };
        for _ in 0..DEPTH_MAX {
            deep = doc! { "d": deep };
        }
        let error = visited(&deep).unwrap_err();
        assert_eq!(error, damaged("it is nested too deep"));
    }
}
