//! `tune` on MongoDB's own mongod: which knobs it searches with runs of which length, and how it leaves the
//! server.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use mongodb::bson::doc;
use seekscope_bench::deployment::Topology;
use seekscope_server::Server;
use seekscope_settings::Traffic;
use serde_json::Value;

use crate::running::{Running, own, programs, shared};
use crate::schemas::assert_valid;
use crate::support::{
    Bench, assert_fails, json, python_interpreter, runtime, shared_machine, stderr, until,
};

const RUNTIME: &str = "wiredTigerEngineRuntimeConfig";

/// What the engine's configuration reads.
fn engine_text(server: &Running) -> String {
    let reply = server.command("admin", doc! { "getParameter": 1, RUNTIME: 1 });
    reply.get_str(RUNTIME).unwrap().to_owned()
}

/// Returns the size of the server's cache, MiB.
fn cache_mib(server: &Running) -> i64 {
    let status = server.command("admin", doc! { "serverStatus": 1 });
    let cache = status.get_document("wiredTiger").unwrap();
    let cache = cache.get_document("cache").unwrap();
    let bytes = cache.get("maximum bytes configured").unwrap();
    let bytes = bytes.as_i64().or(bytes.as_i32().map(i64::from));
    bytes.unwrap() >> 20
}

/// A short session whose figure is the same whatever is set, unless its command is another.
fn session(bench: &Bench, server: &Running, out: &str, more: &[&str]) -> std::process::Command {
    session_at(bench, server.uri(), out, more)
}

pub fn session_at(bench: &Bench, uri: &str, out: &str, more: &[&str]) -> std::process::Command {
    let mut command = bench.seekscope(&["tune", uri, "--out", out]);
    command.args(["--maximize", "--trials", "3", "--baseline-pairs", "1"]);
    command.args(["--pairs", "4"]).args(more);
    if !more.contains(&"--command") {
        command.args(["--command", "echo 7"]);
    }
    command
}

fn names(document: &Value) -> Vec<String> {
    let baseline = document["summary"]["baseline"].as_object().unwrap();
    baseline.keys().cloned().collect()
}

/// Why a knob was left out; empty if it was not.
fn why<'a>(document: &'a Value, knob: &str) -> &'a str {
    let mut left_out = document["summary"]["left_out"].as_array().unwrap().iter();
    let found = left_out.find(|one| one["knob"] == knob);
    found.map_or("", |one| one["why"].as_str().unwrap())
}

#[test]
fn the_engines_configuration_reads_after_a_session_as_it_did_before() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let server = own(Topology::Standalone, &[]);
    let dirty = ["--knobs", "eviction_dirty_trigger,cache_size,read_tickets"];
    let before_mib = cache_mib(&server);
    assert_eq!(engine_text(&server), "");
    let document = json(&mut session(&bench, &server, "run", &dirty));
    assert_valid("tune", &document);
    assert_eq!(document["summary"]["restored"], true);
    assert_eq!(
        (engine_text(&server).as_str(), cache_mib(&server)),
        ("", before_mib)
    );

    // What somebody had set stays set, and reads as he wrote it.
    let text = "cache_size=200MB,eviction_dirty_trigger=33";
    server.command("admin", doc! { "setParameter": 1, RUNTIME: text });
    let document = json(&mut session(&bench, &server, "again", &dirty));
    assert_eq!(
        document["summary"]["baseline"]["eviction_dirty_trigger"],
        33
    );
    assert_eq!(
        (engine_text(&server).as_str(), cache_mib(&server)),
        (text, 200)
    );
}

/// The session's server may have had more memory: a cache beyond what this one can hold is an OOM killer's.
#[test]
fn a_change_that_this_server_has_no_room_for_is_not_applied() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let server = own(Topology::Standalone, &[]);
    json(&mut session(
        &bench,
        &server,
        "run",
        &["--knobs", "cache_size"],
    ));
    let (before_mib, host_mib) = (
        cache_mib(&server),
        seekscope_run::HostFacts::read("/".as_ref()).memory_bytes >> 20,
    );
    let file = bench.path("run").join("run.json");
    let recommend = |mib: u64| {
        let mut document: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        document["tune"]["recommended"] = serde_json::json!({ "cache_size": mib });
        std::fs::write(&file, document.to_string()).unwrap();
    };
    recommend(host_mib);
    for more in [&[][..], &["--yes"]] {
        let apply = ["tune", "apply", "run", server.uri()];
        let output = bench.seekscope(&apply).args(more).output().unwrap();
        let why = ["cache_size", "it takes", "Nothing was changed"];
        assert_fails(&output, 2, &why);
    }
    assert_eq!(cache_mib(&server), before_mib);
    recommend(before_mib.unsigned_abs() + 1);
    let apply = ["tune", "apply", "run", server.uri(), "--yes"];
    let document = json(&mut bench.seekscope(&apply));
    assert_valid("tune-apply", &document);
    assert_eq!(
        (&document["done"], cache_mib(&server)),
        (&true.into(), before_mib + 1)
    );
    let undo = ["tune", "apply", "run", server.uri(), "--undo", "--yes"];
    let document = json(&mut bench.seekscope(&undo));
    assert_valid("tune-apply", &document);
    assert_eq!(document["put_back"].as_array().unwrap().len(), 1);
    assert_eq!(cache_mib(&server), before_mib);
}

/// Sends the command again and again, as a program of its own does.
async fn ask(uri: String, command: mongodb::bson::Document) {
    let server = Server::connect(&uri).await.unwrap();
    loop {
        server.command("admin", command.clone()).await.unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[test]
fn neither_members_nor_monitoring_make_a_server_busy() {
    let _machine = shared_machine();
    // The shared set may be asked by another test meanwhile.
    let set = own(Topology::ReplicaSet { members: 3 }, &[]);
    let runtime = runtime();
    for member in ["member-0", "member-1", "member-2"] {
        let uri = set.member(member).uri();
        let is_busy = || {
            runtime.block_on(async {
                let server = Server::connect(&uri).await.unwrap();
                Traffic::of(&server).await.unwrap().is_busy()
            })
        };
        let monitoring = ["serverStatus", "isMaster", "replSetGetStatus"];
        let monitoring = monitoring.map(|name| runtime.spawn(ask(uri.clone(), doc! { name: 1 })));
        assert!(!is_busy(), "{member}");
        let work =
            doc! { "aggregate": 1, "pipeline": [{ "$listLocalSessions": {} }], "cursor": {} };
        let work = runtime.spawn(ask(uri.clone(), work));
        std::thread::sleep(Duration::from_millis(500));
        assert!(is_busy(), "{member}");
        work.abort();
        monitoring.iter().for_each(tokio::task::JoinHandle::abort);
    }
}

#[test]
fn what_a_killed_index_benchmark_had_set_is_put_back() {
    const LIMIT: &str = "maxIndexBuildMemoryUsageMegabytes";
    let _machine = shared_machine();
    let bench = Bench::new();
    let server = own(Topology::Standalone, &[]);
    // One connection for all questions: many keep the server busy, and the benchmark waits until it is quiet.
    let runtime = runtime();
    let connection = Server::connect(server.uri());
    let connection = runtime.block_on(connection).unwrap();
    let limit = || {
        let reply = connection.command("admin", doc! { "getParameter": 1, LIMIT: 1 });
        runtime.block_on(reply).unwrap().get_i32(LIMIT).unwrap()
    };
    let builds = |out: &str| {
        let mut command = bench.seekscope(&["bench", "index", server.uri(), "--memory-mb", "55"]);
        command.args(["--docs", "20000", "--repeats", "9", "--out", out]);
        command
    };
    let before = limit();
    let mut command = builds("run");
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut killed = command.spawn().unwrap();
    until(|| limit() == 55);
    killed.kill().unwrap();
    killed.wait().unwrap();

    let original = format!("= {before} (setParameter {LIMIT})");
    let told = stderr(&bench.seekscope(&["clean"]).output().unwrap());
    assert!(told.contains(&original), "{told}");
    let next = builds("next").output().unwrap();
    assert_fails(&next, 3, &[original.as_str(), "tune --restore"]);
    assert_eq!(limit(), 55);
    // Whoever measures the server as it is gets to know it.
    let measure = [
        "bench",
        "ycsb",
        server.uri(),
        "--records",
        "50",
        "--operations",
        "50",
        "--out",
        "ycsb",
    ];
    let measured = json(&mut bench.seekscope(&measure));
    let what = measured["limitations"][0]["what"].as_str().unwrap();
    assert!(
        what.contains("does not have the settings of its owner") && what.contains(&original),
        "{what}"
    );
    let restore = ["tune", "--restore", "run"];
    let restored = bench.seekscope(&restore).output().unwrap();
    assert!(restored.status.success(), "{}", stderr(&restored));
    assert_eq!(limit(), before);
    let told = stderr(&bench.seekscope(&["clean"]).output().unwrap());
    assert!(told.contains("Nothing was left behind"), "{told}");
}

#[test]
fn an_empty_engine_configuration_is_taken_and_changes_nothing() {
    let _machine = shared_machine();
    let server = own(Topology::Standalone, &[]);
    server.command(
        "admin",
        doc! { "setParameter": 1, RUNTIME: "cache_size=200MB" },
    );
    server.command("admin", doc! { "setParameter": 1, RUNTIME: "" });
    assert_eq!(
        (engine_text(&server).as_str(), cache_mib(&server)),
        ("", 200)
    );
}

#[test]
fn only_what_runs_can_judge_is_searched() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let server = own(Topology::Standalone, &[]);
    let of_checkpoints = [
        "eviction_dirty_trigger",
        "eviction_dirty_target",
        "eviction_checkpoint_target",
    ];
    let of_files = [
        "close_idle_time",
        "close_handle_minimum",
        "close_scan_interval",
    ];
    let searched = |out: &str, length: &[&str]| {
        let mut command = session(&bench, &server, out, &["--allow-durability"]);
        let output = command.args(length).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        let shown = json(&mut bench.seekscope(&["tune", "show", out]));
        assert_valid("tune", &shown);
        (shown, stderr(&output))
    };
    let (unknown, said) = searched("unknown", &[]);
    let (short, _) = searched("short", &["--trial-for", "20s"]);
    for document in [&unknown, &short] {
        let names = names(document);
        for knob in of_checkpoints.iter().chain(&of_files) {
            assert!(!names.iter().any(|name| name == knob), "{names:?}");
            assert!(why(document, knob).contains("--trial-for"), "{knob}");
        }
        assert!(why(document, "checkpoint_seconds").contains("more than 120 s"));
        assert!(names.contains(&"read_tickets".to_owned()), "{names:?}");
    }
    // The plan says it before the first run.
    let plan = said.split("baseline:").next().unwrap();
    assert!(
        plan.contains("Left out: ") && plan.contains("eviction_dirty_trigger"),
        "{said}"
    );
    let (long, _) = searched("long", &["--trial-for", "130s"]);
    let names = names(&long);
    for knob in of_checkpoints.iter().chain(&["checkpoint_seconds"]) {
        assert!(names.iter().any(|name| name == knob), "{knob}: {names:?}");
    }
    for knob in of_files {
        assert!(!names.iter().any(|name| name == knob), "{names:?}");
    }
    // Named it is tuned, and the record says what that is worth.
    let named = [
        "--knobs",
        "eviction_dirty_trigger",
        "--trial-for",
        "20s",
        "-q",
    ];
    let document = json(&mut session(&bench, &server, "named", &named));
    let caution = &document["summary"]["cautions"][0];
    assert_eq!(caution["knob"], "eviction_dirty_trigger");
    assert!(
        caution["why"].as_str().unwrap().contains("more than 60 s"),
        "{caution}"
    );
}

#[test]
fn a_member_is_restarted_and_never_a_set() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let set = own(Topology::ReplicaSet { members: 3 }, &[]);
    std::fs::write(bench.path("mongod.conf"), "net:\n  port: 1\n").unwrap();
    let mut command = session(&bench, &set, "run", &["--knobs", "journal_compressor"]);
    command.args(["--config-file", "mongod.conf"]);
    command.args(["--restart-command", "touch restarted"]);
    let output = command.output().unwrap();
    assert_fails(&output, 2, &["3 members", "directConnection=true"]);
    assert!(!bench.path("restarted").exists() && !bench.path("run").exists());
}

#[test]
fn a_mongos_has_no_knobs() {
    let bench = Bench::new();
    let cluster = shared(Topology::Sharded { shards: 2 });
    let words = ["is a mongos", "shard-0 (", "--command"];
    assert_fails(
        &session(&bench, &cluster, "run", &[]).output().unwrap(),
        2,
        &words,
    );
    // No budget is large enough for it.
    let mut small = bench.seekscope(&["tune", cluster.uri(), "--workload", "ycsb:a"]);
    small.args(["--budget", "3s", "--trial-for", "15s", "--out", "small"]);
    assert_fails(&small.output().unwrap(), 2, &words);
    let mut init = bench.seekscope(&["tune", "init", cluster.uri()]);
    assert_fails(&init.output().unwrap(), 2, &words);
}

/// The right is missing, not the knobs: a session that cannot set anything ends, and has nothing to put back.
#[test]
fn a_user_who_may_set_nothing_is_told_and_changes_nothing() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let server = own(Topology::StandaloneWithPassword, &[]);
    let roles = ["readWriteAnyDatabase", "clusterMonitor"];
    let user = doc! { "createUser": "reader", "pwd": "p", "roles": roles.to_vec() };
    server.command("admin", user);
    let port = server.member("standalone").port();
    let uri = format!("mongodb://reader:p@127.0.0.1:{port}/?authSource=admin");
    for (out, knobs) in [
        ("run", "cache_size,read_tickets,eviction_trigger"),
        ("engine", "eviction_trigger"),
    ] {
        let mut refused = session_at(&bench, &uri, out, &["--knobs", knobs]);
        let output = refused.output().unwrap();
        assert_fails(&output, 4, &["may not run setParameter", "hostManager"]);
        let said = stderr(&output);
        assert!(!said.contains("NOT put back"), "{said}");
        assert!(!said.contains("trial 1"), "told before the first: {said}");
        assert_eq!(engine_text(&server), "");
    }
    // Whoever has the right is not held up by it.
    json(&mut session(
        &bench,
        &server,
        "allowed",
        &["--knobs", "read_tickets"],
    ));
}

/// A mongod with a configuration file, which commands start and stop.
struct Configured<'a> {
    bench: &'a Bench,
    uri: String,
    config: String,
    file: PathBuf,
    log: PathBuf,
    /// A file with its process id.
    lock: PathBuf,
    /// Commands for the shell.
    start: String,
    stop: String,
}

impl<'a> Configured<'a> {
    fn start(bench: &'a Bench) -> Self {
        let (data, log) = (bench.path("data"), bench.path("mongod.log"));
        std::fs::create_dir(&data).unwrap();
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let config = format!(
            "net: {{port: {port}, bindIp: 127.0.0.1}}\nstorage:\n  dbPath: {}\n  wiredTiger:\n    engineConfig: \
             {{cacheSizeGB: 0.25}}\nsystemLog: {{destination: file, path: {}, logAppend: true}}\n\
             processManagement: {{fork: true}}\n",
            data.display(),
            log.display()
        );
        let (file, lock) = (bench.path("mongod.conf"), data.join("mongod.lock"));
        std::fs::write(&file, &config).unwrap();
        let mongod = programs().mongod.path.display().to_string();
        let server = Self {
            bench,
            uri: format!("mongodb://127.0.0.1:{port}/"),
            config,
            start: format!("{mongod} -f {} > /dev/null", file.display()),
            stop: format!(
                "kill $(cat {0}); while kill -0 $(cat {0}); do sleep 0.1; done",
                lock.display()
            ),
            file,
            log,
            lock,
        };
        assert!(shell(&server.start));
        server
    }

    /// Returns a session that runs this script for each trial.
    fn session(&self, out: &str, script: &str, more: &[&str]) -> std::process::Command {
        let work = format!("{out}.sh");
        std::fs::write(self.bench.path(&work), script).unwrap();
        let command = format!("sh {work}");
        let mut session = self.bench.seekscope(&["tune", &self.uri, "--out", out]);
        session.args(["--command", &command, "--maximize", "--trials", "4"]);
        session
            .args(["--baseline-pairs", "1", "--pairs", "4"])
            .args(more);
        session
    }
}

impl Drop for Configured<'_> {
    fn drop(&mut self) {
        shell(&format!("({}) 2> /dev/null", self.stop));
    }
}

fn shell(text: &str) -> bool {
    let status = std::process::Command::new("sh").args(["-c", text]).status();
    status.unwrap().success()
}

/// A regression: the figure of a run whose server was killed and started again was taken for that of its setting.
#[test]
fn a_run_in_which_the_server_was_restarted_has_no_figure() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let server = Configured::start(&bench);
    let restarted_in_the_third = format!(
        "echo >> runs; if [ $(wc -l < runs) = 3 ]; then ({}) 2> /dev/null; {}; fi; echo 7",
        server.stop, server.start
    );
    let mut session = server.session("run", &restarted_in_the_third, &["--knobs", "read_tickets"]);
    let said = stderr(&session.output().unwrap());
    let failed = said.matches("failed: the server ended, or was restarted");
    assert_eq!(failed.count(), 1, "{said}");
}

/// A journal can be read only with the compressor that wrote it: the configuration that the session found would not
/// start a server that died in a trial of another.
#[test]
fn a_server_that_dies_in_a_trial_comes_back_with_its_own_journal() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let server = Configured::start(&bench);
    // In the first trial of another compressor: writes that only the journal has, and then it is gone.
    let die = format!(
        "grep -q journalCompressor {} && [ ! -e died ] && {} -c 'import pymongo, random; \
         pymongo.MongoClient(\"{}?w=1&journal=true\").a.b.insert_many([{{\"n\": \"x\" * 2000}} for _ in range(200)])' \
         && touch died && kill -9 $(cat {}) && exit 1; echo 7",
        server.file.display(),
        python_interpreter().display(),
        server.uri,
        server.lock.display()
    );
    let restart = format!("({}) 2> /dev/null; {}", server.stop, server.start);
    std::fs::write(bench.path("restart.sh"), restart).unwrap();
    let knobs = ["--knobs", "journal_compressor"];
    let restarts = [
        "--config-file",
        "mongod.conf",
        "--restart-command",
        "sh restart.sh",
    ];
    let mut session = server.session("run", &die, &[&knobs[..], &restarts].concat());
    let output = session.output().unwrap();
    assert!(bench.path("died").exists(), "{}", stderr(&output));
    assert!(
        !stderr(&output).contains("did not come back"),
        "{}",
        stderr(&output)
    );
    assert_eq!(
        std::fs::read_to_string(&server.file).unwrap(),
        server.config
    );
    let log = std::fs::read_to_string(&server.log).unwrap();
    assert!(!log.contains("SNAPPY_INVALID_INPUT"));
}

/// The file held no knob, for no server had been asked; and one of its knobs kept a server from starting.
#[test]
fn a_knob_file_for_a_local_mongod_is_taken_as_it_is_written() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let mongod = programs().mongod.path;
    let mut init = bench.seekscope(&["tune", "init", "local", "--out", "knobs.toml"]);
    let output = init.arg("--server-binary").arg(&mongod).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let mut command = session_at(&bench, "local", "run", &["--knobs", "knobs.toml"]);
    let document = json(command.arg("--server-binary").arg(&mongod));
    assert_valid("tune", &document);
    let names = names(&document);
    assert!(names.len() > 20, "{names:?}");
    for expected in ["cache_size", "eviction_dirty_trigger", "tcmalloc_decommit"] {
        assert!(names.iter().any(|name| name == expected), "{names:?}");
    }
    assert!(why(&document, "session_max").contains("--allow-availability"));
    // Nothing would come of a server that does not start.
    assert_eq!(document["outcome"], "ok", "{document:#}");
}
