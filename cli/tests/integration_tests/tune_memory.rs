//! `seekscope tune` and the memory group of the server (cgroup v1, as root): nothing fills it.

use std::fs;
use std::process::Command;

use seekscope_bench::gains::memory_group::MemoryGroup;
use seekscope_run::tune::{TrialStatus, TuneTrial};

use crate::support::{Bench, json, server_binary, stderr};
use crate::tune::trials;
use crate::tune_servers::{ORIGINAL, Scripted};

/// Takes 50 MiB a second at most, as long as it is let.
const GREEDY: &str = r#"import time
taken = []
while True:
    taken.append(b"x" * (1 << 20))
    time.sleep(0.02)
"#;

fn group(name: &str, limit_mib: u64) -> MemoryGroup {
    let name = format!("seekscope-test-{name}-{}", std::process::id());
    MemoryGroup::create(&name, limit_mib << 20).unwrap()
}

#[test]
fn a_trial_that_nearly_fills_the_servers_memory_group_is_ended_and_its_setting_put_back() {
    let group = group("tune", 256);
    let members = group.members();
    let scripted = Scripted::start(&format!(
        "test $(cat value) -le 12 || {{ echo $$ > {}; exec python3 greedy.py; }}",
        members.display()
    ));
    fs::write(scripted.bench.path("greedy.py"), GREEDY).unwrap();
    let path = scripted.bench.path("knobs.toml");
    let knobs = fs::read_to_string(&path).unwrap();
    let logged = knobs.replace("echo {value} >", "echo {value} >> set.log; echo {value} >");
    fs::write(&path, logged).unwrap();
    group.add(scripted.server.pid()).unwrap();

    let document = json(&mut scripted.session("run", &[]));
    let trials = trials(&scripted.bench.path("run"));
    let is_greedy = |trial: &&TuneTrial| trial.values["depth"].number() > Some(12.0);
    let (greedy, modest): (Vec<_>, Vec<_>) = trials.iter().partition(is_greedy);
    assert!(!greedy.is_empty());
    for trial in greedy {
        assert_eq!(trial.status, TrialStatus::Failed, "{trial:?}");
        assert!(trial.reason.contains("memory group was full"), "{trial:?}");
    }
    for trial in modest {
        assert_eq!(trial.status, TrialStatus::Measured, "{trial:?}");
    }
    assert!(document["summary"]["best"]["depth"].as_u64() <= Some(12));
    let killed = fs::read_to_string(members.with_file_name("memory.oom_control")).unwrap();
    assert!(killed.contains("oom_kill 0"), "{killed}");
    // At once, not only when something else is to be set.
    let log = fs::read_to_string(scripted.bench.path("set.log")).unwrap();
    let set: Vec<u32> = log.lines().map(|line| line.parse().unwrap()).collect();
    for pair in set.windows(2) {
        assert!(pair[0] <= 12 || pair[1] == 2, "{set:?}");
    }
    assert_eq!(scripted.value(), ORIGINAL);
}

#[test]
fn a_cache_is_bounded_by_the_memory_group() {
    let group = group("tune-init", 400);
    let bench = Bench::new();
    let mut init = bench.seekscope(&["tune", "init", "local", "--cache", "64M"]);
    init.arg("--server-binary").arg(server_binary());
    let mut inside = Command::new("sh");
    let join = format!("echo $$ > {}; exec \"$@\"", group.members().display());
    inside.args(["-c", &join, "sh"]);
    inside.arg(init.get_program()).args(init.get_args());
    for (name, value) in init.get_envs() {
        inside.env(name, value.unwrap_or_default());
    }
    let output = inside.current_dir(bench.path(".")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(
        said.contains("high = 144\n")
            && said.contains("memory of cache_size: it is not raised above 144 MiB"),
        "{said}"
    );
}
