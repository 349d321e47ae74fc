//! `trace`, `top` and `layout` of a replica set and of a sharded cluster: all members on this host at once.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::process::{Output, Stdio};
use std::time::Duration;

use mongodb::bson::doc;
use seekscope_bench::deployment::Topology;
use seekscope_run::{IoLayer, RunDirectory};
use serde_json::Value;

use crate::mongod::Mongod;
use crate::running::{Running, own, own_with_data_elsewhere, shared};
use crate::schemas::assert_valid;
use crate::support::{Bench, assert_fails, send, shared_machine, stderr, until, wait};

const DOCUMENTS: u64 = 2_000;
const SHARDS: [&str; 2] = ["shard-0", "shard-1"];
/// How long is traced, and watched second by second: a busy machine takes its time to load the documents meanwhile.
const WATCHED_S: usize = 12;

/// Creates a collection whose documents are on both shards.
fn shard(cluster: &Running, database: &str, collection: &str) {
    cluster.command("admin", doc! { "enableSharding": database });
    let namespace = format!("{database}.{collection}");
    let key = doc! { "_id": "hashed" };
    cluster.command("admin", doc! { "shardCollection": namespace, "key": key });
}

/// A set of a test's own, of which every file has its name: of collections that other tests drop meanwhile the names are
/// not known.
fn own_set() -> Running {
    let set = own(Topology::ReplicaSet { members: 3 }, &[]);
    set.command_on_each(&doc! { "fsync": 1 });
    set
}

/// Traces while documents are loaded and checkpoints written.
fn traced(bench: &Bench, running: &Running, namespace: &str) -> Value {
    let uri = running.uri();
    let watched = format!("{WATCHED_S}s");
    let mut trace = bench.seekscope(&[
        "trace", "--target", uri, "--for", &watched, "--out", "run", "--json",
    ]);
    trace.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = trace.spawn().unwrap();
    until(|| bench.path("run").join("io.spool").exists());
    running.load(namespace, DOCUMENTS);
    running.reset_page_cache();
    let output = child.wait_with_output().unwrap();
    document_of(&output)
}

fn document_of(output: &Output) -> Value {
    assert!(output.status.success(), "{}", stderr(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The files of that collection itself, by member.
fn files_of<'a>(document: &'a Value, namespace: &str) -> BTreeMap<&'a str, &'a Value> {
    let files = document["summary"]["files"].as_array().unwrap().iter();
    let files = files.filter(|file| file["namespace"] == namespace);
    files
        .map(|file| (file["member"].as_str().unwrap(), file))
        .collect()
}

/// Every call on a member's file is one of that member's process, and each is in the summary.
fn assert_calls_are_of(bench: &Bench, document: &Value, pids: &BTreeMap<&str, u32>) {
    let (directory, _) = RunDirectory::open(&bench.path("run")).unwrap();
    let files = directory.files().unwrap();
    let owner: BTreeMap<u32, &str> = files
        .iter()
        .filter_map(|file| Some((file.file_id, file.member.as_deref()?)))
        .collect();
    let mut calls: BTreeMap<&str, u64> = BTreeMap::new();
    let each = |event: &seekscope_run::IoEvent| {
        if let (Some(member), false) = (
            owner.get(&event.file_id),
            event.op.layer() == IoLayer::Device,
        ) {
            assert_eq!(pids[member], event.pid, "{event:?} of {member}");
            *calls.entry(member).or_default() += 1;
        }
    };
    directory.for_each_event(each).unwrap();
    for member in pids.keys() {
        let of_member = document["summary"]["files"].as_array().unwrap().iter();
        let of_member = of_member.filter(|file| file["member"] == *member);
        let told: u64 = of_member
            .flat_map(|file| ["reads", "writes", "syncs"].map(|kind| file[kind].as_u64().unwrap()))
            .sum();
        assert!(told > 0, "nothing of {member}");
        assert_eq!(calls.get(member), Some(&told), "{member}");
    }
    let trace = &document["summary"];
    let count = |name: &str| trace[name].as_u64().unwrap();
    assert_eq!(count("seen"), count("written") + count("lost"), "{trace}");
}

#[test]
fn a_trace_of_a_cluster_has_the_files_of_each_shard() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let cluster = shared(Topology::Sharded { shards: 2 });
    shard(&cluster, "members", "traced");
    let document = traced(&bench, &cluster, "members.traced");
    assert_valid("trace", &document);
    let files = files_of(&document, "members.traced");
    assert_eq!(files.keys().copied().collect::<Vec<_>>(), SHARDS);
    let mut pids = BTreeMap::new();
    for shard in SHARDS {
        let process = cluster.member(shard);
        pids.insert(shard, process.pid());
        let path = files[shard]["path"].as_str().unwrap();
        let data = process.data_directory().to_str().unwrap();
        assert!(path.starts_with(data), "{path} of {shard}");
        assert!(files[shard]["writes"].as_u64().unwrap() > 0, "{shard}");
    }
    assert_calls_are_of(&bench, &document, &pids);
    let shown = std::fs::read_to_string(bench.path("run").join("report.html")).unwrap();
    for shard in SHARDS {
        let name = format!("{shard}/members.traced");
        assert!(shown.contains(&name), "no {name} on the page");
    }
}

#[test]
fn a_trace_of_a_set_has_the_files_of_each_member() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let set = own_set();
    let document = traced(&bench, &set, "members.of_set");
    let names = set.members();
    let uris: Vec<String> = names.iter().map(|name| set.member(name).uri()).collect();
    let hosts: Vec<&str> = uris
        .iter()
        .map(|uri| uri.split_once("://").unwrap().1)
        .map(|rest| rest.split(['/', '?']).next().unwrap())
        .collect();
    let pids = names.iter().map(|name| set.member(name).pid());
    let pids: BTreeMap<&str, u32> = hosts.iter().copied().zip(pids).collect();
    assert_calls_are_of(&bench, &document, &pids);
    assert_eq!(document["limitations"], serde_json::json!([]));
}

/// The pictures of `top` while documents are loaded.
fn pictures(bench: &Bench, running: &Running, namespace: &str, more: &[&str]) -> Vec<Value> {
    let count = WATCHED_S.to_string();
    let mut top = bench.seekscope(&["top", running.uri(), "--json", "--count", &count]);
    top.args(more).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = top.spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut lines = String::new();
    // The first says that counting has begun.
    out.read_line(&mut lines).unwrap();
    running.load(namespace, DOCUMENTS);
    running.reset_page_cache();
    out.read_to_string(&mut lines).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let pictures: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(pictures.len(), WATCHED_S);
    pictures.iter().for_each(|one| assert_valid("top", one));
    pictures
}

fn labels(picture: &Value) -> Vec<&str> {
    let members = picture["members"].as_array().unwrap().iter();
    members
        .map(|member| member["member"].as_str().unwrap())
        .collect()
}

#[test]
fn a_picture_of_a_cluster_has_a_line_per_member_and_files_of_each() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let cluster = shared(Topology::Sharded { shards: 2 });
    shard(&cluster, "members", "watched");
    let pictures = pictures(&bench, &cluster, "members.watched", &[]);
    let last = pictures.last().unwrap();
    assert_eq!(labels(last), SHARDS);
    for member in last["members"].as_array().unwrap() {
        assert_eq!(member["is_here"], true);
        assert!(member["cache"]["used_share"].as_f64().unwrap() > 0.0);
        assert!(member["process"]["memory_bytes"].as_f64().unwrap() > 0.0);
    }
    assert!(last["cache"]["used_share"].is_null(), "{last}");
    let files = pictures
        .iter()
        .flat_map(|one| one["files"].as_array().unwrap());
    for shard in SHARDS {
        let data = cluster.member(shard).data_directory().to_str().unwrap();
        let mut of_shard = files.clone().filter(|file| file["member"] == shard);
        let is_below = |file: &Value| file["path"].as_str().unwrap().starts_with(data);
        assert!(of_shard.clone().all(is_below), "{shard}");
        assert!(
            of_shard.any(|file| file["namespace"] == "members.watched"),
            "{shard}: {last:#}"
        );
    }
    let text = bench.seekscope(&["top", cluster.uri(), "--once"]).output();
    let text = String::from_utf8(text.unwrap().stdout).unwrap();
    println!("{text}");
    for shard in SHARDS {
        assert!(
            text.lines().any(|line| line.starts_with(shard)),
            "{shard} in\n{text}"
        );
    }
}

#[test]
fn the_primary_of_a_set_is_watched_and_traced_only_if_asked() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let set = own_set();
    let spared = pictures(&bench, &set, "members.spared", &[]);
    let last = spared.last().unwrap();
    assert_eq!(labels(last).len(), 3);
    let limitations = last["limitations"].as_array().unwrap();
    let [limitation] = limitations.as_slice() else {
        panic!("{limitations:#?}")
    };
    let what = limitation["what"].as_str().unwrap();
    let (primary, _) = what.split_once(": files, patterns").unwrap();
    let traced = |pictures: &[Value], member: &str| {
        let files = pictures
            .iter()
            .flat_map(|one| one["files"].as_array().unwrap());
        files.filter(|file| file["member"] == member).count() > 0
    };
    for member in labels(last) {
        assert_eq!(traced(&spared, member), member != primary, "{member}");
    }
    let all = pictures(&bench, &set, "members.all", &["--trace-primary"]);
    assert!(traced(&all, primary));
}

/// The collection's own file of each member, in the order of `labels`.
fn rows<'a>(document: &'a Value, namespace: &str, labels: &[&str]) -> Vec<&'a Value> {
    let files = files_of_kind(document, namespace);
    assert_eq!(files.keys().copied().collect::<Vec<_>>(), labels);
    files.into_values().collect()
}

fn files_of_kind<'a>(document: &'a Value, namespace: &str) -> BTreeMap<&'a str, &'a Value> {
    let files = document["summary"]["files"].as_array().unwrap().iter();
    let own = files.filter(|file| file["namespace"] == namespace && file["index"].is_null());
    own.map(|file| (file["member"].as_str().unwrap(), file))
        .collect()
}

#[test]
fn the_layout_of_a_sharded_collection_has_a_row_per_shard() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let cluster = shared(Topology::Sharded { shards: 2 });
    shard(&cluster, "members", "laid_out");
    cluster.load("members.laid_out", DOCUMENTS);
    cluster.load("members.of_one_shard", 100);
    cluster.reset_page_cache();
    let uri = cluster.uri();
    let layout = |out: &str, names: &[&str]| {
        let mut command = bench.seekscope(&["layout", uri, "--out", out, "--json"]);
        let output = command.args(names).output().unwrap();
        document_of(&output)
    };
    let document = layout("named", &["members.laid_out"]);
    assert_valid("layout", &document);
    assert_eq!(document["limitations"], serde_json::json!([]));
    let files = rows(&document, "members.laid_out", &SHARDS);
    let documents: u64 = files.iter().map(|f| f["documents"].as_u64().unwrap()).sum();
    assert_eq!(documents, DOCUMENTS, "both shards together have all");
    let told = document["summary"]["members"].as_array().unwrap();
    for (file, (member, shard)) in files.iter().zip(told.iter().zip(SHARDS)) {
        let data = cluster.member(shard).data_directory();
        assert_eq!(member["path"], data.to_str().unwrap());
        let name = file["file"].as_str().unwrap();
        let on_disk = std::fs::metadata(data.join(name)).unwrap().len();
        assert_eq!(file["file_bytes"], on_disk, "{name} of {shard}");
        assert!(file["leaf_pages"].as_u64().unwrap() > 10, "{file:#}");
    }
    // A label in front means one shard; without names it is all that all have.
    let one = layout("one", &["shard-1/members.laid_out"]);
    rows(&one, "members.laid_out", &["shard-1"]);
    let all = layout("all", &[]);
    rows(&all, "members.laid_out", &SHARDS);
    assert_eq!(files_of_kind(&all, "members.of_one_shard").len(), 1);
    rows(&all, "local.oplog.rs", &SHARDS);
    let shown = bench.seekscope(&["report", "named"]).output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    println!("{shown}");
    for words in [
        "shard-0/members.laid_out",
        "shard-1/members.laid_out",
        "cannot be determined",
    ] {
        assert!(shown.contains(words), "{words} in\n{shown}");
    }
    let nowhere = bench
        .seekscope(&["layout", uri, "members.nowhere"])
        .output();
    assert_fails(&nowhere.unwrap(), 2, &["members.nowhere"]);
    let watched = bench.seekscope(&["layout", uri, "--watch"]).output();
    assert_fails(
        &watched.unwrap(),
        2,
        &["--watch is of one server", "shard-1"],
    );
}

#[test]
fn the_layout_of_a_set_has_a_row_per_member() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let set = shared(Topology::ReplicaSet { members: 3 });
    set.load("members.laid_out", DOCUMENTS);
    set.reset_page_cache();
    // Other tests drop their collections meanwhile, which a layout of everything would complain of.
    let oplog = [
        "layout",
        set.uri(),
        "local.oplog.rs",
        "--out",
        "run",
        "--json",
    ];
    let document = document_of(&bench.seekscope(&oplog).output().unwrap());
    assert_eq!(document["summary"]["members"].as_array().unwrap().len(), 3);
    let oplogs = files_of_kind(&document, "local.oplog.rs");
    assert_eq!(oplogs.len(), 3, "{:?}", oplogs.keys());
    let shown = bench.seekscope(&["report", "run"]).output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(!shown.contains("migrated chunks"), "{shown}");
}

#[test]
fn each_members_scans_are_predicted_for_its_own_disk() {
    let _machine = shared_machine();
    let bench = Bench::new();
    // Its file system has no disk below it, unlike that of the first member.
    let elsewhere = tempfile::tempdir_in("/dev/shm").unwrap();
    let topology = Topology::ReplicaSet { members: 2 };
    let set = own_with_data_elsewhere(topology, "member-1", elsewhere.path());
    let namespace = "members.on_two_disks";
    set.load(namespace, DOCUMENTS);
    let insert = doc! { "insert": "on_two_disks", "documents": [{}], "writeConcern": { "w": 2 } };
    set.command("members", insert);
    set.command_on_each(&doc! { "fsync": 1 });
    let layout = |place: &str, out: &str| {
        let mut command = bench.seekscope(&["layout", place, namespace, "--out", out, "--json"]);
        document_of(&command.output().unwrap())
    };
    let all = layout(set.uri(), "all");
    assert_valid("layout", &all);
    assert_eq!(all["limitations"], serde_json::json!([]));
    let members = all["summary"]["members"].as_array().unwrap();
    assert_eq!(members.len(), 2);
    for (number, member) in members.iter().enumerate() {
        let alone = layout(member["path"].as_str().unwrap(), &format!("member{number}"));
        let alone = &alone["summary"];
        assert_eq!(member["predicted_for"], alone["predicted_for"]);
        let is_own = |file: &&Value| file["index"].is_null();
        let mut own = alone["files"].as_array().unwrap().iter();
        let mut files = all["summary"]["files"].as_array().unwrap().iter();
        let file = files.find(|file| is_own(file) && file["member"] == member["member"]);
        assert_eq!(
            file.unwrap()["predicted_scan_s"],
            own.find(is_own).unwrap()["predicted_scan_s"],
            "{member}"
        );
    }
    let shown = bench.seekscope(&["report", "all"]).output().unwrap();
    println!("{}", String::from_utf8(shown.stdout).unwrap());
}

/// A picture each second, of which it takes a new one until `is_as_wanted`.
fn picture_in_which(
    pictures: &mut impl Iterator<Item = std::io::Result<String>>,
    is_as_wanted: impl Fn(&Value) -> bool,
) -> Value {
    let mut last = Value::Null;
    for line in pictures.take(60) {
        last = serde_json::from_str(&line.unwrap()).unwrap();
        if is_as_wanted(&last) {
            return last;
        }
    }
    panic!("in none of 60 pictures: {last:#}");
}

#[test]
fn a_member_that_was_killed_is_shown_again_after_its_restart() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let (_primary, mut secondary, uri) = Mongod::set_of_two(&bench);
    let mut top = bench.seekscope(&["top", &uri, "--json", "--count", "1000"]);
    let mut child = top.stdout(Stdio::piped()).spawn().unwrap();
    let mut pictures = BufReader::new(child.stdout.take().unwrap()).lines();
    let address = secondary.address();
    let memory = |picture: &Value| {
        let mut members = picture["members"].as_array().unwrap().iter();
        let member = members.find(|member| member["member"] == address.as_str());
        member.unwrap()["process"]["memory_bytes"].clone()
    };
    picture_in_which(&mut pictures, |picture| memory(picture).is_number());
    secondary.end(libc::SIGKILL);
    let without = picture_in_which(&mut pictures, |picture| memory(picture).is_null());
    let ended = format!("{address}: it is no longer shown");
    let limitations = without["limitations"].as_array().unwrap();
    assert!(
        limitations.iter().any(|l| l["what"] == ended.as_str()),
        "{limitations:#?}"
    );
    secondary.start_again();
    let again = picture_in_which(&mut pictures, |picture| memory(picture).is_number());
    assert!(
        !again["limitations"].to_string().contains(&ended),
        "{again:#}"
    );
    send(&child, libc::SIGINT);
    assert_eq!(wait(&mut child, Duration::from_secs(10)).code(), Some(130));
}

#[test]
fn a_member_that_does_not_answer_is_named() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let (primary, secondary, uri) = Mongod::set_of_two(&bench);
    secondary.signal(libc::SIGSTOP);
    let silent = secondary.address();
    let names_it = |arguments: &[&str]| {
        let output = bench.seekscope(arguments).output().unwrap();
        let document = document_of(&output);
        let limitations = document["limitations"].as_array().unwrap();
        let names_it = |l: &&Value| l["what"].as_str().unwrap().ends_with(&silent);
        let named = limitations.iter().find(names_it);
        let named = named.unwrap_or_else(|| panic!("{arguments:?} {limitations:#?}"));
        let why = named["why"].as_str().unwrap();
        assert!(why.contains("not answered in time"), "{arguments:?}: {why}");
    };
    // At once, since each waits for its answer in vain.
    std::thread::scope(|scope| {
        scope.spawn(|| names_it(&["top", &uri, "--count", "1", "--json"]));
        scope.spawn(|| names_it(&["layout", &uri, "--json"]));
        scope.spawn(|| names_it(&["trace", "--target", &uri, "--for", "1s", "--json"]));
        // Time enough for that.
        let bundle = ["collect", &uri, "--for", "12s", "--out", "bundle.tar.zst"];
        let output = bench.seekscope(&bundle).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let alone = format!("The bundle is of {} alone", primary.address());
        let command = format!("seekscope collect '{}' --out", secondary.uri());
        assert!(said.contains(&alone) && said.contains(&command), "{said}");
    });
}
