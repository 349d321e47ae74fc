//! Prefetch in words.

use seekscope_run::units::{format_bytes, format_count, format_ns};
use seekscope_run::{Limitation, PrefetchGain, PrefetchPace, PrefetchRecord};

/// What of it is not known yet when it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meanwhile {
    /// The disk is tried.
    pub tries_disk: bool,
    /// The tracer is attached, if it may be.
    pub attaches_tracer: bool,
}

/// What will be done, before it is done.
pub fn announcement(record: &PrefetchRecord, meanwhile: Meanwhile) -> String {
    let mut text = format!(
        "Reading ahead of scans of {} ({}): {} leaf pages, {}. Nothing is written.\n",
        record.named,
        record.file,
        format_count(record.leaf_pages),
        format_bytes(record.leaf_bytes)
    );
    for why in &record.cannot_help {
        text.push_str(&format!("  It cannot help: {why}.\n"));
    }
    text.push_str(&format!("  the disk: {}\n", disk(record, meanwhile)));
    text.push_str(&match meanwhile.attaches_tracer {
        true => "  the tracer is being attached, to follow the scan by the server's reads".into(),
        false => format!("  {}", followed(record.pace)),
    });
    text
}

fn disk(record: &PrefetchRecord, meanwhile: Meanwhile) -> String {
    let source = if record.disk_measured {
        "measured"
    } else {
        "typical"
    };
    let depth = record.depth;
    let depth = format!(
        "{depth} {} at a time",
        if depth == 1 { "read" } else { "reads" }
    );
    match (record.request_ns, record.bytes_per_s) {
        _ if meanwhile.tries_disk => "tried while the scan begins".into(),
        (None, None) => "not tried".into(),
        (Some(request_ns), None) => format!(
            "{} per request, {source}, how much it reads in a second is not known; {depth}",
            format_ns(whole(request_ns))
        ),
        (None, Some(bytes_per_s)) => format!(
            "{}/s, {source}, what a request takes is not known; {depth}",
            format_bytes(whole(bytes_per_s))
        ),
        (Some(request_ns), Some(bytes_per_s)) => format!(
            "{} per request, {}/s, {source}; {depth}",
            format_ns(whole(request_ns)),
            format_bytes(whole(bytes_per_s))
        ),
    }
}

/// How the scan is followed from now on.
pub fn followed(pace: PrefetchPace) -> String {
    let how = match pace {
        PrefetchPace::Traced => "by the server's reads of the file",
        PrefetchPace::Counted => "by how much the server has read, of all files together",
        PrefetchPace::Own => "not at all; leaves are read at a pace of our own",
    };
    format!("the scan is followed {how}")
}

/// What came of it.
pub fn results(record: &PrefetchRecord, limitations: &[Limitation]) -> String {
    let mut lines = vec![format!(
        "{} ({}): {} of {} leaf pages passed in {}",
        record.named,
        record.file,
        format_count(record.position),
        format_count(record.leaf_pages),
        format_ns(record.elapsed_ns)
    )];
    lines.extend(
        record
            .cannot_help
            .iter()
            .map(|why| format!("It cannot help: {why}.")),
    );
    lines.push(format!(
        "Read ahead: {} pages in {} reads, {} of which {} lay between and {} was given back behind the \
         scan; {} rounds, window {}{}",
        format_count(record.leaves_read),
        format_count(record.stretches),
        format_bytes(record.bytes_read),
        format_bytes(record.bridged_bytes),
        format_bytes(record.released_bytes),
        record.rounds,
        format_bytes(record.window_bytes),
        if record.fits { ", which holds all" } else { "" }
    ));
    if record.scan_waited_ns > 1_000_000 {
        lines.push(format!(
            "The command was kept waiting {} until its pages were in memory: on this disk that is quicker than \
             with a scan in between",
            format_ns(record.scan_waited_ns)
        ));
    }
    if let (Some(reads), Some(misses)) = (record.server_reads, record.server_misses) {
        let share = record.server_read_share.unwrap_or(0.0) * 100.0;
        lines.push(format!(
            "The server read {} times and waited for the disk {} times; it spent {share:.0} % of the \
             scan's time reading",
            format_count(reads),
            format_count(misses)
        ));
    }
    if record.gave_way > 0 || record.shrunk > 0 || record.trees > 0 {
        lines.push(format!(
            "Gave way to other reads {} times, made the window smaller {} times, followed {} checkpoints",
            record.gave_way, record.shrunk, record.trees
        ));
    }
    lines.push(record.gain.as_ref().map_or_else(
        || {
            "Gain: not measured; the scan was too short for a pause, or not followed, or its pages not given back"
                .into()
        },
        gain,
    ));
    for limitation in limitations {
        let remedy = match limitation.remedy.as_str() {
            "" => String::new(),
            remedy => format!("; {remedy}"),
        };
        lines.push(format!(
            "Note: {}: {}{remedy}",
            limitation.what, limitation.why
        ));
    }
    lines.join("\n") + "\n"
}

fn gain(gain: &PrefetchGain) -> String {
    let ratio = match (gain.ratio, gain.ratio_low, gain.ratio_high) {
        (Some(ratio), Some(low), Some(high)) => format!(
            "the whole scan was {ratio:.1} times as fast as without, 95 % interval {low:.1} to {high:.1}"
        ),
        _ => "too few pages were left to the scan alone to tell".into(),
    };
    format!(
        "Gain: {ratio}; {} per page, and {} for {} pages in {} pauses",
        format_ns(whole(gain.ns_per_leaf)),
        format_ns(whole(gain.ns_per_leaf_left_out)),
        gain.leaves_left_out,
        gain.slices
    )
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "times and rates are positive, and the cast saturates"
)]
fn whole(value: f64) -> u64 {
    value as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: Meanwhile = Meanwhile {
        tries_disk: false,
        attaches_tracer: false,
    };

    #[test]
    fn what_is_not_known_is_not_said_to_be() {
        let guessed = PrefetchRecord {
            disk_measured: true,
            request_ns: Some(7e6),
            depth: 4,
            ..PrefetchRecord::default()
        };
        let text = announcement(&guessed, KNOWN);
        assert!(text.contains("in a second is not known; 4 reads"), "{text}");
        let text = announcement(&PrefetchRecord::default(), KNOWN);
        assert!(text.contains("the disk: not tried\n"), "{text}");
        assert!(text.contains("the scan is followed not at all"), "{text}");
        let meanwhile = Meanwhile {
            tries_disk: true,
            attaches_tracer: true,
        };
        let text = announcement(&guessed, meanwhile);
        assert!(text.contains("the disk: tried while"), "{text}");
        assert!(text.contains("is being attached"), "{text}");
        assert!(!text.contains("the scan is followed"), "{text}");
    }
}
