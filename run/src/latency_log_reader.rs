//! Reads the latency log back, an interval at a time or summed up by tag.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry, LogIteratorError};

use crate::latency_log::LATENCIES;
use crate::{RunDirectory, RunError, latency_histogram};

/// More than any histogram of 64-bit values with five digits takes when inflated.
const INFLATED_BYTES_MAX: u64 = 64 << 20;
/// Longer lines were not written by us.
const LINE_BYTES_MAX: u64 = 64 << 20;

impl RunDirectory {
    /// Returns the distribution of each tag over the whole run, in ns; empty if none was recorded. A torn last
    /// line is ignored; any other line that cannot be read is an error.
    pub fn latency_histograms(&self) -> Result<BTreeMap<String, Histogram<u64>>, RunError> {
        self.latency_histograms_where(0, |_| true)
    }

    /// Like [`Self::latency_histograms`], for the intervals that `keep` selects, beginning at a
    /// [`crate::LatencyLogWriter::position`].
    pub fn latency_histograms_where(
        &self,
        position: u64,
        keep: impl Fn(&LatencyInterval) -> bool,
    ) -> Result<BTreeMap<String, Histogram<u64>>, RunError> {
        let mut merged: BTreeMap<String, Histogram<u64>> = BTreeMap::new();
        for interval in self.latency_intervals(position)? {
            let interval = interval?;
            if !keep(&interval) {
                continue;
            }
            let sum = merged.entry(interval.tag).or_insert_with(|| {
                let mut empty = latency_histogram();
                empty.auto(true);
                empty
            });
            let path = self.path().join(LATENCIES);
            sum.add(interval.histogram)
                .map_err(|e| RunError::damaged(&path)(e.to_string()))?;
        }
        Ok(merged)
    }

    /// Passes each interval to `each`, as read by [`Self::latency_intervals`]. An error of `each` says what is
    /// wrong with the interval.
    pub fn for_each_latency(
        &self,
        position: u64,
        mut each: impl FnMut(LatencyInterval) -> Result<(), String>,
    ) -> Result<(), RunError> {
        let path = self.path().join(LATENCIES);
        for interval in self.latency_intervals(position)? {
            let interval = interval?;
            let (tag, start) = (interval.tag.clone(), interval.start);
            each(interval)
                .map_err(|e| RunError::damaged(&path)(format!("{tag} at {start:?}: {e}")))?;
        }
        Ok(())
    }

    /// Returns each interval in the order of recording, beginning at a [`crate::LatencyLogWriter::position`];
    /// one is in memory at a time.
    pub fn latency_intervals(&self, position: u64) -> Result<LatencyIntervals, RunError> {
        let path = self.path().join(LATENCIES);
        let reader = match File::open(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            other => {
                let mut reader = BufReader::new(other.map_err(RunError::io("open", &path))?);
                let sought = reader.seek(SeekFrom::Start(position));
                sought.map_err(RunError::io("read", &path))?;
                Some(reader)
            }
        };
        Ok(LatencyIntervals {
            reader,
            path,
            at: position,
        })
    }
}

/// An iterator over intervals; see [`RunDirectory::latency_intervals`]. Ends with the first error.
#[derive(Debug)]
pub struct LatencyIntervals {
    /// `None` if nothing was recorded, and at the end.
    reader: Option<BufReader<File>>,
    path: PathBuf,
    at: u64,
}

impl LatencyIntervals {
    /// Reads the next line that is an interval; `None` at the end, or at a torn last line.
    fn read(&mut self) -> Result<Option<LatencyInterval>, RunError> {
        let mut line = Vec::new();
        while let Some(reader) = &mut self.reader {
            line.clear();
            let length = reader.take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
            let length = length.map_err(RunError::io("read", &self.path))? as u64;
            if line.last() != Some(&b'\n') {
                let at = self.at;
                return match length {
                    LINE_BYTES_MAX => Err(RunError::damaged(&self.path)(format!(
                        "the line at byte {at} does not end"
                    ))),
                    _ => Ok(None),
                };
            }
            let interval =
                interval_of_line(&line, self.at).map_err(RunError::damaged(&self.path))?;
            self.at += length;
            if interval.is_some() {
                return Ok(interval);
            }
        }
        Ok(None)
    }
}

impl Iterator for LatencyIntervals {
    type Item = Result<LatencyInterval, RunError>;

    fn next(&mut self) -> Option<Self::Item> {
        let read = self.read();
        if !matches!(read, Ok(Some(_))) {
            self.reader = None;
        }
        read.transpose()
    }
}

/// One interval of one tag.
#[derive(Debug)]
pub struct LatencyInterval {
    pub tag: String,
    /// Start since the start of the run, in whole milliseconds, as the format has them.
    pub start: Duration,
    pub duration: Duration,
    /// The latencies, ns.
    pub histogram: Histogram<u64>,
}

/// Parses a line; `None` if it is not an interval. The error text says what is wrong and, as far as known,
/// where.
fn interval_of_line(line: &[u8], at: u64) -> Result<Option<LatencyInterval>, String> {
    for entry in IntervalLogIterator::new(line) {
        let interval = match entry {
            Ok(LogEntry::Interval(interval)) => interval,
            Ok(LogEntry::StartTime(_) | LogEntry::BaseTime(_)) => continue,
            Err(LogIteratorError::ParseError { offset }) => {
                return Err(format!(
                    "there is no valid interval at byte {}",
                    at + offset as u64
                ));
            }
        };
        let (tag, start) = (
            interval.tag().map_or("", |tag| tag.as_str()),
            interval.start_timestamp(),
        );
        return match decode(interval.encoded_histogram()) {
            Ok(histogram) => Ok(Some(LatencyInterval {
                tag: tag.to_string(),
                start,
                duration: interval.duration(),
                histogram,
            })),
            Err(error) => Err(format!("{tag} at {start:?}: {error}")),
        };
    }
    Ok(None)
}

/// Decodes a histogram. The library would reserve as many bytes as the header claims, so the payload is
/// inflated here, within bounds, and handed over in the uncompressed form that the library reads as well.
fn decode(encoded: &str) -> Result<Histogram<u64>, String> {
    /// Magic number and length of the compressed form.
    const OUTER_HEADER_BYTES: usize = 8;
    const HEADER_BYTES: usize = 40;
    let compressed = BASE64.decode(encoded).map_err(|e| e.to_string())?;
    let payload = compressed
        .get(OUTER_HEADER_BYTES..)
        .ok_or("it is too short")?;
    let mut inflated = Vec::new();
    ZlibDecoder::new(payload)
        .take(INFLATED_BYTES_MAX)
        .read_to_end(&mut inflated)
        .map_err(|e| e.to_string())?;
    let claimed = match inflated.get(4..8) {
        Some(&[a, b, c, d]) => u32::from_be_bytes([a, b, c, d]),
        _ => return Err("it is too short".into()),
    };
    if u64::from(claimed) > inflated.len().saturating_sub(HEADER_BYTES) as u64 {
        return Err("it is shorter than its header says".into());
    }
    Deserializer::new()
        .deserialize(&mut &inflated[..])
        .map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn claims_of_a_hostile_payload_are_checked() {
        let payload = |claimed: u32| {
            let mut inner = vec![0x1c, 0x84, 0x93, 0x13];
            inner.extend(claimed.to_be_bytes());
            inner.resize(48, 0);
            let mut outer = vec![0x1c, 0x84, 0x93, 0x14, 0, 0, 0, 0];
            let mut deflated =
                flate2::write::ZlibEncoder::new(&mut outer, flate2::Compression::fast());
            deflated.write_all(&inner).unwrap();
            deflated.finish().unwrap();
            BASE64.encode(outer)
        };
        assert_eq!(
            decode(&payload(u32::MAX)).unwrap_err(),
            "it is shorter than its header says"
        );
        for bad in [payload(8), "AAAA".into(), "!".into(), String::new()] {
            assert!(decode(&bad).is_err());
        }
    }
}
