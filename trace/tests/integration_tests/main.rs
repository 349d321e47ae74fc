//! Traces real processes with real eBPF. Needs root and fails, not skips, without.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "all of this is test code"
)]

mod accounting;
mod cache;
mod choices;
mod cold_reads;
mod container;
mod detach;
mod file_names;
mod group_jobs;
mod groups;
mod jobs;
mod known_calls;
mod known_program;
mod permission;
mod requests;
mod slow_calls;
mod strace;
mod support;
