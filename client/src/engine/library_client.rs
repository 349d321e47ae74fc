//! Runs virtual users on a library's client: a tokio task for each, with the schedule, clocks and counts of our
//! own client.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use seekscope_run::monotonic_ns;
use seekscope_run::units::nanoseconds;
use tokio::io::unix::AsyncFd;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

use super::backoff::Backoff;
use super::collector::Collector;
use super::recorder::Recorder;
use super::shared::{GRACE, Shared};
use super::timer::Timer;
use super::user::{After, Desk, Next, VirtualUser};
use super::{Work, descriptors};
use crate::{
    AsyncClient, AsyncClientFactory, ClientError, Ended, Failure, FailureKind, OwnedReply,
};

const LOOK: Duration = Duration::from_millis(20);
/// The time a library may need for its remaining work at the end.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(1);

pub(super) fn run(factory: &dyn AsyncClientFactory, work: Work<'_>) -> Result<Ended, ClientError> {
    let runtime = Builder::new_multi_thread()
        .worker_threads(work.recorders.len())
        .enable_all()
        .build()
        .map_err(|source| ClientError::System {
            what: "starting threads",
            source,
        })?;
    let result = work_on(&runtime, factory, work);
    runtime.shutdown_timeout(SHUTDOWN_LIMIT);
    result
}

fn work_on(
    runtime: &Runtime,
    factory: &dyn AsyncClientFactory,
    work: Work<'_>,
) -> Result<Ended, ClientError> {
    let Work {
        job,
        shared,
        users,
        recorders,
        stop,
        each,
    } = work;
    let clients = runtime
        .block_on(async {
            tokio::select! {
                clients = factory.connect(users.len()) => Some(clients),
                () = stopped(stop) => None,
            }
        })
        .ok_or(ClientError::Stopped)?
        .map_err(|failure| descriptors::start_error(job, failure))?;
    if clients.len() != users.len() {
        return Err(ClientError::Job {
            text: format!(
                "the client library opened {} clients for {} users",
                clients.len(),
                users.len()
            ),
        });
    }
    let collector = Collector::new(job, &shared, &recorders, each)?;
    let (working, finished) = channel();
    let (over, watched) = watch::channel(false);
    let entered = runtime.enter();
    for (index, (user, client)) in users.into_iter().zip(clients).enumerate() {
        let task = Task {
            user,
            client,
            timer: AsyncTimer::new()?,
            shared: Arc::clone(&shared),
            recorder: Arc::clone(&recorders[index % recorders.len()]),
            over: watched.clone(),
        };
        runtime.spawn(task.run(working.clone()));
    }
    runtime.spawn(announce_end(Arc::clone(&shared), over));
    // The caller's function may enter a runtime of its own.
    drop((entered, working));
    super::begin(&shared, job, stop)?;
    Ok(collector.run(&finished, stop))
}

async fn stopped(stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        tokio::time::sleep(LOOK).await;
    }
}

/// Tells all tasks if the work is ended early.
async fn announce_end(shared: Arc<Shared>, over: watch::Sender<bool>) {
    while !over.is_closed() {
        if shared.is_over() {
            let _ = over.send(true);
            return;
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// One virtual user with its client.
struct Task {
    user: VirtualUser,
    client: Box<dyn AsyncClient>,
    timer: AsyncTimer,
    shared: Arc<Shared>,
    recorder: Arc<Mutex<Recorder>>,
    over: watch::Receiver<bool>,
}

impl Task {
    async fn run(mut self, working: Sender<Infallible>) {
        let shared = Arc::clone(&self.shared);
        let recorder = Arc::clone(&self.recorder);
        let desk = Desk {
            shared: &shared,
            recorder: &recorder,
        };
        // Nothing is sent before the start.
        while shared.started_ns() == 0 && !shared.is_over() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        self.wait_until(shared.started_ns()).await;
        let mut reply = OwnedReply::default();
        let mut backoff = Backoff::default();
        loop {
            match self.user.next(desk, monotonic_ns()) {
                Next::Over => break,
                Next::Wait(until_ns) => self.wait_until(until_ns).await,
                Next::Send => {
                    let pause = self.send(desk, &mut reply, &mut backoff).await;
                    if *self.over.borrow() && self.user.is_busy() {
                        // The rest of the transaction gets no more time than one request.
                        self.user.abandon(desk, monotonic_ns());
                    } else if let Some(pause) = pause {
                        self.wait_until(monotonic_ns().saturating_add(nanoseconds(pause)))
                            .await;
                    }
                }
            }
        }
        drop(working);
    }

    /// Sends what the user asks for and gives it the outcome; returns how long to pause.
    async fn send(
        &mut self,
        desk: Desk<'_>,
        reply: &mut OwnedReply,
        backoff: &mut Backoff,
    ) -> Option<Duration> {
        *reply = OwnedReply::default();
        self.user.sending(desk, monotonic_ns());
        let limit = desk.shared.timeout;
        let sent = tokio::select! {
            biased;
            sent = tokio::time::timeout(limit, self.client.send(&self.user.request, reply)) => {
                Some(sent.unwrap_or_else(|_| {
                    let text = "the server did not answer in time";
                    Err(Failure::of(FailureKind::Timeout, "Timeout", text))
                }))
            }
            () = given_up(&mut self.over) => None,
        };
        let now_ns = monotonic_ns();
        match sent {
            Some(Ok(())) => {
                backoff.succeeded();
                self.user.outcome(desk, Ok(&reply.as_reply()), now_ns);
                None
            }
            Some(Err(failure)) => {
                let wait = match failure.kind {
                    FailureKind::Connection => Some(backoff.failed()),
                    _ => None,
                };
                match self.user.outcome(desk, Err(&failure), now_ns) {
                    After::Next => wait,
                    After::Again(pause) => Some(pause.max(wait.unwrap_or_default())),
                }
            }
            None => {
                self.user.abandon(desk, now_ns);
                None
            }
        }
    }

    /// Sleeps until the given time, or until the work is over.
    async fn wait_until(&mut self, until_ns: u64) {
        if until_ns <= monotonic_ns() {
            // Let other tasks run.
            tokio::task::yield_now().await;
            return;
        }
        tokio::select! {
            biased;
            _ = self.over.wait_for(|over| *over) => (),
            () = self.timer.until(until_ns) => (),
        }
    }
}

/// Completes when the work is over and the grace period for requests under way has passed.
async fn given_up(over: &mut watch::Receiver<bool>) {
    // An error means that nothing will end it early any more.
    if over.wait_for(|over| *over).await.is_err() {
        std::future::pending::<()>().await;
    }
    tokio::time::sleep(GRACE).await;
}

/// A timer precise to microseconds; tokio's own sleep has a resolution of milliseconds.
struct AsyncTimer(AsyncFd<Timer>);

impl AsyncTimer {
    fn new() -> Result<Self, ClientError> {
        let system = |source| ClientError::System {
            what: "cannot set a timer",
            source,
        };
        let timer = Timer::new().map_err(|errno| system(errno.into()))?;
        // SAFETY: `as_raw_fd` returns the descriptor that the timer owns and never replaces.
        let registered = unsafe { AsyncFd::register(timer) };
        registered.map(Self).map_err(|error| system(error.into()))
    }

    async fn until(&mut self, at_ns: u64) {
        // Setting it makes it unreadable; readiness from an earlier time must be forgotten.
        self.0.get_mut().set(at_ns);
        while monotonic_ns() < at_ns {
            match self.0.readable().await {
                Ok(mut guard) => guard.clear_ready(),
                Err(_) => tokio::time::sleep(LOOK).await,
            }
        }
    }
}
