//! Exit codes, and the errors they stand for. They are part of the interface: never renumber them.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use seekscope_advice::AdviceError;
use seekscope_cassandra::CqlError;
use seekscope_client::ClientError;
use seekscope_disk::DiskError;
use seekscope_disk::mongoperf::MongoperfError;
use seekscope_layout::LayoutError;
use seekscope_prefetch::PrefetchError;
use seekscope_reorder::ReorderError;
use seekscope_run::units::{format_ns, nanoseconds};
use seekscope_run::{ErrorKind, Kinded, RunError};
use seekscope_server::{BinaryError, LocalServerError, ServerError, SlowDiskError};
use seekscope_settings::{ApplyError, LockError, PrimaryChanged};
use seekscope_trace::TraceError;
use seekscope_workload::WorkloadError;
use seekscope_workload::own::sample::SampleError;
use seekscope_workload::ycsb::YcsbError;

/// A signal asked the command to stop. Not a failure: the partial run is kept.
#[derive(Debug, thiserror::Error)]
#[error("interrupted by {0}")]
pub struct Interrupted(pub &'static str);

/// The work ended early. What was recorded until then is kept.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BrokenOff(pub String);

impl BrokenOff {
    /// Returns the error for a process that ended before the time was up.
    pub fn ended_early(who: &str, after: Duration, asked: Option<Duration>) -> Self {
        let time = |time: Duration| format_ns(nanoseconds(time));
        let asked = asked.map_or_else(String::new, |asked| {
            format!(" of the {} requested", time(asked))
        });
        Self(format!("{who} ended after {}{asked}", time(after)))
    }

    /// Returns the error of work on a set that has another primary than the one it was about. `next` says what to do.
    pub fn by_election(who: &str, changed: PrimaryChanged, next: &str) -> anyhow::Error {
        let ended = Self(format!("{who} ended early: {changed}; {next}"));
        anyhow::Error::from(changed).context(ended)
    }
}

/// Invalid input that clap cannot detect, such as a malformed key pattern.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Usage(pub String);

/// A file that was named cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {}: {source}", path.display())]
pub struct Unreadable {
    path: PathBuf,
    source: std::io::Error,
}

impl Unreadable {
    /// Returns a function for `map_err`.
    pub fn at(path: &Path) -> impl Fn(std::io::Error) -> Self {
        move |source| Self {
            path: path.to_path_buf(),
            source,
        }
    }
}

impl Kinded for Unreadable {
    fn kind(&self) -> Option<ErrorKind> {
        ErrorKind::of_named_path(&self.source)
    }
}

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

impl Kinded for CommandFailed {
    fn kind(&self) -> Option<ErrorKind> {
        Some(ErrorKind::Code(self.code()))
    }
}

/// States the kinds of the errors above.
macro_rules! kinds {
    ($($error:ident: $kind:ident,)*) => {
        $(impl Kinded for $error {
            fn kind(&self) -> Option<ErrorKind> {
                Some(ErrorKind::$kind)
            }
        })*
    };
}

kinds! {
    Interrupted: Interrupted,
    Usage: Usage,
    Elsewhere: Target,
    NotPermitted: NotPermitted,
    ThresholdMissed: ThresholdMissed,
    Inconsistent: Inconsistent,
    NotRestored: Inconsistent,
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
pub fn code_of(error: &anyhow::Error) -> u8 {
    error.chain().find_map(code_of_cause).unwrap_or(1)
}

/// Returns whether the user lacked a right.
pub fn lacks_permission(error: &anyhow::Error) -> bool {
    let kind = error.chain().find_map(kind_of);
    matches!(kind, Some(ErrorKind::NotPermitted))
}

fn code_of_cause(cause: &(dyn Error + 'static)) -> Option<u8> {
    Some(match kind_of(cause)? {
        ErrorKind::Failed => 1,
        ErrorKind::Usage => 2,
        ErrorKind::Target => 3,
        ErrorKind::NotPermitted => 4,
        ErrorKind::Inconsistent => 5,
        ErrorKind::ThresholdMissed => 6,
        ErrorKind::Interrupted => 130,
        ErrorKind::Code(code) => code,
    })
}

/// Returns what a cause says of its kind. All types that say something are listed, as a `dyn Error` cannot be
/// asked for another trait.
fn kind_of(cause: &(dyn Error + 'static)) -> Option<ErrorKind> {
    let types = [
        of::<Usage>,
        of::<Unreadable>,
        of::<Elsewhere>,
        of::<NotPermitted>,
        of::<Inconsistent>,
        of::<NotRestored>,
        of::<ThresholdMissed>,
        of::<Interrupted>,
        of::<CommandFailed>,
        of::<ServerError>,
        of::<LocalServerError>,
        of::<BinaryError>,
        of::<SlowDiskError>,
        of::<ClientError>,
        of::<WorkloadError>,
        of::<SampleError>,
        of::<YcsbError>,
        of::<CqlError>,
        of::<LayoutError>,
        of::<AdviceError>,
        of::<ReorderError>,
        of::<PrefetchError>,
        of::<DiskError>,
        of::<MongoperfError>,
        of::<TraceError>,
        of::<ApplyError>,
        of::<PrimaryChanged>,
        of::<LockError>,
        of::<RunError>,
    ];
    types.into_iter().find_map(|kind_as| kind_as(cause))
}

/// Returns what the error says of its kind, if it is an `E`.
fn of<E: Kinded + 'static>(cause: &(dyn Error + 'static)) -> Option<ErrorKind> {
    cause.downcast_ref::<E>()?.kind()
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use seekscope_client::{Failure, FailureKind};

    use super::*;

    #[test]
    fn a_right_that_is_missing_is_told_from_a_server_that_refuses() {
        let lacking = || ServerError::NotAuthorised {
            uri: "mongodb://h/".into(),
            command: "shardingState".into(),
            has_user: true,
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
            (
                Box::new(WorkloadError::LocalServer(LocalServerError::Port {
                    source: io(),
                })),
                Some(3),
            ),
            (
                Box::new(WorkloadError::SlowDisk(SlowDiskError::NotPermitted {
                    path: path(),
                })),
                Some(4),
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
        let nowhere = || DiskError::File {
            action: "open",
            path: path(),
            source: std::io::ErrorKind::NotFound.into(),
        };
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
            (Box::new(nowhere()), Some(2)),
            (Box::new(RunError::NotARun { path: path() }), Some(2)),
            (Box::new(RunError::InUse { path: path() }), Some(3)),
            (
                Box::new(PrefetchError::Layout(LayoutError::Missing { path: path() })),
                Some(2),
            ),
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
            (Box::new(TraceError::NoSuchProcess { pid: 1 }), Some(2)),
            (Box::new(TraceError::NoMembers { group: text() }), Some(3)),
            (
                Box::new(ApplyError::Server(ServerError::NotAuthorised {
                    uri: text(),
                    command: text(),
                    has_user: true,
                })),
                Some(4),
            ),
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
