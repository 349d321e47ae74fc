//! Defines the contents of a report of a trace.

use super::{TraceReportInput, tables};
use crate::facts::fact_table;
use crate::page::{Block, Section};

/// Returns the sections in order, with at most `rows` rows of files and threads.
pub(super) fn sections(input: &TraceReportInput<'_>, rows: usize) -> Vec<Section> {
    let recording = tables::recording_facts(input).map(|facts| fact_table("recording", facts));
    let plans = [
        (
            "files",
            "Files",
            "Most bytes read first. Sequential is the share of steps that go on where the last \
             access ended, or at most 128 KiB further. In cache is the share of reads that the \
             page cache had.",
            vec![tables::reads(input, rows), tables::writes(input, rows)],
        ),
        (
            "latency",
            "How long calls took",
            "A read is from the page cache when its thread neither had a disk read for it nor waited.",
            vec![tables::latencies(input, rows)],
        ),
        (
            "order",
            "In which order",
            "A run is a stretch of accesses without a gap. Streams are scans that take turns. The \
             last two columns are the median latency of accesses after a seek, and of those that go on.",
            vec![tables::shapes(input, rows)],
        ),
        (
            "cache",
            "What a cache would do",
            "A cache that keeps the pages used last misses a page when more other bytes were read \
             since its last use than the cache holds, and when it is read for the first time.",
            vec![tables::cache_sizes(input)],
        ),
        (
            "threads",
            "Who asked",
            "Time is the sum over calls; threads side by side count each. A question mark: told by \
             behaviour, not by the thread's name.",
            vec![tables::roles(input), tables::threads(input, rows)],
        ),
        (
            "disk",
            "What the disk was asked for",
            "Calls and requests are different things and are never added up: a call may need no \
             request, and one request may serve many calls. Requests for other files than those traced \
             are counted and not recorded, unless the whole disk was asked for.",
            vec![
                tables::counted_requests(input),
                tables::disks(input),
                tables::queues(input),
                tables::file_and_disk(input, rows),
            ],
        ),
        (
            "recording",
            "The recording",
            "",
            vec![recording, tables::coverage(input)],
        ),
    ];
    let sections = plans.into_iter().map(|(id, heading, lead, tables)| {
        Section::new(id, heading, Block::tables(tables)).with_lead(lead)
    });
    sections
        .filter(|section| !section.blocks.is_empty())
        .collect()
}
