//! The field of a shard key.

use std::fmt;
use std::str::FromStr;

use bson::{Bson, RawBsonRef, RawDocument};

/// MongoDB has no limit of its own, but keys of documents are short.
const BYTES_MAX: usize = 200;

/// A field's name, with dots for fields of embedded documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyField(String);

/// Why a text is no field's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it must be the name of a field, such as _id, customer or address.city")]
pub struct KeyFieldError;

impl KeyField {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether it is `_id`.
    pub fn is_id(&self) -> bool {
        self.0 == "_id"
    }

    /// Returns its first part: the field of the document itself.
    pub fn root(&self) -> &str {
        self.0.split_once('.').map_or(&self.0, |(root, _)| root)
    }

    /// Returns the value of the field; `None` if the document does not have it. An array on the way to an embedded
    /// field is returned itself.
    pub(super) fn value_in(&self, document: &RawDocument) -> Option<Bson> {
        let mut inner = document;
        let mut names = self.0.split('.').peekable();
        while let Some(name) = names.next() {
            let value = inner.get(name).ok()??;
            match value {
                RawBsonRef::Document(embedded) if names.peek().is_some() => inner = embedded,
                RawBsonRef::Array(_) => return value.try_into().ok(),
                _ if names.peek().is_some() => return None,
                _ => return value.try_into().ok(),
            }
        }
        None
    }
}

impl FromStr for KeyField {
    type Err = KeyFieldError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_part = |part: &str| !part.is_empty() && !part.starts_with('$');
        let is_field =
            text.len() <= BYTES_MAX && !text.contains('\0') && text.split('.').all(is_part);
        match is_field {
            true => Ok(Self(text.into())),
            false => Err(KeyFieldError),
        }
    }
}

impl fmt::Display for KeyField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use bson::{RawDocumentBuf, doc};

    use super::*;

    #[test]
    fn names_of_fields_and_no_others() {
        for text in ["", ".", "a.", ".a", "$a", "a.$b", "a\0", &"x".repeat(201)] {
            assert_eq!(text.parse::<KeyField>(), Err(KeyFieldError), "{text:?}");
        }
        let field: KeyField = "address.city".parse().unwrap();
        assert_eq!((field.root(), field.is_id()), ("address", false));
    }

    #[test]
    fn embedded_fields_are_found() {
        let document = doc! { "a": { "b": 5, "c": [{ "d": 1 }] }, "n": 1 };
        let document = RawDocumentBuf::try_from(&document).unwrap();
        let value = |field: &str| field.parse::<KeyField>().unwrap().value_in(&document);
        assert_eq!(value("a.b"), Some(Bson::Int32(5)));
        assert!(matches!(value("a"), Some(Bson::Document(_))));
        assert!(matches!(value("a.c.d"), Some(Bson::Array(_))));
        for missing in ["x", "a.x", "n.b", "a.b.c"] {
            assert_eq!(value(missing), None, "{missing}");
        }
    }
}
