//! Generates keys and documents: pure functions of the settings and a record's number.

use std::collections::HashMap;

use bson::{RawBsonRef, RawDocument, spec::BinarySubtype};
use seekscope_client::BsonWriter;
use seekscope_stats::SplitMix64;

use super::settings::{FieldOrder, ValueKind, YcsbSettings};
use crate::generators::compressible::{tag_digits, tag_mask, tag_of};
use crate::generators::java::hash_map_order;
use crate::generators::{
    ByteOrder, Compressible, LengthDistribution, fnv1a_64_abs, integrity, printable, stream_seed,
};
use crate::sharding::LoadedCollection;

/// Prefix of every key.
const KEY_PREFIX: &str = "user";

/// The data set of a workload.
#[derive(Debug, Clone)]
pub struct Rows {
    seed: u64,
    /// How record numbers are hashed; `None`: not hashed.
    key_hash: Option<ByteOrder>,
    zero_padding: usize,
    field_names: Vec<String>,
    field_numbers: HashMap<String, usize>,
    /// Numbers of fields in the documents' order.
    order: Vec<usize>,
    lengths: LengthDistribution,
    values: ValueKind,
    compressible: Compressible,
    tag_digits: usize,
}

/// Buffers that checks reuse.
#[derive(Debug, Default, Clone)]
pub struct CheckBuffers {
    key: String,
    value: Vec<u8>,
    seen: Vec<bool>,
}

/// Returns the collection that a load with these settings fills.
pub fn loaded(settings: &YcsbSettings) -> LoadedCollection<'static> {
    let (rows, first) = (Rows::new(settings), settings.insert_start);
    LoadedCollection::written(&settings.table, settings.load_count, move |record, out| {
        let (record, mut key) = (first + record, String::new());
        rows.key(record, &mut key);
        rows.document(record, &key, out);
    })
}

impl Rows {
    pub fn new(settings: &YcsbSettings) -> Self {
        let names = &settings.field_names;
        let compressibility = match settings.values {
            ValueKind::Revisioned { compressibility } => compressibility,
            ValueKind::Printable | ValueKind::Integrity => 0.0,
        };
        Self {
            seed: settings.seed,
            key_hash: settings.hashed.then_some(settings.key_hash),
            zero_padding: settings.zero_padding,
            field_names: names.clone(),
            field_numbers: names.iter().cloned().zip(0..).collect(),
            order: match settings.field_order {
                FieldOrder::Java => hash_map_order(names),
                FieldOrder::Declared => (0..names.len()).collect(),
            },
            lengths: settings.lengths.clone(),
            values: settings.values,
            compressible: Compressible::new(compressibility),
            tag_digits: tag_digits(settings.lengths.bounds().0),
        }
    }

    pub fn field_names(&self) -> &[String] {
        &self.field_names
    }

    /// Returns the largest size of a row's document, bytes.
    pub fn document_bytes_max(&self) -> usize {
        let names: usize = self.field_names.iter().map(String::len).sum();
        let values = self.field_names.len() * (self.lengths.bounds().1 + 7);
        names + values + KEY_PREFIX.len() + self.zero_padding.max(20) + 16
    }

    /// Replaces the contents of `key` with the key of a record.
    #[inline]
    pub fn key(&self, record: u64, key: &mut String) {
        key.clear();
        key.push_str(KEY_PREFIX);
        let mut number = match self.key_hash {
            Some(order) => fnv1a_64_abs(record, order),
            None => record,
        };
        let mut digits = [0; 20];
        let mut at = digits.len();
        loop {
            at -= 1;
            digits[at] = b'0' + (number % 10).to_le_bytes()[0];
            number /= 10;
            if number == 0 {
                break;
            }
        }
        let padding = self.zero_padding.saturating_sub(digits.len() - at);
        key.extend(std::iter::repeat_n('0', padding));
        key.push_str(std::str::from_utf8(&digits[at..]).unwrap_or_default());
    }

    /// Writes the document as loaded: `_id` and all fields.
    pub fn document(&self, record: u64, key: &str, out: &mut BsonWriter) {
        out.begin().string("_id", key);
        self.all_fields(record, key, 0, out);
        out.end();
    }

    /// Writes all fields of a revision, as elements.
    pub fn all_fields(&self, record: u64, key: &str, revision: u64, out: &mut BsonWriter) {
        for &field in &self.order {
            self.field(record, key, field, revision, out);
        }
    }

    /// Writes one field of a revision, as an element.
    pub fn field(&self, record: u64, key: &str, field: usize, revision: u64, out: &mut BsonWriter) {
        let (mut random, length) = self.stream(record, field, revision);
        let name = &self.field_names[field];
        let bytes = out.binary(name, length);
        let tag = self.tag(record, field, revision);
        self.fill(bytes, key, name, tag, &mut random);
    }

    /// Returns the stream that a value is drawn from, and its length, which is drawn first.
    fn stream(&self, record: u64, field: usize, revision: u64) -> (SplitMix64, usize) {
        let seed = stream_seed(&[self.seed, record, field as u64, revision]);
        let mut random = SplitMix64::new(seed);
        let length = self.lengths.draw(&mut random);
        (random, length)
    }

    fn fill(
        &self,
        bytes: &mut [u8],
        key: &str,
        field_name: &str,
        tag: u64,
        random: &mut SplitMix64,
    ) {
        match self.values {
            ValueKind::Printable => printable::fill(bytes, random),
            ValueKind::Integrity => integrity::fill(bytes, key, field_name),
            ValueKind::Revisioned { .. } => {
                self.compressible.fill(bytes, self.tag_digits, tag, random);
            }
        }
    }

    /// Returns a revision within the range that values can represent.
    #[inline]
    pub fn revision(&self, any: u64) -> u64 {
        any & tag_mask(self.tag_digits)
    }

    /// Returns a value's tag. Revisions are shifted by a number specific to each value, lest equal ones
    /// compress.
    fn tag(&self, record: u64, field: usize, revision: u64) -> u64 {
        self.revision(self.shift(record, field).wrapping_add(revision))
    }

    fn shift(&self, record: u64, field: usize) -> u64 {
        stream_seed(&[self.seed, record, field as u64])
    }

    fn revision_of(&self, record: u64, field: usize, value: &[u8]) -> Option<u64> {
        let tag = tag_of(value, self.tag_digits)?;
        Some(self.revision(tag.wrapping_sub(self.shift(record, field))))
    }

    /// Returns the revision after the one in `field` of a record's document, or in its first field if it
    /// lacks that one. `None`: its values are not ours.
    pub fn next_revision(&self, record: u64, document: &RawDocument, field: usize) -> Option<u64> {
        let (field, value) = match document.get(&self.field_names[field]).ok()? {
            Some(value) => (field, value),
            None => {
                let mut elements = document.iter().filter_map(Result::ok);
                let (name, value) = elements.find(|(name, _)| *name != "_id")?;
                let name: &str = name.as_ref();
                (*self.field_numbers.get(name)?, value)
            }
        };
        let revision = self.revision_of(record, field, binary(value)?)?;
        Some(self.revision(revision.wrapping_add(1)))
    }

    /// Returns whether this is the complete row of a record, in any revision.
    pub fn is_row(&self, record: u64, document: &RawDocument, room: &mut CheckBuffers) -> bool {
        self.is_part_of_row(record, document, room) == Some(self.field_names.len())
    }

    /// Returns how many fields of a record's row this document has; `None` if anything in it does not belong
    /// to the row. The contents of random values are unknown, so only key and shape are checked in that case.
    pub fn is_part_of_row(
        &self,
        record: u64,
        document: &RawDocument,
        room: &mut CheckBuffers,
    ) -> Option<usize> {
        self.key(record, &mut room.key);
        room.seen.clear();
        room.seen.resize(self.field_names.len(), false);
        let (mut fields, mut has_key) = (0, false);
        for element in document {
            let (name, value) = element.ok()?;
            let name: &str = name.as_ref();
            if name == "_id" {
                has_key = value.as_str()? == room.key;
                continue;
            }
            let &field = self.field_numbers.get(name)?;
            if std::mem::replace(&mut room.seen[field], true)
                || !self.is_value(record, field, binary(value)?, room)
            {
                return None;
            }
            fields += 1;
        }
        has_key.then_some(fields)
    }

    fn is_value(&self, record: u64, field: usize, found: &[u8], room: &mut CheckBuffers) -> bool {
        let revision = match self.values {
            ValueKind::Printable => {
                let (least, most) = self.lengths.bounds();
                return (least..=most).contains(&found.len())
                    && found.iter().all(|byte| (0x20..0x80).contains(byte));
            }
            ValueKind::Integrity => 0,
            ValueKind::Revisioned { .. } => match self.revision_of(record, field, found) {
                Some(revision) => revision,
                None => return false,
            },
        };
        let (mut random, length) = self.stream(record, field, revision);
        if length != found.len() {
            return false;
        }
        room.value.clear();
        room.value.resize(length, 0);
        let name = &self.field_names[field];
        let tag = self.tag(record, field, revision);
        self.fill(&mut room.value, &room.key, name, tag, &mut random);
        room.value == found
    }
}

fn binary(value: RawBsonRef<'_>) -> Option<&[u8]> {
    match value {
        RawBsonRef::Binary(binary) if binary.subtype == BinarySubtype::Generic => {
            Some(binary.bytes)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use bson::RawDocumentBuf;

    use super::super::{Edition, Properties};
    use super::*;

    fn rows(text: &str, edition: Edition) -> Rows {
        let properties = Properties::parse(&format!("recordcount=10\n{text}")).unwrap();
        Rows::new(&YcsbSettings::new(&properties, edition, None).unwrap())
    }

    fn key(text: &str, record: u64) -> String {
        let mut key = String::new();
        rows(text, Edition::Ycsb).key(record, &mut key);
        key
    }

    fn document(rows: &Rows, record: u64) -> RawDocumentBuf {
        let (mut key, mut out) = (String::new(), BsonWriter::default());
        rows.key(record, &mut key);
        rows.document(record, &key, &mut out);
        RawDocumentBuf::from_bytes(out.bytes().to_vec()).unwrap()
    }

    #[test]
    fn keys_are_ycsbs() {
        for (record, expected) in [
            (0, "user6284781860667377211"),
            (1, "user8517097267634966620"),
            (2, "user1820151046732198393"),
            (3, "user4052466453699787802"),
            (999, "user2071219101098386137"),
            (1_000, "user5952875239596136740"),
            (199_999, "user5328743452447751894"),
            (4_294_967_296, "user634246865027890484"),
        ] {
            assert_eq!(key("", record), expected);
        }
        assert_eq!(key("zeropadding=24", 0), "user000006284781860667377211");
        assert_eq!(
            key("insertorder=ordered\nzeropadding=12", 999),
            "user000000000999"
        );
        assert_eq!(key("keyhash=go", 1), "user6284782960179005422");
        assert_eq!(key("insertorder=ordered\nzeropadding=0", 0), "user0");
    }

    #[test]
    fn documents_are_ycsbs() {
        let document = document(&rows("", Edition::Ycsb), 0);
        assert_eq!(document.as_bytes().len(), 1_168);
        let names: Vec<String> = document
            .iter()
            .map(|element| element.unwrap().0.to_string())
            .collect();
        let order = [1, 0, 7, 6, 9, 8, 3, 2, 5, 4].map(|n| format!("field{n}"));
        assert_eq!(names[0], "_id");
        assert_eq!(names[1..], order);
        assert_eq!(document.get_binary("field3").unwrap().bytes.len(), 100);
    }

    #[test]
    fn integrity_values_are_ycsbs() {
        let document = document(&rows("dataintegrity=true", Edition::Ycsb), 1);
        let value = document.get_binary("field0").unwrap().bytes;
        let text = std::str::from_utf8(value).unwrap();
        assert!(text.starts_with("user8517097267634966620:field0:"));
        assert_eq!(text.len(), 100);
    }

    #[test]
    fn knows_its_rows_and_no_others() {
        let configurations = [
            ("", Edition::Ycsb),
            ("dataintegrity=true", Edition::Ycsb),
            ("", Edition::Corrected),
            (
                "compressibility=0.5\nfieldcount=3\nfieldorder=java",
                Edition::Corrected,
            ),
            (
                "fieldlengthdistribution=uniform\nminfieldlength=0",
                Edition::Corrected,
            ),
            (
                "fieldlengthdistribution=zipfian\nminfieldlength=4",
                Edition::Ycsb,
            ),
        ];
        let mut room = CheckBuffers::default();
        for (text, edition) in configurations {
            let rows = rows(text, edition);
            for record in [0, 7, 1 << 40] {
                let row = document(&rows, record);
                assert!(rows.is_row(record, &row, &mut room), "{text} {record}");
                assert!(!rows.is_row(record + 1, &row, &mut room));
                assert!(row.as_bytes().len() <= rows.document_bytes_max());
                let mut short = bson::Document::try_from(row.as_ref()).unwrap();
                short.remove("field1");
                let short = RawDocumentBuf::try_from(&short).unwrap();
                assert!(!rows.is_row(record, &short, &mut room));
                assert!(rows.is_part_of_row(record, &short, &mut room).is_some());
            }
        }
    }

    #[test]
    fn every_byte_counts_where_values_are_known() {
        for (text, edition) in [
            ("dataintegrity=true", Edition::Ycsb),
            ("", Edition::Corrected),
        ] {
            let rows = rows(text, edition);
            let mut bytes = document(&rows, 5).into_bytes();
            let last = bytes.len() - 2;
            bytes[last] ^= 1;
            let changed = RawDocumentBuf::from_bytes(bytes).unwrap();
            assert!(!rows.is_row(5, &changed, &mut CheckBuffers::default()));
        }
    }

    #[test]
    fn revisions_follow_each_other() {
        let rows = rows("", Edition::Corrected);
        let mut row = document(&rows, 5);
        for revision in 1..4 {
            assert_eq!(rows.next_revision(5, &row, 2), Some(revision));
            let mut out = BsonWriter::default();
            out.begin().string("_id", "user0");
            rows.all_fields(5, "user0", revision, &mut out);
            out.end();
            row = RawDocumentBuf::from_bytes(out.bytes().to_vec()).unwrap();
        }
        let mut foreign = RawDocumentBuf::new();
        foreign.append(bson::cstr!("field2"), "text");
        assert_eq!(rows.next_revision(5, &foreign, 2), None);
    }
}
