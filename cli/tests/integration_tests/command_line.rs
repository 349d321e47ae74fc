use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use crate::schemas::assert_valid;
use crate::support::{Bench, assert_fails, stderr};

#[test]
fn every_command_has_help_with_examples() {
    let bench = Bench::new();
    for command in [
        "doctor", "top", "bench", "merge", "replay", "report", "clean",
    ] {
        let output = bench.seekscope(&[command, "--help"]).output().unwrap();
        let help = String::from_utf8(output.stdout).unwrap();
        assert!(
            output.status.success() && help.matches(&format!("  seekscope {command}")).count() >= 2,
            "{help}"
        );
    }
}

#[test]
fn usage_errors_end_with_2() {
    let bench = Bench::new();
    for arguments in [
        &["doctor", "--docs", "many"][..],
        &["doctor", "--collection", "a.b"],
        &["frobnicate"],
        &["doctor", "mongodb://127.0.0.1:1/", "--collection", "nodot"],
        &[
            "doctor",
            "mongodb://127.0.0.1:1/",
            "--collection",
            "a.b",
            "--index",
            "{i: ",
        ],
        &[
            "doctor",
            "mongodb://127.0.0.1:1/",
            "--collection",
            "a.b",
            "--index",
            "{}",
        ],
    ] {
        let output = bench.seekscope(arguments).output().unwrap();
        assert_eq!(
            output.status.code(),
            Some(2),
            "{arguments:?}: {}",
            stderr(&output)
        );
    }
}

/// With `--json`, the error is a document too, on one line.
#[test]
fn a_failed_command_prints_its_error_as_json() {
    let bench = Bench::new();
    let nobody = "mongodb://anna:pa55word@127.0.0.1:1/?serverSelectionTimeoutMS=500";
    for (arguments, code) in [
        (&["layout", "nosuch"][..], 2),
        (&["doctor", nobody, "--for", "1s"], 3),
        (&["bench", "ycsb", nobody], 3),
        (&["top", nobody], 3),
        (&["report", "."], 2),
    ] {
        let mut command = bench.seekscope(arguments);
        let output = command.arg("--json").output().unwrap();
        let text = String::from_utf8(output.stdout.clone()).unwrap();
        assert_eq!(text.lines().count(), 1, "{arguments:?}: {text}");
        let document: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_valid("error", &document);
        assert_eq!(document["exit_code"], code, "{text}");
        assert_eq!(output.status.code(), Some(code), "{text}");
        let error = document["error"].as_str().unwrap();
        assert!(!error.contains("pa55word"), "{error}");
        assert!(
            stderr(&output).contains(&error[..error.len().min(40)]),
            "{text}"
        );
    }
}

#[test]
fn an_unreachable_server_ends_with_3_and_keeps_the_secret() {
    let bench = Bench::new();
    let uri = "mongodb://anna:pa55%40word@127.0.0.1:1/?serverSelectionTimeoutMS=500";
    let output = bench
        .seekscope(&["doctor", uri, "--out", "run"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("127.0.0.1:1"),
        "{}",
        stderr(&output)
    );
    assert!(!stderr(&output).contains("pa55"), "{}", stderr(&output));
    assert!(!bench.path("run").exists(), "nothing was found out");
}

/// A connection string with a slip in it is the one most likely to be shown in an error.
#[test]
fn a_misspelt_connection_string_keeps_the_secret_too() {
    let bench = Bench::new();
    for (n, uri) in [
        "anna:pa55word@127.0.0.1:1/",
        "mongodb:/anna:pa55word@127.0.0.1:1",
    ]
    .into_iter()
    .enumerate()
    {
        let out = format!("run{n}");
        let output = bench
            .seekscope(&["doctor", uri, "--out", &out])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        let said = stderr(&output);
        assert!(!said.contains("pa55word"), "{said}");
        assert!(!bench.path(&out).exists(), "nothing was found out");
    }
}

#[test]
fn the_password_is_not_in_the_process_list() {
    let bench = Bench::new();
    // A listener that never answers keeps the connection attempt going.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let uri = format!("mongodb://anna:pa55word@{}/", silent.local_addr().unwrap());
    let mut child = bench
        .seekscope(&["doctor", &uri, "--out", "run"])
        .spawn()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_millis(700));
    let line = std::fs::read(format!("/proc/{}/cmdline", child.id())).unwrap();
    let line = String::from_utf8_lossy(&line).into_owned();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(
        line.contains("mongodb://") && !line.contains("pa55word"),
        "{line}"
    );
}

#[test]
fn report_refuses_what_is_no_run() {
    let bench = Bench::new();
    let output = bench.seekscope(&["report", "."]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("not a run directory"),
        "{}",
        stderr(&output)
    );
}

/// What is named and not there is a matter of the call; a server that does not start is one of the target.
#[test]
fn exit_codes_say_what_a_failure_means() {
    let bench = Bench::new();
    let script = bench.path("mongod");
    std::fs::write(&script, "#!/bin/sh\necho no such storage engine\nexit 1\n").unwrap();
    std::fs::set_permissions(&script, Permissions::from_mode(0o755)).unwrap();
    let nowhere: [&[&str]; 11] = [
        &["layout", "/nowhere"],
        &["prefetch", "/nowhere", "shop.orders"],
        &["disk", "run", "/nowhere"],
        &["disk", "--read-existing", "/nowhere"],
        &["report", "/nowhere"],
        &["compare", "/nowhere", "/nowhere"],
        &["trace", "import", "/nowhere"],
        &["bench", "sample", "/nowhere"],
        &["bench", "ycsb", "-P", "/nowhere"],
        &["bench", "ycsb", "--server-binary", "/nowhere"],
        &["tune", "show", "/nowhere"],
    ];
    for arguments in nowhere {
        let output = bench.seekscope(arguments).output().unwrap();
        assert_fails(&output, 2, &["/nowhere"]);
    }
    let absent = bench.seekscope(&["trace", "-p", "4194304"]).output();
    assert_fails(&absent.unwrap(), 2, &["no process 4194304"]);
    let uri = "mongodb://127.0.0.1:1/";
    let unreachable = bench.seekscope(&["bench", "sample", "a.b", uri]).output();
    assert_fails(&unreachable.unwrap(), 3, &["127.0.0.1:1"]);
    let schema = ["bench", "schema", "--server-binary", "./mongod"];
    let broken = bench.seekscope(&schema).output().unwrap();
    assert_fails(
        &broken,
        3,
        &["ended during its start", "no such storage engine"],
    );
}
