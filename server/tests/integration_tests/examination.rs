//! Examining a real server, with and without its permission.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use mongodb::IndexModel;
use mongodb::bson::{Document, doc};
use seekscope_run::{Deployment, MemberState};
use seekscope_server::examination::{Examination, ExaminationOptions, OthersAsked, choose_member};
use seekscope_server::{LocalServer, ProcFs, Sampler, Server};

use crate::announcing_proxy;
use crate::support::{options, server_binary, start, wait_until, workspace};

/// A server that says to be the primary of a set of one.
struct SetOfOne {
    child: Child,
    uri: String,
}

impl SetOfOne {
    fn start(directory: &Path) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = port.local_addr().unwrap().port();
        let child = Command::new(&server_binary().path)
            .args(["--host", "127.0.0.1", "--port", &port.to_string()])
            .args(["--cache-size", "64M", "--storage-path"])
            .arg(directory)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        wait_until("the server listens", || {
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        Self {
            child,
            uri: format!("mongodb://127.0.0.1:{port}"),
        }
    }
}

impl Drop for SetOfOne {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[tokio::test]
async fn a_set_of_one() {
    let (_root, workspace) = workspace();
    let local = SetOfOne::start(&workspace.data_directory());
    let proc_fs = ProcFs::host();
    let server = choose_member(&local.uri, &proc_fs).await.unwrap();
    let collection = server.database("sdu").collection::<Document>("orders");
    let many =
        (0..500).map(|n| doc! { "_id": n, "name": format!("SECRET{n}"), "t": "x".repeat(500) });
    collection.insert_many(many).await.unwrap();
    let keys = doc! { "name": 1, "t": -1 };
    collection
        .create_index(IndexModel::builder().keys(keys).build())
        .await
        .unwrap();

    // Of several that are named, the one that answers.
    let two = local.uri.replace("mongodb://", "mongodb://127.0.0.1:1,");
    let found = choose_member(&two, &proc_fs).await.unwrap();
    assert_eq!(found.addresses(), server.addresses());

    let rows = Sampler::of_member("b:27017", &server).sample().await;
    assert!(rows.iter().any(|row| row.name == "opcounters.insert"));
    assert!(rows.iter().all(|row| row.source == "serverStatus@b:27017"));

    let mut examination =
        Examination::begin(&server, &proc_fs, &ExaminationOptions::default()).await;
    assert!(examination.samplers_of_others().is_empty());
    examination.look().await;
    let pid = Some(local.child.id());
    assert_eq!(examination.examined().target.pid, pid);
    let done = examination.finish().await;
    println!("{done:#?}");
    assert_eq!(done.deployment, Deployment::ReplicaSet);
    assert_eq!(done.members.len(), 1, "{:?}", done.members);
    let record = &done.members[0];
    assert_eq!(record.state, MemberState::Primary);
    assert_eq!(record.not_asked, None);
    assert!(!record.target.version.is_empty());
    assert_eq!(
        record.oplog, None,
        "it does not say how large it may become"
    );
    let orders = record
        .collections
        .iter()
        .find(|c| c.namespace == "sdu.orders");
    let orders = orders.expect("the collection is among them");
    assert_eq!(orders.documents, 500);
    let index = orders
        .indexes
        .iter()
        .find(|index| index.name == "name_1_t_-1");
    assert_eq!(index.unwrap().keys, r#"{"name":1,"t":-1}"#);
    assert!(!format!("{done:?}").contains("SECRET"));
    assert!((10..60).contains(&done.commands), "{}", done.commands);
}

#[tokio::test]
async fn members_side_by_side_and_one_that_hangs() {
    let (_roots, workspaces): (Vec<_>, Vec<_>) = [workspace(), workspace()].into_iter().unzip();
    let servers: Vec<SetOfOne> = workspaces
        .iter()
        .map(|workspace| SetOfOne::start(&workspace.data_directory()))
        .collect();
    let address = |server: &SetOfOne| server.uri.replace("mongodb://", "");
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let hangs = silent.local_addr().unwrap().to_string();
    let other = address(&servers[1]);
    let proxy = announcing_proxy::start(&address(&servers[0]), &[other.clone(), hangs.clone()]);

    let proc_fs = ProcFs::host();
    let uri = format!("mongodb://{proxy}/");
    let server = choose_member(&uri, &proc_fs).await.unwrap();
    for (uri, documents) in [(&servers[0].uri, 20), (&servers[1].uri, 10)] {
        let server = Server::connect(uri).await.unwrap();
        let orders = server.database("sdu").collection::<Document>("orders");
        let many = (0..documents).map(|n| doc! { "_id": n });
        orders.insert_many(many).await.unwrap();
    }
    let examination = Examination::begin(&server, &proc_fs, &ExaminationOptions::default()).await;
    let mut samplers = examination.samplers_of_others();
    assert_eq!(samplers.len(), 1, "nobody waits for the one that hangs");
    let rows = samplers[0].sample().await;
    assert_eq!(rows[0].source, format!("serverStatus@{other}"));
    let done = examination.finish().await;
    assert_eq!(done.deployment, Deployment::ReplicaSet);
    let names: Vec<&str> = done.members.iter().map(|m| m.name.as_str()).collect();
    assert_eq!(names, [&proxy, &other, &hangs]);
    let documents = |member: usize| {
        let collections = &done.members[member].collections;
        collections.iter().map(|c| c.documents).sum::<u64>()
    };
    assert_eq!((documents(0), documents(1)), (20, 10));
    assert_eq!(done.members[1].target.pid, None, "nobody asks for it");
    assert!(done.members[1].not_asked.is_none());
    assert!(done.members[2].not_asked.is_some(), "it says why");
}

#[tokio::test]
async fn without_a_login_sections_are_missing_and_not_the_run() {
    let (_root, workspace) = workspace();
    let mut options = options(&workspace);
    options.extra_arguments = vec!["--auth".into()];
    let local = LocalServer::start(&options).await.unwrap();
    let proc_fs = ProcFs::host();
    let server = choose_member(&local.uri(), &proc_fs).await.unwrap();
    let mut examination =
        Examination::begin(&server, &proc_fs, &ExaminationOptions::default()).await;
    for _ in 0..3 {
        examination.look().await;
    }
    let done = examination.finish().await;
    println!("{:#?}", done.limitations);
    assert_eq!(done.members[0].target.pid, Some(local.pid()));
    assert_eq!(done.members[0].collections, []);
    for command in [
        "serverStatus",
        "currentOp",
        "listDatabases",
        "getCmdLineOpts",
    ] {
        let why = format!("nobody may run {command} without a login");
        let refused = done.limitations.iter().filter(|l| l.why == why);
        let remedies: Vec<&str> = refused.map(|l| l.remedy.as_str()).collect();
        let log_in = "put a user and a password into the connection string";
        assert_eq!(remedies, [log_in], "{why}");
    }
}

#[tokio::test]
async fn thousands_of_collections_cost_no_more_commands() {
    let (_root, workspace) = workspace();
    let local = start(&workspace).await;
    let server = Server::connect(&local.uri()).await.unwrap();
    let database = server.database("many");
    for n in 0..300 {
        let collection = database.collection::<Document>(&format!("c{n}"));
        collection.insert_one(doc! { "_id": n }).await.unwrap();
    }
    let options = ExaminationOptions {
        collections: vec!["many.c299".parse().unwrap(), "many.none".parse().unwrap()],
        collections_max: 5,
        others: OthersAsked::All,
    };
    let examination = Examination::begin(&server, &ProcFs::host(), &options).await;
    let done = examination.finish().await;
    let record = &done.members[0];
    let asked: Vec<&str> = record
        .collections
        .iter()
        .map(|c| c.namespace.as_str())
        .collect();
    assert!(asked.contains(&"many.c299"), "{asked:?}");
    assert!((3..=5).contains(&asked.len()), "{asked:?}");
    assert!(record.collections_left_out >= 295);
    assert!(done.commands < 60, "{}", done.commands);
}

#[tokio::test]
async fn a_frozen_server_ends_nothing_but_its_own_answers() {
    use rustix::process::{Pid, Signal, kill_process};
    let (_root, workspace) = workspace();
    let local = start(&workspace).await;
    let proc_fs = ProcFs::host();
    let server = choose_member(&local.uri(), &proc_fs).await.unwrap();
    let examination = Examination::begin(&server, &proc_fs, &ExaminationOptions::default()).await;
    let pid = Pid::from_raw(i32::try_from(local.pid()).unwrap()).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    // On a busy host a thread may run on for a moment.
    wait_until("the server is frozen", || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", local.pid())).unwrap();
        stat.rsplit_once(')').unwrap().1.starts_with(" T")
    });
    let mut examination = examination;
    // The limit is the test's own against hanging; it is far above what is allowed.
    let end = async {
        examination.look().await;
        examination.finish().await
    };
    let done = tokio::time::timeout(Duration::from_secs(60), end).await;
    kill_process(pid, Signal::CONT).unwrap();
    let done = done.expect("it ends by itself");
    assert!(!done.members[0].target.version.is_empty());
    assert!(
        done.limitations
            .iter()
            .any(|l| l.why.contains("not answered"))
    );
}
