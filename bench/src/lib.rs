//! What several benchmarks need, and the killing of commands and their servers, of which the tests of `cli` do a part.

pub mod child_usage;
pub mod deployment;
pub mod examined;
pub mod gains;
pub mod kills;
pub mod replica_server;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Result, ensure};
use seekscope_server::{BinaryError, ServerBinary};
use serde_json::Value;

/// What benchmarks with a server of their own run, and where.
#[derive(Debug, clap::Args)]
pub struct Programs {
    /// The seekscope binary
    #[arg(long, default_value = "seekscope")]
    pub seekscope: PathBuf,
    /// The local server, mongod or secantusd-rs: a path, or a name to be found on PATH. The last one counts
    #[arg(long, default_value = "secantusd-rs", overrides_with = "server_binary")]
    pub server_binary: PathBuf,
    /// Folder below which the data lies
    #[arg(long, default_value = ".")]
    pub data_dir: PathBuf,
}

impl Programs {
    /// The local server, found.
    pub fn server(&self) -> Result<ServerBinary, BinaryError> {
        let path = std::env::var_os("PATH");
        ServerBinary::find(Some(&self.server_binary), path.as_deref(), &[])
    }
}

/// The `--json` document of a survey of the disk under `directory`, by the binary given; `disk` is
/// `none` or a disk to throttle it to. Its run directory is not kept.
pub fn survey_disk<S: AsRef<OsStr>>(
    seekscope: &Path,
    directory: &Path,
    budget: &str,
    disk: &str,
    more: &[S],
) -> Result<Value> {
    let folder = tempfile::tempdir()?;
    let output = Command::new(seekscope)
        .arg("disk")
        .arg(directory.canonicalize()?)
        .args(["--json", "--quiet", "--budget", budget])
        .args(["--emulate-disk", disk])
        .args(more)
        .arg("--out")
        .arg(folder.path().join("run"))
        .stderr(Stdio::inherit())
        .output()?;
    ensure!(
        output.status.success(),
        "the survey ended with {}",
        output.status
    );
    Ok(serde_json::from_slice(&output.stdout)?)
}
