//! Defines kinds of index.

use super::documents::IndexedDocuments;

/// A kind of index on one of the data sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexKind {
    /// Name used in results and on the command line.
    pub name: &'static str,
    /// Key pattern as JSON.
    pub keys: &'static str,
    pub unique: bool,
}

const fn kind(name: &'static str, keys: &'static str) -> IndexKind {
    IndexKind {
        name,
        keys,
        unique: false,
    }
}

/// The kinds of genny's CreateBigIndex.
const BIG_INDEX: [IndexKind; 9] = [
    kind("int", r#"{"randomInt":1}"#),
    kind("string", r#"{"randomString":1}"#),
    kind("2d", r#"{"loc2d":"2d"}"#),
    kind("2dsphere-coordinates", r#"{"loc2dSphere":"2dsphere"}"#),
    kind("2dsphere-geojson", r#"{"geoJSON":"2dsphere"}"#),
    kind("hashed", r#"{"randomInt":"hashed"}"#),
    kind("text", r#"{"randomString":"text"}"#),
    IndexKind {
        unique: true,
        ..kind("unique", r#"{"uniqueInt":1}"#)
    },
    kind("wildcard", r#"{"attributes.$**":1}"#),
];

const SDU: [IndexKind; 5] = [
    kind("int", r#"{"i":1}"#),
    kind("date", r#"{"d":1}"#),
    kind("string", r#"{"s1":1}"#),
    kind("array", r#"{"a":1}"#),
    kind("hashed", r#"{"i":"hashed"}"#),
];

/// Returns the kinds for which a data set has fields.
pub fn kinds(documents: &IndexedDocuments) -> &'static [IndexKind] {
    match documents {
        IndexedDocuments::BigIndex(_) => &BIG_INDEX,
        IndexedDocuments::Sdu(_) => &SDU,
    }
}

/// Returns whether any of the data sets has a kind with this name.
pub fn is_kind(name: &str) -> bool {
    BIG_INDEX.iter().chain(&SDU).any(|kind| kind.name == name)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use crate::{IndexKeys, Sdu, SduOptions};

    use super::super::BigIndexDocuments;
    use super::*;

    #[test]
    fn kinds_have_names_of_their_own_and_keys_that_parse() {
        let sdu = IndexedDocuments::Sdu(Box::new(Sdu::new(SduOptions::default())));
        let genny = IndexedDocuments::BigIndex(BigIndexDocuments { seed: 1 });
        for documents in [sdu, genny] {
            let names: HashSet<&str> = kinds(&documents).iter().map(|k| k.name).collect();
            assert_eq!(names.len(), kinds(&documents).len());
            for kind in kinds(&documents) {
                assert_eq!(IndexKeys::parse(kind.keys).unwrap().to_json(), kind.keys);
            }
        }
    }
}
