//! Following the scan: by the server's reads of the file, else by how much the server has read, else
//! at the pace at which an engine takes what is in memory.

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use seekscope_run::PrefetchPace;
use seekscope_run::proc_io_counter;
use seekscope_trace::TraceError;

use crate::position::ScanPosition;
use crate::run::nanoseconds;
use crate::server_reads::{ServerRead, ServerReads};
use crate::sweep::Sweep;

/// See the module.
pub enum Pace {
    Traced {
        reads: Box<ServerReads>,
        position: ScanPosition,
    },
    Counted {
        /// `/proc/PID/io`.
        counters: PathBuf,
        /// Bytes that had been read when the scan was at the first leaf.
        zero: u64,
    },
    Own {
        started: Instant,
        ns_per_byte: f64,
    },
}

/// What was seen since the last look.
#[derive(Debug, Default)]
pub struct Seen {
    /// The leaf that the scan will read next, if it is known.
    pub next: Option<usize>,
    /// Of the server, all files; only where traced.
    pub reads: Vec<ServerRead>,
    /// The scanned file was read, or may have been.
    pub active: bool,
}

impl Pace {
    /// By the server's reads, from now on.
    pub fn traced(reads: ServerReads) -> Self {
        Self::Traced {
            reads: Box::new(reads),
            position: ScanPosition::default(),
        }
    }

    /// By the counters of a process; `None` where they may not be read.
    pub fn counted(pid: u32) -> Option<Self> {
        let counters = PathBuf::from(format!("/proc/{pid}/io"));
        let zero = bytes_read(&counters)?;
        Some(Self::Counted { counters, zero })
    }

    /// Begins now; `ns_per_byte` is what the engine spends on a leaf's bytes.
    pub fn own(ns_per_byte: f64) -> Self {
        Self::Own {
            started: Instant::now(),
            ns_per_byte,
        }
    }

    /// For the record.
    pub fn kind(&self) -> PrefetchPace {
        match self {
            Self::Traced { .. } => PrefetchPace::Traced,
            Self::Counted { .. } => PrefetchPace::Counted,
            Self::Own { .. } => PrefetchPace::Own,
        }
    }

    /// The scan begins now: what was read before does not count.
    pub fn scan_begins(&mut self) {
        match self {
            Self::Traced { .. } => {}
            Self::Counted { counters, zero } => *zero = bytes_read(counters).unwrap_or(*zero),
            Self::Own { started, .. } => *started = Instant::now(),
        }
    }

    /// Looks where the scan is.
    ///
    /// # Errors
    /// Of the tracer; the trace is over then.
    pub fn look(&mut self, sweep: &Sweep) -> Result<Seen, TraceError> {
        match self {
            Self::Traced { reads, position } => {
                let reads = reads.take()?;
                let mut active = false;
                for offset in reads.iter().filter_map(|read| read.offset) {
                    active = true;
                    if let Some(ordinal) = sweep.ordinal_at(offset) {
                        position.read(ordinal);
                    }
                }
                let next = position.last_read().map(|ordinal| ordinal + 1);
                Ok(Seen {
                    next,
                    reads,
                    active,
                })
            }
            Self::Counted { counters, zero } => {
                let bytes = bytes_read(counters).map(|bytes| bytes.saturating_sub(*zero));
                let next = bytes.map(|bytes| sweep.ordinal_after(bytes));
                Ok(Seen {
                    active: next.is_some_and(|next| next > sweep.position()),
                    // Other reads of the server count as the scan's: it is never further on.
                    next: next.map(|next| next.max(sweep.position())),
                    reads: Vec::new(),
                })
            }
            Self::Own {
                started,
                ns_per_byte,
            } => {
                let elapsed = started.elapsed().div_f64(ns_per_byte.max(1e-3));
                let bytes = nanoseconds(elapsed);
                let could_be = sweep.ordinal_after(bytes);
                let next = could_be.min(sweep.first_unread()).max(sweep.position());
                Ok(Seen {
                    active: next > sweep.position(),
                    next: Some(next),
                    reads: Vec::new(),
                })
            }
        }
    }

    /// Leaves have other numbers now.
    pub fn tree_changed(&mut self) {
        if let Self::Traced { position, .. } = self {
            position.forget();
        }
    }
}

/// Bytes that read calls have returned to a process (`rchar`).
fn bytes_read(counters: &PathBuf) -> Option<u64> {
    proc_io_counter(&fs::read_to_string(counters).ok()?, "rchar")
}
