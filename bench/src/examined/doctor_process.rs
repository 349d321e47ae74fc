//! `seekscope doctor URI` as a process: what it concluded, what it used, how long it took.

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
    let output = run.with_extension("json");
    let started_ns = monotonic_ns();
    let child = Command::new(seekscope)
        .args(["doctor", uri, "--json", "--quiet", "--for"])
        .arg(format!("{}s", watched.as_secs()))
        .arg("--out")
        .arg(run)
        .stdin(Stdio::null())
        .stdout(File::create(&output)?)
        .spawn()
        .with_context(|| format!("{}", seekscope.display()))?;
    let (status, usage) = child_usage::wait(child.id())?;
    let ended_ns = monotonic_ns();
    ensure!(status.success(), "seekscope doctor ended with {status}");
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
