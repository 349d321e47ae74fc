//! Latencies per phase and kind of call; files per phase.

use maud::{Markup, html};
use seekscope_pattern::{FileAnalysis, Transfers};
use seekscope_run::units::{format_bytes, format_count, format_ns};
use seekscope_run::{PathState, Phase};

use crate::ReportInput;
use crate::comparison::why_no_events;
use crate::numbers::format_share;

/// Rows shown per phase; a server with ten thousand collections would make the page useless.
const FILE_ROWS_MAX: usize = 100;

/// Latency quantiles per phase, reads and writes apart.
pub(super) fn latencies(input: &ReportInput<'_>) -> Markup {
    html! {
        div.scroll {
            table {
                thead {
                    tr {
                        th.words scope="col" { "Phase" }
                        th.words scope="col" { "Calls" }
                        @for heading in
                            ["Count", "Failed", "Shortest", "p50", "p90", "p99", "p99.9", "Longest", "Mean"]
                        {
                            th scope="col" { (heading) }
                        }
                    }
                }
                tbody {
                    @for (index, phase) in input.document.phases.iter().enumerate() {
                        @match input.analyses.get(index).filter(|_| phase.trace.is_some()) {
                            Some(analysis) => {
                                (latency_row(phase, "reads", &analysis.reads))
                                (latency_row(phase, "writes", &analysis.writes))
                            }
                            None => tr {
                                th.words scope="row" { bdi { (phase.name) } }
                                td.missing.words colspan="10" { (why_no_events(phase)) }
                            },
                        }
                    }
                }
            }
        }
    }
}

fn latency_row(phase: &Phase, word: &str, calls: &Transfers) -> Markup {
    let q = &calls.latency_ns;
    html! {
        tr {
            th.words scope="row" { bdi { (phase.name) } }
            td.words { (word) }
            td { (format_count(calls.calls)) }
            @if calls.calls == 0 { td.missing.words colspan="8" { "no " (word) } }
            @else {
                td { (format_count(calls.errors)) }
                @for ns in [q.min, q.p50, q.p90, q.p99, q.p999, q.max, q.mean] {
                    td { (format_ns(ns)) }
                }
            }
        }
    }
}

/// The files each phase touched.
pub(super) fn files(input: &ReportInput<'_>) -> Markup {
    html! {
        section #files {
            h2 { "Files" }
            @for (index, phase) in input.document.phases.iter().enumerate() {
                h3 { bdi { (phase.name) } }
                @let files = input.analyses.get(index).map_or(&[][..], |a| &a.files);
                @if files.is_empty() { p.note { "None: " (why_no_events(phase)) } }
                @else { (file_table(input, files)) }
            }
        }
    }
}

fn file_table(input: &ReportInput<'_>, files: &[FileAnalysis]) -> Markup {
    html! {
        div.scroll {
            table.files {
                thead {
                    tr {
                        @for heading in ["File", "Role", "Namespace"] {
                            th.words scope="col" { (heading) }
                        }
                        @for heading in
                            ["Reads", "Bytes read", "Pattern", "Contiguous", "Writes", "Bytes written"]
                        {
                            th scope="col" { (heading) }
                        }
                    }
                }
                tbody { @for file in files.iter().take(FILE_ROWS_MAX) { (file_row(input, file)) } }
            }
        }
        @if files.len() > FILE_ROWS_MAX {
            p.note {
                (format_count((files.len() - FILE_ROWS_MAX) as u64))
                " files with fewer bytes read are left out here; io.parquet has them."
            }
        }
    }
}

fn file_row(input: &ReportInput<'_>, file: &FileAnalysis) -> Markup {
    let record = input.file(file.file_id);
    html! {
        tr {
            th.words.path scope="row" {
                @match record {
                    Some(record) => {
                        bdi { (record.path) }
                        @match record.path_state {
                            PathState::Known => {}
                            PathState::Deleted => " (deleted while open)",
                            PathState::Unresolved => " (name not seen)",
                        }
                    }
                    None => { "file " (file.file_id) " (not identified)" }
                }
            }
            td.words { (record.map_or("unknown", |r| r.role.name())) }
            @match record.and_then(|r| r.namespace.as_deref()) {
                Some(namespace) => td.words.path { bdi { (namespace) } },
                None => td.words.missing { "none known" },
            }
            td { (format_count(file.reads.calls)) }
            td { (format_bytes(file.reads.bytes)) }
            @match file.main_pattern() {
                Some(pattern) => {
                    td {
                        (pattern.kind.name())
                        @if file.read_pattern.is_none() { " (writes)" }
                    }
                    td { (format_share(pattern.contiguous_share)) }
                }
                None => { td.missing { "unknown" } td.missing { "unknown" } }
            }
            td { (format_count(file.writes.calls)) }
            td { (format_bytes(file.writes.bytes)) }
        }
    }
}
