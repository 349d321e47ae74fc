//! Ctrl-C and its kin. The first asks; the second does not wait.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::signal::unix::{SignalKind, signal};

static ASKED: AtomicBool = AtomicBool::new(false);

/// Waits for the first of SIGINT, SIGTERM and SIGHUP; returns its name.
pub async fn first() -> &'static str {
    let (Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)) = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
        signal(SignalKind::hangup()),
    ) else {
        // Without handlers the signals end the process at once; waiting forever is right then.
        return std::future::pending().await;
    };
    let name = tokio::select! {
        _ = interrupt.recv() => "SIGINT",
        _ = terminate.recv() => "SIGTERM",
        _ = hangup.recv() => "SIGHUP",
    };
    if !ASKED.swap(true, Ordering::Relaxed) {
        tokio::spawn(async move {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            // The local server dies with us (its keeper sees to that); files are cleaned up by the
            // next start.
            #[expect(clippy::exit, reason = "a second signal means now")]
            std::process::exit(130);
        });
    }
    name
}
