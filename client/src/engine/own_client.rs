//! Runs virtual users on our own client: a thread for each share of them.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use super::collector::Collector;
use super::event_loop::{EventLoop, Slot};
use super::shared::Shared;
use super::{Work, descriptors};
use crate::wire::RawTarget;
use crate::wire::connection::Connection;
use crate::wire::endpoint::Endpoint;
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
                work_in_thread(event_loop, shared, &connected, working);
            });
        }
        drop((working, connected));
        for connection in connections {
            if let Err(error) = connection {
                shared.stop();
                return Err(match error {
                    _ if stop.load(Ordering::Relaxed) => ClientError::Stopped,
                    ClientError::Connect(failure) => descriptors::start_error(job, failure),
                    other => other,
                });
            }
        }
        super::begin(&shared, job, stop)?;
        Ok(collector.run(&finished, stop))
    })
}

fn work_in_thread(
    event_loop: Result<EventLoop<'_>, ClientError>,
    shared: &Shared,
    connected: &Sender<Result<(), ClientError>>,
    working: Sender<Infallible>,
) {
    let ready = event_loop.and_then(|mut event_loop| {
        event_loop.connect().map_err(ClientError::Connect)?;
        Ok(event_loop)
    });
    match ready {
        Ok(event_loop) => {
            let _ = connected.send(Ok(()));
            if shared.await_start().is_some() {
                event_loop.run();
            }
        }
        Err(error) => {
            let _ = connected.send(Err(error));
        }
    }
    drop(working);
}
