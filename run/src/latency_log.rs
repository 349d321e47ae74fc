//! `latency.hlog`: every latency distribution of a run in the [HdrHistogram] interval log format,
//! which existing HdrHistogram tools open.
//!
//! Values are nanoseconds. Each line is one interval of one tag, and a tag is a step with an
//! operation ([`tag_of`]). Lines are written as the run goes on, so a killed run leaves a log that
//! can be read; at most its last line is torn.
//!
//! [HdrHistogram]: https://github.com/HdrHistogram/HdrHistogram

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::interval_log::{
    IntervalLogIterator, IntervalLogWriterBuilder, LogEntry, LogIteratorError, Tag,
};
use hdrhistogram::serialization::{Deserializer, V2DeflateSerializer};

use crate::lines::append_lines;
use crate::{RunDirectory, RunError, latency_histogram};

const LATENCIES: &str = "latency.hlog";
/// The column names that the format's other writers put before the first interval.
const LEGEND: &[u8] =
    b"\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n";
const RESPONSE: &str = ":response";
/// More than any histogram of 64-bit values with five digits takes when inflated.
const INFLATED_BYTES_MAX: u64 = 64 << 20;
/// Longer lines are none of ours.
const LINE_BYTES_MAX: u64 = 64 << 20;

/// The tag of a step's operation: `step:operation`.
///
/// A blank becomes `_`. What a tag may not contain or what has a meaning here (comma, `:`, `_`,
/// `%`, control characters, anything beyond ASCII) becomes `%` and two hexadecimal digits per
/// byte. [`parse_tag`] takes it all back.
pub fn tag_of(step: &str, operation: &str) -> String {
    format!("{}:{}", escape(step), escape(operation))
}

/// The tag of response times (from the scheduled start) of a step's operation, where they are recorded
/// beside service times. No name can make it up: their colons are escaped.
pub fn response_tag_of(step: &str, operation: &str) -> String {
    tag_of(step, operation) + RESPONSE
}

/// The tag of the service times that a tag of response times belongs to; `None` for other tags.
pub fn service_tag_of_response(tag: &str) -> Option<&str> {
    tag.strip_suffix(RESPONSE)
}

/// Step and operation of a tag; `None` for a tag that [`tag_of`] did not make.
pub fn parse_tag(tag: &str) -> Option<(String, String)> {
    let (step, operation) = tag.split_once(':')?;
    Some((unescape(step)?, unescape(operation)?))
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b' ' => out.push('_'),
            b',' | b':' | b'_' | b'%' => out.push_str(&format!("%{byte:02X}")),
            _ if byte.is_ascii_graphic() => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

fn unescape(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'_' => b' ',
            b'%' => {
                let digit = |b: u8| char::from(b).to_digit(16);
                let value = digit(bytes.next()?)? << 4 | digit(bytes.next()?)?;
                u8::try_from(value).ok()?
            }
            _ => byte,
        });
    }
    String::from_utf8(out).ok()
}

/// Appends distributions while a run goes on.
pub struct LatencyLogWriter {
    file: File,
    path: PathBuf,
    serializer: V2DeflateSerializer,
}

impl LatencyLogWriter {
    /// Where the next line goes: what is recorded from now on lies behind it.
    pub fn position(&self) -> Result<u64, RunError> {
        let facts = self.file.metadata();
        Ok(facts.map_err(RunError::io("read", &self.path))?.len())
    }

    /// Appends what `tag` did in an interval: its start since the start of the run, its length,
    /// and its latencies in ns. Lines should come in the order of their starts. The line is in the
    /// file when this returns, so it outlives a killed process.
    pub fn write(
        &mut self,
        tag: &str,
        start_offset: Duration,
        duration: Duration,
        histogram: &Histogram<u64>,
    ) -> Result<(), RunError> {
        let failed = RunError::write(&self.path);
        let checked = Tag::new(tag).filter(|_| !tag.is_empty());
        let checked = checked.ok_or_else(|| failed(format!("`{tag}` is not a tag")))?;
        let mut line = Vec::new();
        // Without headers the library's writer holds no state between lines.
        IntervalLogWriterBuilder::new()
            .begin_log_with(&mut line, &mut self.serializer)
            .map_err(|e| failed(e.to_string()))?
            .write_histogram(histogram, start_offset, duration, Some(checked))
            .map_err(|e| failed(e.to_string()))?;
        self.file
            .write_all(&line)
            .map_err(RunError::io("write", &self.path))
    }
}

impl RunDirectory {
    /// Where latency distributions go while the run goes on. May be asked for again and again;
    /// later writers append.
    pub fn latency_log_writer(&self) -> Result<LatencyLogWriter, RunError> {
        let path = self.path().join(LATENCIES);
        let open = || {
            let mut file = append_lines(&path)?;
            if file.metadata()?.len() == 0 {
                file.write_all(&self.latency_log_header()?)?;
            }
            Ok(file)
        };
        Ok(LatencyLogWriter {
            file: open().map_err(RunError::io("open", &path))?,
            path,
            serializer: V2DeflateSerializer::new(),
        })
    }

    fn latency_log_header(&self) -> io::Result<Vec<u8>> {
        let started = UNIX_EPOCH + Duration::from_nanos(self.started().realtime_ns);
        let mut header = Vec::new();
        IntervalLogWriterBuilder::new()
            .add_comment("[Histogram log format version 1.3]")
            .add_comment("Latencies in nanoseconds; one tag per step and operation.")
            .with_start_time(started)
            .with_base_time(started)
            .begin_log_with(&mut header, &mut V2DeflateSerializer::new())?;
        header.extend_from_slice(LEGEND);
        Ok(header)
    }

    /// The distribution of each tag over the whole run, in ns; empty when none was recorded. A
    /// torn last line is ignored; any other line that cannot be read is an error.
    pub fn latency_histograms(&self) -> Result<BTreeMap<String, Histogram<u64>>, RunError> {
        self.latency_histograms_where(0, |_| true)
    }

    /// The same of the intervals that `keep` wants, beginning at a [`LatencyLogWriter::position`].
    pub fn latency_histograms_where(
        &self,
        position: u64,
        keep: impl Fn(&LatencyInterval) -> bool,
    ) -> Result<BTreeMap<String, Histogram<u64>>, RunError> {
        let mut merged: BTreeMap<String, Histogram<u64>> = BTreeMap::new();
        self.for_each_latency(position, |interval| {
            if !keep(&interval) {
                return Ok(());
            }
            let sum = merged.entry(interval.tag).or_insert_with(|| {
                let mut empty = latency_histogram();
                empty.auto(true);
                empty
            });
            sum.add(interval.histogram).map_err(|e| e.to_string())
        })?;
        Ok(merged)
    }

    /// Hands over each interval in the order in which they were recorded, one in memory at a time. An
    /// error of `each` says what is wrong with the interval.
    pub fn for_each_latency(
        &self,
        position: u64,
        mut each: impl FnMut(LatencyInterval) -> Result<(), String>,
    ) -> Result<(), RunError> {
        let path = self.path().join(LATENCIES);
        let file = match File::open(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => other.map_err(RunError::io("open", &path))?,
        };
        let mut reader = BufReader::new(file);
        let sought = reader.seek(SeekFrom::Start(position));
        sought.map_err(RunError::io("read", &path))?;
        let (mut line, mut at) = (Vec::new(), position);
        loop {
            line.clear();
            let length = reader
                .by_ref()
                .take(LINE_BYTES_MAX)
                .read_until(b'\n', &mut line);
            let length = length.map_err(RunError::io("read", &path))?;
            if line.last() != Some(&b'\n') {
                // The end, or a torn last line.
                return match u64::try_from(length) {
                    Ok(LINE_BYTES_MAX) => {
                        Err(RunError::damaged(&path)(format!("no line at byte {at}")))
                    }
                    _ => Ok(()),
                };
            }
            if let Some(interval) = interval_of_line(&line, at).map_err(RunError::damaged(&path))? {
                let (tag, start) = (interval.tag.clone(), interval.start);
                each(interval)
                    .map_err(|e| RunError::damaged(&path)(format!("{tag} at {start:?}: {e}")))?;
            }
            at += length as u64;
        }
    }
}

/// One interval of one tag.
#[derive(Debug)]
pub struct LatencyInterval {
    pub tag: String,
    /// Since the start of the run; whole milliseconds, as the format has them.
    pub start: Duration,
    pub duration: Duration,
    /// ns.
    pub histogram: Histogram<u64>,
}

/// `None` for a line that is no interval. The text says what is wrong and, as far as known, where.
fn interval_of_line(line: &[u8], at: u64) -> Result<Option<LatencyInterval>, String> {
    for entry in IntervalLogIterator::new(line) {
        let interval = match entry {
            Ok(LogEntry::Interval(interval)) => interval,
            Ok(LogEntry::StartTime(_) | LogEntry::BaseTime(_)) => continue,
            Err(LogIteratorError::ParseError { offset }) => {
                return Err(format!("no interval at byte {}", at + offset as u64));
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

/// The library would reserve as many bytes as the header claims, so the payload is inflated here,
/// within bounds, and handed over in the uncompressed form that the library reads as well.
fn decode(encoded: &str) -> Result<Histogram<u64>, String> {
    /// Magic number and length of the compressed form; the uncompressed one's length field.
    const OUTER_HEADER_BYTES: usize = 8;
    const HEADER_BYTES: usize = 40;
    let compressed = BASE64.decode(encoded).map_err(|e| e.to_string())?;
    let payload = compressed.get(OUTER_HEADER_BYTES..).ok_or("too short")?;
    let mut inflated = Vec::new();
    ZlibDecoder::new(payload)
        .take(INFLATED_BYTES_MAX)
        .read_to_end(&mut inflated)
        .map_err(|e| e.to_string())?;
    let claimed = match inflated.get(4..8) {
        Some(&[a, b, c, d]) => u32::from_be_bytes([a, b, c, d]),
        _ => return Err("too short".into()),
    };
    if u64::from(claimed) > inflated.len().saturating_sub(HEADER_BYTES) as u64 {
        return Err("shorter than its header says".into());
    }
    Deserializer::new()
        .deserialize(&mut &inflated[..])
        .map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn response_times_have_tags_that_no_name_can_make_up() {
        let tag = response_tag_of("run:response", "READ");
        let service = service_tag_of_response(&tag).unwrap();
        assert_eq!(
            parse_tag(service),
            Some(("run:response".into(), "READ".into()))
        );
        assert_eq!(
            service_tag_of_response(&tag_of("run", "READ:response")),
            None
        );
        assert!(Tag::new(&tag).is_some());
    }

    #[test]
    fn tags_are_safe_and_lead_back() {
        assert_eq!(tag_of("ramp-4k-depth-8", "read"), "ramp-4k-depth-8:read");
        assert_eq!(tag_of("ramp 4k", "read"), "ramp_4k:read");
        for step in ["", "a b", "a_b", "a:b, 50%\r\n", "größe", "a-b"] {
            let tag = tag_of(step, "sync");
            assert!(Tag::new(&tag).is_some() && tag.is_ascii(), "{tag}");
            assert_eq!(parse_tag(&tag), Some((step.into(), "sync".into())));
        }
        for foreign in ["", "a", "a%:b", "a%f", "%ff:b", "a%+1:b"] {
            assert_eq!(parse_tag(foreign), None, "{foreign}");
        }
    }

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
            "shorter than its header says"
        );
        for bad in [payload(8), "AAAA".into(), "!".into(), String::new()] {
            assert!(decode(&bad).is_err());
        }
    }
}
