//! Giving up a run whose figures nobody wants any more: its requests end, and nothing else is waited for.

use std::future::Future;
use std::sync::Arc;

use anyhow::Result;
use tokio::sync::watch;

/// Clones share the one decision.
#[derive(Debug, Clone)]
pub struct Abandonment {
    decided: Arc<watch::Sender<bool>>,
}

/// What an abandoned run ends with.
#[derive(Debug, thiserror::Error)]
#[error("the run was abandoned")]
pub struct Abandoned;

impl Default for Abandonment {
    fn default() -> Self {
        Self {
            decided: Arc::new(watch::Sender::new(false)),
        }
    }
}

impl Abandonment {
    /// From now on nothing is wanted of the run.
    pub fn decide(&self) {
        self.decided.send_replace(true);
    }

    /// An error once it is decided.
    pub fn check(&self) -> Result<()> {
        match *self.decided.borrow() {
            true => Err(Abandoned.into()),
            false => Ok(()),
        }
    }

    /// Waits for the decision.
    pub async fn decided(&self) {
        // The sender is our own.
        let _ = self.decided.subscribe().wait_for(|decided| *decided).await;
    }

    /// What the work comes to; dropped, and an error, where the run is abandoned first.
    pub async fn or<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        tokio::select! {
            biased;
            () = self.decided() => Err(Abandoned.into()),
            result = work => result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_abandoned_is_not_waited_for() {
        let abandonment = Abandonment::default();
        let done = abandonment.or(async { Ok(5) }).await;
        assert_eq!(done.unwrap(), 5);
        // A checkpoint that never ends, abandoned meanwhile by another who looks on.
        let onlooker = abandonment.clone();
        let hangs = abandonment.or(std::future::pending::<Result<()>>());
        let (waited, ()) = tokio::join!(hangs, async move { onlooker.decide() });
        assert!(waited.unwrap_err().is::<Abandoned>());
        // Nothing is begun either.
        assert!(abandonment.check().unwrap_err().is::<Abandoned>());
        let late = abandonment.or(async { Ok(5) }).await;
        assert!(late.unwrap_err().is::<Abandoned>());
    }
}
