//! Generates the documents of genny's workload CreateBigIndex, every field a pure function of seed and
//! number, and an additional unique field: `{_id, randomInt, randomString, loc2d, loc2dSphere, geoJSON,
//! attributes, uniqueInt}`.

use bson::{RawDocument, RawDocumentBuf};
use seekscope_client::BsonWriter;
use seekscope_stats::SplitMix64;

use crate::load::Documents;
use crate::sdu::{Sdu, id};

/// Limit of `randomInt` in both directions.
const RANDOM_INT_MAX: u64 = 10_000_000;
const RANDOM_STRING_BYTES: usize = 16;
const ATTRIBUTE_BYTES: usize = 8;

/// Generates the documents of `CreateBigIndex`.
#[derive(Debug, Clone, Copy)]
pub struct BigIndexDocuments {
    pub seed: u64,
}

impl BigIndexDocuments {
    fn random(&self, number: u64) -> SplitMix64 {
        let spread = SplitMix64::new(number).next_u64();
        SplitMix64::new(self.seed.rotate_left(23) ^ spread)
    }
}

impl Documents for BigIndexDocuments {
    fn document(&self, number: u64) -> RawDocumentBuf {
        let mut random = self.random(number);
        let mut writer = BsonWriter::default();
        writer.begin().int64("_id", id(number));
        writer.int32("randomInt", random_int(&mut random));
        letters(
            writer.ascii("randomString", RANDOM_STRING_BYTES),
            &mut random,
        );
        point(writer.begin_array("loc2d"), &mut random, 180.0);
        point(writer.begin_array("loc2dSphere"), &mut random, 90.0);
        writer
            .begin_document("geoJSON")
            .string("type", "Point")
            .begin_array("coordinates");
        point(&mut writer, &mut random, 90.0);
        writer.end().begin_document("attributes");
        letters(writer.ascii("colour", ATTRIBUTE_BYTES), &mut random);
        writer.int32("weight", i32::try_from(random.below(1000)).unwrap_or(0));
        writer.begin_document("origin");
        letters(writer.ascii("city", ATTRIBUTE_BYTES), &mut random);
        writer.int32("year", 1900 + i32::try_from(random.below(125)).unwrap_or(0));
        writer.end().end();
        // SplitMix64's first number is a bijective function of its seed.
        writer.int64(
            "uniqueInt",
            SplitMix64::new(number ^ self.seed).next_u64().cast_signed(),
        );
        writer.end();
        RawDocumentBuf::from_bytes(writer.bytes().to_vec()).unwrap_or_default()
    }

    /// `randomInt` may have been changed by other load.
    fn is_revision_of(&self, number: u64, found: &RawDocument) -> bool {
        let ours = self.document(number);
        let same =
            |name: &str| matches!((ours.get(name), found.get(name)), (Ok(a), Ok(b)) if a == b);
        ["_id", "randomString", "attributes", "uniqueInt"]
            .into_iter()
            .all(same)
    }
}

/// Returns a value for `randomInt`.
pub(super) fn random_int(random: &mut SplitMix64) -> i32 {
    let value = i64::try_from(random.below(2 * RANDOM_INT_MAX + 1)).unwrap_or(0);
    i32::try_from(value - RANDOM_INT_MAX.cast_signed()).unwrap_or(0)
}

fn letters(text: &mut [u8], random: &mut SplitMix64) {
    for byte in text {
        *byte = b'a' + u8::try_from(random.below(26)).unwrap_or(0);
    }
}

/// Ends the current array with a point.
fn point(array: &mut BsonWriter, random: &mut SplitMix64, latitude_max: f64) {
    let mut within = |limit: f64| (2.0 * random.unit_f64() - 1.0) * limit;
    array
        .double("0", within(180.0))
        .double("1", within(latitude_max))
        .end();
}

/// The data sets for which index builds are measured.
#[derive(Debug, Clone)]
pub enum IndexedDocuments {
    BigIndex(BigIndexDocuments),
    Sdu(Box<Sdu>),
}

impl IndexedDocuments {
    /// Returns the name used on the command line.
    pub fn name(&self) -> &'static str {
        match self {
            Self::BigIndex(_) => "genny",
            Self::Sdu(_) => "sdu",
        }
    }

    /// Returns a numeric field that may be indexed and that other load may change.
    pub fn number_field(&self) -> &'static str {
        match self {
            Self::BigIndex(_) => "randomInt",
            Self::Sdu(_) => "i",
        }
    }
}

impl Documents for IndexedDocuments {
    fn document(&self, number: u64) -> RawDocumentBuf {
        match self {
            Self::BigIndex(documents) => documents.document(number),
            Self::Sdu(sdu) => sdu.document(number),
        }
    }

    fn is_revision_of(&self, number: u64, found: &RawDocument) -> bool {
        match self {
            Self::BigIndex(documents) => documents.is_revision_of(number, found),
            Self::Sdu(sdu) => sdu.is_revision_of(number, found),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use bson::Document;

    use super::*;

    fn document(seed: u64, number: u64) -> Document {
        Document::try_from(BigIndexDocuments { seed }.document(number)).unwrap()
    }

    #[test]
    fn documents_are_genny_s_and_depend_on_seed_and_number() {
        let first = document(1, 0);
        let fields: Vec<&str> = first.keys().map(String::as_str).collect();
        assert_eq!(
            fields,
            [
                "_id",
                "randomInt",
                "randomString",
                "loc2d",
                "loc2dSphere",
                "geoJSON",
                "attributes",
                "uniqueInt"
            ]
        );
        assert_eq!(first, document(1, 0));
        assert!(document(1, 1) != document(2, 1));
        let mut ints = HashSet::new();
        for number in 0..2000 {
            let document = document(1, number);
            let int = document.get_i32("randomInt").unwrap();
            assert!(int.unsigned_abs() <= 10_000_000);
            assert_eq!(document.get_str("randomString").unwrap().len(), 16);
            let sphere = document.get_array("loc2dSphere").unwrap();
            assert!(
                sphere[0].as_f64().unwrap().abs() <= 180.0
                    && sphere[1].as_f64().unwrap().abs() <= 90.0
            );
            assert!(ints.insert(document.get_i64("uniqueInt").unwrap()));
        }
    }

    #[test]
    fn a_changed_number_is_still_ours() {
        let documents = BigIndexDocuments { seed: 1 };
        let mut changed = document(1, 5);
        changed.insert("randomInt", 1);
        let changed = RawDocumentBuf::try_from(&changed).unwrap();
        assert!(documents.is_revision_of(5, &changed));
        assert!(!documents.is_revision_of(6, &changed));
    }
}
