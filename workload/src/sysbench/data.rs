//! Generates the documents: `{_id, k, c, pad}` from `java.util.Random`, one stream per collection seeded with
//! its number.

use seekscope_client::BsonWriter;

use super::settings::SysbenchSettings;
use crate::generators::{JavaRandom, stream_seed};
use crate::sharding::LoadedCollection;

/// Characters of `c` and of `pad`: groups of eleven digits, joined by dashes.
pub const C_CHARS: usize = 119;
pub const PAD_CHARS: usize = 59;
const GROUP: usize = 11;

/// Returns the name of a collection, counted from 1.
pub fn collection_name(number: u32) -> String {
    format!("sbtest{number}")
}

/// Fills `text` with random digits in groups.
#[inline]
pub fn fill(text: &mut [u8], random: &mut JavaRandom) {
    for (at, byte) in text.iter_mut().enumerate() {
        *byte = if at % (GROUP + 1) == GROUP {
            b'-'
        } else {
            b'0' + random.next_int_below(10).to_le_bytes()[0]
        };
    }
}

/// Returns whether this text consists of such groups of digits.
pub fn is_filled(text: &str, chars: usize) -> bool {
    let fits = |(at, byte): (usize, u8)| {
        if at % (GROUP + 1) == GROUP {
            byte == b'-'
        } else {
            byte.is_ascii_digit()
        }
    };
    text.len() == chars && text.bytes().enumerate().all(fits)
}

/// Writes the next document of a collection's stream. Documents of the load have 64-bit `_id`s, those that a
/// run puts back 32-bit ones.
pub fn document(id: Id, documents: i32, random: &mut JavaRandom, out: &mut BsonWriter) {
    out.begin();
    match id {
        Id::Loaded(id) => out.int64("_id", id),
        Id::PutBack(id) => out.int32("_id", id),
    };
    out.int32("k", random.next_int_below(documents) + 1);
    fill(out.ascii("c", C_CHARS), random);
    fill(out.ascii("pad", PAD_CHARS), random);
    out.end();
}

/// Returns the collections that a load fills. Their documents come from one stream each; for any record there is one
/// with its `_id` and numbers of the same distribution.
pub fn loaded(settings: &SysbenchSettings) -> Vec<LoadedCollection<'static>> {
    let documents = i32::try_from(settings.documents).unwrap_or(i32::MAX);
    let one = |number: u32| {
        let write = move |record: u64, out: &mut BsonWriter| {
            let id = i64::try_from(record).unwrap_or(i64::MAX).saturating_add(1);
            let seed = stream_seed(&[u64::from(number), record]).cast_signed();
            document(Id::Loaded(id), documents, &mut JavaRandom::new(seed), out);
        };
        LoadedCollection::written(&collection_name(number), settings.loaded().into(), write)
    };
    (1..=settings.collections).map(one).collect()
}

/// Type of the `_id`; see [`document`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Id {
    Loaded(i64),
    PutBack(i32),
}

#[cfg(test)]
mod tests {
    use bson::RawDocumentBuf;

    use super::*;

    fn documents(collection: i64, documents: i32, count: i64) -> Vec<RawDocumentBuf> {
        let mut random = JavaRandom::new(collection);
        let one = |id| {
            let mut out = BsonWriter::default();
            document(Id::Loaded(id), documents, &mut random, &mut out);
            RawDocumentBuf::from_bytes(out.bytes().to_vec()).unwrap()
        };
        (1..=count).map(one).collect()
    }

    #[test]
    fn data_are_the_originals() {
        let first = documents(1, 1_000_000, 2);
        assert_eq!(first[0].get_i64("_id").unwrap(), 1);
        assert_eq!(first[0].get_i32("k").unwrap(), 548_986);
        assert_eq!(
            first[0].get_str("c").unwrap(),
            "87344468893-73242269620-94983725406-35905450777-20807236565-\
             89440163868-45896582721-17821859959-07640351160-42454483377"
        );
        assert_eq!(
            first[0].get_str("pad").unwrap(),
            "01376750983-06661949810-55641668812-30952342371-57477967936"
        );
        assert_eq!(first[0].as_bytes().len(), 221);
        assert_eq!(first[1].get_i32("k").unwrap(), 552_892);
        let c = first[1].get_str("c").unwrap();
        assert!(c.starts_with("68578256009-58005687892"), "{c}");
        assert_eq!(documents(2, 1_000_000, 1)[0].get_i32("k").unwrap(), 126_109);
        let large = documents(1, 10_000_000, 1);
        assert_eq!(large[0].get_i32("k").unwrap(), 9_548_986);
    }

    #[test]
    fn what_is_put_back_is_four_bytes_shorter() {
        let mut out = BsonWriter::default();
        document(Id::PutBack(7), 10, &mut JavaRandom::new(1), &mut out);
        assert_eq!(out.bytes().len(), 217);
    }

    #[test]
    fn texts_are_known_again() {
        let mut text = [0; C_CHARS];
        fill(&mut text, &mut JavaRandom::new(5));
        let text = std::str::from_utf8(&text).unwrap();
        assert!(is_filled(text, C_CHARS));
        assert!(!is_filled(text, PAD_CHARS));
        assert!(!is_filled(&text.replace('-', "+"), C_CHARS));
    }
}
