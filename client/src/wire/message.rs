//! Writes requests as they are sent over the wire.
//!
//! OP_MSG and, for the greeting alone, OP_QUERY
//! (<https://www.mongodb.com/docs/manual/reference/mongodb-wire-protocol/>).

use bson::{Document, doc};

use crate::request::{Transaction, Verb};
use crate::{BsonWriter, Failure, FailureKind, Request};

const OP_MSG: i32 = 2013;
const OP_QUERY: i32 = 2004;
/// Lets any member of a replica set answer.
const SECONDARY_OK: i32 = 4;
const BODY_SECTION: u8 = 0;
const SEQUENCE_SECTION: u8 = 1;
/// What a server accepts if it does not say: 48 MB, 100,000 statements.
const MESSAGE_BYTES_MAX: usize = 48_000_000;
const STATEMENTS_MAX: u32 = 100_000;
const FINAL_NUL: usize = 1;

/// The limits of what a server accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) message_bytes: usize,
    pub(crate) document_bytes: usize,
    pub(crate) statements: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_bytes: MESSAGE_BYTES_MAX,
            document_bytes: 16 << 20,
            statements: STATEMENTS_MAX,
        }
    }
}

/// What a connection adds to each command, as elements ready to be appended.
#[derive(Debug, Default)]
pub(crate) struct Tails {
    database: Vec<u8>,
    /// The tail of commands that end transactions.
    admin: Vec<u8>,
    session: Vec<u8>,
    read_concern: Vec<u8>,
    write_concern: Vec<u8>,
    preference: Vec<u8>,
    /// The parts above combined, for commands outside transactions.
    read: Vec<u8>,
    write: Vec<u8>,
    command: Vec<u8>,
    transaction: i64,
}

impl Tails {
    /// Creates the parts; `session` is the id of this connection's logical session, if the server supports
    /// sessions.
    pub(crate) fn new(
        database: &str,
        session: Option<bson::Uuid>,
        read_concern: Option<&Document>,
        write_concern: Option<&Document>,
        preference: Option<&Document>,
    ) -> Result<Self, bson::error::Error> {
        let part = |name: &str, value: Option<&Document>| match value {
            Some(value) => elements(&doc! { name: value.clone() }),
            None => Ok(Vec::new()),
        };
        let session = session.map(|id| doc! { "id": id });
        let mut tails = Self {
            database: elements(&doc! { "$db": database })?,
            admin: elements(&doc! { "$db": "admin" })?,
            session: part("lsid", session.as_ref())?,
            read_concern: part("readConcern", read_concern)?,
            write_concern: part("writeConcern", write_concern)?,
            preference: part("$readPreference", preference)?,
            ..Self::default()
        };
        let common = [tails.database.as_slice(), &tails.session].concat();
        tails.read = [&common, &tails.preference, &tails.read_concern]
            .map(Vec::as_slice)
            .concat();
        tails.write = [&common, &tails.write_concern].map(Vec::as_slice).concat();
        tails.command = [&common, &tails.preference].map(Vec::as_slice).concat();
        Ok(tails)
    }

    fn append(&mut self, request: &Request, out: &mut Vec<u8>) {
        let step = request.in_transaction;
        if step == Transaction::None {
            out.extend_from_slice(match request.verb {
                Verb::Find | Verb::Aggregate => &self.read,
                Verb::Insert | Verb::Update | Verb::Delete => &self.write,
                Verb::Command => &self.command,
            });
            return;
        }
        let mut extra = BsonWriter::default();
        if step == Transaction::Start {
            self.transaction += 1;
            extra.boolean("startTransaction", true);
        }
        extra.int64("txnNumber", self.transaction);
        extra.boolean("autocommit", false);
        let (database, concern) = match step {
            Transaction::End => (&self.admin, self.write_concern.as_slice()),
            Transaction::Start => (&self.database, self.read_concern.as_slice()),
            _ => (&self.database, [].as_slice()),
        };
        for part in [database, self.session.as_slice(), concern, extra.bytes()] {
            out.extend_from_slice(part);
        }
    }
}

/// Returns a document's elements without the surrounding bytes.
fn elements(document: &Document) -> Result<Vec<u8>, bson::error::Error> {
    let bytes = document.to_vec()?;
    Ok(bytes[4..bytes.len() - FINAL_NUL].to_vec())
}

/// Writes a request up to its statements, which follow it on the wire unchanged.
pub(crate) fn write_request(
    out: &mut Vec<u8>,
    id: i32,
    request: &Request,
    tails: &mut Tails,
    limits: &Limits,
) -> Result<(), Failure> {
    let Some((_, body)) = request
        .body
        .bytes()
        .split_last()
        .filter(|(_, rest)| rest.len() >= 4)
    else {
        return Err(unsupported(
            "the body of the request is not a BSON document".into(),
        ));
    };
    let statements = request.sequence();
    if !statements.is_empty()
        && matches!(request.verb, Verb::Find | Verb::Aggregate | Verb::Command)
    {
        return Err(unsupported(
            "the request carries statements, and its command takes none".into(),
        ));
    }
    if body.len() >= limits.document_bytes {
        return Err(unsupported(format!(
            "the command has {} bytes, and the server accepts at most {}",
            body.len(),
            limits.document_bytes
        )));
    }
    if request.statement_count > limits.statements {
        return Err(unsupported(format!(
            "the request has {} statements, and the server accepts at most {}",
            request.statement_count, limits.statements
        )));
    }
    begin(out, id, OP_MSG);
    out.extend_from_slice(&[0; 4]);
    out.push(BODY_SECTION);
    let start = out.len();
    out.extend_from_slice(body);
    tails.append(request, out);
    out.push(0);
    let body_bytes = out.len() - start;
    set_length(out, start, body_bytes);
    if request.statement_count > 0 {
        let identifier: &[u8] = match request.verb {
            Verb::Update => b"updates\0",
            Verb::Delete => b"deletes\0",
            _ => b"documents\0",
        };
        out.push(SEQUENCE_SECTION);
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(identifier);
        set_length(out, start, 4 + identifier.len() + statements.len());
    }
    let message_bytes = out.len() + statements.len();
    if message_bytes > limits.message_bytes {
        return Err(unsupported(format!(
            "the request has {message_bytes} bytes, and the server accepts at most {}",
            limits.message_bytes
        )));
    }
    set_length(out, 0, message_bytes);
    Ok(())
}

/// Asks for the rest of a cursor, with the first request's session and batch size.
pub(crate) fn write_get_more(
    out: &mut Vec<u8>,
    id: i32,
    (cursor, collection): (i64, &str),
    batch_size: Option<i32>,
    (request, tails): (&Request, &mut Tails),
) {
    begin(out, id, OP_MSG);
    out.extend_from_slice(&[0; 4]);
    out.push(BODY_SECTION);
    let start = out.len();
    let mut command = BsonWriter::default();
    command
        .begin()
        .int64("getMore", cursor)
        .string("collection", collection);
    if let Some(batch_size) = batch_size {
        command.int32("batchSize", batch_size);
    }
    out.extend_from_slice(command.bytes());
    if request.in_transaction == Transaction::None {
        // The read concern belongs to the first request.
        out.extend_from_slice(&tails.command);
    } else {
        let again = Request {
            in_transaction: Transaction::Continue,
            ..Request::default()
        };
        tails.append(&again, out);
    }
    out.push(0);
    let body_bytes = out.len() - start;
    set_length(out, start, body_bytes);
    let message_bytes = out.len();
    set_length(out, 0, message_bytes);
}

/// Writes a command in the form that servers of every version understand.
pub(crate) fn write_query(out: &mut Vec<u8>, id: i32, command: &[u8]) {
    begin(out, id, OP_QUERY);
    out.extend_from_slice(&SECONDARY_OK.to_le_bytes());
    out.extend_from_slice(b"admin.$cmd\0");
    out.extend_from_slice(&0_i32.to_le_bytes());
    out.extend_from_slice(&(-1_i32).to_le_bytes());
    out.extend_from_slice(command);
    let message_bytes = out.len();
    set_length(out, 0, message_bytes);
}

/// Begins a message; its length is set when it is complete.
fn begin(out: &mut Vec<u8>, id: i32, operation: i32) {
    out.clear();
    for number in [0, id, 0, operation] {
        out.extend_from_slice(&number.to_le_bytes());
    }
}

fn set_length(out: &mut [u8], at: usize, length: usize) {
    let length = u32::try_from(length).unwrap_or(u32::MAX);
    if let Some(place) = out.get_mut(at..at + 4) {
        place.copy_from_slice(&length.to_le_bytes());
    }
}

fn unsupported(what: String) -> Failure {
    Failure::of(FailureKind::Unsupported, "CannotBeSent", what)
}

#[cfg(test)]
mod tests {
    use bson::RawDocument;

    use super::*;

    fn tails() -> Tails {
        Tails::new(
            "db",
            Some(bson::Uuid::from_bytes([7; 16])),
            Some(&doc! { "level": "local" }),
            Some(&doc! { "w": 1 }),
            None,
        )
        .unwrap()
    }

    fn body(message: &[u8]) -> Document {
        let length = u32::from_le_bytes(message[21..25].try_into().unwrap()) as usize;
        RawDocument::from_bytes(&message[21..21 + length])
            .unwrap()
            .try_into()
            .unwrap()
    }

    #[test]
    fn a_find_goes_out_with_what_belongs_to_the_connection() {
        let mut request = Request::default();
        request
            .body
            .begin()
            .string("find", "c")
            .int32("limit", 1)
            .end();
        let mut out = vec![9; 3];
        write_request(&mut out, 5, &request, &mut tails(), &Limits::default()).unwrap();
        let length = u32::from_le_bytes(out[..4].try_into().unwrap()) as usize;
        assert_eq!((length, out[4], out[20]), (out.len(), 5, 0));
        let body = body(&out);
        let keys: Vec<&String> = body.keys().collect();
        assert_eq!(keys, ["find", "limit", "$db", "lsid", "readConcern"]);
        let lsid = body.get_document("lsid").unwrap().get_binary_generic("id");
        assert!(lsid.is_err(), "a UUID is not of the generic subtype");
    }

    #[test]
    fn statements_follow_as_a_sequence() {
        let mut request = Request {
            verb: Verb::Update,
            statement_count: 1,
            ..Request::default()
        };
        request.body.begin().string("update", "c").end();
        request.statements.begin().boolean("multi", false).end();
        let mut out = Vec::new();
        write_request(&mut out, 5, &request, &mut tails(), &Limits::default()).unwrap();
        let statements = request.statements.bytes();
        let length = u32::from_le_bytes(out[..4].try_into().unwrap()) as usize;
        assert_eq!(length, out.len() + statements.len());
        assert!(out.ends_with(b"updates\0"));
        let sequence = out.len() - b"updates\0".len() - 4;
        assert_eq!(out[sequence - 1], SEQUENCE_SECTION);
        let size = u32::from_le_bytes(out[sequence..sequence + 4].try_into().unwrap()) as usize;
        assert_eq!(size, length - sequence);
        assert!(body(&out).contains_key("writeConcern"));
        let tight = Limits {
            message_bytes: 100,
            ..Limits::default()
        };
        let refused = write_request(&mut out, 5, &request, &mut tails(), &tight);
        assert_eq!(refused.unwrap_err().kind, FailureKind::Unsupported);
    }

    #[test]
    fn transactions_number_themselves() {
        let mut tails = tails();
        let mut send = |step, command: &str| {
            let mut request = Request {
                verb: Verb::Command,
                in_transaction: step,
                ..Request::default()
            };
            request.body.begin().int32(command, 1).end();
            let mut out = Vec::new();
            write_request(&mut out, 1, &request, &mut tails, &Limits::default()).unwrap();
            body(&out)
        };
        for number in 1_i64..3 {
            let start = send(Transaction::Start, "x");
            assert_eq!(start.get("startTransaction"), Some(&true.into()));
            assert!(start.contains_key("readConcern") && !start.contains_key("writeConcern"));
            let next = send(Transaction::Continue, "x");
            assert_eq!(next.get("txnNumber"), Some(&number.into()));
            assert_eq!(next.get("autocommit"), Some(&false.into()));
            assert!(!next.contains_key("readConcern"));
            let end = send(Transaction::End, "commitTransaction");
            assert_eq!(end.get("$db"), Some(&"admin".into()));
            assert!(end.contains_key("writeConcern"));
        }
    }
}
