//! How a query or an index compares texts: an index serves only queries of the same collation.

use mongodb::bson::{Bson, Document};
use serde_json::{Map, Value, json};

use crate::replies::number;

const LOCALE: &str = "locale";
const PART_MAX_CHARS: usize = 40;

/// Returns the collation of a command, or of an index's specification, as a JSON document without what it has anyway;
/// `None` if texts are compared by their bytes.
pub(super) fn collation(of: &Document) -> Option<String> {
    // Servers show the collation of an index with all its parts (manual, "Collation").
    let defaults = [
        ("strength", json!(3)),
        ("caseLevel", json!(false)),
        ("caseFirst", json!("off")),
        ("numericOrdering", json!(false)),
        ("alternate", json!("non-ignorable")),
        ("maxVariable", json!("punct")),
        ("backwards", json!(false)),
    ];
    let given = of.get_document("collation").ok()?;
    let locale = given
        .get_str(LOCALE)
        .ok()
        .filter(|locale| *locale != "simple")?;
    let mut parts = Map::new();
    parts.insert(LOCALE.into(), shortened(locale));
    for (name, default) in defaults {
        let value = match given.get(name) {
            Some(Bson::String(text)) => shortened(text),
            Some(Bson::Boolean(flag)) => json!(flag),
            Some(other) => json!(number(other)),
            None => continue,
        };
        if value != default {
            parts.insert(name.into(), value);
        }
    }
    Some(Value::from(parts).to_string())
}

fn shortened(text: &str) -> Value {
    text.chars().take(PART_MAX_CHARS).collect::<String>().into()
}

#[cfg(test)]
mod tests {
    use mongodb::bson::doc;

    use super::*;

    #[test]
    fn that_of_a_query_is_as_that_of_an_index() {
        let given = doc! { "find": "a", "collation": { "locale": "en", "strength": 2 } };
        let given = collation(&given);
        assert_eq!(given.as_deref(), Some(r#"{"locale":"en","strength":2}"#));
        // As mongod 4.4.6 shows that of an index.
        let shown = doc! { "collation": {
            "locale": "en", "caseLevel": false, "caseFirst": "off", "strength": 2, "numericOrdering": false,
            "alternate": "non-ignorable", "maxVariable": "punct", "normalization": false, "backwards": false,
            "version": "57.1",
        } };
        assert_eq!(collation(&shown), given);
    }

    #[test]
    fn the_comparison_of_bytes_is_none() {
        assert_eq!(
            collation(&doc! { "collation": { "locale": "simple" } }),
            None
        );
        assert_eq!(collation(&doc! { "find": "a" }), None);
    }
}
