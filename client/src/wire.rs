//! Our own client on MongoDB's wire protocol, for servers without TLS or authentication.
//!
//! A [`RawTarget`] is what a connection string asks for; its server, once found, is an `Endpoint`; each
//! virtual user has a `Connection` to that. Nothing here waits or knows of time: the engine calls when a
//! socket is ready.

pub(crate) mod connection;
mod elements;
pub(crate) mod endpoint;
mod greeting;
mod message;
mod reply;
pub(crate) mod socket;
pub mod target;

pub use target::RawTarget;

/// For the fuzzer: reads a reply as if it answered `request_id`, and says whether it was accepted.
pub fn reads_as_reply(bytes: &[u8], request_id: i32) -> bool {
    reply::read(bytes, request_id).is_ok()
}
