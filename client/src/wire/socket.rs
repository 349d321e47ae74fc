//! Sockets: TCP and Unix, opened without waiting.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use rustix::io::{Errno, ioctl_fionbio};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, getpeername, getsockname,
    socket_with, sockopt,
};

use crate::{Failure, FailureKind};

/// A reader waiting in the kernel wakes up this often, so that it notices when to stop.
pub(crate) const LOOK_UP: Duration = Duration::from_millis(20);

/// The name of failures caused by a lack of file descriptors.
pub(crate) const TOO_MANY_OPEN: &str = "TooManyOpenFiles";

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Address {
    Inet(SocketAddr),
    Unix(SocketAddrUnix),
}

impl Address {
    pub(crate) fn unix(path: &Path) -> Result<Self, Failure> {
        SocketAddrUnix::new(path)
            .map(Self::Unix)
            .map_err(|errno| failure_of(errno, "the path of the socket cannot be used"))
    }

    /// Opens a socket that is connecting, or already connected.
    pub(crate) fn open(&self) -> Result<OwnedFd, Failure> {
        let family = match self {
            Self::Inet(SocketAddr::V4(_)) => AddressFamily::INET,
            Self::Inet(SocketAddr::V6(_)) => AddressFamily::INET6,
            Self::Unix(_) => AddressFamily::UNIX,
        };
        let failed = |errno| failure_of(errno, "cannot connect");
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(family, SocketType::STREAM, flags, None).map_err(failed)?;
        let connected = match self {
            Self::Inet(address) => {
                sockopt::set_tcp_nodelay(&socket, true).map_err(failed)?;
                connect(&socket, address)
            }
            Self::Unix(address) => connect(&socket, address),
        };
        match connected {
            Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
            Err(errno) => Err(failed(errno)),
        }
    }
}

/// Returns whether the socket has connected by now. If so, reading from it may wait from now on, but only for
/// [`LOOK_UP`]; a caller that does not want to wait says so with each call.
pub(crate) fn finish_connect(socket: &OwnedFd) -> Result<bool, Failure> {
    let failed = |errno| failure_of(errno, "cannot connect");
    sockopt::socket_error(socket)
        .and_then(|error| error)
        .map_err(failed)?;
    let peer = match getpeername(socket) {
        Err(Errno::NOTCONN) => return Ok(false),
        peer => peer.map_err(failed)?,
    };
    // A port on which nobody listens can be given to the very socket that connects to it.
    if peer.is_some() && getsockname(socket).map_err(failed).map(Some)? == peer {
        return Err(failed(Errno::CONNREFUSED));
    }
    sockopt::set_socket_timeout(socket, sockopt::Timeout::Recv, Some(LOOK_UP)).map_err(failed)?;
    ioctl_fionbio(socket, false).map_err(failed)?;
    Ok(true)
}

/// Returns the failure of an operation for a failed system call.
pub(crate) fn failure_of(errno: Errno, doing: &str) -> Failure {
    let (kind, name) = match errno {
        Errno::MFILE | Errno::NFILE => (FailureKind::Client, TOO_MANY_OPEN),
        Errno::NOBUFS | Errno::NOMEM => (FailureKind::Client, "OutOfMemory"),
        Errno::ADDRNOTAVAIL => (FailureKind::Client, "NoFreePorts"),
        Errno::CONNREFUSED | Errno::NOENT => (FailureKind::Connection, "ConnectionRefused"),
        Errno::CONNRESET | Errno::PIPE => (FailureKind::Connection, "ConnectionReset"),
        Errno::TIMEDOUT => (FailureKind::Connection, "ConnectionTimedOut"),
        Errno::HOSTUNREACH | Errno::NETUNREACH => (FailureKind::Connection, "HostUnreachable"),
        _ => (FailureKind::Connection, "ConnectionFailed"),
    };
    Failure::of(kind, name, format!("{doing}: {errno}"))
}

/// Returns the failure for a server that closed the connection although an answer was due.
pub(crate) fn closed() -> Failure {
    Failure::of(
        FailureKind::Connection,
        "ConnectionClosed",
        "the server closed the connection before its answer was complete",
    )
}
