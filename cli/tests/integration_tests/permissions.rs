use std::os::unix::fs::PermissionsExt;

use crate::support::{
    Bench, as_nobody, install, run_document, server_binary, shared_machine, stderr,
};

/// Runs as a user without any privilege: no tracing and no throttle, but a run that says so.
#[test]
fn without_root_it_measures_what_it_can_and_says_the_rest() {
    let _machine = shared_machine();
    // In /tmp, because a normal user cannot enter root's folders; binaries are copied there too.
    let folder = tempfile::tempdir().unwrap();
    let everybody = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(folder.path(), everybody).unwrap();
    let bench = Bench::new();
    let binary = bench.seekscope(&[]).get_program().to_os_string();
    for (from, to) in [
        (binary.as_os_str(), "seekscope"),
        (server_binary().as_os_str(), "secantusd-rs"),
    ] {
        install(from, &folder.path().join(to));
    }
    let run_as_nobody = |arguments: &[&str]| {
        as_nobody(&folder.path().join("seekscope"))
            .args(["doctor", "--docs", "2000", "--repeats", "1", "--json"])
            .args(["--server-binary", "./secantusd-rs"])
            .args(arguments)
            .current_dir(folder.path())
            .env("XDG_STATE_HOME", folder.path().join("state"))
            .output()
            .unwrap()
    };
    let refused = run_as_nobody(&["--out", "refused", "--emulate-disk", "hdd"]);
    assert_eq!(
        refused.status.code(),
        Some(4),
        "asked for by name: {}",
        stderr(&refused)
    );
    let output = run_as_nobody(&["--out", "run"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let limitations = document["limitations"].as_array().unwrap();
    for (what, remedy) in [("not traced", "CAP_BPF"), ("no slow disk", "root")] {
        let found = limitations
            .iter()
            .find(|l| l["what"].as_str().unwrap().contains(what));
        let found = found.unwrap_or_else(|| panic!("{what}: {limitations:?}"));
        assert!(
            found["remedy"].as_str().unwrap().contains(remedy),
            "{found}"
        );
    }
    assert!(
        document["summary"]["trace"].is_null(),
        "unknown is not zero"
    );
    let builds = &document["summary"]["answers"]["index_builds"];
    let builds = builds.as_array().unwrap();
    assert_eq!(builds.len(), 2);
    for build in builds {
        assert!(build["build_s"][0].as_f64() > Some(0.0));
        assert_eq!(build["page_cache_before"]["state"], "cold");
    }
    // The kernel's own counters need no privilege.
    let run = run_document(&folder.path().join("run"));
    let counted = &run["phases"][0]["process_io"];
    assert!(counted["read_call_bytes"].as_u64() > Some(0), "{counted}");
}
