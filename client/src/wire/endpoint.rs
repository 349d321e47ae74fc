//! A server that was found and greeted.

use std::net::ToSocketAddrs;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Instant;

use mongodb::options::ServerAddress;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::connection::{Connection, Progress};
use super::greeting::{self, Greeting};
use super::message::{Limits, Tails};
use super::socket::{Address, LOOK_UP};
use super::target::RawTarget;
use crate::{ClientError, Failure, FailureKind, Request};

const DEFAULT_PORT: u16 = 27017;

/// The server's address and limits, and what each connection to it begins with.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(super) address: Address,
    pub(super) greeting: Greeting,
    /// The command of the greeting.
    pub(super) command: Vec<u8>,
    target: RawTarget,
}

impl Endpoint {
    /// Returns what this connection adds to each command; its session is its own.
    pub(super) fn tails(&self) -> Result<Tails, Failure> {
        let session = self.greeting.has_sessions.then(bson::Uuid::new);
        Tails::new(
            &self.target.database,
            session,
            self.target.read_concern.as_ref(),
            self.target.write_concern.as_ref(),
            self.target.read_preference.as_ref(),
        )
        .map_err(|error| {
            let text = format!("a read or write concern cannot be encoded: {error}");
            Failure::of(FailureKind::Unsupported, "CannotBeSent", text)
        })
    }

    /// Checks whether requests may be sent to a server that greets like this.
    pub(super) fn admit(&self, greeting: &Greeting) -> Result<(), Failure> {
        if greeting.is_writable || self.target.read_preference.is_some() {
            return Ok(());
        }
        let text = "the server is not the primary of its replica set";
        Err(Failure::of(FailureKind::NotPrimary, "NotPrimary", text))
    }

    /// Finds the first of the target's servers that can be sent to. Waits, but gives up soon after `stopped`
    /// returns true.
    pub(crate) fn find(
        target: &RawTarget,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Arc<Self>, ClientError> {
        let deadline = Instant::now() + target.connect_limit;
        let mut refusals = Vec::new();
        for host in &target.hosts {
            for address in addresses(host).unwrap_or_else(|failure| {
                refusals.push(format!("{host}: {}", failure.message));
                Vec::new()
            }) {
                let endpoint = Self::unknown(target, address)?;
                match greet(endpoint, deadline, stopped) {
                    Ok(endpoint) if endpoint.greeting.is_mongos && target.hosts.len() > 1 => {
                        return Err(ClientError::Refused {
                            host: host.to_string(),
                            text: "only the official driver can use several mongos: use `--client \
                                   driver`, or name only one mongos"
                                .into(),
                        });
                    }
                    Ok(endpoint) => return Ok(Arc::new(endpoint)),
                    Err(_) if stopped() => return Err(ClientError::Stopped),
                    Err(failure) => refusals.push(format!("{host}: {}", failure.message)),
                }
            }
        }
        Err(ClientError::Unreachable {
            text: format!("no server can take the requests: {}", refusals.join("; ")),
        })
    }

    fn unknown(target: &RawTarget, address: Address) -> Result<Self, ClientError> {
        Ok(Self {
            address,
            greeting: Greeting {
                limits: Limits::default(),
                is_writable: true,
                is_mongos: false,
                has_sessions: false,
            },
            command: greeting::command(&target.app_name).map_err(|error| ClientError::Uri {
                text: format!("the application's name cannot be sent: {error}"),
            })?,
            target: target.clone(),
        })
    }
}

fn addresses(host: &ServerAddress) -> Result<Vec<Address>, Failure> {
    match host {
        ServerAddress::Tcp { host, port } => {
            // The driver keeps the brackets of IPv6 addresses.
            let name = host.trim_start_matches('[').trim_end_matches(']');
            (name, port.unwrap_or(DEFAULT_PORT))
                .to_socket_addrs()
                .map(|found| found.map(Address::Inet).collect())
                .map_err(|error| {
                    let text = format!("its name cannot be resolved: {error}");
                    Failure::of(FailureKind::Connection, "UnknownHost", text)
                })
        }
        ServerAddress::Unix { path } => Ok(vec![Address::unix(path)?]),
        other => {
            let text = format!("{other} is not an address that seekscope can connect to");
            Err(Failure::of(
                FailureKind::Unsupported,
                "UnknownAddress",
                text,
            ))
        }
    }
}

/// Connects once and finds out what the server is.
fn greet(
    endpoint: Endpoint,
    deadline: Instant,
    stopped: &dyn Fn() -> bool,
) -> Result<Endpoint, Failure> {
    let endpoint = Arc::new(endpoint);
    let mut connection = Connection::new(Arc::clone(&endpoint))?;
    connection.open()?;
    let nothing = Request::default();
    while connection.progress(&nothing, false)? != Progress::Opened {
        if Instant::now() >= deadline || stopped() {
            let text = "the server did not answer the greeting in time";
            return Err(Failure::of(FailureKind::Timeout, "Timeout", text));
        }
        if let Some(socket) = connection.socket() {
            await_socket(socket, connection.is_connecting());
        }
    }
    let greeting = connection.greeting();
    drop(connection);
    Arc::into_inner(endpoint)
        .zip(greeting)
        .map(|(endpoint, greeting)| Endpoint {
            greeting,
            ..endpoint
        })
        .ok_or_else(super::socket::closed)
}

/// Waits a moment until a socket is ready.
fn await_socket(socket: &OwnedFd, to_write: bool) {
    let flags = if to_write {
        PollFlags::OUT
    } else {
        PollFlags::IN
    };
    let moment = Timespec::try_from(LOOK_UP).ok();
    // Whatever the result, the next step finds out what is wrong.
    let _ = poll(&mut [PollFd::new(socket, flags)], moment.as_ref());
}
