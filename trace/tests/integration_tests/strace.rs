//! The same run seen by strace, which knows nothing of eBPF.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use seekscope_trace::Recording;

use crate::support::{BOTH, Collector, Worker, alone, attach};

/// Calls and bytes by system call.
type Counts = HashMap<String, (u64, u64)>;

fn start_strace(pid: u32, output: &str) -> Child {
    let mut strace = Command::new("strace")
        .args([
            "-f",
            "-y",
            "-e",
            "trace=read,pread64",
            "-o",
            output,
            "-p",
            &pid.to_string(),
        ])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(strace.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("attached") {
        line.clear();
        assert_ne!(
            said.read_line(&mut line).unwrap(),
            0,
            "strace did not attach"
        );
    }
    // Keep the pipe open for strace's farewell.
    std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
    strace
}

/// Lines are `TID call(3</path>, …) = bytes`; a call interrupted by another thread's output comes
/// in two lines, the second of which has the result but no path.
fn count(text: &str, path: &str) -> Counts {
    let mut counts = Counts::new();
    let mut unfinished = HashMap::new();
    for line in text.lines() {
        let Some((tid, rest)) = line.split_once(' ') else {
            continue;
        };
        let rest = rest.trim_start();
        let name = if rest.starts_with("<...") {
            unfinished.remove(tid)
        } else {
            rest.contains(&format!("<{path}>"))
                .then(|| rest.split('(').next().unwrap().to_string())
        };
        let Some(name) = name else { continue };
        if rest.ends_with("<unfinished ...>") {
            unfinished.insert(tid, name);
            continue;
        }
        let result = rest.rsplit_once(" = ").unwrap().1;
        let entry = counts.entry(name).or_default();
        *entry = (entry.0 + 1, entry.1 + result.parse::<u64>().unwrap());
    }
    counts
}

#[test]
fn strace_counts_the_same_calls_and_bytes() {
    let _turn = alone();
    for backend in BOTH {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("strace.txt");
        let mut worker = Worker::start("counted", folder.path());
        let mut strace = start_strace(worker.pid(), output.to_str().unwrap());
        let sink = Collector::default();
        let recording = Recording::start(
            Box::new(attach(&worker, backend, 1 << 20)),
            Box::new(sink.clone()),
        );
        worker.work();
        let (facts, _) = recording.stop().unwrap();
        assert_eq!(facts.lost, 0, "{facts:?}");
        drop(worker);
        assert!(strace.wait().unwrap().success());

        let path = folder
            .path()
            .join("counted.dat")
            .to_str()
            .unwrap()
            .to_string();
        let mut ours = Counts::new();
        let traced = sink.take();
        for event in traced.events_on(&path) {
            let entry = ours.entry(event.op.name().to_string()).or_default();
            *entry = (entry.0 + 1, entry.1 + event.bytes());
        }
        let theirs = count(&std::fs::read_to_string(&output).unwrap(), &path);
        assert_eq!(ours, theirs, "{facts:?} {:?}", traced.files);
        assert_eq!(ours["pread64"].0, 4 * 305);
    }
}
