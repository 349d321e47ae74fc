//! A server with a workspace of its own for each test.

use std::path::{Path, PathBuf};

use bson::RawDocumentBuf;
use mongodb::Collection;
use seekscope_server::{
    LocalServer, LocalServerOptions, Namespace, Server, ServerBinary, Workspace,
};
use seekscope_workload::schema::{ForeignServer, LabServer};
use seekscope_workload::{LoadOptions, LoadReport, Sdu, load};

// Fields are dropped in this order: the server before its files.
pub(crate) struct Fixture {
    pub(crate) server: Server,
    local: LocalServer,
    _workspace: Workspace,
    _root: tempfile::TempDir,
}

impl Fixture {
    pub(crate) async fn start() -> Self {
        let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let workspace = Workspace::create(root.path(), &root.path().join("leases")).unwrap();
        let local = LocalServer::start(&LocalServerOptions::new(
            server_binary(),
            workspace.data_directory(),
            64 << 20,
        ))
        .await
        .expect("the server starts");
        let server = Server::connect(&local.uri()).await.unwrap();
        Self {
            server,
            local,
            _workspace: workspace,
            _root: root,
        }
    }

    /// The server as if it were somebody's.
    pub(crate) fn foreign_lab_server(&self) -> LabServer {
        LabServer::Foreign(ForeignServer {
            server: self.server.clone(),
            pid: Some(self.local.pid()),
        })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.local.pid()
    }

    pub(crate) fn uri(&self) -> String {
        self.local.uri()
    }

    pub(crate) fn data_directory(&self) -> PathBuf {
        self.local.data_directory().to_path_buf()
    }

    pub(crate) fn collection(&self) -> Collection<RawDocumentBuf> {
        self.server.database("sdu").collection("aged")
    }

    pub(crate) async fn load(&self, sdu: &Sdu, documents: u64) -> LoadReport {
        load(
            &self.server,
            &namespace(),
            sdu,
            &LoadOptions::new(documents),
            &|_| (),
        )
        .await
        .unwrap()
    }
}

pub(crate) fn namespace() -> Namespace {
    "sdu.aged".parse().unwrap()
}

pub(crate) fn server_binary() -> ServerBinary {
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
