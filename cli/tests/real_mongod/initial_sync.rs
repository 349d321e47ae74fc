//! `prefetch --for-sync`: what it reads ahead of the copies that a new member makes.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};

use mongodb::bson::{Document, doc};
use seekscope_bench::deployment::Topology;
use seekscope_server::SlowDiskSpec;
use serde_json::Value;

use crate::aged;
use crate::mongod::Mongod;
use crate::running::{Running, beforehand, own, shared};
use crate::schemas::assert_valid;
use crate::support::{Bench, shared_machine, stderr};

/// The number of documents: they fill more than twice the smallest file that is read ahead.
const DOCUMENTS: u64 = 12_000;

/// Adds a member that neither votes nor can become primary.
fn add(set: &Running, new: &Mongod) {
    let reply = set.command("admin", doc! { "replSetGetConfig": 1 });
    let mut config: Document = reply.get_document("config").unwrap().clone();
    let version = config.get_i32("version").unwrap();
    config.insert("version", version + 1);
    let host = new.address();
    let member = doc! { "_id": 7, "host": host, "priority": 0, "votes": 0 };
    config.get_array_mut("members").unwrap().push(member.into());
    set.command("admin", doc! { "replSetReconfig": config });
}

/// A member that is not in the set's configuration yet, and waits for that.
fn new_member(set: &Running, bench: &Bench) -> Mongod {
    let hello = set.command("admin", doc! { "isMaster": 1 });
    Mongod::start(
        bench,
        "new",
        &["--replSet", hello.get_str("setName").unwrap()],
    )
}

fn own_uri(set: &Running) -> String {
    set.member("member-0").uri()
}

/// Starts to read ahead of the copies of a member that the set has; what it says is to be read.
fn begin(bench: &Bench, set: &Running, new: &Mongod, idle: &str) -> Child {
    let mut prefetch = bench.seekscope(&["prefetch", &own_uri(set), "--json", "--out", "run"]);
    prefetch.args(["--for-sync", &new.address(), "--idle", idle]);
    prefetch.stdout(Stdio::piped()).stderr(Stdio::piped());
    prefetch.spawn().unwrap()
}

/// Whether the tracer is attached soon enough, and the reader ahead, depends on what else the machine does.
#[test]
fn the_copies_of_a_new_member_find_their_pages_in_memory() {
    let (_machine, (bench, set, new)) = beforehand(|| {
        let bench = Bench::new();
        let set = own(Topology::ReplicaSet { members: 1 }, &[]);
        aged::prepare(&set, DOCUMENTS);
        set.command(
            "opinion",
            doc! { "insert": "few", "documents": [{ "_id": 1 }] },
        );
        let new = new_member(&set, &bench);
        (bench, set, new)
    });
    let mut slow = aged::limited(&set, &SlowDiskSpec::hdd());
    aged::forget(&set);
    add(&set, &new);
    let prefetch = begin(&bench, &set, &new, "60s");
    slow.add_process(prefetch.id()).unwrap();
    let output = prefetch.wait_with_output().unwrap();
    slow.remove().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));

    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_valid("prefetch", &document);
    let summary = &document["summary"];
    assert_eq!(summary["member"], new.address());
    assert_eq!(summary["completed"], true, "{summary}");
    assert!(summary["sync_ns"].as_u64().unwrap() > 0, "{summary}");
    let copies = summary["collections"].as_array().unwrap();
    let copy = |name: &str| copies.iter().find(|copy| copy["named"] == name);
    let aged = copy("opinion.aged").unwrap_or_else(|| panic!("{summary}"));
    let number = |name: &str| aged[name].as_f64().unwrap();
    // What is read before the tracer is attached is not counted.
    assert!(
        number("server_reads") > 0.5 * number("leaf_pages"),
        "{aged}"
    );
    assert!(
        number("server_misses") < 0.5 * number("server_reads"),
        "{aged}"
    );
    assert!(number("position") > 0.9 * number("leaf_pages"), "{aged}");
    // What lies in order is left to the kernel. Its copy takes half a second: then the other may not be done with, which
    // is said, or it begins and ends between two looks at what is copied, and nobody knows of it.
    let limitations = document["limitations"].as_array().unwrap();
    match copy("opinion.fresh") {
        Some(fresh) => assert_eq!(fresh["bytes_read"], 0, "{summary}"),
        None => assert!(
            limitations.iter().all(|limitation| {
                let what = limitation["what"].as_str().unwrap();
                what.starts_with("the copy of opinion.fresh was not read ahead of")
            }),
            "{limitations:?}: {summary}"
        ),
    }
    // Too small to be read ahead.
    assert!(
        copies.iter().all(|copy| copy["named"] != "opinion.few"),
        "{summary}"
    );
    let report = std::fs::read_to_string(bench.path("run/report.html")).unwrap();
    assert!(report.contains("opinion.aged") && report.contains(&new.address()));
}

#[test]
fn a_source_that_ends_is_told() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let set = own(Topology::ReplicaSet { members: 1 }, &[]);
    let new = new_member(&set, &bench);
    add(&set, &new);
    let mut prefetch = begin(&bench, &set, &new, "60s");
    let mut said = BufReader::new(prefetch.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("waiting for the next collection") {
        line.clear();
        assert!(said.read_line(&mut line).unwrap() > 0, "it ended");
    }
    let pid = rustix::process::Pid::from_raw(i32::try_from(set.pid()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    let output = prefetch.wait_with_output().unwrap();
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert_eq!(output.status.code(), Some(3), "{rest}");
    assert!(
        rest.contains("the server's process") && rest.contains("ended"),
        "{rest}"
    );
}

#[test]
fn what_cannot_be_followed_is_refused_or_told() {
    let bench = Bench::new();
    let set = shared(Topology::ReplicaSet { members: 3 });
    let prefetch = |place: &str, more: &[&str]| {
        let mut command = bench.seekscope(&["prefetch", place, "--out", "run"]);
        command.args(more).output().unwrap()
    };
    let uri = set.member("member-0").uri();
    let output = prefetch(&uri, &["--for-sync", "127.0.0.1:1"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let told = stderr(&output);
    assert!(
        told.contains("has no member 127.0.0.1:1 (add one that is new first")
            && told.contains("its members are 127.0.0.1:"),
        "{told}"
    );
    assert!(!bench.path("run").exists());

    let data = set.data_directory().to_str().unwrap();
    let output = prefetch(data, &["--for-sync", "127.0.0.1:1"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));

    let alone = shared(Topology::Standalone);
    let output = prefetch(alone.uri(), &["--for-sync", "127.0.0.1:1"]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("not running with --replSet"),
        "{}",
        stderr(&output)
    );

    let status = set.command("admin", doc! { "replSetGetStatus": 1 });
    let members = status.get_array("members").unwrap();
    let name = |n: usize| members[n].as_document().unwrap().get_str("name").unwrap();
    let output = prefetch(&uri, &["--for-sync", name(0)]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let told = stderr(&output);
    assert!(told.contains("copies nothing from itself"), "{told}");
    let second = name(1);
    let output = prefetch(&uri, &["--for-sync", second, "--idle", "1s"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        told.contains(&format!("No initial sync of {second} was seen")),
        "{told}"
    );
}
