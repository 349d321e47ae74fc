//! Servers started with the options under test, and requests as workloads write them.

use std::ffi::OsStr;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bson::{Document, RawDocument};
use seekscope_client::request::{Request, Transaction, Verb};
use seekscope_client::{AsyncClient, AsyncClientFactory, DriverTarget, Failure, OwnedReply};

/// A server that answers on a free port; killed when dropped.
pub(super) struct TestServer {
    child: Child,
    pub(super) port: u16,
    pub(super) folder: tempfile::TempDir,
}

impl TestServer {
    pub(super) fn start(options: &[&str]) -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        Self::start_in(folder, options)
    }

    /// Starts a server in a folder that holds what the options name.
    pub(super) fn start_in(folder: tempfile::TempDir, options: &[&str]) -> Self {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let child = Command::new(program())
            .args(["--cache-size", "64M", "--log-file-max", "8MB"])
            .args(["--port", &port.to_string(), "--storage-path"])
            .arg(folder.path().join("data"))
            .args(options.iter().map(OsStr::new))
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a server program: set SEEKSCOPE_TEST_SERVER or install secantusd-rs");
        let started = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            assert!(started.elapsed() < Duration::from_secs(30), "no start");
            std::thread::sleep(Duration::from_millis(20));
        }
        Self {
            child,
            port,
            folder,
        }
    }

    /// A connection string; `options` as after the question mark.
    pub(super) fn uri(&self, credentials: &str, options: &str) -> String {
        format!("mongodb://{credentials}127.0.0.1:{}/?{options}", self.port)
    }

    pub(super) async fn clients(&self, count: usize) -> Vec<Box<dyn AsyncClient>> {
        let uri = self.uri("", "directConnection=true");
        DriverTarget::new(&uri, "d").connect(count).await.unwrap()
    }

    pub(super) async fn client(&self) -> Box<dyn AsyncClient> {
        self.clients(1).await.remove(0)
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn program() -> PathBuf {
    std::env::var_os("SEEKSCOPE_TEST_SERVER").map_or_else(
        || {
            let home = std::env::var_os("HOME").expect("HOME is set");
            Path::new(&home).join(".cache/seekscope/tools/bin/secantusd-rs")
        },
        PathBuf::from,
    )
}

pub(super) fn request(verb: Verb, body: Document, statements: &[Document]) -> Request {
    let mut request = Request {
        verb,
        statement_count: u32::try_from(statements.len()).unwrap(),
        ..Request::default()
    };
    request.body.raw(&body.to_vec().unwrap());
    for statement in statements {
        request.statements.raw(&statement.to_vec().unwrap());
    }
    request
}

pub(super) fn within(mut request: Request, transaction: Transaction) -> Request {
    request.in_transaction = transaction;
    request
}

pub(super) async fn send(
    client: &mut Box<dyn AsyncClient>,
    request: &Request,
) -> Result<OwnedReply, Failure> {
    let mut reply = OwnedReply::default();
    client.send(request, &mut reply).await.map(|()| reply)
}

/// What must have worked.
pub(super) async fn done(
    client: &mut Box<dyn AsyncClient>,
    verb: Verb,
    body: Document,
    statements: &[Document],
) -> OwnedReply {
    let request = request(verb, body, statements);
    send(client, &request).await.unwrap()
}

/// What must have failed.
pub(super) async fn failed(
    client: &mut Box<dyn AsyncClient>,
    verb: Verb,
    body: Document,
    statements: &[Document],
) -> Failure {
    let request = request(verb, body, statements);
    send(client, &request).await.unwrap_err()
}

pub(super) fn first(reply: &OwnedReply) -> &RawDocument {
    reply.first.as_deref().unwrap()
}

/// A number in the first document.
pub(super) fn number(reply: &OwnedReply, name: &str) -> i32 {
    first(reply).get_i32(name).unwrap()
}
