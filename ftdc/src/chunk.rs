//! A chunk of a few hundred samples, stored as the first one and the changes after it.
//!
//! ```text
//! u32  bytes once inflated, little endian as all that follows
//! zlib of:
//!   BSON document       the first sample
//!   u32                 metrics of a sample
//!   u32                 further samples
//!   varints             the changes of each metric from sample to sample, modulo 2^64, one metric after
//!                       the other; a zero is followed by how many more zeros come, across metrics
//! ```

use std::io::Read;

use bson::RawDocument;
use flate2::read::ZlibDecoder;

use crate::FtdcError;
use crate::metrics::{METRICS_MAX, visit};

/// Real chunks have less than a tenth of that, mostly a hundredth.
const INFLATED_MAX_BYTES: usize = 64 << 20;
/// Servers have a setting for this (`diagnosticDataCollectionSamplesPerChunk`, mostly 300).
const SAMPLES_MAX: usize = 100_000;
/// The limit for all metrics together. It bounds the time, since a run of zeros costs the writer nothing.
const CHANGES_MAX: usize = 100 << 20;
/// The limit for the wanted metrics together. It bounds the memory.
const VALUES_MAX: usize = 8 << 20;
/// The limit for the names in the wanted paths, each including its own overhead. It bounds the memory, since a
/// long name is repeated for each metric below it.
const PATHS_MAX_BYTES: usize = 16 << 20;
/// The longest encoding of a 64-bit varint, in bytes.
const VARINT_MAX_BYTES: usize = 10;

/// The values of one metric in a chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Series {
    /// Names of fields from the outermost to the metric's own.
    pub path: Vec<String>,
    /// One value for each sample, in time order.
    pub values: Vec<i64>,
}

/// The samples of one chunk, decoded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Chunk {
    /// The wanted metrics, in the server's order.
    pub series: Vec<Series>,
    /// The number of values in each series; at least one.
    pub samples: usize,
}

impl Chunk {
    /// Decodes the metrics whose path `is_wanted` and skips the others. Memory is used for the inflated chunk
    /// and for what is wanted.
    pub fn decode(data: &[u8], is_wanted: impl Fn(&[&str]) -> bool) -> Result<Self, FtdcError> {
        let inflated = inflate(data)?;
        let mut bytes = inflated.as_slice();
        let length = usize::try_from(u32_at_front(bytes)?).map_err(|_| damaged(SHORT))?;
        let (reference, rest) = bytes.split_at_checked(length).ok_or(damaged(SHORT))?;
        let reference = RawDocument::from_bytes(reference)
            .map_err(|_| damaged("its reference document is damaged"))?;
        bytes = rest;
        let metrics = count(&mut bytes, METRICS_MAX)?;
        let changes = count(&mut bytes, SAMPLES_MAX)?;
        if metrics.saturating_mul(changes) > CHANGES_MAX {
            return Err(damaged("it has too many values"));
        }
        let mut columns: Vec<Column> = Vec::new();
        let mut path_bytes = 0_usize;
        visit(reference, &mut |path, first| {
            let wanted = is_wanted(path);
            if wanted {
                path_bytes = path_bytes.saturating_add(bytes_of(path));
            }
            let kept = wanted && path_bytes <= PATHS_MAX_BYTES;
            let path = kept.then(|| path.iter().map(ToString::to_string).collect());
            columns.push(Column { path, first });
        })?;
        if path_bytes > PATHS_MAX_BYTES {
            return Err(damaged("its names are too long"));
        }
        if columns.len() != metrics {
            return Err(damaged(
                "its reference document does not have the number of metrics that it claims",
            ));
        }
        let wanted = columns.iter().filter(|c| c.path.is_some()).count();
        if wanted.saturating_mul(changes + 1) > VALUES_MAX {
            return Err(damaged("it has too many values"));
        }
        let mut changed = Changes { bytes, zeros: 0 };
        let mut series = Vec::with_capacity(wanted);
        for column in columns {
            series.extend(column.decode(changes, &mut changed)?);
        }
        Ok(Self {
            series,
            samples: changes + 1,
        })
    }
}

const SHORT: &str = "it ends early";

/// Returns the bytes that a copy of a path takes.
fn bytes_of(path: &[&str]) -> usize {
    let names = path.iter().map(|name| name.len() + size_of::<String>());
    names.sum()
}

/// A metric in the reference document; it has a path only if it is wanted.
struct Column {
    path: Option<Vec<String>>,
    first: i64,
}

impl Column {
    fn decode(
        self,
        changes: usize,
        changed: &mut Changes<'_>,
    ) -> Result<Option<Series>, FtdcError> {
        let Some(path) = self.path else {
            let mut skipped = 0;
            while skipped < changes {
                skipped += match changed.zeros(changes - skipped) {
                    0 => changed.next().map(|_| 1)?,
                    zeros => zeros,
                };
            }
            return Ok(None);
        };
        let mut values = Vec::with_capacity(changes + 1);
        let mut value = self.first;
        values.push(value);
        while values.len() <= changes {
            match changed.zeros(changes + 1 - values.len()) {
                0 => {
                    value = value.wrapping_add_unsigned(changed.next()?);
                    values.push(value);
                }
                zeros => values.resize(values.len() + zeros, value),
            }
        }
        Ok(Some(Series { path, values }))
    }
}

/// The changes, in order.
struct Changes<'a> {
    bytes: &'a [u8],
    /// Zeros still to come.
    zeros: u64,
}

impl Changes<'_> {
    /// Takes at most `most` of the zeros that are known to come, and returns how many. Most metrics stand still
    /// most of the time.
    fn zeros(&mut self, most: usize) -> usize {
        let taken = usize::try_from(self.zeros).unwrap_or(usize::MAX).min(most);
        self.zeros -= taken as u64;
        taken
    }

    fn next(&mut self) -> Result<u64, FtdcError> {
        if self.zeros > 0 {
            self.zeros -= 1;
            return Ok(0);
        }
        let change = self.varint()?;
        if change == 0 {
            self.zeros = self.varint()?;
        }
        Ok(change)
    }

    /// Reads a varint: seven bits per byte, the lowest first; the eighth bit says that more follow.
    fn varint(&mut self) -> Result<u64, FtdcError> {
        let mut value = 0_u64;
        for (index, byte) in self.bytes.iter().take(VARINT_MAX_BYTES).enumerate() {
            // The tenth byte has room for one bit.
            value |= u64::from(byte & 0x7f) << (7 * index);
            if byte & 0x80 == 0 {
                self.bytes = self.bytes.get(index + 1..).unwrap_or_default();
                return Ok(value);
            }
        }
        Err(damaged(SHORT))
    }
}

fn inflate(data: &[u8]) -> Result<Vec<u8>, FtdcError> {
    let length = usize::try_from(u32_at_front(data)?).map_err(|_| damaged(SHORT))?;
    if length > INFLATED_MAX_BYTES {
        return Err(damaged("it claims to be larger than any chunk"));
    }
    let compressed = data.get(4..).unwrap_or_default();
    // The buffer grows with the data, not with the promised length; one byte more reveals a wrong length.
    let mut inflated = Vec::new();
    let most = u64::try_from(length + 1).unwrap_or(u64::MAX);
    ZlibDecoder::new(compressed)
        .take(most)
        .read_to_end(&mut inflated)
        .map_err(|_| damaged("zlib cannot inflate it"))?;
    if inflated.len() == length {
        Ok(inflated)
    } else {
        Err(damaged("it does not have the length that it claims"))
    }
}

fn count(bytes: &mut &[u8], most: usize) -> Result<usize, FtdcError> {
    let count = usize::try_from(u32_at_front(bytes)?).map_err(|_| damaged(SHORT))?;
    *bytes = bytes.get(4..).unwrap_or_default();
    if count > most {
        return Err(damaged("it has too many values"));
    }
    Ok(count)
}

fn u32_at_front(bytes: &[u8]) -> Result<u32, FtdcError> {
    let front = bytes.first_chunk().ok_or(damaged(SHORT))?;
    Ok(u32::from_le_bytes(*front))
}

fn damaged(why: &'static str) -> FtdcError {
    FtdcError::Damaged { why }
}

#[cfg(test)]
mod tests {
    use bson::{DateTime, Document, Timestamp, doc};
    use proptest::prelude::*;

    use super::*;
    use crate::writing;

    fn all(data: &[u8]) -> Result<Chunk, FtdcError> {
        Chunk::decode(data, |_| true)
    }

    /// Returns what a server might sample in the given second.
    fn sample(second: i64) -> Document {
        doc! {
            "start": DateTime::from_millis(1_700_000_000_000 + second * 1_000),
            "serverStatus": {
                "version": "4.2.2", "uptimeMillis": second * 1_000, "quiet": 0, "falling": -second,
                "opcounters": { "insert": second * second, "load": 1.5 * second as f64 },
                "optime": Timestamp { time: 5, increment: if second % 3 == 0 { 1 } else { 0 } },
                "ok": 1.0,
            },
            "end": DateTime::from_millis(1_700_000_000_005 + second * 1_000),
        }
    }

    fn values(chunk: &Chunk, name: &str) -> Vec<i64> {
        let mut series = chunk.series.iter();
        let found = series.find(|series| series.path.join(".") == name);
        found.unwrap_or_else(|| panic!("{name}")).values.clone()
    }

    #[test]
    fn what_was_sampled_comes_back() {
        let samples: Vec<Document> = (0..300).map(sample).collect();
        let data = writing::chunk(&samples);
        let chunk = all(&data).unwrap();
        assert_eq!((chunk.samples, chunk.series.len()), (300, 10));
        let seconds: Vec<i64> = (0..300).collect();
        let of = |each: fn(i64) -> i64| seconds.iter().map(|s| each(*s)).collect::<Vec<i64>>();
        assert_eq!(
            values(&chunk, "start"),
            of(|s| 1_700_000_000_000 + s * 1_000)
        );
        assert_eq!(values(&chunk, "serverStatus.falling"), of(|s| -s));
        assert_eq!(
            values(&chunk, "serverStatus.opcounters.insert"),
            of(|s| s * s)
        );
        assert_eq!(
            values(&chunk, "serverStatus.opcounters.load"),
            of(|s| s * 3 / 2)
        );
        assert_eq!(values(&chunk, "serverStatus.quiet"), vec![0; 300]);
        assert_eq!(
            values(&chunk, "serverStatus.optime.increment"),
            of(|s| i64::from(s % 3 == 0))
        );

        let some = Chunk::decode(&data, |path| path.last() == Some(&"insert")).unwrap();
        assert_eq!(some.series.len(), 1, "the others are passed over");
        assert_eq!(
            values(&some, "serverStatus.opcounters.insert"),
            of(|s| s * s)
        );
    }

    /// The example in the server's own description of the format, with the run of three zeros as its
    /// sources write it: zero, then two more.
    #[test]
    fn bytes_of_the_description() {
        let samples = [1, 2, 3, 4].map(|a| doc! { "a": a, "x": 2, "s": "t" });
        let mut expected = writing::bytes(&samples[0]);
        expected.extend([2, 0, 0, 0, 3, 0, 0, 0, 1, 1, 1, 0, 2]);
        assert_eq!(inflate(&writing::chunk(&samples)).unwrap(), expected);
        let chunk = all(&writing::chunk(&samples)).unwrap();
        assert_eq!(values(&chunk, "a"), [1, 2, 3, 4]);
        assert_eq!(values(&chunk, "x"), [2; 4]);
    }

    #[test]
    fn a_single_sample() {
        let chunk = all(&writing::chunk(&[sample(7)])).unwrap();
        assert_eq!(chunk.samples, 1);
        assert_eq!(values(&chunk, "serverStatus.falling"), [-7]);
    }

    #[test]
    fn lies_are_refused() {
        let why = |data: &[u8]| match all(data) {
            Err(FtdcError::Damaged { why }) => why,
            other => panic!("{other:?}"),
        };
        let good = inflate(&writing::chunk(&[sample(1), sample(2)])).unwrap();
        assert_eq!(why(&[1, 0]), SHORT);
        assert_eq!(why(&[0xff; 8]), "it claims to be larger than any chunk");
        assert_eq!(why(&[9, 0, 0, 0, 1, 2, 3]), "zlib cannot inflate it");
        let mut longer = writing::deflated(&good);
        longer[0] = longer[0].wrapping_add(1);
        assert_eq!(why(&longer), "it does not have the length that it claims");
        assert_eq!(why(&writing::deflated(&good[..good.len() - 1])), SHORT);
        let counts = usize::try_from(u32_at_front(&good).unwrap()).unwrap();
        let with = |at: usize, value: u32| {
            let mut bytes = good.clone();
            bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
            writing::deflated(&bytes)
        };
        let wrong = "its reference document does not have the number of metrics that it claims";
        assert_eq!(why(&with(counts, 9)), wrong);
        assert_eq!(why(&with(counts, u32::MAX)), "it has too many values");
        assert_eq!(why(&with(counts + 4, 50_000)), SHORT);
        assert_eq!(why(&with(0, u32::MAX)), SHORT);
        assert_eq!(why(&with(4, u32::MAX)), "its reference document is damaged");
    }

    #[test]
    fn a_bomb_of_zeros_is_refused() {
        let numbers: Document = (0..2_000).map(|n| (format!("n{n}"), n.into())).collect();
        let mut bytes = writing::bytes(&numbers);
        bytes.extend(2_000_u32.to_le_bytes());
        bytes.extend(90_000_u32.to_le_bytes());
        bytes.extend([0; 20]);
        let data = writing::deflated(&bytes);
        let refused = Err(FtdcError::Damaged {
            why: "it has too many values",
        });
        assert_eq!(all(&data), refused);
    }

    #[test]
    fn a_bomb_of_names_is_refused() {
        let refused = Err(FtdcError::Damaged {
            why: "its names are too long",
        });
        let below: Document = (0..2_000).map(|n| (format!("n{n}"), n.into())).collect();
        let long = doc! { "x".repeat(20_000): below };
        let data = writing::chunk(&[long]);
        assert_eq!(all(&data), refused);
        let unwanted = Chunk::decode(&data, |_| false);
        assert_eq!(unwanted.map(|chunk| chunk.series), Ok(Vec::new()));
        // Names of zero length take memory as well.
        let mut deep: Document = (0..20_000).map(|n| (format!("n{n}"), n.into())).collect();
        for _ in 0..35 {
            deep = doc! { "": deep };
        }
        assert_eq!(all(&writing::chunk(&[deep])), refused);
    }

    proptest! {
        #[test]
        fn any_values_come_back(columns in prop::collection::vec(prop::collection::vec(any::<i64>(), 5), 1..8)) {
            let samples: Vec<Document> = (0..5)
                .map(|row| columns.iter().enumerate().map(|(n, c)| (format!("c{n}"), c[row].into())).collect())
                .collect();
            let chunk = all(&writing::chunk(&samples)).unwrap();
            let read: Vec<Vec<i64>> = chunk.series.into_iter().map(|s| s.values).collect();
            prop_assert_eq!(read, columns);
        }

        #[test]
        fn never_fails(data in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = all(&data);
            let _ = all(&writing::deflated(&data));
            prop_assert!(crate::entries(&data).count() <= data.len());
        }

        #[test]
        fn a_changed_byte_never_makes_it_fail(at in 0_usize..400, value in any::<u8>()) {
            let mut bytes = inflate(&writing::chunk(&[sample(1), sample(2), sample(4)])).unwrap();
            let at = at % bytes.len();
            bytes[at] = value;
            if let Ok(chunk) = all(&writing::deflated(&bytes)) {
                prop_assert!(chunk.series.iter().all(|series| series.values.len() == chunk.samples));
            }
        }
    }
}
