//! `collect`, and `doctor` on what it made.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::doctor_examination::{NAMESPACE, examined, loaded};
use crate::schemas::assert_valid;
use crate::support::{Bench, ForeignServer, assert_fails, json, shared_machine};

/// Everything in the bundle, as text: Parquet pages are unpacked by the reader of their format.
fn contents(bench: &Bench, bundle: &str) -> String {
    let unpacked = bench.path("unpacked");
    let _ = std::fs::remove_dir_all(&unpacked);
    std::fs::create_dir(&unpacked).unwrap();
    let status = Command::new("tar")
        .arg("-xf")
        .arg(bench.path(bundle))
        .arg("-C")
        .arg(&unpacked)
        .status()
        .unwrap();
    assert!(status.success(), "tar opens it");
    let mut text = std::fs::read_to_string(unpacked.join("run.json")).unwrap();
    let (directory, _) = seekscope_run::RunDirectory::open(&unpacked).unwrap();
    for file in directory.files().unwrap() {
        text.push_str(&format!("{file:?}\n"));
    }
    for thread in directory.threads().unwrap() {
        text.push_str(&format!("{thread:?}\n"));
    }
    for counter in directory.counters().unwrap() {
        text.push_str(&format!("{} {}\n", counter.source, counter.name));
    }
    text
}

#[test]
fn names_are_hashed_everywhere_and_conclusions_stay() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let server = loaded(&bench);
    let document = examined(&bench, &server, "run");
    drop::<ForeignServer>(server);

    let made = json(&mut bench.seekscope(&["collect", "run", "--out", "plain.tar.gz"]));
    assert_valid("collect", &made);
    assert_eq!(made["events"]["kept"], made["events"]["of"]);
    assert!(
        contents(&bench, "plain.tar.gz").contains(NAMESPACE),
        "or the search below proves nothing"
    );

    let hashed = ["collect", "run", "--out", "hashed.tar.gz", "--hash-names"];
    assert_valid("collect", &json(&mut bench.seekscope(&hashed)));
    let text = contents(&bench, "hashed.tar.gz");
    let folder = bench.path("data");
    let unique = folder
        .parent()
        .unwrap()
        .file_name()
        .unwrap()
        .to_str()
        .unwrap();
    for name in ["shop", "orders", unique] {
        assert!(
            !text.contains(name),
            "{name} is in {:?}",
            around(&text, name)
        );
    }

    let opened = ["doctor", "hashed.tar.gz", "--out", "opened"];
    let again = json(&mut bench.seekscope(&opened));
    assert_valid("doctor", &again);
    let ids = |document: &Value| -> Vec<String> {
        let findings = document["findings"].as_array().unwrap();
        findings.iter().map(|f| f["id"].to_string()).collect()
    };
    assert_eq!(
        ids(&again),
        ids(&document),
        "the same findings by other names"
    );
    assert!(!again.to_string().contains("orders"));
    assert!(bench.path("opened/report.html").exists());
    comparable(&bench);
    too_large(&bench);
    refused(&bench);
}

/// With the same salt, the same names have the same hashes; without one, they have new ones each time.
fn comparable(bench: &Bench) {
    let collected = |name: &str, more: &[&str]| {
        let args = ["collect", "run", "--hash-names", "--out", name];
        json(&mut bench.seekscope(&[&args[..], more].concat()));
        contents(bench, name)
    };
    let kept = ["--salt-file", "salt"];
    let (first, second) = (
        collected("first.tar.gz", &kept),
        collected("second.tar.gz", &kept),
    );
    assert_eq!(first, second);
    assert_ne!(first, collected("third.tar.gz", &[]));
}

fn around(text: &str, name: &str) -> String {
    let at = text.find(name).unwrap();
    let (from, to) = (at.saturating_sub(60), (at + 60).min(text.len()));
    String::from_utf8_lossy(&text.as_bytes()[from..to]).into_owned()
}

/// Events go first, and it is said.
fn too_large(bench: &Bench) {
    let whole = std::fs::metadata(bench.path("plain.tar.gz")).unwrap().len();
    let events = std::fs::metadata(bench.path("run/io.parquet"))
        .unwrap()
        .len();
    let limit = (whole - events / 2).to_string();
    let small = [
        "collect",
        "run",
        "--out",
        "small.tar.zst",
        "--max-size",
        &limit,
    ];
    let made = json(&mut bench.seekscope(&small));
    assert!(made["bytes"].as_u64() <= limit.parse().ok());
    let (kept, of) = (
        made["events"]["kept"].as_u64(),
        made["events"]["of"].as_u64(),
    );
    // zstd may have made it small enough by itself.
    if kept < of {
        let opened = json(&mut bench.seekscope(&["doctor", "small.tar.zst", "--out", "small"]));
        let limitations = opened["limitations"].to_string();
        assert!(
            limitations.contains("the bundle holds the first"),
            "{limitations}"
        );
        let findings = opened["findings"].as_array().unwrap();
        let first = findings.iter().find(|f| f["id"] == "evidence.incomplete");
        let evidence = first.unwrap()["evidence"].to_string();
        assert!(
            evidence.contains("the bundle holds the first"),
            "{evidence}"
        );
    }
    let tiny = [
        "collect",
        "run",
        "--out",
        "tiny.tar.zst",
        "--max-size",
        "1KiB",
    ];
    let output = bench.seekscope(&tiny).output().unwrap();
    assert_fails(&output, 2, &["--max-size"]);
    assert!(!bench.path("tiny.tar.zst").exists());
}

/// What is no bundle, or would write elsewhere, is not unpacked.
fn refused(bench: &Bench) {
    let out = ["collect", "run", "--out", "plain.tar.gz"];
    assert_fails(&bench.seekscope(&out).output().unwrap(), 2, &["exists"]);
    // Options of a watch, which there is none of.
    for args in [
        &["doctor", "run", "--for", "5s"][..],
        &["collect", "run", "--out", "new.tar.gz", "--pid", "1"],
    ] {
        let output = bench.seekscope(args).output().unwrap();
        assert_fails(&output, 2, &["is for a server that is watched"]);
    }
    std::fs::write(bench.path("secret"), "x").unwrap();
    let tar = |name: &str, more: &[&str]| {
        let mut tar = Command::new("tar");
        tar.arg("-czf")
            .arg(bench.path(name))
            .arg("-C")
            .arg(bench.path(""));
        assert!(tar.args(more).status().unwrap().success());
    };
    tar("other.tar.gz", &["secret"]);
    tar(
        "above.tar.gz",
        &["-P", "--transform", "s,secret,../run.json,", "secret"],
    );
    for name in ["other.tar.gz", "above.tar.gz"] {
        let out = format!("of-{name}");
        let output = bench
            .seekscope(&["doctor", name, "--out", &out])
            .output()
            .unwrap();
        assert_fails(&output, 2, &["not a bundle"]);
        assert!(!Path::new(&bench.path(&out)).exists(), "nothing is left");
    }
    assert!(!Path::new(&bench.path("run.json")).exists());
}
