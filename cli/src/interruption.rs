//! The first Ctrl-C, for whoever waits or works.

use std::future::Future;

use anyhow::Result;
use tokio::sync::watch;

use crate::exit::Interrupted;
use crate::signals::Signals;

/// Clones share the one signal.
#[derive(Debug, Clone)]
pub struct Interruption {
    name: watch::Receiver<Option<&'static str>>,
}

impl Interruption {
    /// Listens from now on; a second signal ends the process.
    pub fn listen(mut signals: Signals) -> Self {
        let (sender, name) = watch::channel(None);
        tokio::spawn(async move {
            let signal = signals.first().await;
            // Kept open for ever: a closed channel would read as a signal.
            sender.send_replace(Some(signal));
            std::future::pending::<()>().await;
        });
        Self { name }
    }

    /// An error once a signal has come.
    pub fn check(&self) -> Result<()> {
        match *self.name.borrow() {
            Some(signal) => Err(Interrupted(signal).into()),
            None => Ok(()),
        }
    }

    /// Waits for the signal.
    pub async fn first(&self) {
        let mut name = self.name.clone();
        // The sender lives as long as the runtime.
        let _ = name.wait_for(Option::is_some).await;
    }

    /// What the work comes to; dropped, and an error, when a signal comes first.
    pub async fn or<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        tokio::select! {
            biased;
            () = self.first() => {
                self.check()?;
                Err(Interrupted("a signal").into())
            }
            result = work => result,
        }
    }
}
