//! A peer that greets as a server does, and then misbehaves.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;

use bson::doc;

/// What the peer does with requests on one connection, each given with its id.
pub(crate) type Behaviour = fn(&mut TcpStream, request_id: i32);

/// Serves until the process ends; the last behaviour is that of all further connections. The first
/// connection only greets: it is the one by which the client finds its server.
pub(crate) fn start(behaviours: &'static [Behaviour]) -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let place = number.saturating_sub(1).min(behaviours.len() - 1);
            let behaviour = behaviours[place];
            thread::spawn(move || serve(&mut stream.unwrap(), behaviour));
        }
    });
    format!("mongodb://127.0.0.1:{port}/")
}

fn serve(stream: &mut TcpStream, behaviour: Behaviour) {
    if let Some(id) = read_request(stream) {
        let greeting = doc! { "ismaster": true, "maxWireVersion": 21, "ok": 1 };
        let head = [1_i32, 0, 0, 0, 0, 1];
        let _ = stream.write_all(&message(id, &head, &[], &greeting));
    }
    while let Some(id) = read_request(stream) {
        behaviour(stream, id);
    }
}

/// Reads a request; `None` at the end.
fn read_request(stream: &mut TcpStream) -> Option<i32> {
    let mut header = [0; 16];
    stream.read_exact(&mut header).ok()?;
    let number = |at: usize| i32::from_le_bytes(header[at..at + 4].try_into().unwrap());
    let mut rest = vec![0; usize::try_from(number(0)).unwrap() - 16];
    stream.read_exact(&mut rest).ok()?;
    Some(number(4))
}

/// `{ok: 1}` as an answer to a request.
pub(crate) fn ok(id: i32) -> Vec<u8> {
    message(id, &[2013, 0], &[0], &doc! { "ok": 1 })
}

fn message(id: i32, head: &[i32], section: &[u8], document: &bson::Document) -> Vec<u8> {
    let mut rest = Vec::new();
    for number in [9, id].iter().chain(head) {
        rest.extend_from_slice(&number.to_le_bytes());
    }
    rest.extend_from_slice(section);
    rest.extend(document.to_vec().unwrap());
    let length = i32::try_from(rest.len() + 4).unwrap();
    [length.to_le_bytes().to_vec(), rest].concat()
}
