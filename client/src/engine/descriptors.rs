//! Checks whether this process may open the files that this many connections need.

use std::fs;

use rustix::process::{Resource, getrlimit};

use crate::wire::socket::TOO_MANY_OPEN;
use crate::{ClientError, ClientSpec, Failure, Job};

/// Descriptors that threads, timers and the collector's files may need besides connections.
const SPARE: u64 = 32;

/// Refuses a job that would run out of file descriptors midway. A virtual user has a connection and, on a
/// library's client, a timer.
pub(super) fn check(client: &ClientSpec, job: &Job) -> Result<(), ClientError> {
    let per_user = match client {
        ClientSpec::Raw(_) => 1,
        ClientSpec::Async(_) => 2,
    };
    let open = fs::read_dir("/proc/self/fd").map_or(0, |files| files.count() as u64);
    let need = open + SPARE + job.in_flight as u64 * per_user;
    match getrlimit(Resource::Nofile).current {
        Some(limit) if limit < need => Err(too_few(job, limit, need)),
        _ => Ok(()),
    }
}

/// Returns what a failure to connect at the start means for the whole job: the limit may have been reached all
/// the same, as it is not known what else this process opens.
pub(super) fn start_error(job: &Job, failure: Failure) -> ClientError {
    match getrlimit(Resource::Nofile).current {
        Some(limit) if failure.name == TOO_MANY_OPEN => {
            too_few(job, limit, limit + SPARE + job.in_flight as u64)
        }
        _ => ClientError::Connect(failure),
    }
}

fn too_few(job: &Job, limit: u64, need: u64) -> ClientError {
    ClientError::FileDescriptors {
        limit,
        need,
        in_flight: job.in_flight,
    }
}
