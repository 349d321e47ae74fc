//! Stands before a server and has it say that it is one of several: our server for tests is always alone.
//! Everything but its answer to `hello` passes unchanged.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use mongodb::bson::{Bson, Document};

/// Header, flags and the kind of the first section of an OP_MSG.
const DOCUMENT_AT: usize = 21;
const OP_MSG: i32 = 2013;
const MORE_TO_COME: u8 = 2;

/// Starts it; returns its `host:port`, which is the first of the set's members, before `others`.
pub(crate) fn start(server: &str, others: &[String]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = listener.local_addr().unwrap().to_string();
    let hosts: Vec<String> = [own.clone()].iter().chain(others).cloned().collect();
    let server = server.to_string();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let (server, hosts) = (server.clone(), hosts.clone());
            thread::spawn(move || pass_on(client, &TcpStream::connect(server)?, &hosts));
        }
    });
    own
}

/// One question and its answer after the other, until one side ends.
fn pass_on(mut client: TcpStream, mut server: &TcpStream, hosts: &[String]) -> io::Result<()> {
    loop {
        let question = read(&mut client)?;
        server.write_all(&question)?;
        let is_hello = document(&question)
            .and_then(|d| d.keys().next().cloned())
            .is_some_and(|name| name == "hello" || name == "isMaster");
        loop {
            let answer = read(&mut server)?;
            let goes_on = is_op_msg(&answer) && answer[16] & MORE_TO_COME != 0;
            match document(&answer) {
                Some(reply) if is_hello => client.write_all(&announcing(&answer, reply, hosts))?,
                _ => client.write_all(&answer)?,
            }
            if !goes_on {
                break;
            }
        }
    }
}

/// A message begins with its length.
fn read(stream: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut message = vec![0; 4];
    stream.read_exact(&mut message)?;
    let length = u32::from_le_bytes(message[..4].try_into().unwrap());
    message.resize(usize::try_from(length).unwrap(), 0);
    stream.read_exact(&mut message[4..])?;
    Ok(message)
}

fn is_op_msg(message: &[u8]) -> bool {
    message[12..16] == OP_MSG.to_le_bytes()
}

fn document(message: &[u8]) -> Option<Document> {
    is_op_msg(message).then(|| Document::from_reader(&message[DOCUMENT_AT..]).unwrap())
}

fn announcing(answer: &[u8], mut reply: Document, hosts: &[String]) -> Vec<u8> {
    let names: Vec<Bson> = hosts.iter().map(Bson::from).collect();
    reply.insert("setName", "announced");
    reply.insert("hosts", names);
    reply.insert("me", hosts[0].clone());
    let mut message = answer[..DOCUMENT_AT].to_vec();
    message[16] &= !1; // no checksum follows
    message.extend(reply.to_vec().unwrap());
    let length = u32::try_from(message.len()).unwrap();
    message[..4].copy_from_slice(&length.to_le_bytes());
    message
}
