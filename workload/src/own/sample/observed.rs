//! Collects observations on documents, field by field.

use std::collections::BTreeMap;

use bson::RawDocument;
use bson::raw::RawBsonRef;
use bson::spec::BinarySubtype;

use super::indexes::Indexes;

/// The most paths that are followed; documents that use keys as data have an unlimited number.
const PATHS_MAX: usize = 1_000;
/// The most levels that are followed.
const DEPTH_MAX: usize = 20;
/// The most different values that are counted.
pub(super) const DISTINCT_MAX: usize = 12;
/// Values beyond this are no choice of a few, and a workload that lists them is no text to be read.
const CHOICE_BYTES_MAX: usize = 1_000;
/// Bytes kept of each path to estimate their compressibility.
const KEPT_BYTES: usize = 64 << 10;

/// A set of documents.
#[derive(Debug, Default)]
pub struct Observed {
    pub documents: u64,
    /// BSON bytes of all documents.
    pub bytes: u64,
    pub(super) fields: Fields,
    paths: usize,
    /// Number of fields that were not followed, because there were too many or they were nested too deeply.
    pub left_out: u64,
    /// Values of types that no generator supports, by type.
    pub(super) replaced: BTreeMap<&'static str, u64>,
    /// Indexes of the collection; `None` if only documents were seen.
    pub(super) indexes: Option<Indexes>,
    /// Whether the server's random cursor chose the documents, which does not give each the same chance.
    pub(super) by_random_cursor: bool,
}

/// Fields of one document or of nested ones, in order of appearance.
#[derive(Debug, Default)]
pub(super) struct Fields(pub(super) Vec<(String, Values)>);

/// The values seen at one path.
#[derive(Debug, Default)]
pub(super) struct Values {
    pub(super) count: u64,
    pub(super) nulls: u64,
    pub(super) trues: u64,
    pub(super) falses: u64,
    pub(super) int32: Numbers,
    pub(super) int64: Numbers,
    pub(super) double: Numbers,
    pub(super) dates: Numbers,
    pub(super) object_ids: u64,
    pub(super) uuids: u64,
    pub(super) texts: Texts,
    pub(super) binary: Texts,
    /// Values of types that no generator supports, by their bytes.
    pub(super) others: Texts,
    pub(super) documents: u64,
    pub(super) fields: Fields,
    pub(super) array_lengths: Vec<u32>,
    pub(super) elements: Option<Box<Values>>,
}

#[derive(Debug, Default)]
pub(super) struct Numbers {
    pub(super) values: Vec<f64>,
}

#[derive(Debug, Default)]
pub(super) struct Texts {
    pub(super) lengths: Vec<u32>,
    /// Different values with their counts, until there are too many.
    distinct: BTreeMap<Vec<u8>, u64>,
    is_varied: bool,
    pub(super) kept: Vec<u8>,
}

impl Texts {
    fn add(&mut self, bytes: &[u8]) {
        self.lengths
            .push(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        let room = KEPT_BYTES.saturating_sub(self.kept.len());
        self.kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
        if self.is_varied {
            return;
        }
        *self.distinct.entry(bytes.to_vec()).or_default() += 1;
        if self.distinct.len() > DISTINCT_MAX || bytes.len() > CHOICE_BYTES_MAX {
            self.is_varied = true;
            self.distinct.clear();
        }
    }

    /// Returns the values, if there are few and each was seen several times.
    pub(super) fn few(&self) -> Option<&BTreeMap<Vec<u8>, u64>> {
        let is_few = !self.is_varied && self.lengths.len() >= 5 * self.distinct.len();
        (is_few && !self.distinct.is_empty()).then_some(&self.distinct)
    }
}

impl Observed {
    /// Observes a document. Unreadable parts are ignored.
    pub fn add(&mut self, document: &RawDocument) {
        self.documents += 1;
        self.bytes += document.as_bytes().len() as u64;
        let mut limits = Limits {
            paths: self.paths,
            left_out: 0,
            replaced: std::mem::take(&mut self.replaced),
        };
        self.fields.add(document, 0, &mut limits);
        self.paths = limits.paths;
        self.left_out += limits.left_out;
        self.replaced = limits.replaced;
    }

    pub fn mean_bytes(&self) -> f64 {
        self.bytes as f64 / self.documents.max(1) as f64
    }
}

struct Limits {
    paths: usize,
    left_out: u64,
    replaced: BTreeMap<&'static str, u64>,
}

impl Fields {
    fn add(&mut self, document: &RawDocument, depth: usize, limits: &mut Limits) {
        for (name, value) in document.iter().map_while(Result::ok) {
            let known = self.0.iter().position(|(known, _)| known == name.as_str());
            let place = match known {
                Some(place) => place,
                None if limits.paths < PATHS_MAX && depth < DEPTH_MAX => {
                    limits.paths += 1;
                    self.0.push((name.as_str().into(), Values::default()));
                    self.0.len() - 1
                }
                None => {
                    limits.left_out += 1;
                    continue;
                }
            };
            self.0[place].1.add(value, depth, limits);
        }
    }
}

impl Values {
    fn add(&mut self, value: RawBsonRef<'_>, depth: usize, limits: &mut Limits) {
        self.count += 1;
        match value {
            RawBsonRef::Null | RawBsonRef::Undefined => self.nulls += 1,
            RawBsonRef::Boolean(true) => self.trues += 1,
            RawBsonRef::Boolean(false) => self.falses += 1,
            RawBsonRef::Int32(number) => self.int32.values.push(number.into()),
            RawBsonRef::Int64(number) => self.int64.values.push(number as f64),
            RawBsonRef::Double(number) => self.double.values.push(number),
            RawBsonRef::DateTime(date) => self.dates.values.push(date.timestamp_millis() as f64),
            RawBsonRef::ObjectId(_) => self.object_ids += 1,
            RawBsonRef::String(text) | RawBsonRef::Symbol(text) => self.texts.add(text.as_bytes()),
            RawBsonRef::Binary(binary) if binary.subtype == BinarySubtype::Uuid => self.uuids += 1,
            RawBsonRef::Binary(binary) => self.binary.add(binary.bytes),
            RawBsonRef::Document(inner) if depth < DEPTH_MAX => {
                self.documents += 1;
                self.fields.add(inner, depth + 1, limits);
            }
            RawBsonRef::Array(array) if depth < DEPTH_MAX => {
                let mut length = 0;
                let elements = self.elements.get_or_insert_default();
                for element in array.into_iter().map_while(Result::ok) {
                    length += 1;
                    elements.add(element, depth + 1, limits);
                }
                self.array_lengths.push(length);
            }
            RawBsonRef::Document(inner) => self.others.add(inner.as_bytes()),
            other => {
                let (kind, bytes) = replaced(other);
                *limits.replaced.entry(kind).or_default() += 1;
                self.others.add(&vec![0; bytes]);
            }
        }
    }
}

/// Returns a type that no generator supports, by its name in the manual, and the length of binary data of the
/// same size: such data has five additional bytes.
fn replaced(value: RawBsonRef<'_>) -> (&'static str, usize) {
    match value {
        RawBsonRef::Decimal128(_) => ("Decimal128", 16 - 5),
        RawBsonRef::Timestamp(_) => ("Timestamp", 8 - 5),
        RawBsonRef::RegularExpression(regex) => {
            let text = regex.pattern.as_str().len() + regex.options.as_str().len();
            ("Regular Expression", (text + 2).saturating_sub(5))
        }
        RawBsonRef::JavaScriptCode(code) => ("JavaScript", code.len()),
        RawBsonRef::JavaScriptCodeWithScope(code) => {
            let scope = code.scope.as_bytes().len();
            ("JavaScript", code.code.len() + scope)
        }
        RawBsonRef::MinKey | RawBsonRef::MaxKey => ("MinKey or MaxKey", 0),
        RawBsonRef::Array(_) => ("Array", 0),
        _ => ("DBPointer", 12),
    }
}
