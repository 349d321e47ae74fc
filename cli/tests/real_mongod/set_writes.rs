//! What `doctor` says of the writes of a replica set that wait for other members.

use std::thread;
use std::time::Duration;

use mongodb::bson::{Document, doc};
use seekscope_bench::deployment::Topology;
use seekscope_server::Server;

use crate::running::{Running, own};
use crate::schemas::assert_valid;
use crate::support::{Bench, json, runtime, shared_machine, until};

/// Writes that wait until the set ends, and with it their connections.
fn write_and_wait(set: &Running, commands: impl IntoIterator<Item = Document>) {
    for command in commands {
        let uri = set.uri().to_owned();
        thread::spawn(move || {
            runtime().block_on(async {
                // Not by seekscope's own name, whose commands the doctor leaves out.
                let client = mongodb::Client::with_uri_str(&uri).await.unwrap();
                let _ = client.database("writes").run_command(command).await;
            });
        });
    }
}

/// A regression: they were said to read all of the collection for as long as they waited, and nothing was said of the
/// member that is down.
#[test]
fn writes_that_wait_for_a_member_that_is_down_are_named_with_it() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let set = own(Topology::ReplicaSet { members: 3 }, &[]);
    set.command(
        "writes",
        doc! { "insert": "orders", "documents": [{ "_id": 1, "n": 0 }] },
    );
    let down = set.member("member-2");
    let pid = rustix::process::Pid::from_raw(i32::try_from(down.pid()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    let address = format!("127.0.0.1:{}", down.port());
    let state_of_it = || {
        let status = set.command("admin", doc! { "replSetGetStatus": 1 });
        let members = status.get_array("members").unwrap().iter();
        let mut members = members.filter_map(mongodb::bson::Bson::as_document);
        let member =
            members.find(|member| member.get_str("name").is_ok_and(|name| name == address));
        member.map(|member| member.get_i32("state").unwrap())
    };
    until(|| state_of_it() == Some(8));

    let by_all = doc! { "w": 3 };
    let changed = doc! {
        "findAndModify": "orders", "query": { "n": 0 }, "update": { "$set": { "n": 0 } },
        "writeConcern": by_all.clone(),
    };
    let inserted = |number: i32| {
        let documents = [doc! { "number": number }].to_vec();
        doc! { "insert": "orders", "documents": documents, "writeConcern": by_all.clone() }
    };
    write_and_wait(&set, [changed, inserted(1), inserted(2)]);
    thread::sleep(Duration::from_secs(5));
    let mut doctor = bench.seekscope(&["doctor", set.uri(), "--for", "8s"]);
    let document = json(&mut doctor);
    assert_valid("doctor", &document);
    let findings = document["findings"].as_array().unwrap();
    let place = |id: &str| findings.iter().position(|finding| finding["id"] == id);
    let unavailable = place("member.unavailable").unwrap_or_else(|| panic!("{document:#}"));
    assert_eq!(findings[unavailable]["subject"], address);
    let waiting = place("writes.unacknowledged").unwrap_or_else(|| panic!("{document:#}"));
    assert!(unavailable < waiting, "the cause comes first");
    let found = &findings[waiting];
    assert!(
        found["title"]
            .as_str()
            .unwrap()
            .starts_with("3 writes wait"),
        "{found:#}"
    );
    let saves = found["saves_s_per_hour"].as_f64().unwrap();
    assert!((saves - 3.0 * 3_600.0).abs() < 1_100.0, "{found:#}");
    assert_eq!(place("query.collection-scan"), None, "{document:#}");
}

/// A regression: only writes whose command names other members were seen while they wait. Since MongoDB 5.0 hardly any does,
/// because a majority is the default.
#[test]
fn writes_that_wait_for_the_default_majority_are_seen() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let set = own(
        Topology::ReplicaSet { members: 3 },
        &["--setParameter", "enableTestCommands=1"],
    );
    let insert = |number: i32| doc! { "insert": "orders", "documents": [{ "number": number }] };
    set.command("writes", insert(0));
    set.command(
        "admin",
        doc! { "setDefaultRWConcern": 1, "defaultWriteConcern": { "w": "majority" } },
    );
    // They still answer, so that the primary stays one.
    for name in ["member-1", "member-2"] {
        let uri = set.member(name).uri();
        let stop = doc! { "configureFailPoint": "rsSyncApplyStop", "mode": "alwaysOn" };
        runtime().block_on(async {
            let member = Server::connect(&uri).await.unwrap();
            member.command("admin", stop).await.unwrap();
        });
    }
    write_and_wait(&set, (1..=4).map(insert));
    thread::sleep(Duration::from_secs(4));
    let document = json(&mut bench.seekscope(&["doctor", set.uri(), "--for", "8s"]));
    let findings = document["findings"].as_array().unwrap();
    let found = findings
        .iter()
        .find(|finding| finding["id"] == "writes.unacknowledged")
        .unwrap_or_else(|| panic!("{document:#}"));
    let title = found["title"].as_str().unwrap();
    assert!(title.starts_with("4 writes wait"), "{found:#}");
    let saves = found["saves_s_per_hour"].as_f64().unwrap();
    assert!((saves - 4.0 * 3_600.0).abs() < 1_500.0, "{found:#}");
}
