//! Exit codes, and the errors they stand for. They are part of the interface: never renumber them.

use std::process::{ExitCode, ExitStatus};

use seekscope_cassandra::CqlError;
use seekscope_client::{ClientError, Failure, FailureKind};
use seekscope_disk::DiskError;
use seekscope_disk::mongoperf::MongoperfError;
use seekscope_layout::LayoutError;
use seekscope_reorder::ReorderError;
use seekscope_server::{LocalServerError, ServerError, SlowDiskError};
use seekscope_settings::{ApplyError, LockError};
use seekscope_trace::TraceError;
use seekscope_workload::WorkloadError;
use seekscope_workload::ycsb::YcsbError;

/// A signal asked the command to stop. Not a failure: the partial run is kept.
#[derive(Debug, thiserror::Error)]
#[error("interrupted by {0}")]
pub struct Interrupted(pub &'static str);

/// The work ended early. What was recorded until then is kept.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BrokenOff(pub String);

/// Invalid input that clap cannot detect, such as a malformed key pattern.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Usage(pub String);

/// A server is not where it can be examined.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Elsewhere(pub String);

/// The system does not permit something to be observed.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NotPermitted(pub String);

/// A threshold that the user set was missed.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ThresholdMissed(pub String);

/// The measurement contradicts itself.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Inconsistent(pub String);

/// Settings on somebody's server are not what they were.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NotRestored(pub String);

/// A command that was run for the user failed by itself; its exit code becomes ours.
#[derive(Debug, thiserror::Error)]
#[error("the command ended with {0}")]
pub struct CommandFailed(pub ExitStatus);

impl CommandFailed {
    /// Returns the exit code as in shells: for a signal, 128 plus its number.
    fn code(&self) -> u8 {
        use std::os::unix::process::ExitStatusExt;
        let code = self.0.code();
        let code = code.or_else(|| self.0.signal().map(|signal| 128 + signal));
        code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
    }
}

/// Returns the message of an error with its causes, each mentioned once: many errors include the cause in their
/// own text.
pub fn message_of(error: &anyhow::Error) -> String {
    let mut message = String::new();
    for cause in error.chain() {
        let text = cause.to_string();
        if message.is_empty() {
            message = text;
        } else if !message.contains(&text) {
            message = format!("{message}: {text}");
        }
    }
    message
}

/// Returns the exit code for an error.
pub fn code_of(error: &anyhow::Error) -> ExitCode {
    ExitCode::from(error.chain().find_map(code_of_cause).unwrap_or(1))
}

fn code_of_cause(cause: &(dyn std::error::Error + 'static)) -> Option<u8> {
    if cause.is::<Usage>()
        || cause.is::<YcsbError>()
        || matches!(cause.downcast_ref(), Some(CqlError::Uri { .. }))
    {
        Some(2)
    } else if let Some(error) = server_error(cause) {
        Some(code_of_server_error(error))
    } else if cause.is::<CqlError>()
        || cause.is::<Elsewhere>()
        || matches!(cause.downcast_ref(), Some(LockError::Held { .. }))
        || matches!(
            cause.downcast_ref(),
            Some(ApplyError::Server(_) | ApplyError::DidNotComeBack { .. })
        )
        || cause.is::<LocalServerError>()
        || cause.downcast_ref().is_some_and(is_refusal)
    {
        Some(3)
    } else if cause.is::<NotPermitted>()
        || matches!(cause.downcast_ref(), Some(TraceError::NoPermission { .. }))
        || matches!(
            cause.downcast_ref(),
            Some(SlowDiskError::NotPermitted { .. })
        )
    {
        Some(4)
    } else if let Some(failed) = cause.downcast_ref::<CommandFailed>() {
        Some(failed.code())
    } else if cause.is::<Inconsistent>() || cause.is::<NotRestored>() {
        Some(5)
    } else if cause.is::<ThresholdMissed>() {
        Some(6)
    } else if let Some(error) = cause.downcast_ref::<MongoperfError>() {
        Some(error.exit_code())
    } else if let Some(error) = cause.downcast_ref::<DiskError>() {
        code_of_disk_error(error)
    } else if let Some(error) = cause.downcast_ref::<ClientError>() {
        code_of_client_error(error)
    } else if let Some(error) = cause.downcast_ref::<LayoutError>() {
        code_of_layout_error(error)
    } else if let Some(error) = cause.downcast_ref::<ReorderError>() {
        code_of_reorder_error(error)
    } else if cause.is::<Interrupted>() {
        Some(130)
    } else {
        None
    }
}

fn code_of_disk_error(error: &DiskError) -> Option<u8> {
    match error {
        DiskError::InvalidJob(_) | DiskError::NotADirectory(_) | DiskError::NotAFile(_) => Some(2),
        DiskError::LiveDatabase { .. } => Some(3),
        DiskError::NotPermitted { .. } | DiskError::ReadOnly(_) => Some(4),
        DiskError::Interrupted => Some(130),
        _ => None,
    }
}

/// Returns the server's error, even if another error wraps it.
fn server_error<'a>(cause: &'a (dyn std::error::Error + 'static)) -> Option<&'a ServerError> {
    match cause.downcast_ref() {
        Some(WorkloadError::Server(error)) => Some(error),
        _ => cause.downcast_ref(),
    }
}

fn code_of_server_error(error: &ServerError) -> u8 {
    match error {
        // A privilege can be granted; a server that is away or a wrong login is another matter.
        ServerError::NotAuthorised { .. } => 4,
        ServerError::BadUri { .. } => 2,
        _ => 3,
    }
}

/// The server, or its data, does not allow the work.
fn is_refusal(error: &WorkloadError) -> bool {
    matches!(
        error,
        WorkloadError::ForeignDatabase { .. } | WorkloadError::Database { .. }
    )
}

fn code_of_client_error(error: &ClientError) -> Option<u8> {
    match error {
        ClientError::Uri { .. } | ClientError::Job { .. } => Some(2),
        ClientError::Unreachable { .. } | ClientError::Refused { .. } => Some(3),
        ClientError::Connect(Failure { kind, .. }) => match kind {
            FailureKind::Client => Some(1),
            FailureKind::Unsupported => Some(2),
            _ => Some(3),
        },
        ClientError::FileDescriptors { .. } => Some(4),
        ClientError::Stopped => Some(130),
        _ => None,
    }
}

fn code_of_reorder_error(error: &ReorderError) -> Option<u8> {
    match error {
        ReorderError::Server(error) => Some(code_of_server_error(error)),
        ReorderError::Refused { .. }
        | ReorderError::Busy { .. }
        | ReorderError::Unfinished { .. }
        | ReorderError::NothingPending { .. }
        | ReorderError::NoBetter { .. }
        | ReorderError::ServerGone { .. } => Some(3),
        // Differing sums, unexpected writes, a collection that others dropped.
        ReorderError::Aborted { .. } | ReorderError::WrittenDuringSwap { .. } => Some(5),
        ReorderError::Stopped => Some(130),
        ReorderError::NotRolledBack { first: why, .. } | ReorderError::SwapUnknown { why, .. } => {
            code_of_reorder_error(why)
        }
        _ => None,
    }
}

fn code_of_layout_error(error: &LayoutError) -> Option<u8> {
    match error {
        LayoutError::NotADataDirectory { .. }
        | LayoutError::Missing { .. }
        | LayoutError::NotAFile { .. }
        | LayoutError::NotInMetadata { .. }
        | LayoutError::NoSuchTable { .. }
        | LayoutError::View { .. } => Some(2),
        // Encrypted, column store, tiered.
        LayoutError::Config { .. } => Some(3),
        LayoutError::PermissionDenied { .. } => Some(4),
        LayoutError::Damaged { .. }
        | LayoutError::Turtle { .. }
        | LayoutError::Block { .. }
        | LayoutError::ShortRead { .. }
        | LayoutError::TooLong { .. }
        | LayoutError::UnsafeName { .. }
        | LayoutError::NothingRecovered { .. } => Some(5),
        LayoutError::Interrupted => Some(130),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn a_right_that_is_missing_is_told_from_a_server_that_refuses() {
        let lacking = || ServerError::NotAuthorised {
            uri: "mongodb://h/".into(),
            command: "shardingState".into(),
        };
        let away = ServerError::Unreachable {
            uri: "mongodb://h/".into(),
            why: "refused".into(),
            remedy: "look",
        };
        let malformed = ServerError::BadUri {
            uri: "mongodb:/h".into(),
            why: "it has no scheme".into(),
        };
        assert_eq!(code_of_cause(&malformed), Some(2));
        let passed_on = WorkloadError::Server(lacking());
        assert_eq!(code_of_cause(&passed_on), Some(4));
        assert_eq!(code_of_cause(&lacking()), Some(4));
        assert_eq!(code_of_cause(&ReorderError::Server(lacking())), Some(4));
        assert_eq!(code_of_cause(&away), Some(3));
        assert_eq!(code_of_cause(&ReorderError::Server(away)), Some(3));
        let gone = ReorderError::ServerGone {
            namespace: "shop.orders".into(),
            uri: "mongodb://h/".into(),
            why: "nothing listens there".into(),
        };
        assert!(gone.to_string().contains("--resume"), "{gone}");
        assert_eq!(code_of_cause(&gone), Some(3));
    }

    fn assert_codes<const N: usize>(table: [(Box<dyn std::error::Error>, Option<u8>); N]) {
        for (error, code) in table {
            assert_eq!(code_of_cause(error.as_ref()), code, "{error:?}");
        }
    }

    fn text() -> String {
        "text".into()
    }

    fn io() -> std::io::Error {
        std::io::Error::other("no")
    }

    #[test]
    fn errors_of_the_command_line_have_their_codes() {
        assert_codes([
            (Box::new(BrokenOff(text())), None),
            (Box::new(Interrupted("SIGINT")), Some(130)),
            (Box::new(Usage(text())), Some(2)),
            (Box::new(Elsewhere(text())), Some(3)),
            (Box::new(NotPermitted(text())), Some(4)),
            (Box::new(Inconsistent(text())), Some(5)),
            (Box::new(NotRestored(text())), Some(5)),
            (Box::new(ThresholdMissed(text())), Some(6)),
            (
                Box::new(CommandFailed(ExitStatus::from_raw(7 << 8))),
                Some(7),
            ),
            (Box::new(CommandFailed(ExitStatus::from_raw(9))), Some(137)),
        ]);
    }

    #[test]
    fn errors_of_servers_and_benchmarks_have_their_codes() {
        let failure = |kind| ClientError::Connect(Failure::of(kind, "Name", "text"));
        let path = PathBuf::new;
        assert_codes([
            (Box::new(LocalServerError::Port { source: io() }), Some(3)),
            (
                Box::new(SlowDiskError::NotPermitted { path: path() }),
                Some(4),
            ),
            (Box::new(SlowDiskError::NoController), None),
            (Box::new(ClientError::Uri { text: text() }), Some(2)),
            (Box::new(ClientError::Unreachable { text: text() }), Some(3)),
            (Box::new(ClientError::Stopped), Some(130)),
            (
                Box::new(ClientError::System {
                    what: "epoll",
                    source: io(),
                }),
                None,
            ),
            (Box::new(failure(FailureKind::Client)), Some(1)),
            (Box::new(failure(FailureKind::Unsupported)), Some(2)),
            (Box::new(failure(FailureKind::Connection)), Some(3)),
            (
                Box::new(WorkloadError::Database {
                    name: text(),
                    why: text(),
                }),
                Some(3),
            ),
            (
                Box::new(WorkloadError::Files {
                    path: path(),
                    source: io(),
                }),
                None,
            ),
            (Box::new(YcsbError::Escape { line: 1 }), Some(2)),
            (Box::new(CqlError::Uri { why: text() }), Some(2)),
            (
                Box::new(CqlError::Keyspace {
                    keyspace: text(),
                    table: text(),
                    why: text(),
                }),
                Some(3),
            ),
        ]);
    }

    #[test]
    fn errors_of_files_and_disks_have_their_codes() {
        let path = PathBuf::new;
        assert_codes([
            (Box::new(LayoutError::Missing { path: path() }), Some(2)),
            (
                Box::new(LayoutError::PermissionDenied {
                    path: path(),
                    owner_uid: None,
                }),
                Some(4),
            ),
            (Box::new(LayoutError::UnsafeName { name: text() }), Some(5)),
            (Box::new(LayoutError::Vanished { path: path() }), None),
            (Box::new(LayoutError::Interrupted), Some(130)),
            (Box::new(DiskError::NotAFile(path())), Some(2)),
            (
                Box::new(DiskError::LiveDatabase {
                    path: path(),
                    lock: text(),
                }),
                Some(3),
            ),
            (Box::new(DiskError::ReadOnly(path())), Some(4)),
            (Box::new(DiskError::Shrunk { offset: 1 }), None),
            (Box::new(DiskError::Interrupted), Some(130)),
            (Box::new(MongoperfError::NoThreads), Some(2)),
            (Box::new(MongoperfError::NoInput), Some(1)),
        ]);
    }

    #[test]
    fn errors_of_changes_and_of_tracing_have_their_codes() {
        let namespace = text;
        let stopped = Box::new(ReorderError::Stopped);
        assert_codes([
            (
                Box::new(ReorderError::NothingPending {
                    namespace: namespace(),
                }),
                Some(3),
            ),
            (
                Box::new(ReorderError::Aborted {
                    namespace: namespace(),
                    why: text(),
                }),
                Some(5),
            ),
            (
                Box::new(ReorderError::SwapUnknown {
                    namespace: namespace(),
                    why: stopped,
                }),
                Some(130),
            ),
            (
                Box::new(ReorderError::NoSpace {
                    free_bytes: 1,
                    needed_bytes: 2,
                }),
                None,
            ),
            (
                Box::new(TraceError::NoPermission {
                    what: text(),
                    why: text(),
                    remedy: text(),
                }),
                Some(4),
            ),
            (Box::new(TraceError::NoSuchProcess { pid: 1 }), None),
            (
                Box::new(ApplyError::DidNotComeBack {
                    why: text(),
                    put_back: true,
                }),
                Some(3),
            ),
            (Box::new(ApplyError::UnknownKnob(text())), None),
            (
                Box::new(LockError::Held {
                    what: text(),
                    pid: None,
                }),
                Some(3),
            ),
            (
                Box::new(LockError::Io {
                    path: PathBuf::new(),
                    source: io(),
                }),
                None,
            ),
        ]);
    }

    #[test]
    fn a_cause_is_said_once() {
        let cause = std::io::Error::other("no such thing");
        let error = anyhow::Error::new(DiskError::Device {
            operation: "read",
            offset: 7,
            source: cause,
        });
        let message = message_of(&error.context("while measuring"));
        assert!(
            message.starts_with("while measuring: the disk failed to read"),
            "{message}"
        );
        assert_eq!(message.matches("no such thing").count(), 1, "{message}");
    }
}
