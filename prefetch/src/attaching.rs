//! Attaching the tracer on a thread of its own. The kernel takes some tenths of a second to load
//! its programs; meanwhile the scan is followed in another way.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use seekscope_run::Limitation;
use seekscope_trace::TraceError;

use crate::PrefetchError;
use crate::server_reads::ServerReads;

/// The thread that attaches the tracer.
pub(crate) struct Attaching(JoinHandle<Result<ServerReads, TraceError>>);

impl Attaching {
    /// Begins to trace process `pid`; `file`, whose path is `path`, is the file that is scanned.
    pub(crate) fn begin(pid: u32, path: PathBuf, file: Arc<File>) -> Result<Self, PrefetchError> {
        let thread = thread::Builder::new().name("tracer".into());
        let thread = thread.spawn(move || ServerReads::attach(pid, &path, &file));
        let thread = thread.map_err(|source| PrefetchError::Thread { source })?;
        Ok(Self(thread))
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.0.is_finished()
    }

    /// Returns the outcome, waiting for it if need be.
    pub(crate) fn outcome(self) -> Result<ServerReads, Limitation> {
        let (why, remedy) = match self.0.join() {
            Ok(Ok(reads)) => return Ok(reads),
            Ok(Err(error)) => (error.to_string(), "run as root".into()),
            // The scan matters more than the tracer.
            Err(_) => {
                let why = "the tracer broke off unexpectedly; please report this";
                (why.into(), String::new())
            }
        };
        Err(Limitation {
            what: "the scan is not followed by the server's reads".into(),
            why,
            remedy,
        })
    }
}

/// The limitation reported when nothing tells where the scan is.
pub(crate) fn not_followed() -> Limitation {
    Limitation {
        what: "the scan's position is not known: leaves are read at the pace of a scan whose leaves are all in memory".into(),
        why: "there is no server to be watched".into(),
        remedy: "name the server's connection string or its --pid, and run as root".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tracer_that_breaks_off_is_done_without() {
        let attaching = Attaching(thread::spawn(|| panic!("broken")));
        let limitation = attaching.outcome().err().unwrap();
        assert!(limitation.why.contains("broke off"), "{limitation:?}");
    }
}
