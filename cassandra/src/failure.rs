//! Converts the driver's errors to [`Failure`]s.

use std::error::Error;

use scylla::errors::{
    ConnectionError, ConnectionPoolError, ConnectionSetupRequestErrorKind, DbError, ExecutionError,
    MetadataError, NewSessionError, PrepareError, RequestAttemptError,
};
use seekscope_client::{Failure, FailureKind};

/// Error numbers for too many open files, of this process or the host (Linux `errno.h`).
const NO_DESCRIPTORS: [i32; 2] = [24, 23];

pub(crate) fn of_execution(error: &ExecutionError) -> Failure {
    match error {
        ExecutionError::LastAttemptError(attempt) => of_attempt(attempt),
        ExecutionError::ConnectionPoolError(pool) => of_pool(pool),
        ExecutionError::PrepareError(prepare) => of_prepare(prepare),
        ExecutionError::EmptyPlan => {
            Failure::of(FailureKind::Connection, "NoNode", "no node can be reached")
        }
        ExecutionError::RequestTimeout(_) => timeout(error),
        ExecutionError::BadQuery(_) => unsupported(error),
        other => Failure::of(FailureKind::Server, "Schema", chain(other)),
    }
}

pub(crate) fn of_prepare(error: &PrepareError) -> Failure {
    match error {
        PrepareError::ConnectionPoolError(pool) => of_pool(pool),
        PrepareError::AllAttemptsFailed { first_attempt } => of_attempt(first_attempt),
        other => Failure::of(FailureKind::Malformed, "Prepare", chain(other)),
    }
}

pub(crate) fn of_new_session(error: &NewSessionError) -> Failure {
    match error {
        NewSessionError::MetadataError(MetadataError::ConnectionPoolError(pool)) => of_pool(pool),
        NewSessionError::FailedToResolveAnyHostname(_) => {
            Failure::of(FailureKind::Connection, "HostNotFound", chain(error))
        }
        other => Failure::of(FailureKind::Connection, "NoSession", chain(other)),
    }
}

fn of_attempt(error: &RequestAttemptError) -> Failure {
    match error {
        RequestAttemptError::DbError(kind, message) => of_server(kind, message),
        RequestAttemptError::BrokenConnectionError(_) => {
            Failure::of(FailureKind::Connection, "ConnectionBroken", chain(error))
        }
        RequestAttemptError::SerializationError(_)
        | RequestAttemptError::CqlRequestSerialization(_) => unsupported(error),
        RequestAttemptError::UnableToAllocStreamId => {
            Failure::of(FailureKind::Client, "NoStreamId", chain(error))
        }
        other => Failure::of(FailureKind::Malformed, "Malformed", chain(other)),
    }
}

fn of_pool(error: &ConnectionPoolError) -> Failure {
    let ConnectionPoolError::Broken {
        last_connection_error,
    } = error
    else {
        return Failure::of(FailureKind::Connection, "NoConnection", chain(error));
    };
    match last_connection_error {
        ConnectionError::ConnectTimeout => {
            Failure::of(FailureKind::Connection, "ConnectTimeout", chain(error))
        }
        ConnectionError::IoError(io) => {
            let no_descriptor = io
                .raw_os_error()
                .is_some_and(|n| NO_DESCRIPTORS.contains(&n));
            let (kind, name) = match io.kind() {
                _ if no_descriptor => (FailureKind::Client, "TooManyOpenFiles"),
                std::io::ErrorKind::ConnectionRefused => {
                    (FailureKind::Connection, "ConnectionRefused")
                }
                _ => (FailureKind::Connection, "ConnectionFailed"),
            };
            Failure::of(kind, name, chain(error))
        }
        ConnectionError::ConnectionSetupRequestError(setup) => match &setup.error {
            ConnectionSetupRequestErrorKind::DbError(kind, message) => of_server(kind, message),
            ConnectionSetupRequestErrorKind::MissingAuthentication => Failure::of(
                FailureKind::Unauthorised,
                "MissingAuthentication",
                "the server requires a user and a password: cql://user:password@host/…",
            ),
            _ => Failure::of(FailureKind::Connection, "ConnectionSetup", chain(error)),
        },
        _ => Failure::of(FailureKind::Connection, "ConnectionFailed", chain(error)),
    }
}

/// Converts an error of the server. Codes: the native protocol's specification, section 9.
fn of_server(error: &DbError, message: &str) -> Failure {
    let (kind, name, code) = match error {
        DbError::AuthenticationError => (FailureKind::Unauthorised, "AuthenticationError", 0x0100),
        DbError::Unauthorized => (FailureKind::Unauthorised, "Unauthorized", 0x2100),
        // Not enough replicas: the counterpart of a missing primary.
        DbError::Unavailable { .. } => (FailureKind::NotPrimary, "Unavailable", 0x1000),
        DbError::IsBootstrapping => (FailureKind::NotPrimary, "IsBootstrapping", 0x1002),
        DbError::Overloaded => (FailureKind::Transient, "Overloaded", 0x1001),
        DbError::RateLimitReached { .. } => (FailureKind::Transient, "RateLimitReached", 0),
        DbError::ReadTimeout { .. } => (FailureKind::Timeout, "ReadTimeout", 0x1200),
        // Some replicas have it, and the rest may still get it: fewer acknowledged than requested.
        DbError::WriteTimeout { .. } => (FailureKind::WriteConcern, "WriteTimeout", 0x1100),
        DbError::WriteFailure { .. } => (FailureKind::WriteConcern, "WriteFailure", 0x1500),
        DbError::ReadFailure { .. } => (FailureKind::Server, "ReadFailure", 0x1300),
        DbError::SyntaxError => (FailureKind::Unsupported, "SyntaxError", 0x2000),
        DbError::AlreadyExists { .. } => (FailureKind::Duplicate, "AlreadyExists", 0x2400),
        DbError::Invalid => (FailureKind::Server, "Invalid", 0x2200),
        DbError::ConfigError => (FailureKind::Server, "ConfigError", 0x2300),
        DbError::TruncateError => (FailureKind::Server, "TruncateError", 0x1003),
        DbError::ServerError => (FailureKind::Server, "ServerError", 0x0000),
        DbError::ProtocolError => (FailureKind::Malformed, "ProtocolError", 0x000A),
        _ => (FailureKind::Server, "Other", -1),
    };
    let kind = if message.contains("No space left on device") {
        FailureKind::NoSpace
    } else {
        kind
    };
    Failure {
        kind,
        code: (code > 0).then_some(code),
        name: name.into(),
        message: format!("{name}: {message}"),
        done: 0,
    }
}

fn timeout(error: &dyn Error) -> Failure {
    Failure::of(FailureKind::Timeout, "Timeout", chain(error))
}

fn unsupported(error: &dyn Error) -> Failure {
    Failure::of(FailureKind::Unsupported, "Unsupported", chain(error))
}

/// Formats an error with its causes; each part once.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let part = error.to_string();
        if !text.contains(&part) {
            text = format!("{text}: {part}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_errors_keep_their_kind() {
        let kind = |error: DbError| of_server(&error, "text").kind;
        assert_eq!(kind(DbError::Overloaded), FailureKind::Transient);
        assert_eq!(kind(DbError::Unauthorized), FailureKind::Unauthorised);
        assert_eq!(kind(DbError::IsBootstrapping), FailureKind::NotPrimary);
        let full = of_server(&DbError::ServerError, "flush: No space left on device");
        assert_eq!(full.kind, FailureKind::NoSpace);
        let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        let pool = ConnectionPoolError::Broken {
            last_connection_error: refused.into(),
        };
        let failure = of_execution(&ExecutionError::ConnectionPoolError(pool));
        assert_eq!(failure.kind, FailureKind::Connection);
        assert_eq!(failure.name, "ConnectionRefused");
        let late = ExecutionError::RequestTimeout(std::time::Duration::from_secs(1));
        assert_eq!(of_execution(&late).kind, FailureKind::Timeout);
    }
}
