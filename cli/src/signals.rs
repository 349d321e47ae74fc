//! Ctrl-C and its kin. The first asks; the second does not wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinError;

static ASKED: AtomicBool = AtomicBool::new(false);

/// Catches SIGINT, SIGTERM and SIGHUP from its making on: make it before anything that a signal
/// would leave behind.
pub struct Signals(Option<[Signal; 3]>);

impl Signals {
    /// Where handlers cannot be installed, signals go on ending the process at once.
    pub fn catch() -> Self {
        let kinds = [
            SignalKind::interrupt(),
            SignalKind::terminate(),
            SignalKind::hangup(),
        ];
        let [interrupt, terminate, hangup] = kinds.map(signal);
        Self(match (interrupt, terminate, hangup) {
            (Ok(interrupt), Ok(terminate), Ok(hangup)) => Some([interrupt, terminate, hangup]),
            _ => None,
        })
    }

    /// Waits for the first signal; returns its name. From then on a second one ends the process.
    pub async fn first(&mut self) -> &'static str {
        let Some([interrupt, terminate, hangup]) = &mut self.0 else {
            return std::future::pending().await;
        };
        let name = tokio::select! {
            _ = interrupt.recv() => "SIGINT",
            _ = terminate.recv() => "SIGTERM",
            _ = hangup.recv() => "SIGHUP",
        };
        if !ASKED.swap(true, Ordering::Relaxed) {
            Self::catch().end_at_once();
        }
        name
    }

    /// Runs blocking work on a thread of its own. The first signal raises the flag that the work was
    /// given, and the work is waited for. Returns what it came to, and the signal's name.
    pub async fn cancelling<T: Send + 'static>(
        &mut self,
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

    /// From now on the next signal ends the process: nothing is left that could be lost. The local
    /// server, if there is one, dies with us (its keeper sees to that); files are cleaned up by the
    /// next start.
    pub fn end_at_once(mut self) {
        ASKED.store(true, Ordering::Relaxed);
        tokio::spawn(async move {
            self.first().await;
            crate::live_terminal::restore_terminal();
            std::process::exit(130);
        });
    }
}
