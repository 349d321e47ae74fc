//! Runs virtual users against a server and reports what they did, second by second.
//!
//! A `VirtualUser` is an actor with its counts; it claims arrivals from the schedule in `Shared`, and records
//! into its thread's `Recorder`. An `EventLoop` drives many of them over our own connections; `library_client`
//! drives each as a task over a library's client. The `Collector`, on the caller's thread, combines the
//! recorders' windows.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use seekscope_run::{ClientKind, monotonic_ns};

use crate::wire::RawTarget;
use crate::{ActorPlace, AsyncClientFactory, ClientError, Ended, Job, Second, Workload};

mod backoff;
mod collector;
mod descriptors;
mod event_loop;
mod library_client;
mod own_client;
mod recorder;
mod shared;
mod timer;
mod user;

use recorder::Recorder;
use shared::Shared;
use user::VirtualUser;

/// The client that operations are sent with.
#[derive(Debug, Clone)]
pub enum ClientSpec {
    /// Our own client on the wire protocol.
    Raw(Box<RawTarget>),
    /// A library: the official driver, or Cassandra's.
    Async(Arc<dyn AsyncClientFactory>),
}

impl ClientSpec {
    pub fn kind(&self) -> ClientKind {
        match self {
            Self::Raw(_) => ClientKind::Raw,
            Self::Async(factory) => factory.kind(),
        }
    }
}

/// What the two kinds of clients are given to do.
struct Work<'a> {
    job: &'a Job,
    shared: Arc<Shared>,
    users: Vec<VirtualUser>,
    /// One recorder for each thread.
    recorders: Vec<Arc<Mutex<Recorder>>>,
    stop: &'a AtomicBool,
    each: &'a mut dyn FnMut(Second),
}

/// Runs a stretch of work. Blocks until the work, its time or `stop` ends it; `stop` is noticed within 200 ms
/// whatever the server does. `each` is called on this thread about once a second and once at the end; all
/// threads are joined and connections closed when this returns. Must not be called on a thread of a tokio
/// runtime, except through `spawn_blocking`.
///
/// A few threads are best: each sends tens of thousands of operations per second, and the more connections a
/// thread has, the less each operation costs.
///
/// An error means that the work could not begin, or that this process cannot go on; failures of requests are in
/// [`Ended::failures`].
pub fn run(
    client: &ClientSpec,
    workload: &dyn Workload,
    job: &Job,
    stop: &AtomicBool,
    each: &mut dyn FnMut(Second),
) -> Result<Ended, ClientError> {
    if job.in_flight == 0 || job.threads == 0 {
        return Err(ClientError::Job {
            text: "at least one thread and one operation in flight are needed".into(),
        });
    }
    descriptors::check(client, job)?;
    let shared = Arc::new(Shared::new(workload, job)?);
    let is_open_loop = shared.is_open_loop();
    let work = Work {
        job,
        shared,
        users: (0..job.in_flight)
            .map(|index| ActorPlace {
                index,
                count: job.in_flight,
            })
            .map(|place| VirtualUser::new(workload.actor(place)))
            .collect(),
        recorders: (0..job.threads.min(job.in_flight))
            .map(|_| Arc::new(Mutex::new(Recorder::new(is_open_loop))))
            .collect(),
        stop,
        each,
    };
    match client {
        ClientSpec::Raw(target) => own_client::run(target, work),
        ClientSpec::Async(factory) => library_client::run(factory.as_ref(), work),
    }
}

/// Sets the start once all are connected, and waits for it if it was agreed on with others.
fn begin(shared: &Shared, job: &Job, stop: &AtomicBool) -> Result<(), ClientError> {
    /// Gives the threads time to notice.
    const SOON_NS: u64 = 2_000_000;
    const LOOK_NS: u64 = 20_000_000;
    let start_ns = (monotonic_ns() + SOON_NS).max(job.start_at_ns.unwrap_or(0));
    shared.start_at(start_ns);
    loop {
        if stop.load(Ordering::Relaxed) {
            shared.stop();
            return Err(ClientError::Stopped);
        }
        match start_ns.checked_sub(monotonic_ns()) {
            None | Some(0) => return Ok(()),
            Some(left_ns) => std::thread::sleep(Duration::from_nanos(left_ns.min(LOOK_NS))),
        }
    }
}
