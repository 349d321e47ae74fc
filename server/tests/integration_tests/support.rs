//! What several tests need.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use seekscope_server::{LocalServer, LocalServerOptions, ServerBinary, Workspace};

/// The server under test: SEEKSCOPE_TEST_SERVER, else the one in seekscope's tool folder.
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

/// A workspace on the disk that holds the build (the system's temporary folder may be in memory).
pub(crate) fn workspace() -> (tempfile::TempDir, Workspace) {
    let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder for the test");
    let workspace =
        Workspace::create(root.path(), &root.path().join("leases")).expect("a workspace");
    (root, workspace)
}

pub(crate) fn options(workspace: &Workspace) -> LocalServerOptions {
    LocalServerOptions::new(server_binary(), workspace.data_directory(), 64 << 20)
}

pub(crate) async fn start(workspace: &Workspace) -> LocalServer {
    LocalServer::start(&options(workspace))
        .await
        .expect("the server starts")
}

/// Not even a zombie is left.
pub(crate) fn exists(pid: u32) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}

pub(crate) fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(
            start.elapsed() < Duration::from_secs(10),
            "waited 10 s in vain: {what}"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}
