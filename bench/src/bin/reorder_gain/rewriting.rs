//! `seekscope reorder --apply`, watched.

use std::fmt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use seekscope_bench::gains::aged::namespace;
use seekscope_bench::replica_server::{ReplicaServer, ReplicaServerOptions};
use seekscope_run::Reordered;
use seekscope_server::ProcFs;
use serde_json::Value;
use tokio::io::AsyncReadExt;
use tokio::process::Command;

const WATCH: Duration = Duration::from_millis(5);

/// What it did.
#[derive(Debug)]
pub(crate) struct Rewriting {
    seconds: f64,
    pub(crate) done: Reordered,
    peak_memory_bytes: u64,
}

impl Rewriting {
    /// Documents read and written, without checks and indexes.
    pub(crate) fn copied_bytes_per_s(&self) -> f64 {
        self.done.bytes as f64 / self.done.copy_s
    }
}

impl fmt::Display for Rewriting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:.2} s in all; {} documents copied in {:.2} s ({:.1} MB/s), checked in {:.2} s, {} indexes in \
             {:.2} s, writers blocked {:.3} s, {} pauses; at most {:.0} MB of memory",
            self.seconds,
            self.done.documents,
            self.done.copy_s,
            self.copied_bytes_per_s() / 1e6,
            self.done.verify_s,
            self.done.indexes,
            self.done.index_s,
            self.done.blocked_s,
            self.done.pauses,
            self.peak_memory_bytes as f64 / 1e6,
        )
    }
}

/// Rewrites the collection on a server of its own.
pub(crate) async fn rewrite(options: &ReplicaServerOptions, seekscope: &Path) -> Result<Rewriting> {
    let mut local = ReplicaServer::start(options.clone()).await?;
    let rewriting = rewrite_on(&local, seekscope).await?;
    local.stop().await?;
    Ok(rewriting)
}

pub(crate) async fn rewrite_on(local: &ReplicaServer, seekscope: &Path) -> Result<Rewriting> {
    let folder = tempfile::tempdir()?;
    let begun = Instant::now();
    let mut child = Command::new(seekscope)
        .args(["reorder", &local.uri(), &namespace()?.to_string()])
        .args([
            "--apply",
            "--force",
            "--quiesced",
            "--no-guard",
            "--watch",
            "0s",
            "--json",
            "--quiet",
        ])
        .arg("--out")
        .arg(folder.path().join("run"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("{}", seekscope.display()))?;
    let pid = child.id().context("it has ended already")?;
    let mut output = child.stdout.take().context("no standard output")?;
    let reading = tokio::spawn(async move {
        let mut text = Vec::new();
        output.read_to_end(&mut text).await.map(|_| text)
    });
    let mut peak_memory_bytes = 0;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        // The last look may come too late; the one before saw nearly all.
        let peak = ProcFs::host().rss_bytes_max(pid).unwrap_or(0);
        peak_memory_bytes = peak_memory_bytes.max(peak);
        tokio::time::sleep(WATCH).await;
    };
    let seconds = begun.elapsed().as_secs_f64();
    ensure!(status.success(), "reorder ended with {status}");
    let document: Value = serde_json::from_slice(&reading.await??)?;
    let done = document
        .pointer("/summary/done")
        .context("nothing was done")?;
    Ok(Rewriting {
        seconds,
        done: serde_json::from_value(done.clone())?,
        peak_memory_bytes,
    })
}
