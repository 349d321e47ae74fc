//! Finds the server, its data directory and the file that is meant, from the command line.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use seekscope_layout::DataDirectory;
use seekscope_run::{DeviceFacts, Limitation, TargetFacts};
use seekscope_server::{FileMap, Namespace, ProcFs};

use crate::args::PrefetchArgs;
use crate::layout::{DataLocation, find_file};
use crate::progress::Progress;

/// A file that every server keeps open.
const OPEN_WHILE_RUNNING: &str = "WiredTiger.wt";

/// The file whose leaves are to be read ahead, and where it was found.
pub struct Target {
    pub directory: PathBuf,
    /// Path relative to the directory.
    pub file: String,
    pub pid: Option<u32>,
    pub facts: Option<TargetFacts>,
    pub device: Option<DeviceFacts>,
    pub limitations: Vec<Limitation>,
}

impl Target {
    /// Asks the server if a connection string was given; else looks for the process that has the directory
    /// open.
    pub async fn find(args: &PrefetchArgs, progress: Progress) -> Result<Self> {
        let is_server = args.place.contains("://");
        let pid = args.pid.filter(|_| is_server);
        let location = DataLocation::find(&args.place, pid, progress).await?;
        let directory = DataDirectory::open(&location.path, &AtomicBool::new(false))?;
        let file = find_file(&directory, &args.name, &location.names)?;
        let known = location.target.as_ref().and_then(|target| target.pid);
        let open = location.path.join(OPEN_WHILE_RUNNING);
        let holder = || ProcFs::host().holders(&open).first().copied();
        let mut limitations = location.limitations;
        if let Some(shared) = shared_by(&location.names, &args.name, &file) {
            limitations.push(shared);
        }
        Ok(Self {
            pid: known.or(args.pid).or_else(holder),
            device: DeviceFacts::of_path(Path::new("/"), &location.path).ok(),
            directory: location.path,
            file,
            facts: location.target,
            limitations,
        })
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
