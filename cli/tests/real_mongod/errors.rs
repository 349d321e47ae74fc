//! What is said where a server cannot be reached or does not let us in: one sentence with what to do, the
//! exit code, no secret, and no run folder left behind.

use seekscope_bench::deployment::Topology;

use crate::running::shared;
use crate::support::{Bench, assert_fails, stderr};

/// Words that only a dump of the driver's state has.
const DUMPS: [&str; 7] = [
    "Kind:",
    "labels",
    "source:",
    "Some(",
    "Topology",
    "server response",
    "os error",
];

/// Every command that connects, to this server.
fn commands(uri: &str) -> Vec<Vec<&str>> {
    vec![
        vec!["doctor", uri, "--for", "1s"],
        vec!["collect", uri, "--out", "bundle.tar.zst"],
        vec!["trace", "--target", uri, "--for", "1s"],
        vec!["top", uri, "--once"],
        vec!["layout", uri],
        vec!["prefetch", uri, "errors.orders"],
        vec!["reorder", uri, "errors.orders"],
        vec!["bench", "ycsb", uri, "--records", "10", "--for", "1s"],
    ]
}

fn fails(arguments: &[&str], code: i32, words: &[&str]) {
    let bench = Bench::new();
    let output = bench.seekscope(arguments).output().unwrap();
    let said = stderr(&output);
    assert_fails(&output, code, words);
    for dump in DUMPS {
        assert!(!said.contains(dump), "{dump}: {said}");
    }
    let last = said.lines().last().unwrap();
    assert!(last.starts_with("seekscope: "), "not one line: {said}");
    assert!(!bench.path("seekscope-runs").exists(), "{arguments:?}");
}

fn with_options(uri: &str, options: &str) -> String {
    let hosts = uri.split_once('?').map_or(uri, |(hosts, _)| hosts);
    format!("{}/?{options}", hosts.trim_end_matches('/'))
}

#[test]
fn a_wrong_password() {
    let running = shared(Topology::StandaloneWithPassword);
    let uri = running.member("standalone").uri();
    let uri = uri.replace("mongodb://", "mongodb://somebody:QZ9Xsecret@");
    for arguments in commands(&uri) {
        fails(
            &arguments,
            3,
            &["refused the login", "check user, password"],
        );
        let bench = Bench::new();
        let output = bench.seekscope(&arguments).output().unwrap();
        assert!(!stderr(&output).contains("QZ9X"), "{}", stderr(&output));
    }
}

#[test]
fn nobody_is_there() {
    for arguments in commands("mongodb://127.0.0.1:1/") {
        fails(
            &arguments,
            3,
            &[
                "127.0.0.1:1",
                "nothing listens there",
                "check host and port",
            ],
        );
    }
    let uri = "mongodb://no-such-host.invalid/";
    fails(&["layout", uri], 3, &["cannot be resolved", "spelt"]);
}

#[test]
fn a_right_that_is_missing() {
    let running = shared(Topology::StandaloneWithPassword);
    let uri = running.member("standalone").uri();
    let words = ["listCollections", "--print-role"];
    fails(&["reorder", &uri, "errors.orders"], 4, &words);
}

#[test]
fn tls_that_is_missing_not_trusted_or_not_wanted() {
    let running = shared(Topology::StandaloneWithTls);
    let uri = running.member("standalone").uri();
    let plain = with_options(&uri, "");
    fails(
        &["top", &plain, "--once"],
        3,
        &["ends the connection", "tls=true"],
    );
    let untrusted = with_options(&uri, "tls=true");
    fails(
        &["layout", &untrusted],
        3,
        &["UnknownIssuer", "tlsCAFile=FILE"],
    );
    let missing = with_options(&uri, "tls=true&tlsCAFile=/no/such/file");
    fails(&["layout", &missing], 2, &["/no/such/file"]);
    let running = shared(Topology::Standalone);
    let unwanted = with_options(&running.member("standalone").uri(), "tls=true");
    fails(&["layout", &unwanted], 3, &["TLS", "leave tls=true out"]);
}

#[test]
fn a_set_that_it_does_not_belong_to() {
    let all = |uri: &str, words: &[&str]| {
        for arguments in commands(uri) {
            fails(&arguments, 3, words);
        }
        fails(&["advise", uri, "errors.orders"], 3, words);
    };
    let running = shared(Topology::Standalone);
    let uri = with_options(&running.member("standalone").uri(), "replicaSet=rs9");
    all(&uri, &["no replica set", "rs9", "replicaSet=NAME"]);
    let running = shared(Topology::ReplicaSet { members: 1 });
    for options in ["replicaSet=rs9", "replicaSet=rs9&directConnection=true"] {
        let uri = with_options(&running.member("member-0").uri(), options);
        all(&uri, &["belongs to the replica set", "not to rs9"]);
    }
    let running = shared(Topology::Sharded { shards: 2 });
    let uri = with_options(&running.member("mongos").uri(), "replicaSet=rs9");
    all(&uri, &["no replica set", "rs9", "replicaSet=NAME"]);
}

#[test]
fn a_malformed_connection_string() {
    for arguments in commands("mongodb://me:QZ9Xsecret@host:port:1/") {
        let bench = Bench::new();
        let output = bench.seekscope(&arguments).output().unwrap();
        assert_fails(&output, 2, &["connection string"]);
        assert!(!stderr(&output).contains("QZ9X"), "{}", stderr(&output));
        assert!(!bench.path("seekscope-runs").exists(), "{arguments:?}");
    }
}
