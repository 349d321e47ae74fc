//! Real scans, in a process of their own that the disk can be throttled for.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use seekscope_run::DeviceFacts;
use seekscope_server::slow_disk::{CgroupTree, SlowDisk, SlowDiskSpec};
use seekscope_server::{Workspace, page_cache};

const SCANNER: &str = include_str!("scan.py");

/// What a scan reads from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Disk {
    AsItIs,
    Throttled,
}

impl Disk {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::AsItIs => "as it is",
            Self::Throttled => "throttled",
        }
    }

    /// Returns the value for `seekscope disk --emulate-disk`.
    pub(crate) fn emulated(self) -> &'static str {
        match self {
            Self::AsItIs => "none",
            Self::Throttled => "hdd",
        }
    }
}

/// Scans the tables of one database.
pub(crate) struct Scanner {
    python: PathBuf,
    data: PathBuf,
    workspace: Workspace,
}

impl Scanner {
    pub(crate) fn new(python: &Path, data: &Path, workspace: Workspace) -> Self {
        Self {
            python: python.to_owned(),
            data: data.to_owned(),
            workspace,
        }
    }

    /// Seconds of a scan after another, whose pages are still in the page cache.
    pub(crate) fn warm(&mut self, table: &str) -> Result<f64> {
        self.scan(table, Disk::AsItIs)
    }

    /// Seconds of a scan that finds none of its pages there.
    pub(crate) fn cold(&mut self, table: &str, disk: Disk) -> Result<f64> {
        let left = page_cache::evict(&self.data)?;
        ensure!(
            left.resident_bytes == 0,
            "{} bytes stayed in the page cache",
            left.resident_bytes
        );
        self.scan(table, disk)
    }

    fn scan(&mut self, table: &str, disk: Disk) -> Result<f64> {
        let mut child = Command::new(&self.python)
            .args(["-c", SCANNER])
            .arg(&self.data)
            .arg(table)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let seconds = self.converse(&mut child, disk);
        let status = child.wait()?;
        ensure!(status.success(), "scanning {table} ended with {status}");
        seconds
    }

    /// Slows the process down, if asked to, once its database is open.
    fn converse(&mut self, child: &mut Child, disk: Disk) -> Result<f64> {
        let output = child.stdout.take().context("no standard output")?;
        let mut lines = BufReader::new(output).lines();
        let mut next = || lines.next().context("the scanner said nothing");
        ensure!(next()?? == "ready", "the scanner is not ready");
        let slow = match disk {
            Disk::AsItIs => None,
            Disk::Throttled => Some(self.throttle(child.id())?),
        };
        child
            .stdin
            .take()
            .context("no standard input")?
            .write_all(b"go\n")?;
        let seconds = next()??.parse()?;
        if let Some(slow) = slow {
            slow.remove()?;
            self.workspace.record_cgroup(None)?;
        }
        Ok(seconds)
    }

    fn throttle(&mut self, pid: u32) -> Result<SlowDisk> {
        let device = DeviceFacts::of_path(Path::new("/"), &self.data)?;
        let tree = CgroupTree::discover(Path::new("/proc"));
        let name = self.workspace.unique_name();
        let mut slow = SlowDisk::create(&tree, &SlowDiskSpec::hdd(), &device, name)?;
        self.workspace.record_cgroup(Some(slow.group()))?;
        slow.add_process(pid)?;
        Ok(slow)
    }
}
