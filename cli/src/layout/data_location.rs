//! Finds the data: from the command line to an open data directory and the files that are meant.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use seekscope_layout::{DataDirectory, LayoutError};
use seekscope_run::{Limitation, TargetFacts};
use seekscope_server::examination::refuse_router;
use seekscope_server::{FileMap, Namespace, ProcFs, Server};

use crate::args::LayoutArgs;
use crate::exit::{Elsewhere, NotPermitted, Usage};
use crate::file_names::FileNames;
use crate::progress::Progress;

/// A path, and what a server said of it if one was asked.
#[derive(Default)]
pub struct DataLocation {
    pub path: PathBuf,
    pub target: Option<TargetFacts>,
    /// Which file holds which collections, if the directory itself does not tell.
    pub names: FileMap,
    pub limitations: Vec<Limitation>,
}

impl DataLocation {
    /// Finds the data: asks the server for its data directory if `place` is a connection string, else takes it
    /// as a path.
    pub async fn find(place: &str, pid: Option<u32>, progress: Progress) -> Result<Self> {
        if !place.starts_with("mongodb://") && !place.starts_with("mongodb+srv://") {
            return match pid {
                Some(_) => {
                    Err(Usage("--pid belongs to the connection string of a server".into()).into())
                }
                None => Ok(Self {
                    path: place.into(),
                    ..Self::default()
                }),
            };
        }
        let _step = progress.step("connecting");
        Self::of_server(&Server::connect(place).await?, pid).await
    }

    /// Finds the data of a connected server.
    pub async fn of_server(server: &Server, pid: Option<u32>) -> Result<Self> {
        refuse_router(server).await?;
        let proc_fs = ProcFs::host();
        let facts = server.facts(&proc_fs).await;
        let mut target = facts.target;
        if let Some(pid) = pid {
            target.pid = Some(pid);
            let seen = proc_fs.dbpath(pid);
            target.dbpath = seen.map(|path| path.to_string_lossy().into_owned());
        }
        let path = data_path(&target, &facts.missing, &server.shown_uri())?;
        let names = FileNames::find(Some(server), Some(&path), &[]).await;
        Ok(Self {
            path,
            target: Some(target),
            names: names.map,
            limitations: names.limitation.into_iter().collect(),
        })
    }
}

/// Returns the server's data directory as accessible to this process.
fn data_path(target: &TargetFacts, missing: &[Limitation], shown: &str) -> Result<PathBuf> {
    let why = |about: &str| {
        let matching = missing.iter().find(|m| m.what.contains(about));
        matching.map_or_else(String::new, |m| format!(": {}; {}", m.why, m.remedy))
    };
    let Some(pid) = target.pid else {
        let why = why("process");
        let text = format!("the data of {shown} cannot be read from here{why}");
        return match why.contains("permission denied") {
            true => Err(NotPermitted(text).into()),
            false => Err(Elsewhere(text).into()),
        };
    };
    let Some(dbpath) = target.dbpath.as_deref().map(Path::new) else {
        let text = format!(
            "where process {pid}, the server at {shown}, keeps its data is not known{}; run as root or \
             as the server's user, or name the data directory instead",
            why("data directory")
        );
        return Err(NotPermitted(text).into());
    };
    if !dbpath.is_absolute() {
        return Err(Elsewhere(format!(
            "{shown} says that its data is in {}, which is relative to where it was started; name the \
             data directory instead",
            dbpath.display()
        ))
        .into());
    }
    seen_from_here(pid, dbpath)
}

/// Converts a folder of the process to a path for this process: a server in a container has its own root.
pub fn seen_from_here(pid: u32, dbpath: &Path) -> Result<PathBuf> {
    let root = PathBuf::from(format!("/proc/{pid}/root/"));
    let identity = |path: &Path| path.metadata().map(|m| (m.dev(), m.ino()));
    match (identity(&root), identity(Path::new("/"))) {
        (Ok(theirs), Ok(ours)) if theirs == ours => Ok(dbpath.into()),
        (Ok(_), _) => Ok(root.join(dbpath.strip_prefix("/").unwrap_or(dbpath))),
        // Its files may be readable even if its root is not.
        (Err(_), _) if dbpath.is_dir() => Ok(dbpath.into()),
        (Err(error), _) => Err(NotPermitted(format!(
            "{}: {error}; run as root, or grant CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH",
            root.display()
        ))
        .into()),
    }
}

/// The opened data.
pub enum OpenData {
    Directory {
        directory: Box<DataDirectory>,
        /// File names in the order in which they were asked for; empty: all.
        wanted: Vec<String>,
        /// What was asked for, as it was typed.
        named: Vec<String>,
        names: FileMap,
    },
    Lone(PathBuf),
}

impl OpenData {
    /// Opens a directory, or the directory of a file.
    pub fn open(args: &LayoutArgs, location: &DataLocation, stop: &AtomicBool) -> Result<Self> {
        let path = &location.path;
        if args.lone {
            return Ok(Self::Lone(path.clone()));
        }
        let mut named = args.names.clone();
        let directory = if path.is_file() {
            let Some((directory, file)) = DataDirectory::containing(path, stop)? else {
                return Ok(Self::Lone(path.clone()));
            };
            named.insert(0, file);
            directory
        } else {
            DataDirectory::open(path, stop)?
        };
        let find = |name: &String| find_file(&directory, name, &location.names);
        let mut wanted: Vec<String> = named.iter().map(find).collect::<Result<_, _>>()?;
        let mut seen = std::collections::HashSet::new();
        wanted.retain(|file| seen.insert(file.clone()));
        Ok(Self::Directory {
            directory: Box::new(directory),
            wanted,
            named,
            names: location.names.clone(),
        })
    }

    pub fn path(&self) -> &Path {
        match self {
            Self::Directory { directory, .. } => directory.path(),
            Self::Lone(path) => path,
        }
    }
}

/// Returns the file with that name; asks the server's names if the directory does not know it. A view has no
/// file.
pub fn find_file(
    directory: &DataDirectory,
    name: &str,
    names: &FileMap,
) -> Result<String, LayoutError> {
    let found = directory.find(name).map(|table| table.file.clone());
    found.or_else(|error| {
        let namespace = name.parse::<Namespace>().ok();
        let file = namespace.and_then(|namespace| names.collection_file(&namespace));
        let table = file.and_then(|file| directory.find(&file).ok());
        table.map(|table| table.file.clone()).ok_or_else(|| {
            let view = directory.view(name, &AtomicBool::new(false));
            view.map_or(error, |view| LayoutError::View { view })
        })
    })
}
