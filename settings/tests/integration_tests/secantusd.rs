//! A real server: one that has hardly any parameters, and one that a command restarts.

use std::path::{Path, PathBuf};
use std::time::Duration;

use mongodb::bson::doc;
use seekscope_server::{LocalServer, LocalServerOptions, Server, ServerBinary, Workspace};
use seekscope_settings::{
    Applier, ApplyError, Catalogue, Means, ServerProgram, ServerReplies, Surroundings, Traffic,
    discover,
};

use crate::support::{configuration, knob};

fn binary() -> PathBuf {
    std::env::var_os("SEEKSCOPE_TEST_SERVER").map_or_else(
        || {
            let home = std::env::var_os("HOME").expect("HOME is set");
            Path::new(&home).join(".cache/seekscope/tools/bin/secantusd-rs")
        },
        PathBuf::from,
    )
}

/// A server that shell commands stop and start on one port.
pub(crate) struct RestartedServer {
    root: tempfile::TempDir,
    port: u16,
}

impl RestartedServer {
    pub(crate) async fn start() -> Self {
        let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let server = Self { root, port };
        let status = std::process::Command::new("sh")
            .arg("-c")
            .arg(server.start_command())
            .status();
        assert!(status.unwrap().success());
        let began = std::time::Instant::now();
        while Server::connect(&server.uri()).await.is_err() {
            assert!(
                began.elapsed() < Duration::from_secs(60),
                "the server does not answer"
            );
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        server
    }

    pub(crate) fn uri(&self) -> String {
        format!("mongodb://127.0.0.1:{}/?directConnection=true", self.port)
    }

    fn path(&self, name: &str) -> String {
        self.root.path().join(name).display().to_string()
    }

    pub(crate) fn pid(&self) -> u32 {
        std::fs::read_to_string(self.path("pid"))
            .unwrap()
            .trim()
            .parse()
            .unwrap()
    }

    fn start_command(&self) -> String {
        format!(
            "setsid {} --port {} --storage-path {} --cache-size 64M --log-file-max 16MB >{} 2>&1 & echo $! >{}",
            binary().display(),
            self.port,
            self.path("data"),
            self.path("log"),
            self.path("pid"),
        )
    }

    pub(crate) fn stop_command(&self) -> String {
        let pid = self.path("pid");
        format!(
            "kill $(cat {pid}) 2>/dev/null; while kill -0 $(cat {pid}) 2>/dev/null; do sleep 0.05; done; true"
        )
    }

    pub(crate) fn restart_command(&self) -> String {
        format!("{}; {}", self.stop_command(), self.start_command())
    }
}

impl Drop for RestartedServer {
    fn drop(&mut self) {
        let _ = std::process::Command::new("sh")
            .arg("-c")
            .arg(self.stop_command())
            .status();
    }
}

#[tokio::test]
async fn a_server_without_these_parameters_says_so() {
    let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let workspace = Workspace::create(root.path(), &root.path().join("leases")).unwrap();
    let local = LocalServer::start(&LocalServerOptions::new(
        ServerBinary::find(Some(&binary()), None, &[]).unwrap(),
        workspace.data_directory(),
        64 << 20,
    ))
    .await
    .unwrap();
    let server = Server::connect(&local.uri()).await.unwrap();
    let replies = ServerReplies::ask(&server).await.unwrap();
    println!("{replies:#?}");
    let surroundings = Surroundings::default();
    let mongod = Catalogue::of(ServerProgram::Mongod).unwrap();
    let found = discover(&mongod, &replies, &surroundings);
    let why = found
        .left_out
        .iter()
        .find(|(name, _)| name == "eviction_target");
    assert!(
        why.unwrap()
            .1
            .contains("has no parameter wiredTigerEngineRuntimeConfig"),
        "{why:?}"
    );

    let folder = tempfile::tempdir().unwrap();
    let knobs = [
        knob(
            "tickets",
            "{ parameter = \"wiredTigerConcurrentReadTransactions\" }",
        ),
        knob("target", "{ engine = \"eviction_target\" }"),
    ];
    let means = Means {
        server: Some(server.clone()),
        ..Means::default()
    };
    let mut applier = Applier::begin(&knobs, means, folder.path()).unwrap();
    for name in ["tickets", "target"] {
        let error = applier
            .apply(&configuration(&[(name, 50)]))
            .await
            .unwrap_err();
        println!("{error}");
        assert!(
            matches!(
                error,
                ApplyError::Refused { .. } | ApplyError::NoMeans { .. }
            ),
            "{error}"
        );
        assert!(error.to_string().contains(name), "{error}");
    }

    assert!(!Traffic::of(&server).await.unwrap().is_busy());
    let collection = server.database("d").collection("c");
    let other = tokio::spawn(async move {
        for i in 0..100_000 {
            if collection.insert_one(doc! { "i": i }).await.is_err() {
                return;
            }
        }
    });
    let traffic = Traffic::of(&server).await.unwrap();
    other.abort();
    println!("{traffic:?}");
    assert!(traffic.is_busy());
}
