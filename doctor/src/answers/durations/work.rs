//! Estimates what jobs do beyond reading: extracting keys from documents, sorting, loading and writing.
//!
//! None of it was measured on the examined server, so each rate is a range; where one was measured elsewhere
//! its comment says so.

use super::subject::Subject;
use crate::Evidence;

/// Time to extract a key from a document and sort it, s: 5.0 to 5.8 µs were measured on MongoDB 4.2 (120,000
/// documents of 2.7 KB, warm). Slower processors, long keys and arrays account for the range.
const KEY_S: Span = Span {
    low_s: 2e-6,
    expected_s: 5e-6,
    high_s: 15e-6,
};
/// Bytes on disk per index entry where the collection has no index to go by: a number with its record id
/// takes about 12, a string of 24 characters about 35.
const ENTRY_BYTES: f64 = 20.0;
/// Divisors of the disk's streaming rate for writing, from the lower end of the range: writing is at most as
/// fast as streaming; how much slower was not measured.
const WRITE_SLOWER: [f64; 3] = [1.0, 2.0, 4.0];
/// Time to send documents over a network connection and insert them, s per byte: 20 to 150 MB/s, assumed.
const COPY_S_PER_BYTE: Span = Span {
    low_s: 1.0 / 150e6,
    expected_s: 1.0 / 50e6,
    high_s: 1.0 / 20e6,
};
/// Memory that a build may use for sorting before it spills (`maxIndexBuildMemoryUsageMegabytes`, 200 by
/// default).
const SORT_MIB: f64 = 200.0;
/// Streaming rate of an unknown disk, bytes per second.
const STREAM_BYTES_PER_S: f64 = 150e6;

/// A time in seconds: the expected value and its range.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Span {
    pub(super) low_s: f64,
    pub(super) expected_s: f64,
    pub(super) high_s: f64,
}

impl Span {
    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            low_s: self.low_s + other.low_s,
            expected_s: self.expected_s + other.expected_s,
            high_s: self.high_s + other.high_s,
        }
    }

    pub(super) fn times(self, factor: f64) -> Self {
        Self {
            low_s: self.low_s * factor,
            expected_s: self.expected_s * factor,
            high_s: self.high_s * factor,
        }
    }
}

/// What the disk and the server allow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Work {
    stream_bytes_per_s: f64,
    sort_bytes: f64,
}

/// Returns the bytes per second that the server's control group lets it write; infinite without a limit.
fn write_limit(evidence: &Evidence<'_>) -> f64 {
    let settings = evidence.host_settings();
    let limits = settings.map_or(&[][..], |host| &host.surroundings.io_limits);
    let of_writes = limits.iter().filter(|limit| limit.what == "write bytes/s");
    of_writes
        .map(|limit| limit.per_s.max(1) as f64)
        .fold(f64::INFINITY, f64::min)
}

impl Work {
    pub(super) fn of(evidence: &Evidence<'_>) -> Self {
        let rate = evidence
            .model()
            .map(|(model, _)| model.sequential_bytes_per_s);
        let parameter = evidence
            .examined()
            .and_then(|m| {
                m.parameter("maxIndexBuildMemoryUsageMegabytes")?
                    .parse::<f64>()
                    .ok()
            })
            .filter(|mib| *mib > 0.0);
        let stream = rate.filter(|r| *r > 0.0).unwrap_or(STREAM_BYTES_PER_S);
        Self {
            stream_bytes_per_s: stream.min(write_limit(evidence)),
            sort_bytes: parameter.unwrap_or(SORT_MIB) * (1 << 20) as f64,
        }
    }

    /// Returns the time for one index beyond the reading. `None` where the number of documents is not known.
    pub(super) fn index(&self, subject: &Subject) -> Option<Span> {
        let documents = subject.documents? as f64;
        let sizes: Vec<f64> = subject.index_bytes.iter().map(|b| *b as f64).collect();
        let bytes = seekscope_stats::median(&sizes).unwrap_or(documents * ENTRY_BYTES);
        // Spilled runs are written once and read once more.
        let passes = if bytes > self.sort_bytes { 3.0 } else { 1.0 };
        Some(KEY_S.times(documents).plus(self.write(bytes * passes)))
    }

    /// Returns the time to send documents to another member and write them there, beyond the reading at the
    /// source. `None` where their bytes are not known.
    pub(super) fn copy(&self, subject: &Subject) -> Option<Span> {
        let way = COPY_S_PER_BYTE.times(subject.data_bytes? as f64);
        Some(way.plus(self.write(subject.used_bytes as f64)))
    }

    fn write(&self, bytes: f64) -> Span {
        let [low_s, expected_s, high_s] =
            WRITE_SLOWER.map(|slower| bytes * slower / self.stream_bytes_per_s);
        Span {
            low_s,
            expected_s,
            high_s,
        }
    }

    /// Returns what an index build's estimate is based on beyond the reading.
    pub(super) fn index_basis(&self) -> &'static str {
        "2 to 15 µs per key assumed (5 measured elsewhere), an index as large as its median fellow, \
         written at a quarter of the disk's streaming rate or faster"
    }

    pub(super) fn copy_basis(&self) -> &'static str {
        "20 to 150 MB/s of documents between members assumed, the target's disk like this one; a target \
         that copies while it writes is faster"
    }
}
