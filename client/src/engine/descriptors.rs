//! May this process open the files that so many connections need?

use std::fs;

use rustix::process::{Resource, getrlimit};

use crate::{ClientError, Failure, FailureKind, Job};

/// What threads, timers and the collector's files may need beside connections.
const SPARE: u64 = 32;
/// A connection, and a timer where a library's client waits for a schedule.
const PER_USER: u64 = 2;

/// Refuses a job that would run out of file descriptors in the middle.
pub(super) fn check(job: &Job) -> Result<(), ClientError> {
    let open = fs::read_dir("/proc/self/fd").map_or(0, |files| files.count() as u64);
    refuse_beyond(job, getrlimit(Resource::Nofile).current, open)
}

fn refuse_beyond(job: &Job, limit: Option<u64>, open: u64) -> Result<(), ClientError> {
    let need = open + SPARE + job.in_flight as u64 * PER_USER;
    match limit {
        Some(limit) if limit < need => Err(ClientError::FileDescriptors {
            limit,
            need,
            in_flight: job.in_flight,
        }),
        _ => Ok(()),
    }
}

/// What a failure to connect at the start means for the whole.
pub(super) fn start_error(job: &Job, failure: Failure) -> ClientError {
    let limit = getrlimit(Resource::Nofile).current;
    if failure.kind == FailureKind::Client && failure.name == "TooManyOpenFiles" {
        let need = limit.unwrap_or(0) + job.in_flight as u64 * PER_USER;
        return ClientError::FileDescriptors {
            limit: limit.unwrap_or(u64::MAX),
            need,
            in_flight: job.in_flight,
        };
    }
    ClientError::Connect(failure)
}
