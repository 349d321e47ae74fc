//! `reorder`: the order that a server's eviction would leave; collections whose indexes expire documents, of which
//! versions take different ones; and what a killed client's last command, which goes on without it, may not do.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use mongodb::bson::{Bson, Document, doc};
use seekscope_bench::deployment::Topology;
use serde_json::Value;

use crate::aged;
use crate::mongod::Mongod;
use crate::running::{Running, beforehand, own, shared};
use crate::support::{
    Bench, assert_fails, json, load_documents, machine, shared_machine, stderr, until, wait,
};

const DOCUMENTS: u64 = 5_000;
const DOCUMENTS_AGED: u64 = 15_000;

fn create_index(running: &Running, collection: &str, index: Document) {
    let command = doc! { "createIndexes": collection, "indexes": [index] };
    running.command("reorder", command);
}

/// Names of the indexes, and what they say of expiring; as whole numbers, for `collMod` stores those.
fn indexes(running: &Running, collection: &str) -> Vec<(String, Option<i64>)> {
    let listed = running.command("reorder", doc! { "listIndexes": collection });
    let cursor = listed.get_document("cursor").unwrap();
    let listed = cursor.get_array("firstBatch").unwrap().iter();
    let described = listed.map(|index| {
        let index = index.as_document().unwrap();
        let seconds = index.get("expireAfterSeconds");
        let seconds = seconds.and_then(|s| s.as_i64().or_else(|| s.as_i32().map(i64::from)));
        (index.get_str("name").unwrap().to_owned(), seconds)
    });
    described.collect()
}

fn collections(running: &Running) -> String {
    running
        .command("reorder", doc! { "listCollections": 1, "nameOnly": true })
        .to_string()
}

/// Members that are stopped are not there for others, and come back as they were.
struct Stopped(Vec<u32>);

impl Stopped {
    fn stop(pids: Vec<u32>) -> Self {
        signal(&pids, libc::SIGSTOP);
        Self(pids)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        signal(&self.0, libc::SIGCONT);
    }
}

fn signal(pids: &[u32], signal: i32) {
    for pid in pids {
        // SAFETY: plain kill(2) on a server of this test.
        let result = unsafe { libc::kill(i32::try_from(*pid).unwrap(), signal) };
        assert_eq!(result, 0);
    }
}

#[test]
fn a_set_without_a_majority_is_not_waited_for_without_end() {
    let _machine = shared_machine();
    let running = own(Topology::ReplicaSet { members: 3 }, &[]);
    running.load("reorder.lonely", 2_000);
    // The primary stays one although it hears of nobody.
    let mut config = running.command("admin", doc! { "replSetGetConfig": 1 });
    let config = config.get_document_mut("config").unwrap();
    let version = config.get_i32("version").unwrap();
    config.insert("version", version + 1);
    let settings = config.get_document_mut("settings").unwrap();
    settings.insert("electionTimeoutMillis", 600_000);
    running.command("admin", doc! { "replSetReconfig": config.clone() });
    let bench = Bench::new();
    let pids = ["member-1", "member-2"].map(|name| running.member(name).pid());
    let stopped = Stopped::stop(pids.to_vec());
    let reorder = ["reorder", running.uri(), "reorder.lonely"];
    let mut command = bench.seekscope(&reorder);
    command.args(["--apply", "--force", "--quiesced", "--watch", "0s"]);
    let output = command.output().unwrap();
    assert_fails(&output, 3, &["too few members of the set acknowledged"]);
    drop(stopped);
    let collections = collections(&running);
    assert!(!collections.contains("seekscope_reorder"), "{collections}");
}

#[test]
fn the_first_keys_of_an_index_name_it_in_the_plan_too() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let running = shared(Topology::ReplicaSet { members: 1 });
    running.load("reorder.prefixed", DOCUMENTS);
    let index = doc! { "key": { "first": 1, "second": -1 }, "name": "both" };
    create_index(&running, "prefixed", index);
    running.command("admin", doc! { "fsync": 1 });
    let mut command = bench.seekscope(&["reorder", running.uri(), "reorder.prefixed"]);
    let document = json(command.args(["--by", r#"{"first": 1}"#, "--watch", "0s"]));
    let clustering = &document["summary"]["plan"]["clustering"];
    assert!(
        clustering["sampled_documents"].as_u64().unwrap() > 0,
        "{document:#}"
    );
}

#[test]
fn a_collection_that_expires_is_copied_to_the_end() {
    let _machine = shared_machine();
    let bench = Bench::new();
    // Another test looks for copies in this database of the shared one.
    let running = own(Topology::ReplicaSet { members: 1 }, &[]);
    running.load("reorder.expiring", DOCUMENTS);
    let ttl = doc! { "key": { "at": 1 }, "name": "at_1", "expireAfterSeconds": 86_400 };
    create_index(&running, "expiring", ttl);
    let mut command = bench.seekscope(&["reorder", running.uri(), "reorder.expiring"]);
    command.args(["--apply", "--force", "--quiesced", "--watch", "0s"]);
    let document = json(&mut command);
    let done = &document["summary"]["done"];
    assert_eq!(done["documents"], DOCUMENTS, "{document:#}");
    let expected = [("_id_".into(), None), ("at_1".into(), Some(86_400))];
    assert_eq!(indexes(&running, "expiring"), expected);
    let collections = collections(&running);
    assert!(!collections.contains("seekscope_reorder"), "{collections}");
}

/// NaN, which 4.4 lets in and takes for 0 later.
#[test]
fn an_index_that_is_not_taken_again_is_told_before_the_copy() {
    let _machine = shared_machine();
    let running = shared(Topology::ReplicaSet { members: 1 });
    if !running.version().starts_with("4.4.") {
        return;
    }
    let bench = Bench::new();
    running.load("reorder.odd", 100);
    let odd = doc! { "key": { "at": 1 }, "name": "odd_ttl", "expireAfterSeconds": f64::NAN };
    create_index(&running, "odd", odd);
    let mut command = bench.seekscope(&["reorder", running.uri(), "reorder.odd"]);
    command.args(["--apply", "--force", "--quiesced", "--watch", "0s"]);
    assert_fails(&command.output().unwrap(), 3, &["odd_ttl", "empty copy"]);
    let collections = collections(&running);
    assert!(!collections.contains("seekscope_reorder"), "{collections}");
}

/// Several threads evict pages of the copy at once, and by their leaves 70 to 87 % of the steps were
/// sequential under zlib.
#[test]
fn a_copy_made_in_peace_is_in_order() {
    let (_machine, server) = beforehand(|| {
        let server = own(Topology::Standalone, &[]);
        let zlib = doc! { "wiredTiger": { "configString": "block_compressor=zlib" } };
        server.command(
            aged::DATABASE,
            doc! { "create": "aged", "storageEngine": zlib },
        );
        aged::prepare(&server, DOCUMENTS_AGED);
        server
    });
    let bench = Bench::new();
    // What is in memory needs no order.
    aged::forget(&server);
    let mut command = bench.seekscope(&["reorder", server.uri(), "opinion.aged"]);
    command.args(["--apply", "--quiesced", "--watch", "0s"]);
    let document = json(&mut command);
    let share = |layout: &Value| layout["files"][0]["sequential_share"].as_f64().unwrap();
    let summary = &document["summary"];
    assert!(share(&summary["before"]) < 0.6, "{document:#}");
    assert!(share(&summary["after"]) > 0.95, "{document:#}");
    assert!(
        summary["done"]["checkpoints"].as_u64() > Some(3),
        "{document:#}"
    );
}

/// A replica set with a reordering of `reorder.late` that was killed when all but the swap was done.
fn killed_before_the_swap(bench: &Bench) -> Arc<Running> {
    let tests = ["--setParameter", "enableTestCommands=1"];
    let server = Arc::new(own(Topology::ReplicaSet { members: 1 }, &tests));
    let documents: Vec<Document> = (0..500).map(|id| doc! { "_id": id, "n": 1 }).collect();
    server.command("reorder", doc! { "insert": "late", "documents": documents });
    let mut command = bench.seekscope(&["reorder", server.uri(), "reorder.late"]);
    command.args(["--apply", "--force", "--watch", "0s"]);
    command.args([
        "--pause-writers",
        "kill -9 $PPID",
        "--continue-writers",
        "true",
    ]);
    assert!(!command.output().unwrap().status.success());
    let names = collections(&server);
    assert!(names.contains("seekscope_reorder.late"), "{names}");
    server
}

/// Lets updates of the copy wait before each document.
fn hold_updates(server: &Running, mode: &str) {
    let data = doc! { "nss": "reorder.seekscope_reorder.late" };
    let hold = doc! { "configureFailPoint": "hangDuringBatchUpdate", "mode": mode, "data": data };
    server.command("admin", hold);
}

/// What the killed client had sent: the server works on it, and is held at the first document.
fn late_update(server: &Arc<Running>, documents: i32) -> JoinHandle<()> {
    hold_updates(server, "alwaysOn");
    let update = |id| doc! { "q": { "_id": id }, "u": { "_id": id, "n": 1 }, "upsert": true };
    let updates: Vec<Document> = (0..documents).map(update).collect();
    let command = doc! { "update": "seekscope_reorder.late", "updates": updates, "ordered": false };
    let sender = server.clone();
    let late = std::thread::spawn(move || drop(sender.command("reorder", command)));
    until(|| {
        let shown = server.command("admin", doc! { "currentOp": 1 });
        let mut shown = shown.get_array("inprog").unwrap().iter();
        shown.any(|o| o.as_document().unwrap().get_str("msg").ok() == Some("hangDuringBatchUpdate"))
    });
    late
}

/// Starts a command. What it says on stderr comes as it goes on.
fn started(command: &mut Command) -> (Child, Arc<Mutex<String>>) {
    let command = command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let said = Arc::new(Mutex::new(String::new()));
    let (mut pipe, adding) = (child.stderr.take().unwrap(), said.clone());
    std::thread::spawn(move || {
        let mut bytes = [0; 1000];
        while let Ok(read @ 1..) = pipe.read(&mut bytes) {
            let text = String::from_utf8_lossy(&bytes[..read]);
            adding.lock().unwrap().push_str(&text);
        }
    });
    (child, said)
}

/// Without the wait, an older document would enter the copy after the newer one was checked, and nothing would
/// notice: the counts are the same.
#[test]
fn a_killed_clients_last_update_ends_before_it_is_carried_on() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let server = killed_before_the_swap(&bench);
    let newer = doc! { "q": { "_id": 7 }, "u": { "$set": { "n": 2 } } };
    server.command("reorder", doc! { "update": "late", "updates": [newer] });
    let late = late_update(&server, 10);
    let mut command = bench.seekscope(&["reorder", server.uri(), "reorder.late"]);
    command.args([
        "--resume",
        "--force",
        "--pause-writers",
        "true",
        "--continue-writers",
        "true",
    ]);
    let (mut resuming, said) = started(&mut command);
    until(|| {
        said.lock()
            .unwrap()
            .contains("waiting for what the interrupted run")
    });
    hold_updates(&server, "off");
    late.join().unwrap();
    let status = wait(&mut resuming, Duration::from_secs(120));
    assert!(status.success(), "{}", said.lock().unwrap());
    let found = server.command("reorder", doc! { "find": "late", "filter": { "_id": 7 } });
    let found = found
        .get_document("cursor")
        .unwrap()
        .get_array("firstBatch")
        .unwrap();
    assert_eq!(found[..], [Bson::from(doc! { "_id": 7, "n": 2 })]);
    let collections = collections(&server);
    assert!(!collections.contains("seekscope_reorder"), "{collections}");
}

/// Holds the index builds of a server at their beginning, or lets them go on.
fn hold_index_builds(server: &Running, mode: &str) {
    let hold = doc! { "configureFailPoint": "hangAfterStartingIndexBuild", "mode": mode };
    server.command("admin", hold);
}

/// Begins to reorder a collection with an index, whose build is held.
fn held_in_the_index_build(bench: &Bench) -> (Arc<Running>, Child, Arc<Mutex<String>>) {
    let tests = ["--setParameter", "enableTestCommands=1"];
    let server = Arc::new(own(Topology::ReplicaSet { members: 1 }, &tests));
    server.load("reorder.built", 500);
    create_index(&server, "built", doc! { "key": { "n": 1 }, "name": "n_1" });
    hold_index_builds(&server, "alwaysOn");
    // An empty copy is given its indexes without a build, so what is held is that of the whole.
    let mut command = bench.seekscope(&["reorder", server.uri(), "reorder.built"]);
    command.args(["--apply", "--force", "--watch", "0s"]);
    command.args(["--pause-writers", "true", "--continue-writers", "true"]);
    let (child, said) = started(&mut command);
    until(|| said.lock().unwrap().contains("building indexes"));
    until(|| {
        let shown = server.command("admin", doc! { "currentOp": 1 });
        shown.to_string().contains("IndexBuildsCoordinator")
    });
    (server, child, said)
}

fn resume(bench: &Bench, server: &Running) -> Command {
    let mut command = bench.seekscope(&["reorder", server.uri(), "reorder.built"]);
    command.args(["--resume", "--quiesced"]);
    command
}

/// A collection whose indexes are being built is neither changed nor renamed: what had been copied was lost.
#[test]
fn a_killed_clients_index_build_ends_before_it_is_carried_on() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let (server, mut killed, _) = held_in_the_index_build(&bench);
    killed.kill().unwrap();
    killed.wait().unwrap();
    let (mut resuming, said) = started(&mut resume(&bench, &server));
    until(|| {
        said.lock()
            .unwrap()
            .contains("waiting for what the interrupted run")
    });
    hold_index_builds(&server, "off");
    let status = wait(&mut resuming, Duration::from_secs(120));
    assert!(status.success(), "{}", said.lock().unwrap());
    let expected = [("_id_".into(), None), ("n_1".into(), None)];
    assert_eq!(indexes(&server, "built"), expected);
    let collections = collections(&server);
    assert!(!collections.contains("seekscope_reorder"), "{collections}");
}

/// The copy is there for the next primary.
#[test]
fn an_election_in_the_index_build_loses_nothing_of_the_copy() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let (server, mut child, said) = held_in_the_index_build(&bench);
    // Alone in its set, the member is elected again.
    let step_down = doc! { "replSetStepDown": 1, "secondaryCatchUpPeriodSecs": 0, "force": true };
    let sender = server.clone();
    let stepping = std::thread::spawn(move || drop(sender.command("admin", step_down)));
    let status = wait(&mut child, Duration::from_secs(120));
    hold_index_builds(&server, "off");
    stepping.join().unwrap();
    let said = said.lock().unwrap();
    assert_eq!(status.code(), Some(3), "{said}");
    assert!(
        said.contains("no longer the set's primary") && said.contains("--resume"),
        "{said}"
    );
    assert!(collections(&server).contains("seekscope_reorder.built"));
    let document = json(&mut resume(&bench, &server));
    assert_eq!(
        document["summary"]["done"]["documents"], 500,
        "{document:#}"
    );
}

/// An update with `upsert` makes the copy anew that was dropped between two of its documents.
#[test]
fn a_killed_clients_last_update_leaves_no_copy_behind() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let server = killed_before_the_swap(&bench);
    let late = late_update(&server, 500);
    let mut command = bench.seekscope(&["reorder", server.uri(), "reorder.late"]);
    command.args(["--rollback", "--continue-writers", "true"]);
    let (mut undoing, said) = started(&mut command);
    until(|| !collections(&server).contains("seekscope_reorder.late"));
    hold_updates(&server, "off");
    late.join().unwrap();
    let status = wait(&mut undoing, Duration::from_secs(120));
    assert!(status.success(), "{}", said.lock().unwrap());
    let collections = collections(&server);
    assert!(!collections.contains("seekscope_reorder"), "{collections}");
    let count = server.command("reorder", doc! { "count": "late" });
    assert_eq!(count.get_i32("n").unwrap(), 500);
}

/// The primary of a set whose other members nobody sees: one hidden, one hidden and an hour late. Both vote.
fn with_unseen_members() -> Running {
    let running = own(Topology::ReplicaSet { members: 3 }, &[]);
    let mut config = running.command("admin", doc! { "replSetGetConfig": 1 });
    let config = config.get_document_mut("config").unwrap();
    let version = config.get_i32("version").unwrap();
    config.insert("version", version + 1);
    let delay = match running.version().starts_with("4.") {
        true => "slaveDelay",
        false => "secondaryDelaySecs",
    };
    let members = config.get_array_mut("members").unwrap();
    for (member, delay_s) in members.iter_mut().skip(1).zip([0, 3600]) {
        let member = member.as_document_mut().unwrap();
        member.insert("priority", 0);
        member.insert("hidden", true);
        member.insert(delay, delay_s);
    }
    running.command("admin", doc! { "replSetReconfig": config.clone() });
    running
}

#[test]
fn members_that_nobody_sees_count() {
    let _machine = shared_machine();
    let running = with_unseen_members();
    running.load("reorder.unseen", 2_000);
    let bench = Bench::new();
    // Hidden members replicate from it, too, so that it is not traced unless that is asked for.
    let doctor = ["doctor", running.uri(), "--for", "1s", "--out", "doctor"];
    let document = json(&mut bench.seekscope(&doctor));
    let limitations = document["limitations"].to_string();
    assert!(
        limitations.contains("from which 2 others replicate"),
        "{limitations}"
    );
    // The member that is late by an hour has indexes an hour later.
    let index = doc! { "key": { "client_id": 1 }, "name": "client_id_1" };
    let make = doc! { "createIndexes": "unseen", "indexes": [index], "commitQuorum": 1 };
    running.command("reorder", make);
    let mut command = bench.seekscope(&["reorder", running.uri(), "reorder.unseen"]);
    command.args(["--apply", "--force", "--quiesced", "--watch", "0s"]);
    let document = json(&mut command);
    assert_eq!(
        document["summary"]["done"]["documents"], 2_000,
        "{document:#}"
    );
}

/// A router passes changes on when each shard has said something later, which idle ones do every ten seconds.
#[test]
fn writers_behind_a_router_are_not_stopped_for_long() {
    let _machine = machine();
    let cluster = shared(Topology::Sharded { shards: 2 });
    cluster.load("reorder.routed", 2_000);
    cluster.command("admin", doc! { "fsync": 1 });
    let bench = Bench::new();
    let mut command = bench.seekscope(&["reorder", cluster.uri(), "reorder.routed"]);
    command.args(["--watch", "0s", "--apply", "--force"]);
    command.args(["--pause-writers", "true", "--continue-writers", "true"]);
    let document = json(&mut command);
    let done = &document["summary"]["done"];
    assert_eq!(done["documents"], 2_000, "{document:#}");
    // The shard that keeps it is on this host.
    assert!(
        document["summary"]["plan"]["predicted_scan_s"].is_object(),
        "{document:#}"
    );
    assert!(
        document["summary"]["plan"]["cached_share"].is_number(),
        "{document:#}"
    );
    let stopped_s = done["blocked_s"].as_f64().unwrap();
    assert!(stopped_s < 9.0, "{stopped_s} s");
}

/// The plan of a secondary showed a command that fails there with an error of the server's, or writes elsewhere.
#[test]
fn a_plan_says_at_which_member_the_copy_is_made() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let (primary, secondary, uri) = Mongod::set_of_two(&bench);
    let is_primary = || primary.command("admin", doc! { "isMaster": 1 });
    until(|| is_primary().get_bool("ismaster").unwrap());
    load_documents(&uri, &"reorder.members".parse().unwrap(), 500);
    let count = doc! { "count": "members" };
    until(|| {
        secondary
            .command("reorder", count.clone())
            .get_i32("n")
            .unwrap()
            == 500
    });
    let plan = |uri: &str, words: &[&str]| {
        let reorder = ["reorder", uri, "reorder.members", "--watch", "0s"];
        let output = bench.seekscope(&reorder).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        let said = String::from_utf8(output.stdout).unwrap();
        // Lines are broken to the width of the terminal.
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        for word in words {
            assert!(said.contains(word), "{word}: {said}");
        }
        said
    };
    let at_primary = format!("at the primary, {}", primary.address());
    plan(&primary.uri(), &[&at_primary, "To do it"]);
    // The driver finds the primary, and so do we its files.
    let others_first = format!(
        "mongodb://{},{}/?replicaSet=rs",
        secondary.address(),
        primary.address()
    );
    let status = primary.command("admin", doc! { "serverStatus": 1 });
    for uri in [format!("mongodb://{}/", secondary.address()), others_first] {
        plan(&uri, &["To do it"]);
        let reorder = ["reorder", &uri, "reorder.members", "--watch", "0s"];
        let document = json(&mut bench.seekscope(&reorder));
        assert_eq!(document["target"]["pid"], status.get_i64("pid").unwrap());
    }
    let said = plan(
        &secondary.uri(),
        &["refuses --apply", "leave directConnection=true out"],
    );
    assert!(!said.contains("To do it"), "{said}");
    let direct = secondary.uri();
    let mut apply = bench.seekscope(&["reorder", &direct, "reorder.members", "--apply"]);
    apply.args(["--force", "--quiesced", "--watch", "0s"]);
    let words = [
        "is not a primary and accepts no writes",
        "leave directConnection=true out",
    ];
    assert_fails(&apply.output().unwrap(), 3, &words);
}

/// A copy failed on documents that were deleted and inserted anew, and on values of a unique index that moved to another
/// document, while it was made.
#[test]
fn what_moves_while_it_is_copied_is_brought_over() {
    const MOVING: i32 = 4_000;
    let _machine = shared_machine();
    let running = own(Topology::ReplicaSet { members: 1 }, &[]);
    let unique = doc! { "key": { "u": 1 }, "name": "u_1", "unique": true };
    running.command("reorder", doc! { "create": "moving" });
    create_index(&running, "moving", unique);
    let document = |id: i32, u: i32| doc! { "_id": id, "u": u, "filler": "x".repeat(1_000) };
    for first in (0..MOVING).step_by(1_000) {
        let documents: Vec<Document> = (first..first + 1_000).map(|id| document(id, id)).collect();
        running.command(
            "reorder",
            doc! { "insert": "moving", "documents": documents },
        );
    }
    let bench = Bench::new();
    let (paused, stopped) = (bench.path("paused"), bench.path("stopped"));
    let mut command = bench.seekscope(&["reorder", running.uri(), "reorder.moving", "--apply"]);
    command.args(["--force", "--watch", "0s", "--max-rate", "1M", "--json"]);
    let pause = "touch paused; for i in $(seq 600); do [ -e stopped ] && exit; sleep 0.05; done";
    command.args(["--pause-writers", pause]);
    command.args(["--continue-writers", "true"]);
    command.stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut values: Vec<i32> = (0..MOVING).collect();
    let is_over = |child: &mut Child| paused.exists() || child.try_wait().unwrap().is_some();
    for round in 0.. {
        if is_over(&mut child) {
            std::fs::write(&stopped, "").unwrap();
            break;
        }
        // From the end of the file to its beginning, and back.
        let (a, b) = (round * 13 % MOVING, MOVING - 1 - round * 7 % MOVING);
        if a != b {
            let update = |id: i32, u: i32| {
                let update = doc! { "q": { "_id": id }, "u": { "$set": { "u": u } } };
                running.command("reorder", doc! { "update": "moving", "updates": [update] });
            };
            let (of_a, of_b) = (values[a as usize], values[b as usize]);
            update(a, -1);
            update(b, of_a);
            update(a, of_b);
            values.swap(a as usize, b as usize);
        }
        let delete = doc! { "q": { "_id": a }, "limit": 1 };
        running.command("reorder", doc! { "delete": "moving", "deletes": [delete] });
        let again = document(a, values[a as usize]);
        running.command("reorder", doc! { "insert": "moving", "documents": [again] });
    }
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let done = &result["summary"]["done"];
    assert!(done["applied_changes"].as_u64().unwrap() > 0, "{done:#}");
    let found = doc! { "find": "moving", "sort": { "_id": 1 }, "batchSize": MOVING + 1, "projection": { "u": 1 } };
    let found = running.command("reorder", found);
    let batch = found
        .get_document("cursor")
        .unwrap()
        .get_array("firstBatch");
    let found: Vec<i32> = (batch.unwrap().iter())
        .map(|one| one.as_document().unwrap().get_i32("u").unwrap())
        .collect();
    assert_eq!(found, values);
}
