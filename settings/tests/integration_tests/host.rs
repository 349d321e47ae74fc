//! Files of the kernel, made up and real, and commands of users.

use std::fs;
use std::path::Path;
use std::time::Duration;

use seekscope_run::tune::KnobValue;
use seekscope_settings::{
    Applier, ApplyError, Catalogue, HostFiles, KnobEntry, KnobFile, Means, ServerProgram,
    ServerReplies, Surroundings, discover,
};
use seekscope_tune::space::Configuration;

use crate::support::{configuration, knob, made_up_host};

fn host_knobs(host: &HostFiles, names: &[&str]) -> Vec<KnobEntry> {
    let file = Catalogue::of(ServerProgram::Mongod).unwrap();
    let surroundings = Surroundings {
        host: Some(host),
        ..Surroundings::default()
    };
    let found = discover(&file, &ServerReplies::default(), &surroundings);
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    found.choose(&names).unwrap().entries
}

fn text(name: &str, value: &str) -> Configuration {
    Configuration([(name.to_owned(), KnobValue::Text(value.into()))].into())
}

#[tokio::test]
async fn made_up_files_are_set_and_put_back() {
    let (root, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let host = made_up_host(root.path());
    let entries = host_knobs(&host, &["read_ahead_kb", "io_scheduler", "dirty_ratio"]);
    let means = Means {
        host: Some(host),
        ..Means::default()
    };
    let mut applier = Applier::begin(&entries, means, folder.path()).unwrap();
    let read = |path: &str| fs::read_to_string(root.path().join(path)).unwrap();
    let values = configuration(&[("read_ahead_kb", 16), ("dirty_ratio", 40)]);
    applier.apply(&values).await.unwrap();
    assert_eq!(read("sys/block/sdz/queue/read_ahead_kb"), "16\n");
    assert_eq!(read("proc/sys/vm/dirty_ratio"), "40\n");
    // A plain file says what was written; the kernel's would mark it with brackets.
    applier.apply(&text("io_scheduler", "none")).await.unwrap();
    assert_eq!(read("sys/block/sdz/queue/scheduler"), "none\n");
    assert!(applier.restore().await.is_complete());
    assert_eq!(read("sys/block/sdz/queue/read_ahead_kb"), "128\n");
    assert_eq!(read("proc/sys/vm/dirty_ratio"), "20\n");
    assert_eq!(read("sys/block/sdz/queue/scheduler"), "mq-deadline\n");
}

/// A disk that carries nothing: loop devices exist wherever the module is, and this one is put back.
fn idle_disk() -> String {
    let free = |n: &u32| {
        let queue = format!("/sys/block/loop{n}/queue/read_ahead_kb");
        let backed = format!("/sys/block/loop{n}/loop/backing_file");
        Path::new(&queue).exists() && !Path::new(&backed).exists()
    };
    let n = (0..64).find(free).expect("a free loop device");
    format!("loop{n}")
}

#[tokio::test]
async fn real_files_are_set_and_put_back() {
    let folder = tempfile::tempdir().unwrap();
    let disk = idle_disk();
    let host = HostFiles::host(Some(disk.clone()));
    let entries = host_knobs(&host, &["read_ahead_kb", "io_scheduler"]);
    let queue = format!("/sys/block/{disk}/queue");
    let read = |name: &str| fs::read_to_string(format!("{queue}/{name}")).unwrap();
    let before = (read("read_ahead_kb"), read("scheduler"));
    let means = Means {
        host: Some(host),
        ..Means::default()
    };
    let mut applier = Applier::begin(&entries, means.clone(), folder.path()).unwrap();
    let ahead = if before.0.trim() == "16" { 32 } else { 16 };
    let mut values = text("io_scheduler", "mq-deadline");
    values
        .0
        .insert("read_ahead_kb".into(), KnobValue::Integer(ahead));
    applier.apply(&values).await.unwrap();
    assert_eq!(read("read_ahead_kb").trim(), ahead.to_string());
    assert!(read("scheduler").contains("[mq-deadline]"));
    // A value that the kernel does not take.
    let error = applier
        .apply(&text("io_scheduler", "nonsense"))
        .await
        .unwrap_err();
    assert!(matches!(error, ApplyError::HostFile { .. }), "{error}");
    drop(applier);
    let mut later = Applier::resume(folder.path(), means).unwrap().unwrap();
    assert!(later.restore().await.is_complete());
    assert_eq!((read("read_ahead_kb"), read("scheduler")), before);
}

#[tokio::test]
async fn commands_of_users_are_run_read_back_and_ended() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    fs::write(at("value"), "8\n").unwrap();
    let set = format!("echo {{value}} > {}", at("value"));
    let entry = |name: &str, set: &str, read: &str| {
        knob(
            name,
            &format!("{{ command = \"{set}\", read = \"{read}\" }}"),
        )
    };
    let entries = [
        entry("works", &set, &format!("cat {}", at("value"))),
        entry("deaf", "true {value}", "echo 8"),
        entry("hangs", "sleep 1000; echo {value}", "echo 8"),
    ];
    let means = Means {
        script_limit: Duration::from_secs(1),
        ..Means::default()
    };
    let mut applier = Applier::begin(&entries, means.clone(), folder.path()).unwrap();
    applier
        .apply(&configuration(&[("works", 20)]))
        .await
        .unwrap();
    assert_eq!(fs::read_to_string(at("value")).unwrap(), "20\n");
    let error = applier
        .apply(&configuration(&[("deaf", 9)]))
        .await
        .unwrap_err();
    assert!(matches!(error, ApplyError::NotApplied { .. }), "{error}");
    let error = applier
        .apply(&configuration(&[("hangs", 9)]))
        .await
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("was still running after 1 s and was killed"),
        "{error}"
    );
    let restored = applier.restore().await;
    let failed: Vec<&str> = (restored.knobs.iter())
        .filter(|(_, result)| result.is_err())
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(failed, ["hangs"]);
    assert_eq!(fs::read_to_string(at("value")).unwrap(), "8\n");
}

#[tokio::test]
async fn what_the_caller_sets_is_handed_back() {
    let folder = tempfile::tempdir().unwrap();
    let entries = [
        knob("cache", "{ local = \"cache_size\", suffix = \"M\" }"),
        knob("depth", "{ environment = \"QUEUE_DEPTH\" }"),
    ];
    let mut applier = Applier::begin(&entries, Means::default(), folder.path()).unwrap();
    let applied = applier
        .apply(&configuration(&[("cache", 64)]))
        .await
        .unwrap();
    assert_eq!(applied.local["cache_size"], "64M");
    assert_eq!(applied.environment["QUEUE_DEPTH"], "8");
    assert!(applier.originals().outstanding().is_empty());
}

#[test]
fn knobs_without_means_are_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    for (set, part) in [
        ("{ parameter = \"x\" }", "no server"),
        ("{ engine = \"x\" }", "no server"),
        ("{ option = \"storage.x\" }", "--restart-command"),
        ("{ file = \"/proc/sys/vm/dirty_ratio\" }", "may not be set"),
    ] {
        let error = Applier::begin(&[knob("x", set)], Means::default(), folder.path()).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    assert!(
        KnobFile::parse("x = 1")
            .unwrap_err()
            .to_string()
            .contains("line 1")
    );
}
