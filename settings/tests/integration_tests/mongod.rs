//! A peer that answers as mongod 4.2 was recorded to: the replies are real, and so are the driver and its
//! messages. It keeps the parameters that it is given.

use std::sync::{Arc, Mutex};

use mongodb::bson::{Bson, Document, doc};
use seekscope_server::Server;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::recorded::recorded;

const OP_REPLY: i32 = 1;
const OP_QUERY: i32 = 2004;
const OP_MSG: i32 = 2013;
const HEADER_BYTES: usize = 16;

#[derive(Default)]
struct State {
    parameters: Document,
    /// `setParameter` commands, in order.
    set: Vec<Document>,
    /// Parameters that take a value and do not keep it.
    deaf: Vec<String>,
    /// Whether the user may set nothing.
    forbids: bool,
    /// Whether the engine's configuration reads as it was last set, as in 4.4 and later.
    keeps_engine_text: bool,
    /// How often it was started anew, each time as another process.
    restarts: i32,
}

pub(crate) struct Mongod {
    port: u16,
    state: Arc<Mutex<State>>,
}

impl Mongod {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(State {
            parameters: recorded("4.2", "getParameter-all").reply,
            ..State::default()
        }));
        let shared = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&shared)));
            }
        });
        Self { port, state }
    }

    pub(crate) async fn connect(&self) -> Server {
        let uri = format!("mongodb://127.0.0.1:{}/", self.port);
        Server::connect(&uri).await.unwrap()
    }

    /// The `setParameter` commands so far.
    pub(crate) fn set(&self) -> Vec<Document> {
        self.state.lock().unwrap().set.clone()
    }

    pub(crate) fn parameter(&self, name: &str) -> Bson {
        self.state
            .lock()
            .unwrap()
            .parameters
            .get(name)
            .unwrap()
            .clone()
    }

    pub(crate) fn keep_engine_text(&self) {
        self.state.lock().unwrap().keeps_engine_text = true;
    }

    pub(crate) fn forbid(&self) {
        self.state.lock().unwrap().forbids = true;
    }

    /// Another process answers from now on, with the settings that each begins with.
    pub(crate) fn restart(&self) {
        let mut state = self.state.lock().unwrap();
        state.parameters = recorded("4.2", "getParameter-all").reply;
        state.restarts += 1;
    }

    pub(crate) fn make_deaf(&self, name: &str) {
        self.state.lock().unwrap().deaf.push(name.into());
    }
}

async fn serve(mut stream: TcpStream, state: Arc<Mutex<State>>) {
    while let Some((id, kind, body)) = receive(&mut stream).await {
        let command = match kind {
            OP_MSG => Document::from_reader(&body[5..]).unwrap(),
            OP_QUERY => {
                let name_end = 4 + body[4..].iter().position(|b| *b == 0).unwrap();
                Document::from_reader(&body[name_end + 9..]).unwrap()
            }
            other => panic!("message of kind {other}"),
        };
        let reply = answer(&command, &mut state.lock().unwrap());
        let mut document = Vec::new();
        reply.to_writer(&mut document).unwrap();
        let (kind, prefix) = match kind {
            OP_QUERY => {
                let numbers = [8i32, 0, 0, 0, 1].map(i32::to_le_bytes).concat();
                (OP_REPLY, numbers)
            }
            _ => (OP_MSG, vec![0; 5]),
        };
        let length = i32::try_from(HEADER_BYTES + prefix.len() + document.len()).unwrap();
        let mut message = [length, 1, id, kind].map(i32::to_le_bytes).concat();
        message.extend(prefix);
        message.extend(document);
        if stream.write_all(&message).await.is_err() {
            return;
        }
    }
}

async fn receive(stream: &mut TcpStream) -> Option<(i32, i32, Vec<u8>)> {
    let mut header = [0; HEADER_BYTES];
    stream.read_exact(&mut header).await.ok()?;
    let number = |at: usize| i32::from_le_bytes(header[at..at + 4].try_into().unwrap());
    let mut body = vec![0; usize::try_from(number(0)).unwrap() - HEADER_BYTES];
    stream.read_exact(&mut body).await.ok()?;
    Some((number(4), number(12), body))
}

fn answer(command: &Document, state: &mut State) -> Document {
    let name = command.keys().next().unwrap().as_str();
    match name {
        "isMaster" | "ismaster" | "hello" => {
            let mut greeting = recorded("4.2", "isMaster").reply;
            // The driver speaks with 4.4 and later only; nothing else here depends on it.
            greeting.insert("maxWireVersion", 9);
            greeting
        }
        "serverStatus" => {
            let mut status = recorded("4.2", name).reply;
            status.insert("pid", 1000 + state.restarts);
            status
        }
        "buildInfo" | "getCmdLineOpts" | "hostInfo" => recorded("4.2", name).reply,
        "getParameter" if command.get_str(name).is_ok_and(|all| all == "*") => {
            state.parameters.clone()
        }
        "getParameter" => {
            let wanted = command.keys().nth(1).unwrap();
            let value = state.parameters.get(wanted).unwrap().clone();
            doc! { wanted: value, "ok": 1.0 }
        }
        "setParameter" if state.forbids => doc! {
            "ok": 0.0, "code": 13, "codeName": "Unauthorized",
            "errmsg": "not authorized on admin to execute command",
        },
        "setParameter" => set(command, state),
        _ => doc! { "ok": 1.0 },
    }
}

fn set(command: &Document, state: &mut State) -> Document {
    let (name, value) = command.iter().nth(1).unwrap();
    state.set.push(
        command
            .iter()
            .take(2)
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect(),
    );
    let Some(was) = state.parameters.get(name).cloned() else {
        return recorded("4.2", "set-unknown").reply;
    };
    if name == "wiredTigerEngineRuntimeConfig" {
        // The engine of 4.2 does not know this key, and says so in the recorded way.
        let bad = recorded("4.2", "set-bad-engine-key");
        let key = bad
            .command
            .get_str(name)
            .unwrap()
            .split('=')
            .next()
            .unwrap()
            .to_owned();
        if value.as_str().unwrap().contains(&key) {
            return bad.reply;
        }
        if state.keeps_engine_text {
            state.parameters.insert(name.clone(), value.clone());
        }
        return recorded("4.2", "set-dirty").reply;
    }
    if !state.deaf.contains(name) {
        state.parameters.insert(name.clone(), value.clone());
    }
    doc! { "was": was, "ok": 1.0 }
}
