//! Returns the first line: how the trace ended, and what is missing from it.

use seekscope_run::units::{format_count, format_ns};

use super::TraceReportInput;
use crate::numbers::counted;
use crate::wording;

/// Returns one word, for style sheets and scripts.
pub(super) fn word(input: &TraceReportInput<'_>) -> &'static str {
    match wording::outcome_word(input.document) {
        "ok" if input.trace().is_some_and(|trace| trace.truncated) => "lossy",
        word => word,
    }
}

/// Returns loss and truncation before anything else; then how much was seen.
pub(super) fn first_line(input: &TraceReportInput<'_>) -> String {
    let mut sentences = vec![wording::outcome(input.document)];
    match input.trace() {
        None => sentences.push("The trace has no trailer.".into()),
        Some(trace) if trace.truncated => sentences.push(format!(
            "The trace was cut off before its trailer was written: it holds {}; how many were seen \
             and lost is not known.",
            counted(trace.written, "event")
        )),
        Some(trace) => {
            sentences.push(format!(
                "{} seen in {}, {} written, {} lost.",
                counted(trace.seen, "event"),
                format_ns(input.watched_ns()),
                format_count(trace.written),
                format_count(trace.lost)
            ));
            if trace.seen == 0 {
                sentences.push("The traced processes made no call on a file in that time.".into());
            }
            if trace.overwritten > 0 {
                sentences.push(format!(
                    "{} older ones were replaced by newer ones, as requested.",
                    format_count(trace.overwritten)
                ));
            }
        }
    }
    let beyond = &input.analysis.files_beyond;
    if beyond.calls > 0 {
        sentences.push(format!(
            "Not shown separately: {} on files beyond the first {}.",
            counted(beyond.calls, "call"),
            format_count(input.analysis.files.len() as u64)
        ));
    }
    sentences.join(" ")
}
