//! What can go wrong, with messages that tell the user what to do next.

use std::io;

use seekscope_run::{ErrorKind, Kinded};

/// Any error reported by the receiver of events.
pub type SinkError = Box<dyn std::error::Error + Send + Sync>;

/// Why tracing did not start, or did not finish.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The kernel refuses. `remedy` names the capabilities and how to grant them.
    #[error("cannot {what}: {why}. {remedy}")]
    NoPermission {
        what: String,
        why: String,
        remedy: String,
    },
    /// The kernel publishes no type information, without which no program fits it.
    #[error(
        "cannot load the tracing programs: this kernel has no type information ({path} is \
         missing). Boot a kernel that was built with CONFIG_DEBUG_INFO_BTF=y, as those of all \
         major distributions have been since 2021"
    )]
    NoBtf { path: String },
    /// No process has this id (any longer), as seen from this PID namespace.
    #[error("there is no process {pid}. Look its number up with: pgrep -a mongod")]
    NoSuchProcess { pid: u32 },
    /// The id belongs to a thread; `process` is its process.
    #[error("{pid} is a thread of process {process}; trace process {process} instead")]
    NotAProcess { pid: u32, process: u32 },
    /// A control group without processes.
    #[error(
        "no process is in the control group {group}, so there is nothing to trace. Start the server first"
    )]
    NoMembers { group: String },
    /// Processes of several containers cannot be told apart from inside another container.
    #[error(
        "process {pid} is not in the PID namespace of the first process, and seekscope runs in a \
         container. Run seekscope on the host, or trace the processes one at a time"
    )]
    SeveralNamespaces { pid: u32 },
    /// A file or folder to filter by cannot be examined.
    #[error("cannot filter by {path}: {source}. Name a file or folder that exists")]
    Filter { path: String, source: io::Error },
    /// More paths or devices than the programs can hold.
    #[error(
        "{what}: {count}; a trace can be filtered by at most {max}. Name a folder that \
             contains several of them"
    )]
    TooManyFilters {
        what: &'static str,
        count: usize,
        max: usize,
    },
    /// A file below `/proc` could not be read although the process exists.
    #[error("cannot read {path}: {source}")]
    Proc { path: String, source: io::Error },
    /// The programs could not be loaded or attached, for a reason other than permission.
    #[error("cannot {what}: {why}. {remedy}")]
    Load {
        what: String,
        why: String,
        remedy: String,
    },
    /// The ring buffer could not be read, or held something that the programs cannot have written.
    #[error(
        "cannot read the trace ring buffer: {why}. The trace is incomplete; please report this"
    )]
    Ring { why: String },
    /// The receiver of events failed; tracing stopped.
    #[error("cannot store trace events: {0}")]
    Sink(#[source] SinkError),
    /// The thread that empties the ring could not be started or ended unexpectedly.
    #[error("the trace reader failed: {why}")]
    Reader { why: String },
}

impl TraceError {
    /// Returns whether granting a capability would help.
    pub fn is_permission(&self) -> bool {
        matches!(self, Self::NoPermission { .. })
    }
}

impl Kinded for TraceError {
    fn kind(&self) -> Option<ErrorKind> {
        match self {
            Self::NoPermission { .. } => Some(ErrorKind::NotPermitted),
            Self::NoMembers { .. } => Some(ErrorKind::Target),
            Self::NoSuchProcess { .. }
            | Self::NotAProcess { .. }
            | Self::SeveralNamespaces { .. }
            | Self::TooManyFilters { .. } => Some(ErrorKind::Usage),
            Self::Filter { source, .. } => ErrorKind::of_named_path(source),
            Self::NoBtf { .. }
            | Self::Proc { .. }
            | Self::Load { .. }
            | Self::Ring { .. }
            | Self::Sink(_)
            | Self::Reader { .. } => None,
        }
    }
}
