//! Handles Ctrl-C and similar signals: the first one requests an end, the second forces it.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinError;

use crate::exit::Interrupted;

/// A signal so soon after the first is the same one once more: `timeout` sends it to the process and then to its
/// group. Nobody presses Ctrl-C twice that quickly.
const ECHO: Duration = Duration::from_millis(150);

/// The first signal, for tasks that wait or work. Clones share it.
#[derive(Debug, Clone)]
pub struct Interruption {
    name: watch::Receiver<Option<&'static str>>,
    /// The next signal ends the process.
    at_once: Arc<AtomicBool>,
}

impl Interruption {
    /// Catches SIGINT, SIGTERM and SIGHUP from now on. Call this before creating anything that a signal would
    /// leave behind. If handlers cannot be installed, signals still end the process at once.
    pub fn listen() -> Self {
        let mut caught = Caught::begin();
        let at_once = Arc::new(AtomicBool::new(false));
        let (sender, name) = watch::channel(None);
        let ends = Arc::clone(&at_once);
        tokio::spawn(async move {
            let mut first: Option<Instant> = None;
            loop {
                let name = caught.next().await;
                if first.is_some_and(|first| first.elapsed() < ECHO) {
                    continue;
                }
                first.get_or_insert_with(Instant::now);
                if ends.swap(true, Ordering::Relaxed) {
                    crate::live_terminal::restore_terminal();
                    std::process::exit(130);
                }
                sender.send_replace(Some(name));
            }
        });
        Self { name, at_once }
    }

    /// Returns the name of the signal that came, if any.
    pub fn signal(&self) -> Option<&'static str> {
        *self.name.borrow()
    }

    /// Returns an error once a signal has come.
    pub fn check(&self) -> Result<()> {
        match self.signal() {
            Some(signal) => Err(Interrupted(signal).into()),
            None => Ok(()),
        }
    }

    /// Waits for the signal and returns its name.
    pub async fn first(&self) -> &'static str {
        let mut name = self.name.clone();
        // The sender lives as long as the runtime.
        let known = name.wait_for(Option::is_some).await;
        known.ok().and_then(|name| *name).unwrap_or("a signal")
    }

    /// Returns the result of `work`. If a signal comes first, drops `work` and returns an error.
    pub async fn or<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        tokio::select! {
            biased;
            name = self.first() => Err(Interrupted(name).into()),
            result = work => result,
        }
    }

    /// Runs blocking work on a separate thread. A signal sets the flag passed to the work, which is then waited
    /// for. Returns the result, and the signal's name if one came.
    pub async fn cancelling<T: Send + 'static>(
        &self,
        work: impl FnOnce(&AtomicBool) -> T + Send + 'static,
    ) -> (Result<T, JoinError>, Option<&'static str>) {
        let cancel = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&cancel);
        let mut work = tokio::task::spawn_blocking(move || work(&flag));
        tokio::select! {
            biased;
            name = self.first() => {
                cancel.store(true, Ordering::Relaxed);
                (work.await, Some(name))
            }
            worked = &mut work => (worked, None),
        }
    }

    /// Lets the next signal end the process, as nothing can be lost from now on. A local server dies with this
    /// process (its keeper sees to that); files are cleaned up at the next start.
    pub fn end_at_once(&self) {
        self.at_once.store(true, Ordering::Relaxed);
    }
}

/// The installed signal handlers, unless they could not be installed.
struct Caught(Option<[Signal; 3]>);

impl Caught {
    fn begin() -> Self {
        let kinds = [
            SignalKind::interrupt(),
            SignalKind::terminate(),
            SignalKind::hangup(),
        ];
        Self(match kinds.map(signal) {
            [Ok(interrupt), Ok(terminate), Ok(hangup)] => Some([interrupt, terminate, hangup]),
            _ => None,
        })
    }

    /// Waits for the next signal and returns its name; waits for ever without handlers.
    async fn next(&mut self) -> &'static str {
        let Some([interrupt, terminate, hangup]) = &mut self.0 else {
            return std::future::pending().await;
        };
        tokio::select! {
            _ = interrupt.recv() => "SIGINT",
            _ = terminate.recv() => "SIGTERM",
            _ = hangup.recv() => "SIGHUP",
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::{Signal as Sent, getpid, kill_process};

    use super::*;

    #[tokio::test]
    async fn the_first_signal_is_known_to_whoever_waits_or_works() {
        let interruption = Interruption::listen();
        let worker = interruption.clone();
        assert_eq!(interruption.signal(), None);
        assert!(interruption.check().is_ok());
        assert_eq!(interruption.or(async { Ok(7) }).await.unwrap(), 7);
        let (done, signal) = interruption.cancelling(|_| 8).await;
        assert_eq!((done.unwrap(), signal), (8, None));
        let working = tokio::spawn(async move {
            let until_asked = |stop: &AtomicBool| {
                while !stop.load(Ordering::Relaxed) {
                    std::thread::yield_now();
                }
            };
            worker.cancelling(until_asked).await.1
        });
        kill_process(getpid(), Sent::HUP).unwrap();
        // Ends the test, were it not taken for the same one.
        kill_process(getpid(), Sent::HUP).unwrap();
        assert_eq!(interruption.first().await, "SIGHUP");
        assert_eq!(working.await.unwrap(), Some("SIGHUP"));
        let error = interruption.check().unwrap_err();
        assert_eq!(error.to_string(), "interrupted by SIGHUP");
        let never = std::future::pending::<Result<()>>();
        assert!(interruption.or(never).await.is_err());
    }
}
