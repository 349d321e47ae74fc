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
            "Files with the most bytes read come first. Sequential is the share of steps that \
             continue where the last access ended, or at most 128 KiB further. In cache is the \
             share of reads that were served from the page cache.",
            vec![tables::reads(input, rows), tables::writes(input, rows)],
        ),
        (
            "latency",
            "How long calls took",
            "A read is from the page cache if its thread neither caused a disk read \
             nor waited for one.",
            vec![tables::latencies(input, rows)],
        ),
        (
            "order",
            "Order of accesses",
            "A run is a sequence of accesses without a gap. Streams are interleaved scans. The \
             last two columns are the median latency of accesses after a seek, and of sequential \
             accesses.",
            vec![tables::shapes(input, rows)],
        ),
        (
            "cache",
            "Effect of a cache",
            "A cache that keeps the most recently used pages misses a page if more other bytes \
             were read since its last use than the cache holds, and if it is read for the first \
             time.",
            vec![tables::cache_sizes(input)],
        ),
        (
            "threads",
            "Threads",
            "Time is the sum over all calls, so concurrent threads each count. A question mark \
             means that the role was inferred from the thread's behaviour, not from its name.",
            vec![tables::roles(input), tables::threads(input, rows)],
        ),
        (
            "disk",
            "Requests to the disk",
            "Calls and requests are different things and are never added up: a call may need no \
             request, and one request may serve many calls. Requests for files other than those \
             traced are counted but not recorded, unless the whole disk was traced.",
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
