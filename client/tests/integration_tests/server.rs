//! Servers of the tests' own, which can be frozen, killed and started again on the same port.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use seekscope_client::{ClientSpec, RawTarget};
use seekscope_server::{ServerBinary, ServerKind};

/// Dropped it is killed, frozen or not.
pub(crate) struct TestServer {
    child: Child,
    port: u16,
    folder: tempfile::TempDir,
}

impl TestServer {
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        std::fs::create_dir(folder.path().join("data")).unwrap();
        let port = free_port();
        let server = Self {
            child: spawn(folder.path(), port),
            port,
            folder,
        };
        server.await_answer();
        server
    }

    pub(crate) fn uri(&self) -> String {
        format!("mongodb://127.0.0.1:{}/?directConnection=true", self.port)
    }

    pub(crate) fn raw(&self) -> ClientSpec {
        raw(&self.uri())
    }

    pub(crate) fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    pub(crate) fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    pub(crate) fn restart(&mut self) {
        self.kill();
        self.child = spawn(self.folder.path(), self.port);
    }

    /// Documents in `test.c`, as the official driver counts them.
    pub(crate) fn count(&self) -> u64 {
        runtime().block_on(async {
            self.collection()
                .await
                .count_documents(bson::doc! {})
                .await
                .unwrap()
        })
    }

    pub(crate) fn insert(&self, documents: Vec<bson::Document>) {
        runtime().block_on(async {
            self.collection()
                .await
                .insert_many(documents)
                .await
                .unwrap();
        });
    }

    async fn collection(&self) -> mongodb::Collection<bson::Document> {
        let client = mongodb::Client::with_uri_str(self.uri()).await.unwrap();
        client.database("test").collection("c")
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).unwrap();
    }

    fn await_answer(&self) {
        for _ in 0..600 {
            if std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("the server does not listen");
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.kill();
    }
}

pub(crate) fn raw(uri: &str) -> ClientSpec {
    ClientSpec::Raw(Box::new(RawTarget::parse(uri, "test").unwrap()))
}

pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap().port()
}

fn spawn(folder: &Path, port: u16) -> Child {
    let binary = server_binary();
    let mut command = Command::new(&binary.path);
    let data = folder.join("data");
    match binary.kind {
        ServerKind::SecantusdRs => {
            let config = folder.join("secantusd.toml");
            std::fs::write(&config, "").unwrap();
            command.arg("--config").arg(config);
            command.args(["--host", "127.0.0.1", "--standalone", "--cache-size", "64M"]);
            command.arg("--storage-path").arg(data);
        }
        ServerKind::Mongod => {
            command
                .args(["--bind_ip", "127.0.0.1", "--dbpath"])
                .arg(data);
        }
    }
    command
        .arg("--port")
        .arg(port.to_string())
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn server_binary() -> ServerBinary {
    let path = std::env::var_os("SEEKSCOPE_TEST_SERVER").map_or_else(
        || {
            let home = std::env::var_os("HOME").expect("HOME is set");
            Path::new(&home).join(".cache/seekscope/tools/bin/secantusd-rs")
        },
        PathBuf::from,
    );
    ServerBinary::find(Some(&path), None, &[])
        .expect("a server program: set SEEKSCOPE_TEST_SERVER or install secantusd-rs")
}
