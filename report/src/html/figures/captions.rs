//! Writes the captions of figures: what is drawn, and what its shape means.

use seekscope_pattern::{
    AccessPattern, Direction, DirectionTrace, FileTrace, PatternKind, SEQUENTIAL_WINDOW_BYTES,
    Transfers,
};
use seekscope_run::Phase;
use seekscope_run::units::{format_bytes, format_count, format_ns};

use crate::escape::shortened;
use crate::numbers::{counted, format_share};

const NAME_CHARS: usize = 120;
/// Percentiles of fewer calls are single calls.
const FEW: u64 = 8;

/// The data described by the captions of one file in one phase.
pub(crate) struct CaptionSource<'a> {
    pub(crate) phase: &'a Phase,
    pub(crate) file: &'a FileTrace,
    pub(crate) stride: usize,
    pub(crate) points: usize,
    pub(crate) unknown_offsets: u64,
}

impl CaptionSource<'_> {
    /// Returns the caption of "file offset over time".
    pub(crate) fn offset(&self) -> String {
        let mut text = format!("{} on {}. {}", self.calls(), self.place(), self.shape());
        if self.unknown_offsets > 0 {
            text.push_str(&format!(
                " Left out: {} whose offset is not known.",
                counted(self.unknown_offsets, "call")
            ));
        }
        text + &self.sample()
    }

    /// Returns the caption of "latency over time".
    pub(crate) fn latency(&self) -> String {
        let mut text = format!("How long each of these calls took, on the {}.", self.disk());
        for (direction, word) in [(&self.file.reads, "reads"), (&self.file.writes, "writes")] {
            let calls = &direction.transfers;
            text.push_str(&latency_sentence(calls, word));
        }
        text + &self.sample()
    }

    fn disk(&self) -> String {
        self.phase.disk.label()
    }

    fn calls(&self) -> String {
        let (reads, writes) = (&self.file.reads.transfers, &self.file.writes.transfers);
        let (reads, writes) = (reads.calls, writes.calls);
        match (reads, writes) {
            (reads, 0) => counted(reads, "read"),
            (0, writes) => counted(writes, "write"),
            _ => format!(
                "{} and {}",
                counted(reads, "read"),
                counted(writes, "write")
            ),
        }
    }

    fn place(&self) -> String {
        let record = &self.file.file;
        match record.labelled_namespace() {
            Some(namespace) => format!(
                "{} ({}), {}",
                shortened(record.name(), NAME_CHARS),
                shortened(&namespace, NAME_CHARS),
                self.disk()
            ),
            None => format!(
                "{} ({}), {}",
                shortened(&record.labelled_name(), NAME_CHARS),
                record.role.name(),
                self.disk()
            ),
        }
    }

    fn shape(&self) -> String {
        shape_of([&self.file.reads, &self.file.writes]).unwrap_or_else(|| {
            "No call has a known offset and moved bytes, so there is no shape to see.".into()
        })
    }

    fn sample(&self) -> String {
        sample_sentence(self.stride, self.points)
    }
}

/// Says that one call in `stride` is a point, if that is so; otherwise empty.
pub(crate) fn sample_sentence(stride: usize, points: usize) -> String {
    if stride <= 1 {
        return String::new();
    }
    format!(
        " The whole picture counts every call; zoomed in, one call in {} is drawn ({} points).",
        format_count(stride as u64),
        format_count(points as u64)
    )
}

/// Says how long calls took, if there were any; `word` names them.
pub(crate) fn latency_sentence(calls: &Transfers, word: &str) -> String {
    let q = &calls.latency_ns;
    if q.count < FEW {
        return match q.count {
            0 => String::new(),
            1 => format!(" The only one of the {word} took {}.", format_ns(q.max)),
            few => format!(
                " The {few} {word} took between {} and {}.",
                format_ns(q.min),
                format_ns(q.max)
            ),
        };
    }
    format!(
        " Half of the {word} took at most {}, 99 % at most {}, the longest {}.",
        format_ns(q.p50),
        format_ns(q.p99),
        format_ns(q.max)
    )
}

/// Returns one plain sentence on what the picture of reads and writes shows: of the reads, unless they are few beside many
/// writes. `None` where no call has a place.
pub(crate) fn shape_of([reads, writes]: [&DirectionTrace; 2]) -> Option<String> {
    let directions = [(reads, "read"), (writes, "write")].into_iter();
    let shapes = directions.filter_map(|(calls, word)| Some((calls.pattern.as_ref()?, word)));
    let told = shapes.min_by_key(|(pattern, _)| pattern.kind == PatternKind::Few);
    told.map(|(pattern, word)| shape_sentence(pattern, word))
}

fn shape_sentence(pattern: &AccessPattern, word: &str) -> String {
    let sequential = format_share(pattern.sequential_share);
    let far = format_bytes(pattern.seek_bytes.p50);
    let done = if word == "write" { "written" } else { word };
    match pattern.kind {
        PatternKind::Sequential if pattern.interleaved_streams > 1 => format!(
            "About {} diagonals at once: as many scans, each in order, take \
             turns; each alone suits read-ahead, together they make the disk jump.",
            pattern.interleaved_streams
        ),
        PatternKind::Sequential => format!(
            "A straight diagonal: the file is {done} in order ({sequential} of the steps go on \
             where the last {word} ended, or within {} after it), which suits any disk.",
            format_bytes(SEQUENTIAL_WINDOW_BYTES)
        ),
        PatternKind::Random => format!(
            "A cloud: the {word}s jump through the file ({sequential} of the steps go on where \
             the last {word} ended; a jump spans {far} at the median), so the disk pays for a seek \
             nearly every time."
        ),
        PatternKind::Strided => {
            let stride = pattern.stride_bytes.map_or(0, i64::unsigned_abs);
            let way = if pattern.direction == Direction::Backward {
                " backward"
            } else {
                ""
            };
            format!(
                "A thin line: the {word}s advance{way} in equal steps of {} and leave out what lies \
                 between.",
                format_bytes(stride)
            )
        }
        PatternKind::Backward => format!(
            "A falling diagonal: the file is {done} from its end towards its start, which \
             read-ahead does not help."
        ),
        PatternKind::ReRead => format!(
            "Short level lines: the {word}s come back to the same few places, {} different bytes in \
             all, so a small cache serves them.",
            format_bytes(pattern.distinct_bytes)
        ),
        PatternKind::Mixed => format!(
            "Stretches in order, broken by jumps: {sequential} of the steps go on where the last \
             {word} ended; a jump spans {far} at the median."
        ),
        PatternKind::Few => "Too few calls to speak of a pattern.".into(),
    }
}

#[cfg(test)]
mod tests {
    use seekscope_stats::Quantiles;

    use super::*;

    #[test]
    fn a_call_or_two_have_no_percentiles() {
        let took = |latencies: &mut [u64]| {
            let calls = Transfers {
                latency_ns: Quantiles::of(latencies),
                ..Transfers::default()
            };
            latency_sentence(&calls, "reads")
        };
        assert_eq!(took(&mut []), "");
        assert_eq!(
            took(&mut [2_630]),
            " The only one of the reads took 2.63 µs."
        );
        let two = " The 2 reads took between 2.63 µs and 4.00 µs.";
        assert_eq!(took(&mut [2_630, 4_000]), two);
        assert!(took(&mut [2_630; 100]).starts_with(" Half of the reads took"));
    }
}
