//! Iterates over a document's elements without reading their contents.
//!
//! Leaner than a library: values are measured, not decoded, and text is not checked until it is shown. Every
//! length is checked against the available bytes ([bsonspec.org](https://bsonspec.org/spec.html)).

/// The length of the shortest document: its length field and the final NUL.
const DOCUMENT_BYTES_MIN: usize = 5;

pub(crate) const DOUBLE: u8 = 0x01;
pub(crate) const STRING: u8 = 0x02;
pub(crate) const DOCUMENT: u8 = 0x03;
pub(crate) const ARRAY: u8 = 0x04;
pub(crate) const BOOLEAN: u8 = 0x08;
pub(crate) const INT32: u8 = 0x10;
pub(crate) const INT64: u8 = 0x12;

/// The error that bytes are not a BSON document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotBson;

/// One element; its value is as long as its type says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Element<'a> {
    pub(crate) kind: u8,
    pub(crate) name: &'a [u8],
    pub(crate) value: &'a [u8],
}

/// An iterator over elements, which ends after the first error.
#[derive(Debug, Clone)]
pub(crate) struct Elements<'a> {
    rest: &'a [u8],
}

impl<'a> Elements<'a> {
    /// Returns the elements of a document that fills `document` exactly.
    pub(crate) fn of(document: &'a [u8]) -> Result<Self, NotBson> {
        if document_length(document)? != document.len() || document.last() != Some(&0) {
            return Err(NotBson);
        }
        Ok(Self {
            rest: &document[4..document.len() - 1],
        })
    }

    fn element(&mut self) -> Result<Element<'a>, NotBson> {
        let (&kind, rest) = self.rest.split_first().ok_or(NotBson)?;
        let name_length = c_string_length(rest)?;
        let (name, rest) = rest.split_at(name_length);
        let length = value_length(kind, &rest[1..])?;
        let (value, rest) = rest[1..].split_at_checked(length).ok_or(NotBson)?;
        self.rest = rest;
        Ok(Element { kind, name, value })
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Result<Element<'a>, NotBson>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let element = self.element();
        if element.is_err() {
            self.rest = &[];
        }
        Some(element)
    }
}

impl<'a> Element<'a> {
    /// Returns a whole number, whatever numeric type it has.
    pub(crate) fn integer(&self) -> Option<i64> {
        match self.kind {
            INT32 => Some(i64::from(i32::from_le_bytes(self.value.try_into().ok()?))),
            INT64 => Some(i64::from_le_bytes(self.value.try_into().ok()?)),
            BOOLEAN => Some(i64::from(*self.value.first()? != 0)),
            #[expect(
                clippy::cast_possible_truncation,
                reason = "saturates, and such numbers are counts or flags"
            )]
            DOUBLE => Some(f64::from_le_bytes(self.value.try_into().ok()?) as i64),
            _ => None,
        }
    }

    /// Returns a count; `None` if it is negative.
    pub(crate) fn count(&self) -> Option<u64> {
        u64::try_from(self.integer()?).ok()
    }

    /// Returns a string's bytes, without the final NUL.
    pub(crate) fn text(&self) -> Option<&'a [u8]> {
        if self.kind != STRING {
            return None;
        }
        self.value.get(4..)?.split_last().map(|(_, text)| text)
    }

    /// Returns the elements of a document or array.
    pub(crate) fn elements(&self) -> Option<Result<Elements<'a>, NotBson>> {
        matches!(self.kind, DOCUMENT | ARRAY).then(|| Elements::of(self.value))
    }
}

fn c_string_length(bytes: &[u8]) -> Result<usize, NotBson> {
    bytes.iter().position(|&byte| byte == 0).ok_or(NotBson)
}

/// Reads a length prefix.
fn prefix(bytes: &[u8]) -> Result<usize, NotBson> {
    let prefix = bytes.first_chunk::<4>().ok_or(NotBson)?;
    usize::try_from(i32::from_le_bytes(*prefix)).map_err(|_| NotBson)
}

/// Returns the length that a document says it has.
pub(crate) fn document_length(bytes: &[u8]) -> Result<usize, NotBson> {
    let length = prefix(bytes)?;
    if length < DOCUMENT_BYTES_MIN {
        return Err(NotBson);
    }
    Ok(length)
}

fn value_length(kind: u8, bytes: &[u8]) -> Result<usize, NotBson> {
    Ok(match kind {
        // double, date, timestamp, int64
        DOUBLE | 0x09 | 0x11 | INT64 => 8,
        // string, code, symbol: at least their NUL
        STRING | 0x0D | 0x0E => match prefix(bytes)? {
            0 => return Err(NotBson),
            length => 4 + length,
        },
        // document, array, code with scope: the prefix counts itself
        DOCUMENT | ARRAY | 0x0F => document_length(bytes)?,
        // binary
        0x05 => 5 + prefix(bytes)?,
        // undefined, null, smallest and greatest key
        0x06 | 0x0A | 0x7F | 0xFF => 0,
        // object id
        0x07 => 12,
        BOOLEAN => 1,
        // regular expression: two C strings
        0x0B => {
            let pattern = c_string_length(bytes)? + 1;
            pattern + c_string_length(&bytes[pattern..])? + 1
        }
        // pointer: a string and an object id
        0x0C => 4 + prefix(bytes)? + 12,
        INT32 => 4,
        // decimal128
        0x13 => 16,
        _ => return Err(NotBson),
    })
}

#[cfg(test)]
mod tests {
    use bson::{Bson, doc, oid::ObjectId};

    use super::*;

    #[test]
    fn measures_every_type_as_the_library_writes_it() {
        let document = doc! {
            "double": 1.5, "string": "text", "document": { "a": 1 }, "array": [1, "b"],
            "binary": bson::Binary { subtype: bson::spec::BinarySubtype::Generic, bytes: vec![1, 2] },
            "undefined": Bson::Undefined, "oid": ObjectId::new(), "bool": true,
            "date": bson::DateTime::now(), "null": Bson::Null,
            "regex": bson::Regex { pattern: "^a".try_into().unwrap(), options: "i".try_into().unwrap() },
            "code": Bson::JavaScriptCode("f".into()), "symbol": Bson::Symbol("s".into()),
            "scope": bson::JavaScriptCodeWithScope { code: "f".into(), scope: doc! { "x": 1 } },
            "int32": 7_i32, "timestamp": bson::Timestamp { time: 1, increment: 2 }, "int64": -7_i64,
            "decimal": bson::Decimal128::from_bytes([0; 16]), "min": Bson::MinKey, "max": Bson::MaxKey,
        };
        let bytes = document.to_vec().unwrap();
        let elements: Vec<Element<'_>> = Elements::of(&bytes)
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        let names: Vec<&[u8]> = elements.iter().map(|element| element.name).collect();
        let expected: Vec<&[u8]> = document.keys().map(|key| key.as_bytes()).collect();
        assert_eq!(names, expected);
        assert_eq!(elements[0].integer(), Some(1));
        assert_eq!(elements[1].text(), Some(b"text".as_slice()));
        assert_eq!(elements[3].elements().unwrap().unwrap().count(), 2);
        let of = |name: &str| *elements.iter().find(|e| e.name == name.as_bytes()).unwrap();
        assert_eq!(of("int64").integer(), Some(-7));
        assert_eq!(of("int64").count(), None);
        assert_eq!(of("bool").count(), Some(1));
        assert_eq!(of("null").count(), None);
    }

    #[test]
    fn mangled_documents_end_in_an_error_or_an_end() {
        let bytes = doc! { "a": "text", "b": [1, 2], "c": { "d": 1.0 } }
            .to_vec()
            .unwrap();
        for at in 0..bytes.len() {
            for value in [0, 1, 0x7F, 0x80, 0xFF] {
                let mut mangled = bytes.clone();
                mangled[at] = value;
                if let Ok(elements) = Elements::of(&mangled) {
                    assert!(elements.count() <= bytes.len());
                }
            }
            if let Ok(elements) = Elements::of(&bytes[..at]) {
                assert!(elements.count() == 0, "cut at {at}");
            }
        }
        assert!(Elements::of(&[]).is_err());
        assert!(Elements::of(&[4, 0, 0, 0]).is_err());
    }
}
