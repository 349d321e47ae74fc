//! The binary as its users run it: on a real server, with real eBPF programs.
//!
//! `./x test` builds the release binary and installs the server and the instruments, and names them
//! in the environment; without it these tests find both where `./x` puts them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    unreachable_pub,
    reason = "a test helper that fails is a failed test; nobody depends on a test"
)]

mod analysis_sql;
mod bench;
mod bench_accidents;
mod bench_compare;
mod bench_labs;
mod bench_own;
mod command_line;
mod demo;
mod directory_snapshot;
mod disk_accidents;
mod disk_beside_database;
mod disk_failures;
mod disk_interruption;
mod disk_predict;
mod disk_run;
mod disk_survey;
mod disk_unusual_places;
mod doctor_bundle;
mod doctor_examination;
#[path = "../../src/args/documented.rs"]
mod documented;
mod documented_commands;
mod existing_server;
mod exporter;
mod exporter_access;
mod exporter_process;
mod interruption;
mod kubernetes;
mod layout;
mod layout_live;
mod map;
mod mongoperf;
mod monitoring;
mod mounts;
mod permissions;
mod prefetch;
mod prometheus;
mod pseudo_terminal;
mod recorded_run;
mod recorded_runs;
mod reorder;
mod replay;
mod replay_accidents;
mod replay_calls;
mod schemas;
mod support;
mod top;
mod trace_files;
mod trace_record;
mod trace_report;
mod tune;
mod tune_accidents;
mod tune_commands;
mod tune_memory;
mod tune_restarts;
mod tune_servers;
