//! `doctor` of a whole replica set or sharded cluster.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use mongodb::bson::doc;
use seekscope_bench::deployment::{DeploymentOptions, Topology};
use seekscope_server::{LocalServer, Server};
use serde_json::Value;

use crate::running::{Running, own, own_with, shared};
use crate::schemas::assert_valid;
use crate::support::{
    Bench, assert_fails, json, run_document, runtime, send, shared_machine, until, wait,
};

fn members(document: &Value) -> Vec<&Value> {
    let members = document["examination"]["members"].as_array().unwrap();
    members.iter().collect()
}

fn names(document: &Value, is_wanted: impl Fn(&Value) -> bool) -> Vec<String> {
    let wanted = members(document)
        .into_iter()
        .filter(|member| is_wanted(member));
    let mut names: Vec<String> = wanted
        .map(|member| member["name"].as_str().unwrap().to_string())
        .collect();
    names.sort();
    names
}

/// The runs of the members, each of which must account for every event of its own server.
fn member_runs(run: &Path, count: usize) -> Vec<Value> {
    let runs = (1..=count).map(|number| {
        let run = run.join(format!("member-{number}"));
        assert!(run.join("report.html").exists());
        run_document(&run)
    });
    let runs: Vec<Value> = runs.collect();
    for run in &runs {
        let trace = &run["phases"][0]["trace"];
        if !trace.is_null() {
            let of = |name: &str| trace[name].as_u64().unwrap();
            assert_eq!(of("seen"), of("written") + of("lost"), "{trace:#}");
        }
    }
    runs
}

#[test]
fn each_shard_of_a_cluster_is_examined_in_a_run_of_its_own() {
    let _machine = shared_machine();
    let cluster = shared(Topology::Sharded { shards: 2 });
    cluster.load("whole.orders", 1_000);
    let bench = Bench::new();
    let mongos = cluster.member("mongos").uri();
    let arguments = ["doctor", &mongos, "--for", "3s", "--out", "run"];
    let document = json(&mut bench.seekscope(&arguments));
    assert_valid("doctor", &document);
    assert_eq!(document["examination"]["deployment"], "sharded");
    assert_eq!(document["outcome"], "ok", "{:#}", document["limitations"]);
    let examined = names(&document, |member| !member["on_host"].is_null());
    let mut shards = ["shard-0", "shard-1"].map(|name| {
        let port = cluster.member(name).port();
        format!("127.0.0.1:{port}")
    });
    shards.sort();
    assert_eq!(examined, shards);
    assert_eq!(
        names(&document, |member| member["state"] == "router").len(),
        1
    );

    let runs = member_runs(&bench.path("run"), 2);
    let mut pids: Vec<u64> = runs
        .iter()
        .map(|run| run["target"]["pid"].as_u64().unwrap())
        .collect();
    pids.sort_unstable();
    let mut expected = ["shard-0", "shard-1"].map(|name| u64::from(cluster.member(name).pid()));
    expected.sort_unstable();
    assert_eq!(pids, expected);
    let page = std::fs::read_to_string(bench.path("run/report.html")).unwrap();
    assert!(page.contains("member-1/report.html") && page.contains("member-2/report.html"));

    // Concluding again from the records says the same, and each member's run stands alone.
    let again = json(&mut bench.seekscope(&["doctor", "run"]));
    assert_eq!(again["findings"], document["findings"]);
    assert_eq!(
        again["examination"]["members"],
        document["examination"]["members"]
    );
    let one = json(&mut bench.seekscope(&["doctor", "run/member-1"]));
    assert_eq!(one["outcome"], "ok");
    // So does one bundle of all of them, with the names hashed or not.
    json(&mut bench.seekscope(&["collect", "run", "--out", "bundle.tar.zst"]));
    let opened = ["doctor", "bundle.tar.zst", "--out", "unpacked"];
    let opened = json(&mut bench.seekscope(&opened));
    assert_eq!(opened["findings"], document["findings"]);
    let hashed = ["collect", "run", "--out", "hashed.tar.gz", "--hash-names"];
    json(&mut bench.seekscope(&hashed));
    let opened = ["doctor", "hashed.tar.gz", "--out", "hashed"];
    let opened = json(&mut bench.seekscope(&opened));
    let ids = |document: &Value| -> Vec<String> {
        let findings = document["findings"].as_array().unwrap().iter();
        findings.map(|finding| finding["id"].to_string()).collect()
    };
    assert_eq!(ids(&opened), ids(&document));
    for folder in ["hashed", "hashed/member-1", "hashed/member-2"] {
        let record = std::fs::read_to_string(bench.path(folder).join("run.json")).unwrap();
        assert!(!record.contains("orders"), "{folder}");
    }
}

#[test]
fn of_a_set_secondaries_are_traced_and_its_primary_only_when_permitted() {
    let _machine = shared_machine();
    let set = shared(Topology::ReplicaSet { members: 3 });
    set.load("whole.orders", 1_000);
    let bench = Bench::new();
    for (permission, traced) in [(&[][..], 2), (&["--trace-primary"][..], 3)] {
        let out = format!("run-{traced}");
        let mut arguments = vec!["doctor", set.uri(), "--for", "3s", "--out", &out];
        arguments.extend(permission);
        let document = json(&mut bench.seekscope(&arguments));
        assert_eq!(document["examination"]["set"], "seekscope");
        assert_eq!(
            names(&document, |member| !member["on_host"].is_null()).len(),
            3
        );
        let runs = member_runs(&bench.path(&out), 3);
        let is_traced = |run: &&Value| !run["phases"][0]["trace"].is_null();
        assert_eq!(runs.iter().filter(is_traced).count(), traced);
        let limitations = document["limitations"].to_string();
        assert_eq!(
            limitations.contains("were not traced"),
            traced == 2,
            "{limitations}"
        );
    }
}

/// Returns a replica set of three members whose caches can be made smaller.
fn set_of_three() -> Running {
    let options = DeploymentOptions {
        cache_bytes: 512 << 20,
        ..DeploymentOptions::default()
    };
    let set = own_with(Topology::ReplicaSet { members: 3 }, &options);
    set.load("whole.orders", 2_000);
    set
}

fn make_cache_smaller(member: &LocalServer) {
    runtime().block_on(async {
        let server = Server::connect(&member.uri()).await.unwrap();
        let smaller =
            doc! { "setParameter": 1, "wiredTigerEngineRuntimeConfig": "cache_size=200M" };
        server.command("admin", smaller).await.unwrap();
    });
}

#[test]
fn a_member_with_a_smaller_cache_is_named_and_no_other() {
    let _machine = shared_machine();
    let set = set_of_three();
    let bench = Bench::new();
    let differs = |out: &str| {
        let arguments = ["doctor", set.uri(), "--for", "4s", "--out", out];
        let document = json(&mut bench.seekscope(&arguments));
        document["summary"]["answers"]["member_difference"].clone()
    };
    assert_eq!(differs("alike"), Value::Null);
    let secondary = set.member("member-1");
    make_cache_smaller(secondary);
    let difference = differs("smaller");
    assert_eq!(difference["factor"], "cache, GiB", "{difference:#}");
    assert_eq!(
        difference["member"],
        format!("127.0.0.1:{}", secondary.port())
    );
}

/// Examines each member, as on three hosts, by a process that knows nothing of the others.
#[test]
fn runs_of_several_hosts_are_joined_to_one_of_the_deployment() {
    let _machine = shared_machine();
    let set = set_of_three();
    let bench = Bench::new();
    let secondary = set.member("member-1");
    make_cache_smaller(secondary);
    let runs = ["member-0", "member-1", "member-2"];
    let children = runs.map(|member| {
        let uri = set.member(member).uri();
        let mut doctor = bench.seekscope(&["doctor", &uri, "--for", "5s", "--out", member]);
        doctor.stdout(Stdio::null()).spawn().unwrap()
    });
    for mut child in children {
        assert!(wait(&mut child, Duration::from_secs(60)).success());
    }
    let mut compare = vec!["compare", "--out", "joined"];
    compare.extend(runs);
    let document = json(&mut bench.seekscope(&compare));
    assert_valid("doctor", &document);
    assert_eq!(document["examination"]["deployment"], "replica_set");
    assert_eq!(
        names(&document, |member| !member["on_host"].is_null()).len(),
        3
    );
    assert_eq!(members(&document).len(), 3);
    let difference = &document["summary"]["answers"]["member_difference"];
    assert_eq!(difference["factor"], "cache, GiB", "{difference:#}");
    assert_eq!(
        difference["member"],
        format!("127.0.0.1:{}", secondary.port())
    );
    member_runs(&bench.path("joined"), 3);
    let again = json(&mut bench.seekscope(&["report", "joined"]));
    assert_eq!(again["findings"], document["findings"]);

    let uri = secondary.uri();
    let later = ["doctor", &uri, "--for", "3s", "--out", "later"];
    json(&mut bench.seekscope(&later));
    for (runs, words) in [
        (
            ["member-0", "later", "member-2"],
            "not made at the same time",
        ),
        (
            ["member-0", "member-1", "later"],
            "in more than one of them",
        ),
    ] {
        let mut compare = bench.seekscope(&["compare"]);
        assert_fails(&compare.args(runs).output().unwrap(), 2, &[words]);
    }
    let output = bench.seekscope(&["compare", "member-0", "later"]).output();
    let text = String::from_utf8(output.unwrap().stdout).unwrap();
    assert!(text.contains("another server"), "{text}");
}

#[test]
fn interrupted_it_keeps_what_every_member_has_and_leaves_nothing_in_the_kernel() {
    let _machine = shared_machine();
    let set = shared(Topology::ReplicaSet { members: 3 });
    let bench = Bench::new();
    let arguments = ["doctor", set.uri(), "--for", "300s", "--out", "run"];
    let mut command = bench.seekscope(&arguments);
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let is_watched = |number: usize| {
        let record = bench.path(&format!("run/member-{number}/run.json"));
        std::fs::read_to_string(record).is_ok_and(|text| text.contains("\"observed\""))
    };
    until(|| (1..=3).all(is_watched));
    assert!(bench.loaded_programs() > 0);
    send(&child, libc::SIGINT);
    let status = wait(&mut child, Duration::from_secs(30));
    assert_eq!(status.code(), Some(130));
    assert_eq!(run_document(&bench.path("run"))["outcome"], "partial");
    for run in member_runs(&bench.path("run"), 3) {
        assert_eq!(run["outcome"], "partial");
    }
    until(|| bench.loaded_programs() == 0);
}

/// Nobody is behind when the watch begins.
#[test]
fn a_secondary_that_falls_behind_meanwhile_is_named() {
    let _machine = shared_machine();
    let set = own(
        Topology::ReplicaSet { members: 3 },
        &["--setParameter", "enableTestCommands=1"],
    );
    set.load("whole.orders", 500);
    let bench = Bench::new();
    let arguments = [
        "doctor",
        set.uri(),
        "--for",
        "20s",
        "--out",
        "run",
        "--json",
    ];
    let mut doctor = bench.seekscope(&arguments);
    let mut doctor = doctor.stdout(Stdio::null()).spawn().unwrap();
    let begun = bench.path("run/member-1/run.json");
    until(|| std::fs::read_to_string(&begun).is_ok_and(|text| text.contains("\"observed\"")));
    let secondary = set.member("member-1");
    let applying = |mode: &str| {
        let fail_point = doc! { "configureFailPoint": "rsSyncApplyStop", "mode": mode };
        runtime().block_on(async {
            let server = Server::connect(&secondary.uri()).await.unwrap();
            server.command("admin", fail_point).await.unwrap();
        });
    };
    applying("alwaysOn");
    while doctor.try_wait().unwrap().is_none() {
        set.command(
            "whole",
            doc! { "insert": "more", "documents": [{ "a": 1 }] },
        );
        std::thread::sleep(Duration::from_millis(200));
    }
    applying("off");
    let document = run_document(&bench.path("run"));
    let findings = document["findings"].as_array().unwrap();
    let lagging = findings.iter().find(|f| f["id"] == "member.lagging");
    let lagging = lagging.unwrap_or_else(|| panic!("{findings:#?}"));
    let name = format!("127.0.0.1:{}", secondary.port());
    assert_eq!(lagging["subject"], name);
    let members = members(&document);
    let member = members.iter().find(|member| member["name"] == name);
    let lag_s = |when: &str| member.unwrap()[when].as_f64().unwrap();
    assert!(lag_s("lag_at_begin_s") < 5.0, "{lagging:#}");
    assert!(lag_s("lag_s") >= 10.0, "{lagging:#}");
}

/// The folder of a member's run comes from a file, and must not lead anywhere else.
#[test]
fn a_record_cannot_lead_out_of_its_folder() {
    let _machine = shared_machine();
    let cluster = shared(Topology::Sharded { shards: 2 });
    let bench = Bench::new();
    let mongos = cluster.member("mongos").uri();
    json(&mut bench.seekscope(&["doctor", &mongos, "--for", "2s", "--out", "run"]));
    let path = bench.path("run/run.json");
    let text = std::fs::read_to_string(&path).unwrap();
    let hostile = text.replace("\"member-2\"", "\"../run/member-1\"");
    assert_ne!(hostile, text);
    std::fs::File::create(&path)
        .unwrap()
        .write_all(hostile.as_bytes())
        .unwrap();
    let document = json(&mut bench.seekscope(&["doctor", "run"]));
    let limitations = document["limitations"].to_string();
    assert!(limitations.contains("is missing"), "{limitations}");
    let page = std::fs::read_to_string(bench.path("run/report.html")).unwrap();
    assert!(
        !page.contains("href=\"../run"),
        "a link leads out of the run"
    );
}
