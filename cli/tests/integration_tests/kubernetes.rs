//! The manifests of `deploy/kubernetes`: against Kubernetes' published schema, and their own command
//! lines, run here as the pods would run them.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use crate::support::{Bench, ForeignServer, python_interpreter, stderr, yaml};

/// The newest schema that has all that the manifests use, and that of today's oldest clusters.
const KUBERNETES: [&str; 2] = ["1.33.0", "1.37.0"];

fn manifest(name: &str) -> PathBuf {
    Path::new("../deploy/kubernetes").join(name)
}

fn validated(path: &Path, version: &str) -> Output {
    Command::new(python_interpreter())
        .args(["-m", "kubernetes_validate", "--strict", "-k", version])
        .arg(path)
        .output()
        .expect("Python; `./x test` installs it")
}

#[test]
fn manifests_follow_the_published_schema() {
    for name in [
        "exporter.yaml",
        "exporter-sidecar.yaml",
        "job.yaml",
        "merge.yaml",
        "results.yaml",
    ] {
        for version in KUBERNETES {
            let output = validated(&manifest(name), version);
            let said = String::from_utf8_lossy(&output.stdout).into_owned() + &stderr(&output);
            assert!(output.status.success(), "{name} for {version}: {said}");
        }
    }
}

#[test]
fn a_broken_manifest_is_found() {
    let bench = Bench::new();
    let good = std::fs::read_to_string(manifest("job.yaml")).unwrap();
    for (from, to) in [
        ("completions: 4", "completions: four"),
        ("completionMode:", "completionmode:"),
        ("restartPolicy: Never", "restartPolicy: [Never]"),
        ("          volumeMounts:\n", "          volumes:\n"),
    ] {
        assert!(good.contains(from), "{from}");
        let path = bench.path("broken.yaml");
        std::fs::write(&path, good.replacen(from, to, 1)).unwrap();
        assert!(!validated(&path, KUBERNETES[1]).status.success(), "{to}");
    }
}

/// The container `exporter` of a manifest's pods.
pub fn exporter(name: &str) -> Value {
    let manifest = yaml(&manifest(name));
    let containers = &manifest["spec"]["template"]["spec"]["containers"];
    let mut containers = containers.as_array().unwrap().iter();
    containers
        .find(|container| container["name"] == "exporter")
        .unwrap()
        .clone()
}

#[test]
fn the_exporter_has_the_least_rights() {
    for name in ["exporter.yaml", "exporter-sidecar.yaml"] {
        let context = &exporter(name)["securityContext"];
        let capabilities = &context["capabilities"];
        let needed = ["BPF", "PERFMON", "SYS_PTRACE", "DAC_READ_SEARCH"];
        assert_eq!(capabilities["drop"], serde_json::json!(["ALL"]), "{name}");
        assert_eq!(capabilities["add"], serde_json::json!(needed), "{name}");
        assert_eq!(context["allowPrivilegeEscalation"], false, "{name}");
        assert_eq!(context["readOnlyRootFilesystem"], true, "{name}");
        assert!(context["privileged"].is_null(), "{name}");
        let pod = &yaml(&manifest(name))["spec"]["template"]["spec"];
        assert_eq!(pod["automountServiceAccountToken"], false, "{name}");
        for container in pod["containers"].as_array().unwrap() {
            // What is mounted of the node or of a secret is only read.
            let of_others = ["uris", "control-groups"];
            for mount in container["volumeMounts"].as_array().unwrap() {
                let is_of_others = of_others.iter().any(|other| mount["name"] == *other);
                assert!(
                    !is_of_others || mount["readOnly"] == true,
                    "{name}: {mount}"
                );
            }
        }
    }
}

#[test]
fn the_job_has_a_pod_for_each_client() {
    let job = yaml(&manifest("job.yaml"));
    let spec = &job["spec"];
    assert_eq!(spec["completionMode"], "Indexed");
    let clients = spec["completions"].as_u64().unwrap();
    assert_eq!(spec["parallelism"], clients, "all begin together");
    assert_eq!(environment(&job, "CLIENTS"), clients.to_string());
    // A file that other pods can read lies on the volume that both manifests mount.
    let merge = yaml(&manifest("merge.yaml"));
    let volume = yaml(&manifest("results.yaml"));
    for manifest in [&job, &merge] {
        let pod = &manifest["spec"]["template"]["spec"];
        let claim = &pod["volumes"][0]["persistentVolumeClaim"]["claimName"];
        assert_eq!(claim, &volume["metadata"]["name"]);
        let mount = &pod["containers"][0]["volumeMounts"][0]["mountPath"];
        assert_eq!(mount.as_str().unwrap(), environment(manifest, "RESULTS"));
    }
}

/// The value that a manifest gives a variable itself.
fn environment(manifest: &Value, name: &str) -> String {
    let container = &manifest["spec"]["template"]["spec"]["containers"][0];
    let variables = container["env"].as_array().unwrap();
    let variable = variables.iter().find(|v| v["name"] == name).unwrap();
    variable["value"].as_str().unwrap().to_string()
}

/// A container's command line, with `seekscope` on the path and what the manifest and the cluster would
/// put into the environment.
fn container(bench: &Bench, manifest: &Value, variables: &[(&str, &str)]) -> Child {
    let container = &manifest["spec"]["template"]["spec"]["containers"][0];
    let words: Vec<&str> = container["command"]
        .as_array()
        .unwrap()
        .iter()
        .map(|word| word.as_str().unwrap())
        .collect();
    let binary = bench.seekscope(&[]);
    let folder = Path::new(binary.get_program()).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    command.current_dir(bench.path(""));
    command.env("PATH", format!("{}:{path}", folder.display()));
    command.env("XDG_STATE_HOME", bench.path("state"));
    for variable in container["env"].as_array().unwrap() {
        if let Some(value) = variable["value"].as_str() {
            command.env(variable["name"].as_str().unwrap(), value);
        }
    }
    command.envs(variables.iter().copied());
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command.stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn the_pods_command_lines_load_run_and_merge() {
    let bench = Bench::new();
    let server = ForeignServer::start(&bench.path("server"), "256M");
    let job = yaml(&manifest("job.yaml"));
    let results = bench.path("results");
    std::fs::create_dir(&results).unwrap();
    let results = results.to_str().unwrap();
    let clients = job["spec"]["completions"].as_u64().unwrap();
    let benchmark =
        "ycsb --workload a --records 2000 --operations 2000 --in-flight 2 --warm-up none";
    let children: Vec<Child> = (0..clients)
        .map(|index| {
            let variables = [
                ("JOB_COMPLETION_INDEX", index.to_string()),
                ("RESULTS", results.to_string()),
                ("TARGET", server.uri.clone()),
                ("START_AT", "+5s".to_string()),
                ("BENCHMARK", benchmark.to_string()),
            ];
            let variables = variables.each_ref().map(|(n, v)| (*n, v.as_str()));
            container(&bench, &job, &variables)
        })
        .collect();
    for (index, child) in children.into_iter().enumerate() {
        let output = child.wait_with_output().unwrap();
        assert!(
            output.status.success(),
            "client {index}: {}",
            stderr(&output)
        );
    }
    let merge = yaml(&manifest("merge.yaml"));
    let merged = container(&bench, &merge, &[("RESULTS", results), ("STAY", "0")]);
    let output = merged.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let run = std::fs::read(Path::new(results).join("all/run.json")).unwrap();
    let run: Value = serde_json::from_slice(&run).unwrap();
    let steps = run["bench"]["steps"].as_array().unwrap();
    let count = |kind: &str| -> u64 {
        let step = steps.iter().find(|step| step["kind"] == kind).unwrap();
        let operations = step["operations"].as_array().unwrap();
        operations
            .iter()
            .map(|o| o["count"].as_u64().unwrap())
            .sum()
    };
    // Every row was loaded once, by one client or another; every client did its operations.
    assert_eq!(count("load"), 2000);
    assert!(count("run") >= 2000, "{}", count("run"));
}
