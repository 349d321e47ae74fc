//! What `doctor` says of the writes of a replica set, one of whose members is down.

use std::thread;
use std::time::Duration;

use mongodb::bson::doc;
use seekscope_bench::deployment::Topology;

use crate::running::own;
use crate::schemas::assert_valid;
use crate::support::{Bench, json, machine, runtime, until};

/// A regression: they were said to read all of the collection for as long as they waited, and nothing was said of the
/// member that is down.
#[test]
fn writes_that_wait_for_a_member_that_is_down_are_named_with_it() {
    let _machine = machine();
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

    let uri = set.uri().to_owned();
    for number in 0..3 {
        let uri = uri.clone();
        // They wait until the set ends, and with it their connections.
        thread::spawn(move || {
            runtime().block_on(async {
                // Not by seekscope's own name, whose commands the doctor leaves out.
                let client = mongodb::Client::with_uri_str(&uri).await.unwrap();
                let update = match number {
                    0 => doc! { "findAndModify": "orders", "query": { "n": 0 }, "update": { "$set": { "n": 0 } },
                    "writeConcern": { "w": 3 } },
                    _ => doc! { "insert": "orders", "documents": [{ "number": number }], "writeConcern": { "w": 3 } },
                };
                let _ = client.database("writes").run_command(update).await;
            });
        });
    }
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
