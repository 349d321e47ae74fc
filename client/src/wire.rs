//! Our own client on MongoDB's wire protocol, for servers without TLS or authentication.
//!
//! A [`RawTarget`] is what a connection string asks for; its server, once found, is an `Endpoint`; each virtual
//! user has a `Connection` to that. Nothing here waits or keeps time: the engine calls when a socket is ready.

pub(crate) mod connection;
pub(crate) mod elements;
pub(crate) mod endpoint;
mod greeting;
mod message;
mod reply;
pub(crate) mod socket;
pub mod target;

pub use target::RawTarget;
