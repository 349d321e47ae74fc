//! Generates the SDU documents: a data set in which every byte is a pure function of a seed, the document's
//! number and its revision, so that any part of it can be regenerated and checked.
//!
//! `{_id: number, i: int32, d: date, s1: string, s2: string, a: [1 to 4 strings]}`, between 1 and
//! 6 KiB, 3 KiB on average. `i` and `d` are random, so an index on them has an order of its own.

use bson::{RawDocument, RawDocumentBuf};
use seekscope_stats::SplitMix64;

use crate::load::Documents;

/// Smallest document, bytes.
pub const MIN_BYTES: usize = 1024;
/// Largest document, bytes.
pub const MAX_BYTES: usize = 6144;
/// Dates are spread over the ten years from 2015-01-01.
const FIRST_DATE_MS: i64 = 1_420_070_400_000;
const DATE_SPAN_MS: u64 = 10 * 365 * 86_400_000;
const ARRAY_STRING_BYTES: usize = 16;
/// Length within which a piece repeats: compressors look back at least this far, and find the repetition at
/// once.
const CHUNK_BYTES: usize = 256;

/// BSON element types (bsonspec.org).
const STRING: u8 = 0x02;
const ARRAY: u8 = 0x04;
const DATE: u8 = 0x09;
const INT32: u8 = 0x10;
const INT64: u8 = 0x12;

/// Options for the documents.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SduOptions {
    pub seed: u64,
    /// Share of each string's bytes that are repetitions, 0 (incompressible) to 1.
    pub compressibility: f64,
}

impl Default for SduOptions {
    /// Seed 1, and half of the bytes repeat: lz4 and snappy halve the documents.
    fn default() -> Self {
        Self {
            seed: 1,
            compressibility: 0.5,
        }
    }
}

/// The data set; cheap to copy.
#[derive(Debug, Clone)]
pub struct Sdu {
    seed: u64,
    /// Number of random bytes in each chunk; the rest repeats.
    random_bytes: usize,
    filler: [u8; CHUNK_BYTES],
}

/// The parts of a document that revisions share.
struct Shape {
    random: SplitMix64,
    i: i32,
    date_ms: i64,
    strings: u8,
    s1_bytes: usize,
    s2_bytes: usize,
}

impl Sdu {
    pub fn new(options: SduOptions) -> Self {
        let share = 1.0 - options.compressibility.clamp(0.0, 1.0);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "0 to CHUNK_BYTES"
        )]
        let random_bytes = (share * CHUNK_BYTES as f64).round() as usize;
        let mut filler = [0; CHUNK_BYTES];
        fill_random(&mut filler, &mut SplitMix64::new(options.seed));
        Self {
            seed: options.seed,
            random_bytes,
            filler,
        }
    }

    /// Returns document `number` as loaded.
    pub fn document(&self, number: u64) -> RawDocumentBuf {
        self.revised_document(number, 0)
    }

    /// Returns document `number` after `revision` updates.
    pub fn revised_document(&self, number: u64, revision: u64) -> RawDocumentBuf {
        let mut buffer = Vec::with_capacity(MAX_BYTES);
        self.append_document(number, revision, &mut buffer);
        into_raw(buffer)
    }

    /// Returns whether this is document `number` in any revision.
    pub fn is_revision_of(&self, number: u64, found: &RawDocument) -> bool {
        let ours = self.document(number);
        let same =
            |name: &str| matches!((ours.get(name), found.get(name)), (Ok(a), Ok(b)) if a == b);
        ours.as_bytes().len() == found.as_bytes().len()
            && ["_id", "i", "d", "a"].into_iter().all(same)
    }

    /// Appends the document's BSON to `buffer`.
    pub fn append_document(&self, number: u64, revision: u64, buffer: &mut Vec<u8>) {
        let start = begin(buffer);
        let mut shape = self.shape(number);
        element(buffer, INT64, b"_id");
        buffer.extend_from_slice(&id(number).to_le_bytes());
        element(buffer, INT32, b"i");
        buffer.extend_from_slice(&shape.i.to_le_bytes());
        element(buffer, DATE, b"d");
        buffer.extend_from_slice(&shape.date_ms.to_le_bytes());
        self.append_strings(number, revision, &shape, buffer);
        element(buffer, ARRAY, b"a");
        let array = begin(buffer);
        for n in 0..shape.strings {
            element(buffer, STRING, &[b'0' + n]);
            string(buffer, ARRAY_STRING_BYTES, |bytes| {
                fill_random(bytes, &mut shape.random)
            });
        }
        end(buffer, array);
        end(buffer, start);
    }

    /// Returns `{s1: …, s2: …}` of a revision, for a `$set`: as long as in every other revision.
    pub fn revised_strings(&self, number: u64, revision: u64) -> RawDocumentBuf {
        let mut buffer = Vec::with_capacity(MAX_BYTES);
        let start = begin(&mut buffer);
        self.append_strings(number, revision, &self.shape(number), &mut buffer);
        end(&mut buffer, start);
        into_raw(buffer)
    }

    fn append_strings(&self, number: u64, revision: u64, shape: &Shape, buffer: &mut Vec<u8>) {
        let mut random =
            SplitMix64::new(mixed(mixed(self.seed ^ revision.rotate_left(32)) ^ number));
        for (name, bytes) in [(b"s1", shape.s1_bytes), (b"s2", shape.s2_bytes)] {
            element(buffer, STRING, name);
            string(buffer, bytes, |text| self.fill_text(text, &mut random));
        }
    }

    fn shape(&self, number: u64) -> Shape {
        let mut random = SplitMix64::new(mixed(self.seed.rotate_left(17) ^ mixed(number)));
        // Only its mean matters: u^1.5 on [0, 1) has the mean 2/5, which gives 3 KiB of 1 to 6 KiB.
        let u = random.unit_f64();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "0 to the span"
        )]
        let total_bytes = MIN_BYTES + ((MAX_BYTES - MIN_BYTES + 1) as f64 * u * u.sqrt()) as usize;
        let word = random.next_u64();
        let i = (word >> 32) as i32 & i32::MAX;
        let strings = (word & 3) as u8 + 1;
        let date_ms = FIRST_DATE_MS + i64::try_from(random.below(DATE_SPAN_MS)).unwrap_or(0);
        // An array element is type, one digit, NUL, length, text, NUL; the rest of a document is 62 bytes.
        let fixed_bytes = 62 + usize::from(strings) * (ARRAY_STRING_BYTES + 8);
        let text_bytes = total_bytes - fixed_bytes;
        let s1_bytes = text_bytes / 2;
        Shape {
            random,
            i,
            date_ms,
            strings,
            s1_bytes,
            s2_bytes: text_bytes - s1_bytes,
        }
    }

    /// Fills with random text, and in each chunk a piece that is the same everywhere.
    fn fill_text(&self, text: &mut [u8], random: &mut SplitMix64) {
        for chunk in text.chunks_mut(CHUNK_BYTES) {
            // A last, short chunk has the same share.
            let random_bytes = self.random_bytes * chunk.len() / CHUNK_BYTES;
            let (unique, repeated) = chunk.split_at_mut(random_bytes);
            fill_random(unique, random);
            repeated.copy_from_slice(&self.filler[..repeated.len()]);
        }
    }
}

impl Documents for Sdu {
    fn document(&self, number: u64) -> RawDocumentBuf {
        Self::document(self, number)
    }

    fn is_revision_of(&self, number: u64, found: &RawDocument) -> bool {
        Self::is_revision_of(self, number, found)
    }
}

/// Returns the `_id`: it is the record number, so the order of insertion is key order.
pub(crate) fn id(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Spreads neighbouring numbers over all seeds.
pub(crate) fn mixed(value: u64) -> u64 {
    SplitMix64::new(value).next_u64()
}

/// Fills with printable ASCII without quotation marks, eight characters per number drawn: 64 values from '0'
/// on.
pub(crate) fn fill_random(bytes: &mut [u8], random: &mut SplitMix64) {
    let mut draw =
        || ((random.next_u64() & 0x3F3F_3F3F_3F3F_3F3F) + 0x3030_3030_3030_3030).to_le_bytes();
    let mut chunks = bytes.chunks_exact_mut(8);
    for chunk in &mut chunks {
        chunk.copy_from_slice(&draw());
    }
    let rest = chunks.into_remainder();
    rest.copy_from_slice(&draw()[..rest.len()]);
}

/// Begins a document or array; its length is filled in at the end.
fn begin(buffer: &mut Vec<u8>) -> usize {
    let start = buffer.len();
    buffer.extend_from_slice(&[0; 4]);
    start
}

fn end(buffer: &mut Vec<u8>, start: usize) {
    buffer.push(0);
    let length = i32::try_from(buffer.len() - start).unwrap_or(i32::MAX);
    buffer[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

fn element(buffer: &mut Vec<u8>, kind: u8, name: &[u8]) {
    buffer.push(kind);
    buffer.extend_from_slice(name);
    buffer.push(0);
}

fn string(buffer: &mut Vec<u8>, bytes: usize, fill: impl FnOnce(&mut [u8])) {
    let length = i32::try_from(bytes + 1).unwrap_or(i32::MAX);
    buffer.extend_from_slice(&length.to_le_bytes());
    let start = buffer.len();
    buffer.resize(start + bytes, 0);
    fill(&mut buffer[start..]);
    buffer.push(0);
}

fn into_raw(buffer: Vec<u8>) -> RawDocumentBuf {
    // Length and last byte were written above, which is all that is checked here.
    RawDocumentBuf::from_bytes(buffer).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::{Bson, Document};
    use std::io::Write;

    fn parsed(document: &RawDocumentBuf) -> Document {
        Document::try_from(document.as_ref()).unwrap()
    }

    #[test]
    fn sizes_are_as_promised() {
        let sdu = Sdu::new(SduOptions::default());
        let sizes: Vec<usize> = (0..10_000)
            .map(|n| sdu.document(n).as_bytes().len())
            .collect();
        let mean = sizes.iter().sum::<usize>() as f64 / sizes.len() as f64;
        assert!((mean / 3072.0 - 1.0).abs() < 0.05, "{mean}");
        assert!(sizes.iter().all(|s| (MIN_BYTES..=MAX_BYTES).contains(s)));
        assert!(*sizes.iter().min().unwrap() < 1040 && *sizes.iter().max().unwrap() > 6130);
    }

    #[test]
    fn documents_have_the_promised_fields() {
        let sdu = Sdu::new(SduOptions::default());
        let mut lengths = [0; 5];
        for number in [0, 1, 77, 1 << 40] {
            let document = parsed(&sdu.document(number));
            let keys: Vec<&str> = document.keys().map(String::as_str).collect();
            assert_eq!(keys, ["_id", "i", "d", "s1", "s2", "a"]);
            assert_eq!(
                document.get_i64("_id").unwrap(),
                i64::try_from(number).unwrap()
            );
            assert!(document.get_i32("i").unwrap() >= 0);
            assert!(matches!(document.get("d"), Some(Bson::DateTime(_))));
        }
        for number in 0..1000 {
            lengths[parsed(&sdu.document(number)).get_array("a").unwrap().len()] += 1;
        }
        assert_eq!(lengths[0], 0);
        assert!(lengths[1..].iter().all(|&n| n > 200), "{lengths:?}");
    }

    #[test]
    fn a_document_depends_on_seed_number_and_revision_only() {
        let sdu = Sdu::new(SduOptions::default());
        let other = Sdu::new(SduOptions {
            seed: 2,
            ..SduOptions::default()
        });
        assert_eq!(sdu.document(5), Sdu::new(SduOptions::default()).document(5));
        assert_ne!(sdu.document(5), other.document(5));
        assert_ne!(sdu.document(5), sdu.document(6));

        let (old, new) = (
            parsed(&sdu.document(5)),
            parsed(&sdu.revised_document(5, 1)),
        );
        let strings = parsed(&sdu.revised_strings(5, 1));
        assert_eq!(
            sdu.document(5).as_bytes().len(),
            sdu.revised_document(5, 1).as_bytes().len()
        );
        assert!(sdu.is_revision_of(5, &sdu.revised_document(5, 3)));
        assert!(!sdu.is_revision_of(5, &sdu.document(6)));
        assert!(!other.is_revision_of(5, &sdu.document(5)));
        for name in ["_id", "i", "d", "a"] {
            assert_eq!(old.get(name), new.get(name));
        }
        for name in ["s1", "s2"] {
            assert_ne!(old.get(name), new.get(name));
            assert_eq!(strings.get(name), new.get(name));
        }
    }

    #[test]
    fn compressibility_is_what_the_name_says() {
        let deflated = |compressibility: f64| {
            let sdu = Sdu::new(SduOptions {
                seed: 1,
                compressibility,
            });
            let mut encoder =
                flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
            let mut bytes = Vec::new();
            (0..300).for_each(|n| sdu.append_document(n, 0, &mut bytes));
            encoder.write_all(&bytes).unwrap();
            encoder.finish().unwrap().len() as f64 / bytes.len() as f64
        };
        let ratios: Vec<f64> = [0.0, 0.25, 0.5, 0.75, 1.0].map(deflated).to_vec();
        println!("deflate ratios {ratios:?}");
        assert!(
            ratios.windows(2).all(|pair| pair[1] < pair[0] - 0.1),
            "{ratios:?}"
        );
        // Six random bits of eight, which is what an entropy coder leaves.
        assert!(ratios[0] < 0.8 && ratios[4] < 0.1, "{ratios:?}");
    }

    /// Run with `--release -- --ignored --nocapture`.
    #[test]
    #[ignore = "a measurement, not a check"]
    fn generation_speed() {
        for compressibility in [0.0, 0.5] {
            let sdu = Sdu::new(SduOptions {
                seed: 1,
                compressibility,
            });
            let mut buffer = Vec::with_capacity(8 << 20);
            let start = std::time::Instant::now();
            let mut bytes = 0;
            for number in 0..400_000 {
                if buffer.len() > 4 << 20 {
                    bytes += buffer.len();
                    buffer.clear();
                }
                sdu.append_document(number, 0, &mut buffer);
            }
            let seconds = start.elapsed().as_secs_f64();
            println!(
                "compressibility {compressibility}: {:.0} MB/s",
                bytes as f64 / 1e6 / seconds
            );
        }
    }
}
