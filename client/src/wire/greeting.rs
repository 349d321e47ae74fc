//! The first exchange on each connection, in which each side says what it is.
//!
//! The greeting is `isMaster` in OP_QUERY with `helloOk`, which servers of every version answer (specification
//! "MongoDB Handshake").

use bson::{RawDocument, doc};

use super::elements::Elements;
use super::message::Limits;
use super::reply::{HEADER_BYTES, header_number, malformed};
use crate::{Failure, FailureKind};

const OP_REPLY: i32 = 1;
/// Flags, cursor, start, count.
const REPLY_HEAD_BYTES: usize = 20;
/// The first version that knows OP_MSG: MongoDB 3.6.
const WIRE_VERSION_MIN: i32 = 6;

/// What a server says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Greeting {
    pub(crate) limits: Limits,
    pub(crate) is_writable: bool,
    pub(crate) is_mongos: bool,
    /// Whether it supports logical sessions.
    pub(crate) has_sessions: bool,
}

/// Returns the command that greets a server.
pub(crate) fn command(app_name: &str) -> Result<Vec<u8>, bson::error::Error> {
    doc! {
        "isMaster": 1,
        "helloOk": true,
        "client": {
            "application": { "name": app_name },
            "driver": { "name": "seekscope", "version": env!("CARGO_PKG_VERSION") },
            "os": { "type": "Linux", "architecture": std::env::consts::ARCH },
        },
    }
    .to_vec()
}

/// Reads a whole message that answers the greeting `request_id`.
pub(crate) fn read(bytes: &[u8], request_id: i32) -> Result<Greeting, Failure> {
    if header_number(bytes, 3) != Some(OP_REPLY) || header_number(bytes, 2) != Some(request_id) {
        return Err(malformed("it does not answer the greeting"));
    }
    let document = bytes
        .get(HEADER_BYTES + REPLY_HEAD_BYTES..)
        .and_then(|document| RawDocument::from_bytes(document).ok())
        .ok_or_else(|| malformed("the answer to the greeting is not a BSON document"))?;
    let number = |name: &str| {
        Elements::of(document.as_bytes())
            .into_iter()
            .flatten()
            .flatten()
            .find(|element| element.name == name.as_bytes())?
            .integer()
    };
    let flag = |name: &str| document.get_bool(name).unwrap_or(false);
    if number("ok") != Some(1) {
        let message = document.get_str("errmsg").unwrap_or("it gave no reason");
        let text = format!(
            "the server refused the greeting: {}",
            message.escape_debug()
        );
        return Err(Failure::of(FailureKind::Server, "GreetingRefused", text));
    }
    let version = number("maxWireVersion").unwrap_or(0);
    if version < i64::from(WIRE_VERSION_MIN) {
        let text = format!(
            "the server speaks wire version {version}, and seekscope needs at least \
             {WIRE_VERSION_MIN} (MongoDB 3.6)"
        );
        return Err(Failure::of(FailureKind::Unsupported, "ServerTooOld", text));
    }
    let bound = |name: &str, usual: usize| {
        number(name)
            .and_then(|value| usize::try_from(value).ok())
            .filter(|&value| value > 0)
            .unwrap_or(usual)
            .min(usual)
    };
    let usual = Limits::default();
    Ok(Greeting {
        limits: Limits {
            message_bytes: bound("maxMessageSizeBytes", usual.message_bytes),
            document_bytes: bound("maxBsonObjectSize", usual.document_bytes),
            statements: u32::try_from(bound("maxWriteBatchSize", usual.statements as usize))
                .unwrap_or(usual.statements),
        },
        is_writable: flag("isWritablePrimary") || flag("ismaster"),
        is_mongos: document.get_str("msg").is_ok_and(|msg| msg == "isdbgrid"),
        has_sessions: number("logicalSessionTimeoutMinutes").is_some(),
    })
}

#[cfg(test)]
mod tests {
    use bson::Document;
    use proptest::prelude::*;

    use super::*;

    fn message(document: &Document) -> Vec<u8> {
        let mut bytes = Vec::new();
        for number in [0, 1, 9, OP_REPLY, 0, 0, 0, 0, 1] {
            bytes.extend_from_slice(&i32::to_le_bytes(number));
        }
        bytes.extend(document.to_vec().unwrap());
        bytes
    }

    #[test]
    fn reads_what_the_server_is() {
        let answer = doc! {
            "ismaster": true, "maxWireVersion": 21, "maxMessageSizeBytes": 1000, "ok": 1.0,
            "logicalSessionTimeoutMinutes": 30, "maxWriteBatchSize": 1_i64 << 40, "msg": "isdbgrid",
        };
        let greeting = read(&message(&answer), 9).unwrap();
        assert_eq!(greeting.limits.message_bytes, 1000);
        assert_eq!(
            greeting.limits.statements, 100_000,
            "no more than the usual"
        );
        assert!(greeting.is_writable && greeting.has_sessions && greeting.is_mongos);
        assert!(read(&message(&answer), 8).is_err());
    }

    #[test]
    fn old_and_unwilling_servers_are_refused() {
        let old = read(&message(&doc! { "ok": 1, "maxWireVersion": 5 }), 9).unwrap_err();
        assert!(old.message.contains("3.6"));
        let refused = read(&message(&doc! { "ok": 0, "errmsg": "go\naway" }), 9).unwrap_err();
        assert!(refused.message.contains("go\\naway"));
    }

    proptest! {
        #[test]
        fn mangled_greetings_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            let _ = read(&bytes, 9);
            let mut framed = message(&doc! {});
            framed.extend(bytes);
            let _ = read(&framed, 9);
        }
    }
}
