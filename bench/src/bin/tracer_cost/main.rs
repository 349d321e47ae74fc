//! What tracing one system call costs, against other tracers, and how many events a second are
//! recorded without loss.
//!
//! The worst case: `pread64` of 4 KiB at random offsets of a file that is in the page cache, so
//! that the call itself takes about a microsecond and a half. All parts are processes of their own
//! (this binary again, in another [`role`]); figures of the traced one are CPU time of its thread.

#![allow(clippy::print_stdout, reason = "a benchmark prints its result")]

mod cost;
mod load;
mod peers;
mod role;
mod throughput;
mod tracer;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(about = "Cost per event and throughput of the tracer")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Nanoseconds added to each call: seekscope, bpftrace, strace and perf
    Cost(cost::Options),
    /// Events per second into a run directory, without loss
    Throughput(throughput::Options),
    /// The process to be traced: reads when told to
    #[command(hide = true)]
    Load { file: PathBuf, calls: u64 },
    /// The process to be traced: reads at a given rate
    #[command(hide = true)]
    PacedLoad {
        file: PathBuf,
        calls_per_s: u64,
        seconds: u64,
        threads: u64,
    },
    /// The process that traces
    #[command(hide = true)]
    Trace {
        pid: u32,
        backend: tracer::Backend,
        folder: PathBuf,
    },
}

fn main() -> Result<()> {
    match Arguments::parse().command {
        Command::Cost(options) => cost::run(&options),
        Command::Throughput(options) => throughput::run(&options),
        Command::Load { file, calls } => load::serve(&file, calls),
        Command::PacedLoad {
            file,
            calls_per_s,
            seconds,
            threads,
        } => load::serve_paced(&file, calls_per_s, seconds, threads),
        Command::Trace {
            pid,
            backend,
            folder,
        } => tracer::serve(pid, backend, &folder),
    }
}
