//! Abandons a run whose figures are no longer wanted: its requests end, and nothing else is waited for.

use std::future::Future;
use std::sync::Arc;

use anyhow::Result;
use tokio::sync::watch;

/// The decision to abandon a run. Clones share it.
#[derive(Debug, Clone)]
pub struct Abandonment {
    decided: Arc<watch::Sender<bool>>,
}

/// The error of an abandoned run.
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
    /// Abandons the run.
    pub fn decide(&self) {
        self.decided.send_replace(true);
    }

    /// Returns an error once the run is abandoned.
    pub fn check(&self) -> Result<()> {
        match *self.decided.borrow() {
            true => Err(Abandoned.into()),
            false => Ok(()),
        }
    }

    /// Waits until the run is abandoned.
    pub async fn decided(&self) {
        // Cannot fail: `self` holds the sender.
        let _ = self.decided.subscribe().wait_for(|decided| *decided).await;
    }

    /// Returns the result of `work`. If the run is abandoned first, drops `work` and returns an error.
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
        // A checkpoint that never ends, abandoned by an observer.
        let onlooker = abandonment.clone();
        let hangs = abandonment.or(std::future::pending::<Result<()>>());
        let (waited, ()) = tokio::join!(hangs, async move { onlooker.decide() });
        assert!(waited.unwrap_err().is::<Abandoned>());
        // Nothing new is started either.
        assert!(abandonment.check().unwrap_err().is::<Abandoned>());
        let late = abandonment.or(async { Ok(5) }).await;
        assert!(late.unwrap_err().is::<Abandoned>());
    }
}
