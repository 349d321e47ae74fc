//! What interrupts `seekscope tune`: signals in each phase, kills, other tuners and clients, full disks.
//! Whatever it was, the user's setting is as it was.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mongodb::bson::doc;
use seekscope_run::tune::TrialPurpose;
use seekscope_server::Server;

use crate::schemas::assert_valid;
use crate::support::{assert_fails, json, run_document, send, stderr, wait};
use crate::tune::{count, trials, wait_for_trials};
use crate::tune_servers::{ORIGINAL, Scripted};

/// Long enough that a signal comes in the middle of it.
const SLOW: &str = "sleep 0.3";

#[test]
fn ctrl_c_in_each_phase_puts_the_setting_back() {
    let scripted = Scripted::start(SLOW);
    for (purpose, after, restored) in [
        (TrialPurpose::Baseline, 1, serde_json::Value::Null),
        (TrialPurpose::Search, 3, true.into()),
        (TrialPurpose::Duel, 3, true.into()),
    ] {
        let out = format!("{purpose:?}");
        let mut child = scripted
            .session(&out, &[])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let run = scripted.bench.path(&out);
        wait_for_trials(&run, |trials| count(trials, purpose) >= after);
        let shown = json(&mut scripted.bench.seekscope(&["tune", "show", &out]));
        assert_valid("tune", &shown);
        assert_eq!(shown["summary"]["metric"], "output", "{shown:#}");
        send(&child, libc::SIGINT);
        let status = wait(&mut child, Duration::from_secs(60));
        assert_eq!(status.code(), Some(130), "{out}");
        assert_eq!(scripted.value(), ORIGINAL, "{out}");
        let document = run_document(&run);
        assert_eq!(document["outcome"], "partial", "{out}");
        assert_eq!(document["tune"]["restored"], restored, "{out}");
        let shown = json(&mut scripted.bench.seekscope(&["tune", "show", &out]));
        assert!(
            shown["summary"]["trials"].as_u64() >= Some(after as u64),
            "{out}"
        );
        assert_eq!(
            shown["summary"]["recommended"],
            serde_json::json!({}),
            "{out}"
        );
    }
}

#[test]
fn what_a_kill_leaves_changed_is_put_back_on_demand() {
    let scripted = Scripted::start(SLOW);
    let kill = |out: &str| {
        let mut child = scripted
            .session(out, &[])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let end = Instant::now() + Duration::from_secs(60);
        while [ORIGINAL, ""].contains(&scripted.value().as_str()) {
            assert!(Instant::now() < end, "nothing was set");
            std::thread::sleep(Duration::from_millis(5));
        }
        child.kill().unwrap();
        child.wait().unwrap();
    };
    kill("run");
    assert_ne!(
        scripted.value(),
        ORIGINAL,
        "a killed session cannot put anything back"
    );
    // What is changed is nobody's baseline.
    let output = scripted.session("next", &[]).output().unwrap();
    assert_fails(&output, 3, &["depth", "--restore", "/run first"]);
    // The second has nothing to do, and does no harm even where somebody has set it since.
    for expected in [ORIGINAL, "5\n"] {
        let restore = ["tune", "--restore", "run"];
        let output = scripted.bench.seekscope(&restore).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success() && said.contains("as the session found it"),
            "{said}{}",
            stderr(&output)
        );
        assert_eq!(scripted.value(), expected);
        std::fs::write(scripted.bench.path("value"), "5\n").unwrap();
    }
    let document = json(&mut scripted.bench.seekscope(&["tune", "--restore", "run"]));
    assert_eq!(document["undo"], true);
    let said = document["put_back"][0].as_str().unwrap();
    assert!(said.contains("as the session found it"), "{document}");
    // Going on puts it back too, and then ends as any session does.
    std::fs::write(scripted.bench.path("value"), ORIGINAL).unwrap();
    kill("other");
    let resume = ["tune", "--resume", "other", "--out", "resumed"];
    let document = json(&mut scripted.bench.seekscope(&resume));
    assert_eq!(document["summary"]["verdict"], "better");
    assert_eq!(document["summary"]["baseline"]["depth"], 2);
    assert_eq!(scripted.value(), ORIGINAL);
    let restore = ["tune", "--restore", "nowhere"];
    let output = scripted.bench.seekscope(&restore).output().unwrap();
    assert_fails(&output, 2, &["nowhere", "no tuning session"]);
}

/// No session goes on from there either.
#[test]
fn what_somebody_else_has_set_since_a_kill_is_theirs() {
    let scripted = Scripted::start(SLOW);
    let mut child = scripted
        .session("run", &[])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_for_trials(&scripted.bench.path("run"), |trials| {
        count(trials, TrialPurpose::Search) >= 2
    });
    wait_until_measuring(&scripted.bench.path("run"));
    child.kill().unwrap();
    child.wait().unwrap();
    std::fs::write(scripted.bench.path("value"), "99\n").unwrap();
    let restore = ["tune", "--restore", "run"];
    let output = scripted.bench.seekscope(&restore).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &stderr(&output);
    assert!(output.status.success(), "{said}");
    for words in [
        "depth stays 99: somebody else has set it since seekscope set",
        "before that it was 2",
        "but for what somebody else has set since",
    ] {
        assert!(said.contains(words), "{said}");
    }
    assert_eq!(scripted.value(), "99\n");
    let resume = ["tune", "--resume", "run", "--out", "resumed"];
    let output = scripted.bench.seekscope(&resume).output().unwrap();
    assert_fails(&output, 3, &["depth is 99 and was 2", "--begin-with"]);
    assert_eq!(scripted.value(), "99\n");
}

/// Neither is the run before of what was set, nor may the next one overwrite it.
#[test]
fn a_session_ends_where_somebody_else_sets_what_it_tunes() {
    let scripted = Scripted::start(SLOW);
    let child = scripted
        .session("run", &[])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for_trials(&scripted.bench.path("run"), |trials| {
        count(trials, TrialPurpose::Search) >= 2
    });
    wait_until_measuring(&scripted.bench.path("run"));
    std::fs::write(scripted.bench.path("value"), "99\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_fails(&output, 3, &["somebody else sets", "depth is 99"]);
    assert_eq!(scripted.value(), "99\n");
    let tune = &run_document(&scripted.bench.path("run"))["tune"];
    assert_eq!(
        (&tune["restored"], &tune["left_to_others"]),
        (&true.into(), &true.into())
    );
}

/// Waits until a session has just set the next trial, and measures it: while it sets something, nobody can tell whose a
/// value is.
fn wait_until_measuring(run: &Path) {
    let originals = || -> serde_json::Value {
        let text = std::fs::read_to_string(run.join("originals.json")).unwrap();
        serde_json::from_str(&text).unwrap()
    };
    let before = originals()["applied"].clone();
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        assert!(Instant::now() < end, "no other trial was set");
        let now = originals();
        if now["applied"].is_object() && now["applied"] != before && now["applying"].is_null() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_load_that_fails_in_the_middle_puts_the_setting_back() {
    // From the seventh run on, whatever is set.
    let scripted =
        Scripted::start("echo run >> runs.log; test $(wc -l < runs.log) -le 6 || exit 1");
    let output = scripted.session("run", &[]).output().unwrap();
    assert_fails(&output, 1, &["failed twice in a row"]);
    assert_eq!(scripted.value(), ORIGINAL);
    assert_eq!(
        run_document(&scripted.bench.path("run"))["tune"]["restored"],
        true
    );
    assert!(trials(&scripted.bench.path("run")).len() > 8);
}

#[test]
fn a_setting_that_cannot_be_put_back_is_said() {
    let scripted = Scripted::start("");
    let path = scripted.bench.path("knobs.toml");
    let knobs = std::fs::read_to_string(&path).unwrap();
    // Works until the original is to be set again at the end; the baseline in between works too.
    let broken = knobs.replace("echo {value} >", "test ! -e broken && echo {value} >");
    assert_ne!(broken, knobs);
    std::fs::write(&path, broken).unwrap();
    let mut child = scripted
        .session("run", &[])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let run = scripted.bench.path("run");
    wait_for_trials(&run, |trials| count(trials, TrialPurpose::Search) >= 2);
    std::fs::write(scripted.bench.path("broken"), "").unwrap();
    let output = child_output(&mut child);
    assert!(matches!(output.0, Some(1 | 5)), "{output:?}");
    assert!(
        ["NOT put back", "it was 2", "tune --restore"]
            .iter()
            .all(|words| output.1.contains(words)),
        "{}",
        output.1
    );
    assert_ne!(scripted.value(), ORIGINAL);
    std::fs::remove_file(scripted.bench.path("broken")).unwrap();
    let restore = ["tune", "--restore", "run"];
    let output = scripted.bench.seekscope(&restore).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(scripted.value(), ORIGINAL);
}

fn child_output(child: &mut std::process::Child) -> (Option<i32>, String) {
    use std::io::Read;
    let mut said = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    (child.wait().unwrap().code(), said)
}

#[test]
fn two_tuners_do_not_meet_on_one_server() {
    let scripted = Scripted::start(SLOW);
    let mut first = scripted
        .session("first", &[])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_for_trials(&scripted.bench.path("first"), |trials| !trials.is_empty());
    let pid = first.id().to_string();
    // By another name of the same host.
    let other_name = scripted.server.uri.replace("127.0.0.1", "localhost");
    let mut second = scripted
        .bench
        .seekscope(&["tune", &other_name, "--out", "second"]);
    second.args([
        "--command",
        "sh load.sh",
        "--maximize",
        "--knobs",
        "knobs.toml",
    ]);
    let output = second.output().unwrap();
    assert_fails(&output, 3, &["tuned already", &pid]);
    let restore = ["tune", "--restore", "first"];
    let output = scripted.bench.seekscope(&restore).output().unwrap();
    assert_fails(&output, 3, &["tuned already", &pid]);
    send(&first, libc::SIGTERM);
    assert_eq!(wait(&mut first, Duration::from_secs(60)).code(), Some(130));
    assert_eq!(scripted.value(), ORIGINAL);
}

#[test]
fn a_server_that_others_use_is_left_alone() {
    let scripted = Scripted::start("");
    let stop = Arc::new(AtomicBool::new(false));
    let (uri, stopped) = (scripted.server.uri.clone(), Arc::clone(&stop));
    let client = std::thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let server = Server::connect(&uri).await.unwrap();
            while !stopped.load(Ordering::Relaxed) {
                let find = doc! { "find": "orders", "limit": 1 };
                server.command("shop", find).await.unwrap();
            }
        });
    });
    let refused = scripted.session("run", &[]).output().unwrap();
    let allowed = scripted.session("busy", &["--busy"]).output().unwrap();
    stop.store(true, Ordering::Relaxed);
    client.join().unwrap();
    assert_fails(&refused, 3, &["other traffic", "--busy"]);
    assert!(allowed.status.success(), "{}", stderr(&allowed));
    assert_eq!(scripted.value(), ORIGINAL);
}

/// A filesystem in memory that is soon full; unmounted when dropped.
struct SmallDisk(std::path::PathBuf);

impl SmallDisk {
    fn mount(at: std::path::PathBuf, size: &str) -> Self {
        std::fs::create_dir_all(&at).unwrap();
        let options = format!("size={size}");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "none"])
            .arg(&at)
            .status();
        assert!(mounted.unwrap().success(), "tests run as root");
        Self(at)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_ends_the_session_and_not_the_setting() {
    let scripted = Scripted::start("");
    let disk = SmallDisk::mount(scripted.bench.path("small"), "2m");
    let fill = format!(
        "echo run >> runs.log; test $(wc -l < runs.log) -ne 8 || cat /dev/zero > {}/rest",
        disk.0.display()
    );
    let load = std::fs::read_to_string(scripted.bench.path("load.sh")).unwrap();
    std::fs::write(
        scripted.bench.path("load.sh"),
        format!("{fill} 2>/dev/null\n{load}"),
    )
    .unwrap();
    let output = scripted.session("small/run", &[]).output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("No space left")
            && (said.contains("depth: put back") || said.contains("depth: as it was")),
        "{said}"
    );
    assert_eq!(scripted.value(), ORIGINAL);
    // There is room again: what was measured is there.
    std::fs::remove_file(disk.0.join("rest")).unwrap();
    assert!(trials(&disk.0.join("run")).len() >= 6);
    let resume = ["tune", "--resume", "small/run", "--out", "resumed"];
    let document = json(&mut scripted.bench.seekscope(&resume));
    assert_eq!(document["summary"]["verdict"], "better");
    assert_eq!(scripted.value(), ORIGINAL);
}
