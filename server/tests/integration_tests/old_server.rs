//! Answers every question as a server of an earlier age answers `hello`.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use mongodb::bson::{Document, doc};

const OP_REPLY: i32 = 1;
const OP_QUERY: i32 = 2004;
const OP_MSG: i32 = 2013;

/// Starts one whose highest wire version is this; returns its `host:port`.
pub(crate) fn start(wire_version: i32) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            thread::spawn(move || answer(client, wire_version));
        }
    });
    own
}

/// One question and its answer after the other, until the client goes.
fn answer(mut client: TcpStream, wire_version: i32) -> io::Result<()> {
    let reply = doc! {
        "ismaster": true, "minWireVersion": 0, "maxWireVersion": wire_version,
        "maxBsonObjectSize": 16_777_216, "maxMessageSizeBytes": 48_000_000, "maxWriteBatchSize": 100_000,
        "readOnly": false, "ok": 1.0,
    };
    loop {
        let mut header = [0; 16];
        client.read_exact(&mut header)?;
        let number = |at: usize| i32::from_le_bytes(header[at..at + 4].try_into().unwrap());
        let mut rest = vec![0; usize::try_from(number(0)).unwrap() - header.len()];
        client.read_exact(&mut rest)?;
        client.write_all(&message(number(12), number(4), &reply))?;
    }
}

fn message(asked_by: i32, request: i32, reply: &Document) -> Vec<u8> {
    let (kind, head) = match asked_by {
        // Flags, cursor, first, and how many documents.
        OP_QUERY => (OP_REPLY, [&[0; 16][..], &1_i32.to_le_bytes()].concat()),
        // Flags, and the kind of the only section.
        _ => (OP_MSG, vec![0; 5]),
    };
    let body = [head, reply.to_vec().unwrap()].concat();
    let length = i32::try_from(16 + body.len()).unwrap();
    let header = [length, 0, request, kind].map(i32::to_le_bytes).concat();
    [header, body].concat()
}
