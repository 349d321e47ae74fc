//! Says what stands out, in a few plain sentences, each with the numbers it is based on.

use seekscope_doctor::wording::capitalised;
use seekscope_pattern::{
    AccessPattern, FileTrace, PatternKind, PatternShape, ReadsRecorded, RoleTrace,
    SEQUENTIAL_WINDOW_BYTES, SyncCalls, TraceAnalysis,
};
use seekscope_run::RunDocument;
use seekscope_run::units::{format_bytes, format_count, format_ns};

use super::TraceReportInput;
use super::names::{FileNames, hit_share, known_outcomes, time_in};
use crate::numbers::format_share;

/// Smallest share of the bytes read with which a file stands out.
const SHARE_MIN: f64 = 0.1;
const FILES_MAX: usize = 3;
/// Fewest calls that are representative.
const CALLS_MIN: u64 = 20;
/// Share from which re-reading, or bytes that nobody requested, are mentioned.
const REREAD_MIN: f64 = 0.3;
const WASTE_MIN: f64 = 0.1;
/// Share of the disk's bytes from which read-ahead brought nearly all of them.
const NEARLY_ALL: f64 = 0.9;

/// Returns the sentences, most important first; none when there were hardly any calls. What was `left_out` on purpose
/// would make the order of calls, and shares and quantiles of them, those of the rest.
pub(super) fn sentences(input: &TraceReportInput<'_>, left_out: &LeftOut) -> Vec<String> {
    let analysis = input.analysis;
    let names = FileNames::of(analysis);
    let reads = ReadsRecorded::of(input.trace());
    let large: Vec<&FileTrace> = large_files(analysis).collect();
    let mut sentences = Vec::new();
    if let LeftOut::Calls(filters) = left_out {
        sentences.push(format!(
            "The recording holds {filters}: counts, times, quantiles and the order of calls refer \
             to these alone."
        ));
    } else {
        let orders = large.iter();
        let orders = orders.filter_map(|file| order(file, &names, reads.are_all_of(file)));
        sentences.extend(orders);
        sentences.extend(large.iter().filter_map(|file| read_again(file, &names)));
    }
    if *left_out == LeftOut::Nothing {
        let whole = large.iter().filter(|file| reads.are_all_of(file));
        sentences.extend(whole.filter_map(|file| waste(file, &names)));
        sentences.extend(waiting(analysis));
    }
    if !matches!(left_out, LeftOut::Calls(_)) {
        sentences.extend(syncs(analysis, &names));
    }
    sentences
}

/// What the kernel's programs did not record because it was not asked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LeftOut {
    Nothing,
    /// Kinds of calls or files: those that were recorded are complete.
    Kinds,
    /// Some calls of a kind and not others, by their place or time; in words.
    Calls(String),
}

impl LeftOut {
    pub(super) fn of(document: &RunDocument) -> Self {
        let traces = document
            .phases
            .iter()
            .filter_map(|phase| phase.trace.as_ref());
        match document.calls_left_out() {
            Some(filters) => Self::Calls(filters),
            None if traces.flat_map(|trace| &trace.filters).next().is_some() => Self::Kinds,
            None => Self::Nothing,
        }
    }
}

fn large_files(analysis: &TraceAnalysis) -> impl Iterator<Item = &FileTrace> {
    let all_bytes = analysis.reads.bytes as f64;
    let large = move |file: &&FileTrace| {
        let reads = &file.reads.transfers;
        reads.calls >= CALLS_MIN && reads.bytes as f64 >= SHARE_MIN * all_bytes
    };
    analysis.files.iter().filter(large).take(FILES_MAX)
}

/// Returns a sentence short enough for a heading.
pub(super) fn headline(input: &TraceReportInput<'_>, left_out: &LeftOut) -> Option<String> {
    if matches!(left_out, LeftOut::Calls(_)) {
        return None;
    }
    let file = large_files(input.analysis).next()?;
    let pattern = file.reads.pattern.as_ref()?;
    let from_disk = hit_share(&file.cache).map(|hits| {
        format!(
            ", {} of them not from the page cache",
            format_share(1.0 - hits)
        )
    });
    let name = FileNames::of(input.analysis).short_name(&file.file);
    let reads = match pattern.kind {
        PatternKind::Few => return None,
        PatternKind::ReRead => "Repeated".to_string(),
        kind => capitalised(kind.name()),
    };
    Some(format!(
        "{reads} reads of {name}{}",
        from_disk.unwrap_or_default()
    ))
}

/// Says in which order a file is read, and what that costs. Unless `all_reads` are in the trace, what the disk read is not
/// set against them.
fn order(file: &FileTrace, names: &FileNames, all_reads: bool) -> Option<String> {
    let shape = shape(file, file.reads.pattern.as_ref()?)?;
    let price = file.reads.shape.as_ref().and_then(price_of_seeks);
    let parts = [Some(shape), from_disk(file, all_reads), price]
        .into_iter()
        .flatten();
    let parts = parts.collect::<Vec<_>>().join("; ");
    let name = names.short_name(&file.file);
    Some(format!("Reads of {name} {parts}."))
}

fn shape(file: &FileTrace, pattern: &AccessPattern) -> Option<String> {
    let seeks = format_share(1.0 - pattern.sequential_share);
    let streams = pattern.interleaved_streams;
    Some(match pattern.kind {
        PatternKind::Few => return None,
        PatternKind::Random => format!("are random: {seeks} of the steps are seeks"),
        PatternKind::Mixed => format!("are partly in order: {seeks} of the steps are seeks"),
        PatternKind::Sequential if streams > 1 => {
            format!(
                "are {} interleaved scans, each of which is in order",
                format_count(streams)
            )
        }
        PatternKind::Sequential => format!(
            "are in order: {} of the steps continue where the last one ended, or \
             within {} after it",
            format_share(pattern.sequential_share),
            format_bytes(SEQUENTIAL_WINDOW_BYTES)
        ),
        PatternKind::Strided => format!(
            "advance in equal steps of {}",
            format_bytes(pattern.stride_bytes.map_or(0, i64::unsigned_abs))
        ),
        PatternKind::Backward => {
            "run from the end towards the beginning, which read-ahead does not help".to_string()
        }
        PatternKind::ReRead => format!(
            "return to the same places: {} distinct bytes in {} reads",
            format_bytes(pattern.distinct_bytes),
            format_count(file.reads.transfers.calls)
        ),
    })
}

/// Says how many reads waited for the disk, and how much came from it: with read-ahead few wait for much.
fn from_disk(file: &FileTrace, all_reads: bool) -> Option<String> {
    let known = known_outcomes(&file.cache);
    let share = |count: u64| format_share(count as f64 / known as f64);
    if known == 0 {
        return None;
    }
    let mut text = match file.cache.misses + file.cache.direct {
        0 => "none waited for the disk".to_string(),
        count => format!("{} waited for the disk", share(count)),
    };
    let mut disk = "it";
    if file.cache.waited_for_others > 0 {
        let waited = share(file.cache.waited_for_others);
        text.push_str(&format!(
            ", {waited} waited for data that was already being read"
        ));
        disk = "the disk";
    }
    let bytes = file.device.reads.bytes;
    if all_reads && bytes > 0 {
        let ahead = read_ahead(bytes, file.device.read_ahead_bytes);
        text.push_str(&format!(
            "; {} came from {disk}{ahead}",
            format_bytes(bytes)
        ));
    }
    Some(text)
}

/// Says how much of what the disk read was read ahead; empty if nothing was.
fn read_ahead(bytes: u64, ahead_bytes: u64) -> String {
    match ahead_bytes {
        0 => String::new(),
        ahead if ahead >= bytes => ", all by read-ahead".into(),
        ahead if ahead as f64 >= NEARLY_ALL * bytes as f64 => ", nearly all by read-ahead".into(),
        ahead => format!(", {} of it by read-ahead", format_bytes(ahead)),
    }
}

/// Says what seeks cost, if both kinds of step are common enough to have a median.
fn price_of_seeks(shape: &PatternShape) -> Option<String> {
    let (seek, on) = (&shape.seek_latency_ns, &shape.sequential_latency_ns);
    (seek.count >= CALLS_MIN && on.count >= CALLS_MIN && seek.p50 > on.p50).then(|| {
        format!(
            "a read after a seek took {} at the median, a sequential one {}",
            format_ns(seek.p50),
            format_ns(on.p50)
        )
    })
}

fn read_again(file: &FileTrace, names: &FileNames) -> Option<String> {
    let pattern = file.reads.pattern.as_ref()?;
    if pattern.reread_share < REREAD_MIN || pattern.kind == PatternKind::ReRead {
        return None;
    }
    Some(format!(
        "{} of the bytes read from {} had been read before in this trace; {} are distinct bytes.",
        format_share(pattern.reread_share),
        names.short_name(&file.file),
        format_bytes(pattern.distinct_bytes)
    ))
}

fn waste(file: &FileTrace, names: &FileNames) -> Option<String> {
    let device = &file.device;
    let share = device.never_asked_bytes as f64 / device.reads.bytes.max(1) as f64;
    (share >= WASTE_MIN).then(|| {
        format!(
            "Of {} that the disk read for {}, {} were never requested: they are read-ahead, or \
             more of a block than was needed.",
            format_bytes(device.reads.bytes),
            names.short_name(&file.file),
            format_bytes(device.never_asked_bytes)
        )
    })
}

/// Says which threads spend their time on files.
fn waiting(analysis: &TraceAnalysis) -> Option<String> {
    let time = |role: &&RoleTrace| {
        time_in(&role.reads) + time_in(&role.writes) + time_in_syncs(&role.syncs)
    };
    let role = analysis.roles.iter().max_by_key(time)?;
    (role.reads.calls + role.writes.calls >= CALLS_MIN).then(|| {
        format!(
            "Most of the time spent on files is that of {} threads ({}): {} in reads, {} in \
             writes, {} in syncs.",
            role.role.name(),
            format_count(role.threads),
            format_ns(time_in(&role.reads)),
            format_ns(time_in(&role.writes)),
            format_ns(time_in_syncs(&role.syncs))
        )
    })
}

fn time_in_syncs(syncs: &SyncCalls) -> u64 {
    syncs.latency_ns.mean.saturating_mul(syncs.latency_ns.count)
}

fn syncs(analysis: &TraceAnalysis, names: &FileNames) -> Option<String> {
    let file = analysis
        .files
        .iter()
        .max_by_key(|file| time_in_syncs(&file.syncs))?;
    let latency_ns = &file.syncs.latency_ns;
    (latency_ns.count >= CALLS_MIN).then(|| {
        format!(
            "Syncs of {}: {}, half of them took longer than {}, one in a hundred longer than {}.",
            names.short_name(&file.file),
            format_count(latency_ns.count),
            format_ns(latency_ns.p50),
            format_ns(latency_ns.p99)
        )
    })
}

#[cfg(test)]
mod tests {
    use seekscope_run::TraceFacts;

    use super::super::testing::{file, scanned, with_input};
    use super::*;

    fn all_sentences(analysis: &TraceAnalysis, facts: TraceFacts) -> String {
        let all = with_input(analysis, facts, |input| {
            sentences(input, &LeftOut::of(input.document))
        });
        all.join("\n")
    }

    #[test]
    fn a_cold_scan_waits_for_little_and_has_all_of_it_from_the_disk() {
        let files = [file(1, "/data/collection-7.wt")];
        let told = all_sentences(&scanned(&files, true), TraceFacts::default());
        assert!(
            told.contains(
                "1.0 % waited for the disk; 480 KiB came from it, nearly all by read-ahead"
            ),
            "{told}"
        );
        let told = all_sentences(&scanned(&files, false), TraceFacts::default());
        assert!(told.contains("1.0 % waited for the disk."), "{told}");
        assert!(!told.contains("came from"), "no request was traced: {told}");
        let restarted = TraceFacts {
            ended_early: vec![String::new()],
            ..TraceFacts::default()
        };
        let told = all_sentences(&scanned(&files, true), restarted);
        assert!(told.contains("1.0 % waited for the disk."), "{told}");
        assert!(!told.contains("never requested"), "{told}");
    }

    #[test]
    fn the_share_of_read_ahead_is_said_in_words_where_it_is_clear() {
        for (ahead_bytes, expected) in [
            (0, ""),
            (512 << 10, ", 512 KiB of it by read-ahead"),
            (1023 << 10, ", nearly all by read-ahead"),
            (1 << 20, ", all by read-ahead"),
        ] {
            assert_eq!(read_ahead(1 << 20, ahead_bytes), expected);
        }
    }

    #[test]
    fn sentences_tell_files_with_the_same_name_apart() {
        let files = [file(1, "/data/a/x.wt"), file(2, "/data/b/x.wt")];
        let told = all_sentences(&scanned(&files, true), TraceFacts::default());
        for name in ["Reads of a/x.wt", "Reads of b/x.wt"] {
            assert!(told.contains(name), "{name} is missing from {told}");
        }
    }
}
