//! What is said where a server cannot be reached or does not let us in: one sentence with what to do, the
//! exit code, no secret, and no run folder left behind.

use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};

use mongodb::bson::doc;
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

/// Each of these. They run at once, since each waits for some seconds in vain.
fn all_fail(commands: &[Vec<&str>], code: i32, words: &[&str]) {
    std::thread::scope(|scope| {
        for arguments in commands {
            scope.spawn(move || fails(arguments, code, words));
        }
    });
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
    let commands = commands(&uri);
    let words = ["refused the login", "check user, password"];
    all_fail(&commands, 3, &words);
    for arguments in commands {
        let bench = Bench::new();
        let output = bench.seekscope(&arguments).output().unwrap();
        assert!(!stderr(&output).contains("QZ9X"), "{}", stderr(&output));
    }
}

#[test]
fn nobody_is_there() {
    let words = [
        "127.0.0.1:1",
        "nothing listens there",
        "check the host and the port",
    ];
    all_fail(&commands("mongodb://127.0.0.1:1/"), 3, &words);
    let uri = "mongodb://no-such-host.invalid/";
    fails(&["layout", uri], 3, &["cannot be resolved", "spelling"]);
}

#[test]
fn a_login_that_is_missing() {
    let running = shared(Topology::StandaloneWithPassword);
    let uri = running.member("standalone").uri();
    let words = [
        "listCollections without a login",
        "put a user and a password into the connection string",
    ];
    fails(&["reorder", &uri, "errors.orders"], 4, &words);
}

#[test]
fn tls_that_is_missing_not_trusted_or_not_wanted() {
    let running = shared(Topology::StandaloneWithTls);
    let uri = running.member("standalone").uri();
    let plain = with_options(&uri, "");
    let untrusted = with_options(&uri, "tls=true");
    let missing = with_options(&uri, "tls=true&tlsCAFile=/no/such/file");
    let running = shared(Topology::Standalone);
    let unwanted = with_options(&running.member("standalone").uri(), "tls=true");
    // At once, as above.
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let words = ["closes the connection", "tls=true"];
            fails(&["top", &plain, "--once"], 3, &words);
        });
        scope.spawn(|| {
            let words = ["UnknownIssuer", "tlsCAFile=FILE"];
            fails(&["layout", &untrusted], 3, &words);
        });
        scope.spawn(|| fails(&["layout", &missing], 2, &["/no/such/file"]));
        scope.spawn(|| {
            let words = ["TLS", "remove tls=true"];
            fails(&["layout", &unwanted], 3, &words);
        });
    });
}

#[test]
fn a_set_that_it_does_not_belong_to() {
    let all = |uri: &str, words: &[&str]| {
        let mut commands = commands(uri);
        commands.push(vec!["advise", uri, "errors.orders"]);
        all_fail(&commands, 3, words);
    };
    let running = shared(Topology::Standalone);
    let uri = with_options(&running.member("standalone").uri(), "replicaSet=rs9");
    all(
        &uri,
        &["not belong to a replica set", "rs9", "replicaSet=NAME"],
    );
    let running = shared(Topology::ReplicaSet { members: 1 });
    for options in ["replicaSet=rs9", "replicaSet=rs9&directConnection=true"] {
        let uri = with_options(&running.member("member-0").uri(), options);
        all(&uri, &["belongs to the replica set", "not to rs9"]);
    }
    let running = shared(Topology::Sharded { shards: 2 });
    let uri = with_options(&running.member("mongos").uri(), "replicaSet=rs9");
    all(
        &uri,
        &["not belong to a replica set", "rs9", "replicaSet=NAME"],
    );
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

/// Whatever process was named was believed, and its reads and memory shown as the server's.
#[test]
fn a_process_that_is_not_the_servers() {
    let (server, other) = (
        shared(Topology::Standalone),
        shared(Topology::ReplicaSet { members: 1 }),
    );
    server.load("errors.orders", 10);
    let named = |pid: u32, code: i32, words: &[&str]| {
        let pid = pid.to_string();
        let takes_one = |arguments: &Vec<&str>| !["collect", "trace"].contains(&arguments[0]);
        for mut arguments in commands(server.uri()).into_iter().filter(takes_one) {
            arguments.extend(["--pid", &pid]);
            fails(&arguments, code, words);
        }
    };
    let who = format!("reports that it is process {}", server.pid());
    named(
        std::process::id(),
        2,
        &["is not the server at", &who, "pgrep -a mongod"],
    );
    named(other.pid(), 2, &["it runs mongod", &who]);
    named(u32::MAX >> 1, 2, &["no such process"]);
    server.command("admin", doc! { "fsync": 1 });
    let data = server.data_directory().to_str().unwrap();
    let pid = other.pid().to_string();
    let words = ["does not have", "WiredTiger.wt open", "leave --pid out"];
    fails(
        &["prefetch", data, "errors.orders", "--pid", &pid],
        2,
        &words,
    );
    let bench = Bench::new();
    let mut own = bench.seekscope(&["top", server.uri(), "--once", "--pid"]);
    let output = own.arg(server.pid().to_string()).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
}

/// Forwards connections as an SSH tunnel does, or the proxy in front of a container.
#[test]
fn a_process_that_forwards_connections_is_not_the_server() {
    let server = shared(Topology::Standalone);
    let port = server.member("standalone").port();
    let uri = format!("mongodb://{}/?directConnection=true", forwarder(port));
    let who = format!("reports that it is process {}", server.pid());
    let words = [
        "cannot be read from here",
        "accepts its connections, but it runs",
        &who,
    ];
    fails(&["layout", &uri], 3, &words);
}

/// Forwards connections to another port, until the test's process ends. Returns its own address.
fn forwarder(port: u16) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let server = TcpStream::connect(("127.0.0.1", port)).unwrap();
            for (mut from, mut to) in [
                (client.try_clone().unwrap(), server.try_clone().unwrap()),
                (server, client),
            ] {
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut from, &mut to);
                    let _ = to.shutdown(Shutdown::Both);
                });
            }
        }
    });
    address
}
