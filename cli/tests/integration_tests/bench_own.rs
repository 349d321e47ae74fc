//! `seekscope bench run`, `print` and `sample`.

use seekscope_run::RunDocument;

use crate::support::{Bench, assert_fails, server_binary, shared_machine, stderr};

const WORKLOAD: &str = r#"
name = "small"

[collections.c]
records = 500

[collections.c.fields]
_id = { template = "user{record:4}" }
text = { string = { length = { uniform = [10, 200] }, compressible = 0.5 } }

[[phases]]
name = "load"
[[phases.roles]]
name = "loader"
[[phases.roles.operations]]
load = { collection = "c" }

[[phases]]
name = "both"
[[phases.roles]]
name = "readers"
users = 2
transactions = 200
[[phases.roles.operations]]
find_one = { collection = "c", keys = "zipf" }
[[phases.roles]]
name = "writers"
background = true
arrivals = { constant = 20 }
[[phases.roles.operations]]
insert = { collection = "c" }
"#;

fn stdout(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn run(bench: &Bench, file: &str) -> std::process::Output {
    let server = server_binary();
    let arguments = [
        "bench",
        "run",
        file,
        "--server-binary",
        server.to_str().unwrap(),
        "--cache",
        "64M",
        "--out",
        "run",
        "--json",
    ];
    bench.seekscope(&arguments).output().unwrap()
}

#[test]
fn a_workload_of_one_s_own_runs_with_its_roles_at_the_same_time() {
    let _machine = shared_machine();
    let bench = Bench::new();
    std::fs::write(bench.path("small.toml"), WORKLOAD).unwrap();
    let output = run(&bench, "small.toml");
    assert!(output.status.success(), "{}", stderr(&output));
    let document: RunDocument =
        serde_json::from_slice(&std::fs::read(bench.path("run/run.json")).unwrap()).unwrap();
    let steps = document.bench.unwrap().steps;
    let names: Vec<&str> = steps.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(names, ["load", "both/readers", "both/writers"]);
    let (readers, writers) = (&steps[1], &steps[2]);
    assert_eq!(readers.operations[0].count, 200);
    assert!(writers.operations[0].count > 0 && writers.operations[0].response.is_some());
    assert!(readers.started_ns < writers.ended_ns && writers.started_ns < readers.ended_ns);
    let verified = writers.verification.as_ref().unwrap();
    assert_eq!(verified.expected, Some(500 + writers.operations[0].count));
    assert!(verified.holds() && verified.sampled > 0, "{verified:?}");
}

#[test]
fn a_mistake_is_named_with_its_line_before_anything_is_started() {
    let bench = Bench::new();
    std::fs::write(bench.path("bad.toml"), WORKLOAD.replace("zipf", "zip")).unwrap();
    let output = run(&bench, "bad.toml");
    assert_fails(
        &output,
        2,
        &["bad.toml:25: phases[1].roles[0].operations[0].find_one.keys"],
    );
    assert!(!bench.path("run").exists());
    let missing = bench
        .seekscope(&["bench", "run", "nothing"])
        .output()
        .unwrap();
    assert_fails(&missing, 2, &["ycsb-a"]);
}

#[test]
fn examples_are_printed_and_documents_become_workloads() {
    let bench = Bench::new();
    let names = bench.seekscope(&["bench", "print"]).output().unwrap();
    let first = stdout(&names).lines().next().unwrap().to_string();
    let text = bench
        .seekscope(&["bench", "print", &first])
        .output()
        .unwrap();
    assert!(stdout(&text).contains(&format!("name = \"{first}\"")));
    let json: String = (0..100)
        .map(|n| format!("{{\"_id\": {n}, \"who\": \"secret{n}\"}}\n"))
        .collect();
    std::fs::write(bench.path("people.json"), json).unwrap();
    let sampled = bench
        .seekscope(&["bench", "sample", "people.json", "--out", "people.toml"])
        .output()
        .unwrap();
    assert!(sampled.status.success(), "{}", stderr(&sampled));
    let text = std::fs::read_to_string(bench.path("people.toml")).unwrap();
    assert!(
        text.contains("[collections.people]") && !text.contains("secret"),
        "{text}"
    );
    let again = bench
        .seekscope(&["bench", "sample", "people.json", "--out", "people.toml"])
        .output()
        .unwrap();
    assert!(!again.status.success(), "nothing is overwritten");
}
