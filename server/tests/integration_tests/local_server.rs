//! Starting, stopping and dying.

use std::time::Duration;

use mongodb::bson::{Document, doc};
use seekscope_server::{LocalServer, LocalServerError, Server, Stopped};

use crate::child::Helper;
use crate::support::{exists, options, start, wait_until, workspace};

#[tokio::test]
async fn data_survives_a_clean_restart() {
    let (_root, workspace) = workspace();
    let server = start(&workspace).await;
    let first = Server::connect(&server.uri()).await.unwrap();
    let collection = first.database("d").collection::<Document>("c");
    collection.insert_one(doc! { "_id": 1 }).await.unwrap();
    let pid = server.pid();
    assert_eq!(server.stop(Duration::from_secs(20)).await, Stopped::Clean);
    assert!(!exists(pid));

    let server = start(&workspace).await;
    let second = Server::connect(&server.uri()).await.unwrap();
    let count = second
        .database("d")
        .collection::<Document>("c")
        .count_documents(doc! {})
        .await;
    assert_eq!(count.unwrap(), 1);
}

#[tokio::test]
async fn dropping_leaves_no_process_and_no_files() {
    let (_root, workspace) = workspace();
    let path = workspace.path().to_path_buf();
    let server = start(&workspace).await;
    let pid = server.pid();
    assert!(exists(pid));
    drop(server);
    assert!(!exists(pid));
    drop(workspace);
    assert!(!path.exists());
}

#[tokio::test]
async fn dropping_the_start_kills_the_server() {
    let (_root, workspace) = workspace();
    let options = options(&workspace);
    let too_short = tokio::time::timeout(Duration::from_millis(1), LocalServer::start(&options));
    assert!(too_short.await.is_err());
    let text = workspace.path().to_string_lossy().into_owned();
    let still_there = std::fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        std::fs::read_to_string(entry.path().join("cmdline")).is_ok_and(|line| line.contains(&text))
    });
    assert!(!still_there);
}

#[tokio::test]
async fn a_failed_start_shows_the_log() {
    let (_root, workspace) = workspace();
    let mut options = options(&workspace);
    options.extra_arguments = vec!["--no-such-option".into()];
    let error = LocalServer::start(&options).await.unwrap_err();
    assert!(matches!(error, LocalServerError::Ended { .. }), "{error}");
    assert!(error.to_string().contains("no-such-option"), "{error}");

    options.binary.path = "/bin/true".into();
    let error = LocalServer::start(&options).await.unwrap_err();
    assert!(
        error.to_string().contains("ended during its start"),
        "{error}"
    );

    options.binary.path = "/nonexistent".into();
    let error = LocalServer::start(&options).await.unwrap_err();
    assert!(matches!(error, LocalServerError::Spawn { .. }), "{error}");
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_killed_in_time() {
    let (_root, workspace) = workspace();
    let mut options = options(&workspace);
    let script = workspace.path().join("secantusd-mute");
    std::fs::write(&script, "#!/bin/sh\necho busy\nexec sleep 1000\n").unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    options.binary.path = script;
    options.start_limit = Duration::from_millis(300);
    let error = LocalServer::start(&options).await.unwrap_err();
    assert!(
        matches!(error, LocalServerError::TimedOut { .. }),
        "{error}"
    );
    assert!(error.to_string().contains("busy"), "{error}");
}

#[test]
fn the_server_dies_with_a_killed_parent() {
    let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut parent = Helper::start("holds_a_server", &root.path().to_string_lossy());
    let said = parent.hear();
    let pid: u32 = said.split_once(' ').unwrap().0.parse().unwrap();
    assert!(exists(pid));
    parent.child.kill().unwrap();
    parent.child.wait().unwrap();
    wait_until("the server's end", || !exists(pid) || is_zombie(pid));
}

/// An orphan is reaped by init, which may take its time (or not exist in a container).
fn is_zombie(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')')
        .is_some_and(|(_, rest)| rest.starts_with(" Z"))
}
