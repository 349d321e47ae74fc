//! `seekscope doctor URI` and `seekscope advise URI` as processes: what they concluded, what they used, how long they
//! took.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use seekscope_run::monotonic_ns;
use serde_json::Value;

use crate::child_usage::{self, Usage};

/// A finished examination.
#[derive(Debug)]
pub struct Examined {
    /// What `--json` printed.
    pub document: Value,
    pub usage: Usage,
    /// Start and end of the process, CLOCK_MONOTONIC ns.
    pub started_ns: u64,
    pub ended_ns: u64,
}

impl Examined {
    pub fn seconds(&self) -> f64 {
        (self.ended_ns - self.started_ns) as f64 / 1e9
    }

    /// Ids of the findings, what to look at first comes first.
    pub fn finding_ids(&self) -> Vec<&str> {
        let findings = self.document["findings"].as_array().into_iter().flatten();
        findings
            .filter_map(|finding| finding["id"].as_str())
            .collect()
    }
}

/// Examines the server at `uri` for `watched`; the run directory `run` must not exist yet. Blocks.
pub fn examine(seekscope: &Path, uri: &str, watched: Duration, run: &Path) -> Result<Examined> {
    let watched = format!("{}s", watched.as_secs());
    to_its_end(seekscope, &["doctor", uri, "--for", &watched], run)
}

/// Lets `advise` try ways for queries that it is told, with the mongod `trial`; likewise.
pub fn advise(
    seekscope: &Path,
    uri: &str,
    namespace: &str,
    query: &str,
    trial: &Path,
    run: &Path,
) -> Result<Examined> {
    let trial = trial.to_string_lossy();
    let arguments = [
        "advise",
        uri,
        namespace,
        "--query",
        query,
        "--server-binary",
        &trial,
    ];
    to_its_end(seekscope, &arguments, run)
}

/// Lets `advise` watch the queries, which is all that it does after an earlier run; likewise.
pub fn watch_queries(
    seekscope: &Path,
    uri: &str,
    namespace: &str,
    watched: Duration,
    earlier: &Path,
    run: &Path,
) -> Result<Examined> {
    let (watched, earlier) = (format!("{}s", watched.as_secs()), earlier.to_string_lossy());
    let arguments = [
        "advise", uri, namespace, "--for", &watched, "--since", &earlier,
    ];
    to_its_end(seekscope, &arguments, run)
}

fn to_its_end(seekscope: &Path, arguments: &[&str], run: &Path) -> Result<Examined> {
    let output = run.with_extension("json");
    let started_ns = monotonic_ns();
    let child = Command::new(seekscope)
        .args(arguments)
        .args(["--json", "--quiet", "--out"])
        .arg(run)
        .stdin(Stdio::null())
        .stdout(File::create(&output)?)
        .spawn()
        .with_context(|| format!("{}", seekscope.display()))?;
    let (status, usage) = child_usage::wait(child.id())?;
    let ended_ns = monotonic_ns();
    ensure!(
        status.success(),
        "seekscope {} ended with {status}",
        arguments[0]
    );
    Ok(Examined {
        document: serde_json::from_slice(&std::fs::read(output)?)?,
        usage,
        started_ns,
        ended_ns,
    })
}

/// What a terminal shows of a run.
pub fn first_screen(seekscope: &Path, run: &Path) -> Result<String> {
    let output = Command::new(seekscope)
        .arg("report")
        .arg(run)
        .arg("--quiet")
        .stderr(Stdio::inherit())
        .output()?;
    ensure!(
        output.status.success(),
        "seekscope report ended with {}",
        output.status
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
