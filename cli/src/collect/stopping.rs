//! Runs work that a signal ends: it fails at the next write, and what it created until then is removed.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};

use crate::exit::Interrupted;
use crate::interruption::Interruption;

/// Runs the work on a separate thread. Once it has ended, a signal ends the process at once.
pub async fn until_signal<T: Send + 'static>(
    interruption: Interruption,
    work: impl FnOnce(&AtomicBool) -> Result<T> + Send + 'static,
) -> Result<T> {
    let (worked, signal) = interruption.cancelling(work).await;
    interruption.end_at_once();
    let result = worked.context("the work broke off unexpectedly; please report this")?;
    match signal {
        // A result that was complete when the signal came is kept.
        Some(name) => result.map_err(|_| Interrupted(name).into()),
        None => result,
    }
}

/// Returns an error once asked to stop.
pub fn go_on(stop: &AtomicBool) -> io::Result<()> {
    match stop.load(Ordering::Relaxed) {
        true => Err(io::Error::other(Interrupted("a signal"))),
        false => Ok(()),
    }
}

/// A writer that fails once asked to stop.
pub struct Stoppable<'a, W> {
    inner: W,
    stop: &'a AtomicBool,
}

impl<'a, W: Write> Stoppable<'a, W> {
    pub fn new(inner: W, stop: &'a AtomicBool) -> Self {
        Self { inner, stop }
    }

    pub fn into_inner(self) -> W {
        self.inner
    }
}

impl<W: Write> Write for Stoppable<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        go_on(self.stop)?;
        self.inner.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copying_ends_where_it_is_asked_to() {
        let stop = AtomicBool::new(false);
        let mut writer = Stoppable::new(Vec::new(), &stop);
        assert_eq!(io::copy(&mut &b"ab"[..], &mut writer).unwrap(), 2);
        stop.store(true, Ordering::Relaxed);
        assert!(io::copy(&mut &b"cd"[..], &mut writer).is_err());
        assert_eq!(writer.into_inner(), b"ab");
    }
}
