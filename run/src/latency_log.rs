//! `latency.hlog`: every latency distribution of a run in the [HdrHistogram] interval log format,
//! which existing HdrHistogram tools open.
//!
//! Values are nanoseconds. Each line is one interval of one tag, and a tag is a step with an
//! operation ([`tag_of`]). Lines are written as the run goes on, so a killed run leaves a log that
//! can be read; at most its last line is torn.
//!
//! [HdrHistogram]: https://github.com/HdrHistogram/HdrHistogram

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};

use crate::lines::append_lines;
use crate::{RunDirectory, RunError};

pub(crate) const LATENCIES: &str = "latency.hlog";
/// The column names that the format's other writers put before the first interval.
const LEGEND: &[u8] =
    b"\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n";
const RESPONSE: &str = ":response";

/// Returns the tag of a step's operation: `step:operation`.
///
/// A blank becomes `_`. Characters that a tag may not contain or that have a meaning here (comma, `:`, `_`,
/// `%`, control characters, anything beyond ASCII) become `%` and two hexadecimal digits per byte.
/// [`parse_tag`] reverses this.
pub fn tag_of(step: &str, operation: &str) -> String {
    format!("{}:{}", escape(step), escape(operation))
}

/// Returns the tag of response times (from the scheduled start) of a step's operation, if they are recorded
/// beside service times. No name can produce it, since colons in names are escaped.
pub fn response_tag_of(step: &str, operation: &str) -> String {
    tag_of(step, operation) + RESPONSE
}

/// Returns the tag of the service times that a tag of response times belongs to; `None` for other tags.
pub fn service_tag_of_response(tag: &str) -> Option<&str> {
    tag.strip_suffix(RESPONSE)
}

/// Returns the step and operation of a tag; `None` for a tag that [`tag_of`] did not make.
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

/// Appends distributions during a run.
pub struct LatencyLogWriter {
    file: File,
    path: PathBuf,
    serializer: V2DeflateSerializer,
}

impl LatencyLogWriter {
    /// Returns where the next line will go: everything recorded from now on lies after it.
    pub fn position(&self) -> Result<u64, RunError> {
        let facts = self.file.metadata();
        Ok(facts.map_err(RunError::io("read", &self.path))?.len())
    }

    /// Appends the latencies of `tag` in an interval: its start since the start of the run, its length, and its
    /// latencies in ns. Lines should come in the order of their starts. The line is in the file when this
    /// returns, so it survives a killed process.
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
        // Without headers, the library's writer keeps no state between lines.
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
    /// Returns a writer for latency distributions while the run goes on. May be called repeatedly; later
    /// writers append.
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
}
