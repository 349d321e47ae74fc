//! Answers each question as the test says: as servers do that cannot be started here.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use mongodb::bson::{Document, doc};

const OP_REPLY: i32 = 1;
const OP_QUERY: i32 = 2004;
const OP_MSG: i32 = 2013;
/// Flags and the kind of the first section of an OP_MSG.
const DOCUMENT_AT: usize = 5;

type Answer = dyn Fn(&Document) -> Document + Send + Sync;

/// Starts one; returns its `host:port`. Questions of the old kind, which only ask for a greeting, come as `hello`.
pub(crate) fn start(answer: impl Fn(&Document) -> Document + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = listener.local_addr().unwrap().to_string();
    let answer: Arc<Answer> = Arc::new(answer);
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let answer = Arc::clone(&answer);
            thread::spawn(move || talk(client, &*answer));
        }
    });
    own
}

/// The answer to `hello` of a server whose highest wire version is this.
pub(crate) fn hello(wire_version: i32) -> Document {
    doc! {
        "ismaster": true, "minWireVersion": 0, "maxWireVersion": wire_version,
        "maxBsonObjectSize": 16_777_216, "maxMessageSizeBytes": 48_000_000, "maxWriteBatchSize": 100_000,
        "readOnly": false, "ok": 1.0,
    }
}

/// One question and its answer after the other, until the client goes.
fn talk(mut client: TcpStream, answer: &Answer) -> io::Result<()> {
    loop {
        let mut header = [0; 16];
        client.read_exact(&mut header)?;
        let number = |at: usize| i32::from_le_bytes(header[at..at + 4].try_into().unwrap());
        let mut rest = vec![0; usize::try_from(number(0)).unwrap() - header.len()];
        client.read_exact(&mut rest)?;
        let question = match number(12) {
            OP_QUERY => doc! { "hello": 1 },
            _ => Document::from_reader(&rest[DOCUMENT_AT..]).unwrap(),
        };
        client.write_all(&message(number(12), number(4), &answer(&question)))?;
    }
}

fn message(asked_by: i32, request: i32, reply: &Document) -> Vec<u8> {
    let (kind, head) = match asked_by {
        // Flags, cursor, first, and how many documents.
        OP_QUERY => (OP_REPLY, [&[0; 16][..], &1_i32.to_le_bytes()].concat()),
        // Flags, and the kind of the only section.
        _ => (OP_MSG, vec![0; DOCUMENT_AT]),
    };
    let body = [head, reply.to_vec().unwrap()].concat();
    let length = i32::try_from(16 + body.len()).unwrap();
    let header = [length, 0, request, kind].map(i32::to_le_bytes).concat();
    [header, body].concat()
}
