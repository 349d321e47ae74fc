//! Shows checkpoints, and what was slower meanwhile.

use seekscope_doctor::answers::CheckpointAnswer;
use seekscope_pattern::Checkpoint;
use seekscope_run::units::{format_bytes, format_count, format_ns};

use super::super::DoctorReportInput;
use super::{NONE, ROWS_MAX, UNKNOWN, and_more};
use crate::layout::sentences::format_s;
use crate::numbers::{format_number, format_share, format_times};
use crate::table::{Cell, Table};

/// Says how long they take, and what would bound them.
pub(in super::super) fn checkpoint_sentences(input: &DoctorReportInput<'_>) -> Vec<String> {
    let Some(answer) = input.answers().checkpoints.as_ref() else {
        return Vec::new();
    };
    let count = answer.checkpoints.len() as u64;
    let mut sentences = vec![format!(
        "{} seen: the median took {}, the longest {}{} (from {}).",
        counted(count),
        format_s(answer.median_s),
        match answer.longest_is_under_way() {
            true => "at least ",
            false => "",
        },
        format_s(answer.longest_s),
        answer.source
    )];
    if let Some(ratio) = answer.throughput_ratio {
        sentences[0].push_str(&format!(
            " While one ran, the server did {} of the operations per second that it did otherwise.",
            format_share(ratio)
        ));
    }
    sentences.extend(answer.disagreement.clone());
    if let Some(limit) = &answer.dirty_limit {
        sentences.push(format!(
            "To keep checkpoints below {}, limit dirty data to {} ({} % of the cache): {}. {}",
            format_s(limit.checkpoint_s),
            format_bytes(limit.bytes),
            format_number(limit.percent_of_cache),
            limit.setting,
            limit.basis
        ));
    }
    sentences
}

fn counted(count: u64) -> String {
    match count {
        1 => "1 checkpoint was".into(),
        count => format!("{} checkpoints were", format_count(count)),
    }
}

/// Returns latencies while a checkpoint ran, and otherwise.
pub(in super::super) fn suffering(input: &DoctorReportInput<'_>) -> Option<Table> {
    let answer = input.answers().checkpoints.as_ref()?;
    let columns = [
        "99th percentile",
        "during checkpoints",
        "otherwise",
        "times",
    ];
    let mut table = Table::new(1, &columns);
    for (what, during, otherwise) in pairs(answer) {
        if during.is_some() || otherwise.is_some() {
            let times = during.zip(otherwise.filter(|&ns| ns > 0));
            let times = times.map(|(a, b)| format_times(a as f64 / b as f64));
            let ns = |ns: Option<u64>| Cell::or(ns.map(format_ns), UNKNOWN);
            table.row([
                what.into(),
                ns(during),
                ns(otherwise),
                Cell::or(times, UNKNOWN),
            ]);
        }
    }
    table.or_nothing()
}

fn pairs(answer: &CheckpointAnswer) -> [(&'static str, Option<u64>, Option<u64>); 2] {
    [
        (
            "journal syncs",
            answer.journal_during_p99_ns,
            answer.journal_otherwise_p99_ns,
        ),
        (
            "reads of application threads",
            answer.reads_during_p99_ns,
            answer.reads_otherwise_p99_ns,
        ),
    ]
}

/// Returns each of them.
pub(in super::super) fn checkpoints(input: &DoctorReportInput<'_>) -> Option<Table> {
    let answer = input.answers().checkpoints.as_ref()?;
    let mut table = Table::new(
        0,
        &[
            "began at",
            "took",
            "written",
            "files",
            "syncs",
            "in syncs",
            "longest sync",
            "longest journal sync",
            "longest read",
        ],
    );
    for checkpoint in answer.checkpoints.iter().take(ROWS_MAX) {
        table.row(row(input, checkpoint));
    }
    and_more(&mut table, answer.checkpoints.len());
    table.or_nothing()
}

/// Returns a checkpoint's row. The server's counters show only the times.
fn row(input: &DoctorReportInput<'_>, checkpoint: &Checkpoint) -> [Cell; 9] {
    let known = checkpoint.written_bytes > 0 || checkpoint.syncs > 0;
    let or_none = |text: String| Cell::or(known.then_some(text), NONE);
    // Nobody read or synced meanwhile.
    let of_others = |ns: u64| Cell::or((ns > 0).then(|| format_ns(ns)), NONE);
    let took_ns = checkpoint.ended_ns.saturating_sub(checkpoint.started_ns);
    // Records of earlier versions ended at 4.29 s.
    let bound = if checkpoint.is_cut_off {
        "at least "
    } else {
        ""
    };
    [
        format!("{:.1} s", input.seconds(checkpoint.started_ns)).into(),
        format!("{bound}{}", format_ns(took_ns)).into(),
        or_none(format_bytes(checkpoint.written_bytes)),
        or_none(format_count(u64::from(checkpoint.files))),
        or_none(format_count(u64::from(checkpoint.syncs))),
        or_none(format!("{bound}{}", format_ns(checkpoint.sync_ns))),
        or_none(format!("{bound}{}", format_ns(checkpoint.longest_sync_ns))),
        of_others(checkpoint.longest_journal_sync_ns),
        of_others(checkpoint.longest_read_ns),
    ]
}
