//! Finds the server, its data directory and the file that is meant, from the command line.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use seekscope_layout::{DataDirectory, LayoutError};
use seekscope_run::{DeviceFacts, Limitation, TargetFacts};
use seekscope_server::{FileMap, Namespace, ProcFs, Server};

use crate::args::PrefetchArgs;
use crate::exit::Usage;
use crate::layout::{DataLocation, OPEN_WHILE_RUNNING, find_file};
use crate::progress::Progress;

/// The data of the server whose scans are to be read ahead of.
pub struct Target {
    pub directory: PathBuf,
    pub pid: Option<u32>,
    pub facts: Option<TargetFacts>,
    pub device: Option<DeviceFacts>,
    pub limitations: Vec<Limitation>,
    /// Which file holds which collections, if the directory itself does not tell.
    names: FileMap,
    /// The server that was asked.
    pub server: Option<Server>,
}

/// A file whose leaves are to be read ahead.
pub struct TargetFile {
    /// Path relative to the data directory.
    pub path: String,
    /// What else the server keeps in this file.
    pub shared: Option<Limitation>,
}

impl Target {
    /// Asks the server if a connection string was given; else looks for the process that has the directory
    /// open.
    pub async fn find(args: &PrefetchArgs, progress: Progress) -> Result<Self> {
        let is_server = args.place.contains("://");
        let named = args.pid.filter(|_| is_server);
        let location = DataLocation::find(&args.place, named, progress).await?;
        let known = location.target.as_ref().and_then(|target| target.pid);
        let pid = match known {
            Some(pid) => Some(pid),
            None => process_with(&location.path.join(OPEN_WHILE_RUNNING), args.pid)?,
        };
        Ok(Self {
            pid,
            device: DeviceFacts::of_path(Path::new("/"), &location.path).ok(),
            directory: location.path,
            facts: location.target,
            limitations: location.limitations,
            names: location.names,
            server: location.server,
        })
    }

    /// Finds the file of a collection or index, as of the newest checkpoint.
    pub fn file(&self, name: &str) -> Result<TargetFile, LayoutError> {
        let directory = DataDirectory::open(&self.directory, &AtomicBool::new(false))?;
        let path = find_file(&directory, name, &self.names)?;
        Ok(TargetFile {
            shared: shared_by(&self.names, name, &path),
            path,
        })
    }
}

/// Returns the process that has the file open. One that was named is taken where no process is seen to have it open,
/// as those of other users are not.
fn process_with(open: &Path, named: Option<u32>) -> Result<Option<u32>, Usage> {
    let holders = ProcFs::host().holders(open);
    match (named, holders.first()) {
        (Some(named), Some(holder)) if !holders.contains(&named) => Err(Usage(format!(
            "process {named} does not have {} open, and process {holder} does: name that, or leave --pid out",
            open.display()
        ))),
        (named, holder) => Ok(named.or(holder.copied())),
    }
}

/// Reports that a server keeps several collections in one file, all of which is read ahead.
fn shared_by(names: &FileMap, name: &str, file: &str) -> Option<Limitation> {
    let namespace: Namespace = name.parse().ok()?;
    let (_, known) = names.classify(Path::new(file));
    let known = known?;
    (known != namespace.to_string()).then(|| Limitation {
        what: format!("all of {file} is taken to be scanned, not {namespace} alone"),
        why: format!("the server keeps several collections in this file: {known}"),
        remedy: String::new(),
    })
}
