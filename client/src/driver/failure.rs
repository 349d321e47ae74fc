//! Converts the driver's errors to failures.

use std::io;

use mongodb::error::{Error, ErrorKind, InsertManyError, WriteFailure};
use seekscope_server::driver_error::{plain, without_labels};
use seekscope_server::{NoServer, NoServerKind, Sightings, redact_text, redact_uri};

use crate::server_codes::kind_of_server_error;
use crate::wire::socket::closed;
use crate::{Failure, FailureKind};

/// Makes failures whose messages contain none of a connection string's secrets.
#[derive(Debug)]
pub(super) struct Failures {
    uri: String,
    shown_uri: String,
    sightings: Sightings,
}

impl Failures {
    pub(super) fn new(uri: &str) -> Self {
        Self {
            uri: uri.into(),
            shown_uri: redact_uri(uri),
            sightings: Sightings::default(),
        }
    }

    /// Adds what the driver sees of each server, for saying why none can be used.
    pub(super) fn seeing(self, sightings: Sightings) -> Self {
        Self { sightings, ..self }
    }

    /// Converts an error; `statements` is the number of documents or statements that the request held.
    pub(super) fn of(&self, error: &Error, statements: u64) -> Failure {
        let labels = || error.labels().iter().map(String::as_str);
        let server = |code: i32, name: Option<&str>, message: &str| {
            let kind = kind_of_server_error(code, labels(), message);
            self.server_failure(kind, code, name, message)
        };
        let said = |kind, name: &str| Failure::of(kind, name, self.clean(&plain(error)));
        match error.kind.as_ref() {
            ErrorKind::Command(e) => server(e.code, Some(&e.code_name), &e.message),
            ErrorKind::Write(WriteFailure::WriteError(e)) => {
                server(e.code, e.code_name.as_deref(), &e.message)
            }
            ErrorKind::Write(WriteFailure::WriteConcernError(e)) => {
                self.write_concern(e.code, &e.code_name, &e.message, statements)
            }
            ErrorKind::InsertMany(e) => self.of_insert(e, labels, statements),
            ErrorKind::Io(e) => self.of_io(e),
            ErrorKind::Authentication { .. } => Failure {
                message: self.clean(&format!(
                    "{} refused the login: {}; check user, password, authSource and authMechanism",
                    self.shown_uri,
                    plain(error)
                )),
                ..said(FailureKind::Unauthorised, "AuthenticationFailed")
            },
            ErrorKind::ServerSelection { .. } => self.no_server(),
            ErrorKind::DnsResolve { .. } => said(FailureKind::Connection, "DnsResolve"),
            ErrorKind::ConnectionPoolCleared { .. } => {
                said(FailureKind::Connection, "ConnectionPoolCleared")
            }
            ErrorKind::InvalidTlsConfig { .. } => said(FailureKind::Connection, "InvalidTlsConfig"),
            ErrorKind::InvalidResponse { .. } | ErrorKind::Bson(_) => {
                said(FailureKind::Malformed, "InvalidResponse")
            }
            ErrorKind::InvalidArgument { .. }
            | ErrorKind::SessionsNotSupported
            | ErrorKind::IncompatibleServer { .. }
            | ErrorKind::Transaction { .. } => said(FailureKind::Unsupported, "Unsupported"),
            _ => said(FailureKind::Client, "DriverError"),
        }
    }

    /// Returns the failure for an error that the server gave for a request or one of its statements.
    pub(super) fn server_failure(
        &self,
        kind: FailureKind,
        code: i32,
        name: Option<&str>,
        message: &str,
    ) -> Failure {
        let name = match name {
            Some(name) if !name.is_empty() => name.to_string(),
            _ if kind == FailureKind::Duplicate => "DuplicateKey".into(),
            _ => format!("Code{code}"),
        };
        Failure {
            kind,
            code: Some(code),
            name,
            message: self.clean(message),
            done: 0,
        }
    }

    /// Returns a write-concern failure; the write itself was done.
    pub(super) fn write_concern(
        &self,
        code: i32,
        name: &str,
        message: &str,
        statements: u64,
    ) -> Failure {
        let kind = FailureKind::WriteConcern;
        Failure {
            done: statements,
            ..self.server_failure(kind, code, Some(name), message)
        }
    }

    /// Returns the failure for a connection string that the driver does not accept, or whose hosts cannot be
    /// looked up.
    pub(super) fn bad_uri(&self, error: &Error) -> Failure {
        match error.kind.as_ref() {
            ErrorKind::DnsResolve { .. } | ErrorKind::InvalidTlsConfig { .. } => self.of(error, 0),
            ErrorKind::Io(e) => self.of_io(e),
            _ => {
                let text = format!(
                    "the connection string {} cannot be used: {}",
                    self.shown_uri,
                    plain(error)
                );
                Failure::of(FailureKind::Unsupported, "BadUri", self.clean(&text))
            }
        }
    }

    /// Converts an insert's error. The first refused document names the failure; the driver says where an
    /// ordered insert stopped only by that document's number.
    fn of_insert<'a, L: Iterator<Item = &'a str>>(
        &self,
        error: &InsertManyError,
        labels: impl Fn() -> L,
        statements: u64,
    ) -> Failure {
        let refused = error.write_errors.as_deref().unwrap_or_default();
        if let Some(first) = refused.first() {
            let kind = kind_of_server_error(first.code, labels(), &first.message);
            let name = first.code_name.as_deref();
            return Failure {
                done: statements.saturating_sub(refused.len() as u64),
                ..self.server_failure(kind, first.code, name, &first.message)
            };
        }
        match &error.write_concern_error {
            Some(e) => self.write_concern(e.code, &e.code_name, &e.message, statements),
            None => Failure::of(
                FailureKind::Malformed,
                "InvalidResponse",
                "an insert failed, and the server gave no reason",
            ),
        }
    }

    fn of_io(&self, error: &io::Error) -> Failure {
        if error.kind() == io::ErrorKind::UnexpectedEof {
            let closed = closed();
            let text = format!("{}: {}", self.shown_uri, closed.message);
            return Failure {
                message: self.clean(&text),
                ..closed
            };
        }
        let kind = match (
            error.kind(),
            error
                .raw_os_error()
                .map(rustix::io::Errno::from_raw_os_error),
        ) {
            (_, Some(rustix::io::Errno::MFILE | rustix::io::Errno::NFILE))
            | (io::ErrorKind::OutOfMemory, _) => FailureKind::Client,
            (io::ErrorKind::TimedOut, _) => FailureKind::Timeout,
            _ => FailureKind::Connection,
        };
        let name = match kind {
            FailureKind::Client if error.kind() != io::ErrorKind::OutOfMemory => {
                "TooManyOpenFiles".into()
            }
            _ => format!("{:?}", error.kind()),
        };
        let text = format!("{}: {error}", self.shown_uri);
        Failure::of(kind, &name, self.clean(&text))
    }

    /// Returns the failure for the case that no member answered, or none of those that did is suitable.
    fn no_server(&self) -> Failure {
        let uri = &self.shown_uri;
        let NoServer { kind, why } = self.sightings.why_none();
        let remedy = kind.remedy();
        let (class, name) = match kind {
            NoServerKind::NoPrimary => (FailureKind::NotPrimary, "NoPrimary"),
            NoServerKind::TooOld => (FailureKind::Unsupported, "ServerTooOld"),
            NoServerKind::TlsFile => (FailureKind::Unsupported, "InvalidTlsConfig"),
            _ => (FailureKind::Connection, "ServerSelection"),
        };
        let text = format!("cannot connect to {uri}: {why}; {remedy}");
        Failure::of(class, name, self.clean(&text))
    }

    fn clean(&self, text: &str) -> String {
        redact_text(&without_labels(text), &self.uri)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_broken_connections() {
        let failures = Failures::new("mongodb://me:QZ9Xsecret@h/");
        for (error, kind, name) in [
            (
                io::Error::from_raw_os_error(24),
                FailureKind::Client,
                "TooManyOpenFiles",
            ),
            (
                io::ErrorKind::ConnectionReset.into(),
                FailureKind::Connection,
                "ConnectionReset",
            ),
            (
                io::ErrorKind::UnexpectedEof.into(),
                FailureKind::Connection,
                "ConnectionClosed",
            ),
            (
                io::ErrorKind::TimedOut.into(),
                FailureKind::Timeout,
                "TimedOut",
            ),
        ] {
            let failure = failures.of(&Error::from(error), 1);
            assert_eq!((failure.kind, failure.name.as_str()), (kind, name));
            assert!(!failure.message.contains("QZ9X"));
        }
    }
}
