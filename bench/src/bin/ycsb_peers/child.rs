//! A tool as a child process: what it printed, and what it used as the kernel counts it.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use seekscope_bench::child_usage;
use seekscope_server::ProcFs;

use crate::tool::{self, Tool};

/// A finished child.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// User and system, children of its own included.
    pub(crate) cpu_ns: u64,
    pub(crate) rss_bytes: u64,
    /// Operations done and CPU time used at the first sign of progress past the half.
    pub(crate) half: Option<(u64, u64)>,
}

/// Runs a command to its end. Where the tool tells of its progress on stderr, notes its CPU time at half
/// of the operations.
pub(crate) fn run(mut command: Command, tool: Tool, half: u64, folder: &Path) -> Result<Ran> {
    let path = folder.join("stdout");
    let stdout = File::create(&path)?;
    command.stdin(Stdio::null()).stdout(stdout);
    let shown = format!("{command:?}");
    let mut child = command
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| shown.clone())?;
    let pid = child.id();
    let (mut at_half, mut stderr) = (None, String::new());
    // Ends when the child has closed it.
    for line in BufReader::new(child.stderr.take().context("no stderr")?).lines() {
        let line = line.unwrap_or_default();
        if let Some(done) = tool::progress(tool, &line)
            && at_half.is_none()
            && done >= half
        {
            let cpu_ns = ProcFs::host().io(pid).map(|io| io.cpu_ns);
            at_half = cpu_ns.ok().map(|cpu_ns| (done, cpu_ns));
        }
        stderr.push_str(&line);
        stderr.push('\n');
    }
    let (status, usage) = child_usage::wait(pid)?;
    let stdout = std::fs::read_to_string(path)?;
    ensure!(
        status.success(),
        "{shown} ended with {status}:\n{stdout}\n{stderr}"
    );
    Ok(Ran {
        stdout,
        stderr,
        cpu_ns: usage.cpu_ns,
        rss_bytes: usage.rss_bytes,
        half: at_half,
    })
}
