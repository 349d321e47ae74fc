//! Converts the indexes of a sampled collection, as far as a workload can have them.

use bson::{Bson, Document};

use super::written::{key, quoted};

/// Fields of a specification that are not options.
const NO_OPTIONS: [&str; 5] = ["v", "key", "name", "ns", "background"];

/// The indexes that a workload can have, and notes on those that it cannot.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Indexes {
    /// Indexes as tables of a workload.
    pub(super) kept: Vec<String>,
    /// Names of those that are kept without their options, with these options.
    pub(super) simplified: Vec<String>,
    /// Names of those for which made-up values are unsuitable: text, geospatial and wildcard indexes.
    pub(super) left_out: Vec<String>,
}

impl Indexes {
    /// Reads the answer to `listIndexes`.
    pub(super) fn read(specifications: &[Document]) -> Self {
        let mut indexes = Self::default();
        for specification in specifications {
            let name = quoted(specification.get_str("name").unwrap_or("?"));
            let Ok(keys) = specification.get_document("key") else {
                continue;
            };
            if keys.keys().eq(["_id"]) && keys.get_str("_id").is_err() {
                continue;
            }
            let Some(keys) = keys_text(keys) else {
                indexes.left_out.push(name);
                continue;
            };
            indexes.kept.push(format!("{{ keys = {{ {keys} }} }}"));
            let options = specification.keys().map(String::as_str);
            let options = options.filter(|option| !NO_OPTIONS.contains(option));
            let options: Vec<String> = options.map(quoted).collect();
            if !options.is_empty() {
                let simplified = format!("{name} without {}", options.join(", "));
                indexes.simplified.push(simplified);
            }
        }
        indexes
    }
}

/// Returns `None` if a key is of a kind that requires special values.
fn keys_text(keys: &Document) -> Option<String> {
    let texts = keys.iter().map(|(field, direction)| {
        let direction = match direction {
            Bson::String(kind) if kind == "hashed" => "\"hashed\"",
            Bson::Int32(n) if *n < 0 => "-1",
            Bson::Int64(n) if *n < 0 => "-1",
            Bson::Double(n) if *n < 0.0 => "-1",
            Bson::Int32(_) | Bson::Int64(_) | Bson::Double(_) => "1",
            _ => return None,
        };
        // `$**` is not a field.
        (!field.contains('$')).then(|| format!("{} = {direction}", key(field)))
    });
    Some(texts.collect::<Option<Vec<String>>>()?.join(", "))
}

#[cfg(test)]
mod tests {
    use bson::doc;

    use super::*;

    #[test]
    fn what_a_workload_cannot_have_is_named() {
        let indexes = Indexes::read(&[
            doc! { "v": 2, "key": { "_id": 1 }, "name": "_id_" },
            doc! { "v": 2, "key": { "customer": 1, "at.day": -1.0 }, "name": "c" },
            doc! { "v": 2, "key": { "_id": "hashed" }, "name": "_id_hashed" },
            doc! { "v": 2, "key": { "code": 1 }, "name": "code\n1", "unique": true, "sparse": true },
            doc! { "v": 2, "key": { "place": "2dsphere" }, "name": "place_2dsphere" },
            doc! { "v": 2, "key": { "$**": 1 }, "name": "all" },
            doc! { "v": 2, "key": 5, "name": "broken" },
        ]);
        assert_eq!(
            indexes.kept,
            [
                "{ keys = { customer = 1, \"at.day\" = -1 } }",
                "{ keys = { _id = \"hashed\" } }",
                "{ keys = { code = 1 } }",
            ]
        );
        let simplified = r#""code\U0000000A1" without "unique", "sparse""#;
        assert_eq!(indexes.simplified, [simplified]);
        assert_eq!(indexes.left_out, [r#""place_2dsphere""#, r#""all""#]);
    }
}
