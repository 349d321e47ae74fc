//! A real server for each test, alone or as a replica set of one member.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use bson::{Document, RawDocumentBuf, doc};
use futures_util::TryStreamExt;
use futures_util::future::BoxFuture;
use mongodb::Collection;
use mongodb::options::Hint;
use seekscope_reorder::{By, Progress, Request, Step, Writers};
use seekscope_server::{Namespace, Server, ServerBinary};
use tokio::runtime::Handle;

pub(crate) struct Bed {
    pub(crate) server: Server,
    child: Child,
    pub(crate) folder: tempfile::TempDir,
}

impl Bed {
    pub(crate) async fn replica_set() -> Self {
        Self::start(&[]).await
    }

    pub(crate) async fn standalone() -> Self {
        Self::start(&["--standalone"]).await
    }

    async fn start(arguments: &[&str]) -> Self {
        Self::start_below(Path::new(env!("CARGO_TARGET_TMPDIR")), arguments).await
    }

    /// Starts a server with its data in a folder below `parent`.
    pub(crate) async fn start_below(parent: &Path, arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir_in(parent).unwrap();
        let config = folder.path().join("server.toml");
        std::fs::write(&config, "").unwrap();
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let child = Command::new(server_binary().path)
            .arg("--config")
            .arg(config)
            .args([
                "--host",
                "127.0.0.1",
                "--log-level",
                "WARNING",
                "--cache-size",
                "128M",
            ])
            .args(["--port", &port.to_string(), "--storage-path"])
            .arg(folder.path().join("data"))
            .args(arguments)
            .env(
                "SECANTUS_WT_CONFIG_EXTRA",
                "eviction_dirty_trigger=90,eviction_updates_trigger=90",
            )
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the server starts");
        let uri = format!("mongodb://127.0.0.1:{port}/?directConnection=true");
        let mut server = Server::connect(&uri).await;
        for _ in 0..20 {
            if server.is_ok() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
            server = Server::connect(&uri).await;
        }
        Self {
            server: server.expect("the server answers"),
            child,
            folder,
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn request(&self, name: &str, by: By, writers: Writers) -> Request {
        Request {
            namespace: namespace(name),
            by,
            max_rate_bytes_per_s: None,
            writers,
            guard: None,
            force: false,
            judge: None,
            spool: self.folder.path().to_path_buf(),
        }
    }

    pub(crate) fn collection(&self, name: &str) -> Collection<Document> {
        self.server.database("d").collection(name)
    }

    pub(crate) fn raw(&self, name: &str) -> Collection<RawDocumentBuf> {
        self.server.database("d").collection(name)
    }

    /// Documents in the order in which a scan finds them.
    pub(crate) async fn scan(&self, name: &str) -> Vec<RawDocumentBuf> {
        let natural = Hint::Keys(doc! { "$natural": 1 });
        let cursor = self.raw(name).find(doc! {}).hint(natural).await.unwrap();
        cursor.try_collect().await.unwrap()
    }

    pub(crate) async fn run(&self, command: Document) -> Document {
        self.server.command("d", command).await.unwrap()
    }

    /// Names of all collections of the database.
    pub(crate) async fn names(&self) -> Vec<String> {
        let mut names = self
            .server
            .database("d")
            .list_collection_names()
            .await
            .unwrap();
        names.sort();
        names
    }

    /// Options, indexes and UUID.
    pub(crate) async fn definition(&self, name: &str) -> (Document, Vec<Document>, bson::Bson) {
        let listed = self
            .run(doc! { "listCollections": 1, "filter": { "name": name } })
            .await;
        let listed = batch(&listed).remove(0);
        let mut indexes = batch(&self.run(doc! { "listIndexes": name }).await);
        indexes.sort_by_key(|i| i.get_str("name").unwrap().to_owned());
        let uuid = listed
            .get_document("info")
            .unwrap()
            .get("uuid")
            .unwrap()
            .clone();
        (
            listed.get_document("options").unwrap().clone(),
            indexes,
            uuid,
        )
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn batch(reply: &Document) -> Vec<Document> {
    let batch = reply
        .get_document("cursor")
        .unwrap()
        .get_array("firstBatch")
        .unwrap();
    batch
        .iter()
        .map(|d| d.as_document().unwrap().clone())
        .collect()
}

pub(crate) fn namespace(name: &str) -> Namespace {
    Namespace::new("d", name).unwrap()
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

/// Never ready: nobody stops it.
pub(crate) fn never() -> std::future::Pending<()> {
    std::future::pending()
}

/// Does something when a step begins for the first time, and goes on when it is done.
pub(crate) struct Act {
    at: Step,
    act: Mutex<Option<BoxFuture<'static, ()>>>,
}

impl Act {
    pub(crate) fn at(step: Step, act: impl Future<Output = ()> + Send + 'static) -> Self {
        Self {
            at: step,
            act: Mutex::new(Some(Box::pin(act))),
        }
    }
}

impl Progress for Act {
    fn step(&self, step: Step) {
        if step == self.at
            && let Some(act) = self.act.lock().unwrap().take()
        {
            tokio::task::block_in_place(|| Handle::current().block_on(act));
        }
    }
}
