//! Runs virtual users on our own client: one thread for each share of them.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;

use super::collector::Collector;
use super::event_loop::{EventLoop, Slot};
use super::shared::Shared;
use super::{Work, descriptors};
use crate::wire::RawTarget;
use crate::wire::connection::Connection;
use crate::wire::endpoint::Endpoint;
use crate::wire::socket::LOOK_UP;
use crate::{ClientError, Ended};

pub(super) fn run(target: &RawTarget, work: Work<'_>) -> Result<Ended, ClientError> {
    let Work {
        job,
        shared,
        users,
        recorders,
        stop,
        each,
    } = work;
    let endpoint = Endpoint::find(target, &|| stop.load(Ordering::Relaxed))?;
    let mut shares: Vec<Vec<Slot>> = recorders.iter().map(|_| Vec::new()).collect();
    for (index, user) in users.into_iter().enumerate() {
        let connection = Connection::new(Arc::clone(&endpoint)).map_err(ClientError::Connect)?;
        shares[index % recorders.len()].push(Slot::new(user, connection));
    }
    let collector = Collector::new(job, &shared, &recorders, each)?;
    let (working, finished) = channel::<Infallible>();
    let (connected, connections) = channel();
    thread::scope(|scope| {
        for (slots, recorder) in shares.into_iter().zip(&recorders) {
            let (working, connected) = (working.clone(), connected.clone());
            let shared = &shared;
            scope.spawn(move || {
                let event_loop = EventLoop::new(shared, recorder, slots);
                work_in_thread(event_loop, shared, connected, working);
            });
        }
        drop((working, connected));
        if let Err(error) = await_all(&connections, stop) {
            shared.stop();
            return Err(match error {
                ClientError::Connect(failure) => descriptors::start_error(job, failure),
                other => other,
            });
        }
        super::begin(&shared, job, stop)?;
        Ok(collector.run(&finished, stop))
    })
}

/// Waits until every thread has reported that it is connected.
fn await_all(
    connections: &Receiver<Result<(), ClientError>>,
    stop: &AtomicBool,
) -> Result<(), ClientError> {
    loop {
        match connections.recv_timeout(LOOK_UP) {
            Ok(connected) => connected?,
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
            Err(RecvTimeoutError::Timeout) if stop.load(Ordering::Relaxed) => {
                return Err(ClientError::Stopped);
            }
            Err(RecvTimeoutError::Timeout) => (),
        }
    }
}

/// Does a thread's work. `connected` is dropped once the report is sent, `working` at the end.
fn work_in_thread(
    event_loop: Result<EventLoop<'_>, ClientError>,
    shared: &Shared,
    connected: Sender<Result<(), ClientError>>,
    working: Sender<Infallible>,
) {
    let ready = event_loop.and_then(|mut event_loop| {
        event_loop.connect().map_err(ClientError::Connect)?;
        Ok(event_loop)
    });
    let (event_loop, told) = match ready {
        Ok(event_loop) => (Some(event_loop), Ok(())),
        Err(error) => (None, Err(error)),
    };
    // Nobody listens any more if another thread has failed.
    let _ = connected.send(told);
    drop(connected);
    if let Some(event_loop) = event_loop
        && shared.await_start().is_some()
    {
        event_loop.run();
    }
    drop(working);
}
