//! Describes a prefetch in words.

use seekscope_report::numbers::{counted, format_share};
use seekscope_report::page::{Block, OutcomeLine, Page, Section, disk_and_server, terminal};
use seekscope_report::table::Table;
use seekscope_run::units::{format_bytes, format_count, format_ns, whole};
use seekscope_run::{
    PrefetchForSync, PrefetchGain, PrefetchPace, PrefetchRecord, PrefetchSummary, RunDocument,
};

/// The share of its pages from which a scan is called whole: the server may have had the last ones in memory.
const WHOLE_MIN: f64 = 0.98;

/// What is not known yet when the prefetch begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meanwhile {
    /// The disk is tested.
    pub tries_disk: bool,
    /// The tracer is attached, if permitted.
    pub attaches_tracer: bool,
}

/// Returns an announcement of what will be done.
pub fn announcement(record: &PrefetchRecord, meanwhile: Meanwhile) -> String {
    let mut text = format!(
        "Reading ahead of scans of {} ({}): {} leaf pages, {}. Nothing is written.\n",
        record.named,
        record.file,
        format_count(record.leaf_pages),
        format_bytes(record.leaf_bytes)
    );
    if !record.cannot_help.is_empty() {
        text.push_str("  It cannot help, and does nothing:");
        let whys = record.cannot_help.iter();
        whys.for_each(|why| text.push_str(&format!("\n  {why}.")));
        return text;
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

/// Describes how the scan is followed from now on.
pub fn followed(pace: PrefetchPace) -> String {
    let followed = match pace {
        PrefetchPace::Traced => "the scan is followed by the server's reads of the file",
        PrefetchPace::Counted => {
            "the scan is followed by how much the server has read, of all files together"
        }
        PrefetchPace::Own => "the scan is not followed; leaves are read at seekscope's own pace",
    };
    followed.into()
}

/// Returns the results as text, `width` characters wide.
pub fn text(document: &RunDocument, summary: &PrefetchSummary, width: u16) -> String {
    let (headline, told) = match summary {
        _ if document.ended_ns.is_none() => (unended(summary), Vec::new()),
        PrefetchSummary::File(record) => (headline(record), told(document, record)),
        PrefetchSummary::Sync(sync) => (headline_of_sync(sync), told_of_sync(sync)),
    };
    terminal::text_of_blocks(document, Some(headline), told, width)
}

/// What is known of a run before its end: its figures are recorded then.
fn unended(summary: &PrefetchSummary) -> String {
    let of = match summary {
        PrefetchSummary::File(record) => format!("scans of {} ({})", record.named, record.file),
        PrefetchSummary::Sync(sync) => format!("the initial sync of {}", sync.member),
    };
    format!("Reading ahead of {of} was begun; what came of it is recorded at its end.")
}

/// Returns the results as a report.
pub fn page(document: &RunDocument, summary: &PrefetchSummary) -> Page {
    let (headline, told, mut key_figures, gain) = match summary {
        _ if document.ended_ns.is_none() => (unended(summary), Vec::new(), Vec::new(), None),
        PrefetchSummary::File(record) => (
            headline(record),
            told(document, record),
            vec![
                ("leaf pages", format_count(record.leaf_pages)),
                ("read ahead", format_bytes(record.bytes_read)),
                ("window", format_bytes(record.window_bytes)),
            ],
            // What may as well have been none is not shown in large letters.
            (record.stated_gain())
                .filter(|_| record.measured_gain().is_none_or(PrefetchGain::tells_apart)),
        ),
        PrefetchSummary::Sync(sync) => (
            headline_of_sync(sync),
            told_of_sync(sync),
            vec![("read ahead", format_bytes(bytes_read(sync)))],
            sync.stated_gain(),
        ),
    };
    key_figures.extend(gain.map(|ratio| ("times as fast as without", format!("{ratio:.1}"))));
    Page {
        subject: match summary {
            PrefetchSummary::File(_) => "reading ahead of a scan",
            PrefetchSummary::Sync(_) => "reading ahead of an initial sync",
        },
        outcome: OutcomeLine::of(document),
        headline,
        next: None,
        about: vec![match summary {
            PrefetchSummary::File(record) => record.file.clone(),
            PrefetchSummary::Sync(sync) => sync.member.clone(),
        }],
        key_figures,
        blocks: vec![Block::Section(Section::new(
            "prefetch",
            "What came of it",
            told,
        ))],
        measured_on: disk_and_server(document),
        data: None,
    }
}

fn bytes_read(sync: &PrefetchForSync) -> u64 {
    sync.collections.iter().map(|copy| copy.bytes_read).sum()
}

fn headline_of_sync(sync: &PrefetchForSync) -> String {
    let (member, copies) = (&sync.member, sync.collections.len());
    if copies == 0 && sync.small_collections == 0 && sync.sync_ns == 0 {
        return format!("No initial sync of {member} was seen, and nothing was read ahead.");
    }
    let ended = match sync.completed {
        true => "which has ended",
        false => "whose end was not awaited",
    };
    format!(
        "Read {} ahead of the copies of {} in the initial sync of {member}, {ended}; it was seen for {}.",
        format_bytes(bytes_read(sync)),
        counted(copies as u64, "collection"),
        format_ns(sync.sync_ns)
    )
}

/// Returns everything below the first sentence.
fn told_of_sync(sync: &PrefetchForSync) -> Vec<Block> {
    let mut blocks = Vec::new();
    blocks.extend(sync.stated_gain().map(|ratio| {
        Block::Sentence(format!(
            "Gain: the copies that it is stated of were together about {ratio:.1} times as fast as without."
        ))
    }));
    if !sync.collections.is_empty() {
        let mut table = Table::new(
            1,
            &[
                "Collection",
                "Leaf pages",
                "In memory before",
                "Read ahead",
                "Took",
                "Times as fast",
            ],
        );
        for copy in &sync.collections {
            let gain = match (copy.cannot_help.first(), copy.stated_gain()) {
                (Some(why), _) => format!("it cannot help: {why}"),
                (None, Some(ratio)) => format!("{ratio:.1}"),
                (None, None) => "not measured".into(),
            };
            table.row([
                copy.named.clone().into(),
                format_bytes(copy.leaf_bytes).into(),
                format_bytes(copy.cached_bytes_before).into(),
                format_bytes(copy.bytes_read).into(),
                format_ns(copy.took_ns()).into(),
                gain.into(),
            ]);
        }
        blocks.push(Block::Table(table));
    }
    if sync.small_collections > 0 {
        blocks.push(Block::Sentence(format!(
            "{} in files too small for that to help.",
            match sync.small_collections {
                1 => "1 more collection was seen being copied".into(),
                n => format!(
                    "{} more collections were seen being copied",
                    format_count(n)
                ),
            }
        )));
    }
    blocks
}

/// Returns everything below the first sentence.
fn told(document: &RunDocument, record: &PrefetchRecord) -> Vec<Block> {
    let gain = gain_told(document, record).into_iter();
    let mut blocks: Vec<Block> = gain.map(Block::Sentence).collect();
    if record.bytes_read > 0 || record.cannot_help.is_empty() {
        blocks.push(Block::Table(facts(record)));
    }
    blocks
}

fn headline(record: &PrefetchRecord) -> String {
    if record.bytes_read == 0 && !record.cannot_help.is_empty() {
        return format!(
            "Nothing was read ahead of scans of {} ({}).",
            record.named, record.file
        );
    }
    let reader = match record.pace {
        PrefetchPace::Traced | PrefetchPace::Counted => "The scan",
        PrefetchPace::Own => "Reading ahead",
    };
    format!(
        "{reader} passed {} of the {} leaf pages of {} ({}) in {}, from {}.",
        format_count(record.position),
        format_count(record.leaf_pages),
        record.named,
        record.file,
        format_ns(record.passing_ns()),
        match &record.passed {
            Some(passed) if !passed.from_start =>
                "when the scan was first seen to when it was last seen to move",
            Some(_) => "the start of prefetch to when the scan was last seen to move",
            None => "the start of prefetch to its end",
        }
    )
}

/// Returns why it could not help, or what it gained.
fn gain_told(document: &RunDocument, record: &PrefetchRecord) -> Vec<String> {
    let cannot = record.cannot_help.iter();
    let mut told: Vec<String> = cannot
        .map(|why| format!("It cannot help: {why}."))
        .collect();
    match (record.measured_gain(), record.predicted_gain()) {
        (_, Some(ratio)) if told.is_empty() => told.push(predicted(record, ratio)),
        (Some(measured), _) => told.push(gain(record, measured)),
        (None, _) if !told.is_empty() => {}
        (None, _) if record.position == 0 => {
            told.push("Gain: not measured; no scan was seen.".into());
        }
        (None, _) if record.tried_beside_reads => told.push(
            "Gain: not known; the server read from this disk while it was tried, so what a request takes alone is not known."
                .into(),
        ),
        (None, _) => told.push(format!(
            "Gain: not measured; {}.",
            why_no_pause(document, record)
        )),
    }
    told
}

/// Returns why no pause showed how fast the scan is without us.
fn why_no_pause(document: &RunDocument, record: &PrefetchRecord) -> &'static str {
    if document.arguments.iter().any(|given| given == "--no-gain") {
        return "--no-gain was given";
    }
    match record.pace {
        PrefetchPace::Own => "the scan was not followed",
        _ if record.released_bytes == 0 && !record.fits => {
            "no page was given back, and without that a pause does not show how fast the scan is alone"
        }
        _ => "the scan was too short for a pause that shows how fast it is alone",
    }
}

fn facts(record: &PrefetchRecord) -> Table {
    let mut table = Table::new(2, &["", ""]);
    let mut fact = |name: &'static str, value: String| table.row([name.into(), value.into()]);
    fact(
        "Read ahead",
        format!(
            "{} pages in {} reads, {}, of which {} lay between",
            format_count(record.leaves_read),
            format_count(record.stretches),
            format_bytes(record.bytes_read),
            format_bytes(record.bridged_bytes),
        ),
    );
    fact(
        "Given back behind the scan",
        format_bytes(record.released_bytes),
    );
    fact(
        "Window",
        format!(
            "{}{}, {}",
            format_bytes(record.window_bytes),
            if record.fits { ", which holds all" } else { "" },
            counted(record.rounds, "round")
        ),
    );
    fact(
        "Prefetch took",
        format!(
            "{}, of which {} to prepare",
            format_ns(record.took_ns()),
            format_ns(record.preparation_ns)
        ),
    );
    if record.scan_waited_ns > 1_000_000 {
        let waited = format_ns(record.scan_waited_ns);
        fact(
            "The command was kept waiting",
            format!(
                "{waited}, until its pages were in memory: quicker on this disk than with a scan in between"
            ),
        );
    }
    if let (Some(reads), Some(misses)) = (record.server_reads, record.server_misses) {
        let share = record.server_read_share.unwrap_or(0.0) * 100.0;
        fact(
            "Reads of the server",
            format!(
                "{}, of which {} waited for the disk; {share:.0} % of the scan's time was spent reading",
                format_count(reads),
                format_count(misses)
            ),
        );
    }
    if record.gave_way > 0 {
        fact(
            "Gave way to other reads",
            format!("{} times", record.gave_way),
        );
    }
    if record.shrunk > 0 {
        fact(
            "Made the window smaller",
            format!("{} times", record.shrunk),
        );
    }
    if record.trees > 0 {
        fact("Checkpoints followed", record.trees.to_string());
    }
    table
}

/// Names what the gain is of.
fn gained_by(record: &PrefetchRecord) -> String {
    match record.passed_share() {
        share if share >= WHOLE_MIN => "the whole scan".into(),
        share => format!(
            "what was seen of the scan, {} of its pages,",
            format_share(share)
        ),
    }
}

fn predicted(record: &PrefetchRecord, ratio: f64) -> String {
    format!(
        "Gain: {} was about {ratio:.1} times as fast as without, which would take {} by what requests to this disk took \
         beforehand; with it, the scan took {}.",
        gained_by(record),
        format_ns(whole(record.predicted_alone_ns().unwrap_or(0.0))),
        format_ns(record.passing_ns())
    )
}

fn gain(record: &PrefetchRecord, gain: &PrefetchGain) -> String {
    let what = gained_by(record);
    let ratio = match (gain.ratio, gain.ratio_low, gain.ratio_high) {
        (Some(ratio), Some(low), Some(high)) if gain.tells_apart() => format!(
            "{what} was {ratio:.1} times as fast as without, 95 % interval {low:.1} to {high:.1}"
        ),
        (Some(_), Some(low), Some(high)) => format!(
            "whether {what} was faster cannot be told: {low:.1} to {high:.1} times as fast as without, with 95 % confidence"
        ),
        _ => "too few pages were left to the scan alone to tell".into(),
    };
    format!(
        "Gain: {ratio}; {} per page, and {} for each of {} pages in {}.",
        format_ns(whole(gain.ns_per_leaf)),
        format_ns(whole(gain.ns_per_leaf_left_out)),
        gain.leaves_left_out,
        counted(gain.slices, "pause")
    )
}

#[cfg(test)]
mod tests {
    use seekscope_run::PassedScan;

    use super::*;

    const KNOWN: Meanwhile = Meanwhile {
        tries_disk: false,
        attaches_tracer: false,
    };

    #[test]
    fn one_reason_is_given_for_a_gain_that_was_not_measured() {
        let mut document = RunDocument::begin("prefetch", Vec::new());
        let told = |document: &RunDocument, pace, released_bytes| {
            let record = PrefetchRecord {
                pace,
                released_bytes,
                position: 276,
                ..PrefetchRecord::default()
            };
            gain_told(document, &record).join(" ")
        };
        let passed = told(&document, PrefetchPace::Traced, 13 << 20);
        assert!(
            passed.contains("too short") && !passed.contains("given back"),
            "{passed}"
        );
        assert!(told(&document, PrefetchPace::Counted, 0).contains("no page was given back"));
        assert!(told(&document, PrefetchPace::Own, 0).contains("was not followed"));
        document.arguments.push("--no-gain".into());
        assert!(told(&document, PrefetchPace::Own, 0).contains("--no-gain"));
    }

    #[test]
    fn the_scan_takes_one_time_wherever_it_is_told() {
        let mut record = PrefetchRecord {
            pace: PrefetchPace::Traced,
            position: 678,
            leaf_pages: 678,
            leaf_bytes: 1_000,
            request_ns: Some(7e6),
            alone_predicted_ns: Some(16_000_000_000),
            preparation_ns: 800_000_000,
            elapsed_ns: 10_500_000_000,
            passed: Some(PassedScan {
                bytes: 1_000,
                elapsed_ns: 5_570_000_000,
                from_start: true,
            }),
            ..PrefetchRecord::default()
        };
        let document = RunDocument::begin("prefetch", Vec::new());
        let told = headline(&record);
        assert!(
            told.contains("in 5.57 s, from the start of prefetch to when the scan"),
            "{told}"
        );
        let gain = gain_told(&document, &record).join(" ");
        assert!(gain.ends_with("the scan took 5.57 s."), "{gain}");
        let facts = format!("{:?}", facts(&record));
        assert!(
            facts.contains("11.3 s, of which 800 ms to prepare"),
            "{facts}"
        );
        record.passed.as_mut().unwrap().from_start = false;
        assert!(headline(&record).contains("from when the scan was first seen"));
        record.passed = None;
        assert!(headline(&record).ends_with("in 11.3 s, from the start of prefetch to its end."));
    }

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
        assert!(text.contains("the scan is not followed"), "{text}");
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
