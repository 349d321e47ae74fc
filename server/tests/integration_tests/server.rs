//! Facts of a real server, and refusals.

use std::path::Path;

use mongodb::IndexModel;
use mongodb::bson::{Document, doc};
use seekscope_run::FileRole;
use seekscope_server::{FileMap, Namespace, ProcFs, Server, ServerError};

use crate::scripted_server::{self, hello};
use crate::support::{start, workspace};

#[tokio::test]
async fn facts_process_and_files_of_a_local_server() {
    let (_root, workspace) = workspace();
    let local = start(&workspace).await;
    let server = Server::connect(&local.uri()).await.unwrap();
    let proc_fs = ProcFs::host();
    let facts = server.facts(&proc_fs).await;
    println!("{facts:#?}");
    assert_eq!(facts.target.pid, Some(local.pid()));
    assert_eq!(facts.target.product, local.kind().program());
    let dbpath = workspace.data_directory();
    assert_eq!(facts.target.dbpath.as_deref(), dbpath.to_str());
    assert!(!facts.target.version.is_empty());
    assert!(
        proc_fs
            .open_files_below(local.pid(), &dbpath)
            .unwrap()
            .len()
            > 2
    );
    assert_eq!(
        proc_fs.listener(server.addresses()[0].1, None).unwrap(),
        Some(local.pid())
    );

    let collection = server.database("sdu").collection::<Document>("aged");
    collection.insert_one(doc! { "i": 1 }).await.unwrap();
    collection
        .create_index(IndexModel::builder().keys(doc! { "i": 1 }).build())
        .await
        .unwrap();
    let namespace: Namespace = "sdu.aged".parse().unwrap();
    let map = FileMap::of_catalogue(&server).await.unwrap();
    let file = dbpath.join(map.collection_file(&namespace).unwrap());
    assert!(file.is_file(), "{}", file.display());
    assert_eq!(
        map.classify(&file),
        (FileRole::Collection, Some("sdu.aged".into()))
    );
    for path in proc_fs.open_files_below(local.pid(), &dbpath).unwrap() {
        println!("{:?} {}", map.classify(&path), path.display());
    }
    let index = map.classify(&dbpath.join("secantus_index_entries.wt"));
    assert_eq!(index, (FileRole::Index, Some("sdu.aged/i_1".into())));
    assert_eq!(
        map.classify(Path::new("/x/WiredTigerLog.0000000001")).0,
        FileRole::Journal
    );
}

#[tokio::test]
async fn refusals_are_told_apart_and_hold_no_password() {
    let password = "QZ9Xsecret";
    let check = |error: ServerError| {
        assert!(!error.to_string().contains(password), "{error}");
        error
    };
    let uri = format!("mongodb://me:{password}@127.0.0.1:1/?connectTimeoutMS=200");
    let error = check(Server::connect(&uri).await.unwrap_err());
    assert!(matches!(error, ServerError::Unreachable { .. }), "{error}");
    for uri in [
        format!("mongodb://me:{password}"),
        format!("mongodb://me:{password}/x@h"),
        format!("mongodb://me:{password}@h/?tls=perhaps"),
        format!("monodb://me:{password}@h"),
        format!("me:{password}@h"),
    ] {
        let error = check(Server::connect(&uri).await.unwrap_err());
        assert!(matches!(error, ServerError::BadUri { .. }), "{error}");
    }

    let (_root, workspace) = workspace();
    let mut options = crate::support::options(&workspace);
    options.extra_arguments = vec!["--auth".into()];
    // `ping` is answered before login, so the start works with authentication switched on.
    let local = seekscope_server::LocalServer::start(&options)
        .await
        .unwrap();
    let uri = local
        .uri()
        .replace("mongodb://", &format!("mongodb://me:{password}@"));
    let error = check(Server::connect(&uri).await.unwrap_err());
    assert!(matches!(error, ServerError::LoginRefused { .. }), "{error}");

    // Without login the server answers, but says little: facts are missing, not the run.
    let anonymous = Server::connect(&local.uri()).await.unwrap();
    let facts = anonymous.facts(&ProcFs::host()).await;
    println!("{:#?}", facts.missing);
    assert_eq!(facts.target.pid, Some(local.pid()));
    assert!(!facts.missing.is_empty());
    let error = anonymous
        .command("admin", doc! { "serverStatus": 1 })
        .await
        .unwrap_err();
    assert!(
        matches!(error, ServerError::NotAuthorised { .. }),
        "{error}"
    );
}

#[tokio::test]
async fn an_old_server_is_refused_with_what_works_with_it() {
    let uri = format!("mongodb://{}/", scripted_server::start(|_| hello(8)));
    let error = Server::connect(&uri).await.unwrap_err();
    assert!(matches!(error, ServerError::Unsuitable { .. }), "{error}");
    let said = error.to_string();
    println!("{said}");
    for word in [
        "wire version is 8",
        "MongoDB 4.2",
        "4.4 or later",
        "layout DBPATH",
        "trace -p PID",
    ] {
        assert!(said.contains(word), "{word}: {said}");
    }
    let uri = format!("mongodb://{}/", scripted_server::start(|_| hello(9)));
    assert!(Server::connect(&uri).await.is_ok());
}
