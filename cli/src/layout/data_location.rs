//! Finds the data: from the command line to an open data directory and the files that are meant.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use seekscope_layout::{DataDirectory, LayoutError};
use seekscope_run::{LayoutMember, Limitation, TargetFacts};
use seekscope_server::examination::refuse_router;
use seekscope_server::{FileMap, Namespace, ProcFs, Server};

use super::is_interruption;
use crate::args::LayoutArgs;
use crate::exit::{Elsewhere, NotPermitted, Usage, message_of};
use crate::file_names::FileNames;
use crate::local_members::{LocalMembers, limitation_of};
use crate::progress::Progress;

/// A file that every server keeps open.
pub const OPEN_WHILE_RUNNING: &str = "WiredTiger.wt";

/// A path, and what a server said of it if one was asked.
#[derive(Default)]
pub struct DataLocation {
    pub path: PathBuf,
    pub target: Option<TargetFacts>,
    /// Which file holds which collections, if the directory itself does not tell.
    pub names: FileMap,
    pub limitations: Vec<Limitation>,
    /// The server that was asked.
    pub server: Option<Server>,
}

impl DataLocation {
    /// Finds the data: asks the server for its data directory if `place` is a connection string, else takes it
    /// as a path.
    pub async fn find(place: &str, pid: Option<u32>, progress: Progress) -> Result<Self> {
        if !is_uri(place) {
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
        let facts = server.facts_with_process(pid, &proc_fs).await?;
        let target = facts.target;
        let path = data_path(&target, &facts.missing, &server.shown_uri())?;
        let names = FileNames::find(Some(server), Some(&path), &[]).await;
        Ok(Self {
            path,
            target: Some(target),
            names: names.map,
            limitations: names.limitation.into_iter().collect(),
            server: Some(server.clone()),
        })
    }
}

fn is_uri(place: &str) -> bool {
    place.starts_with("mongodb://") || place.starts_with("mongodb+srv://")
}

/// The data that is meant: that of one server, or of all members of a set or cluster on this host.
pub struct DataLocations {
    /// The label of each member beside its data; `None` for one server.
    pub parts: Vec<(Option<LocalLabel>, DataLocation)>,
    /// The connection string of the set or cluster, without credentials.
    pub uri: Option<String>,
    pub target: Option<TargetFacts>,
    pub limitations: Vec<Limitation>,
}

/// How a member's files are told from those of others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalLabel {
    pub label: String,
    pub shard: Option<String>,
}

impl DataLocations {
    /// Finds the data. Of a replica set or a cluster it is that of all members on this host.
    pub async fn find(place: &str, pid: Option<u32>, progress: Progress) -> Result<Self> {
        if is_uri(place)
            && pid.is_none()
            && let Some(local) = LocalMembers::find(place, &ProcFs::host()).await?
        {
            let _step = progress.step("asking the members");
            return Self::of_members(local).await;
        }
        let mut only = DataLocation::find(place, pid, progress).await?;
        Ok(Self {
            uri: None,
            target: only.target.take(),
            limitations: std::mem::take(&mut only.limitations),
            parts: vec![(None, only)],
        })
    }

    /// Finds the data of each. What cannot be read is a limitation, and an error if it is all of it.
    async fn of_members(local: LocalMembers) -> Result<Self> {
        let mut limitations = local.missing.clone();
        limitations.extend(local.elsewhere("examined"));
        let (mut parts, mut targets, mut failure) = (Vec::new(), Vec::new(), None);
        for member in &local.members {
            let label = member.label.as_deref();
            match DataLocation::of_server(&member.server, Some(member.pid)).await {
                Ok(mut found) => {
                    let lacking = std::mem::take(&mut found.limitations).into_iter();
                    limitations.extend(lacking.map(|l| limitation_of(label, l)));
                    targets.extend(found.target.take());
                    let label = member.label.clone().map(|label| LocalLabel {
                        label,
                        shard: member.shard.clone(),
                    });
                    parts.push((label, found));
                }
                Err(error) => {
                    let limitation = Limitation {
                        what: "its data was not read".into(),
                        why: message_of(&error),
                        remedy: String::new(),
                    };
                    limitations.push(limitation_of(label, limitation));
                    failure.get_or_insert(error);
                }
            }
        }
        match failure {
            Some(error) if parts.is_empty() => Err(error),
            _ => Ok(Self {
                target: Some(local.target(&ProcFs::host(), &targets).await),
                uri: Some(local.uri),
                parts,
                limitations,
            }),
        }
    }
}

/// Returns the server's data directory as accessible to this process.
fn data_path(target: &TargetFacts, missing: &[Limitation], shown: &str) -> Result<PathBuf> {
    let why = |about: &str| {
        let matching = missing.iter().find(|m| m.what.contains(about));
        matching.map_or_else(String::new, |m| match m.why.contains(&m.remedy) {
            true => format!(": {}", m.why),
            false => format!(": {}; {}", m.why, m.remedy),
        })
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
        /// The server that was asked where it is.
        server: Option<Server>,
    },
    Lone(PathBuf),
}

/// All that was opened.
pub struct OpenedData {
    /// Each member beside its data; `None` for one server. At least one.
    pub parts: Vec<(Option<LayoutMember>, OpenData)>,
    /// The connection string of the set or cluster, without credentials.
    pub uri: Option<String>,
    /// What was asked for, as it was typed.
    pub named: Vec<String>,
}

impl OpenedData {
    /// Opens all directories. What was named need not be on every member, but on one.
    pub fn open(args: &LayoutArgs, all: &DataLocations, stop: &AtomicBool) -> Result<Self> {
        let (mut parts, mut failure) = (Vec::new(), None);
        for (label, location) in &all.parts {
            let Some(label) = label else {
                let data = OpenData::open(args, &args.names, location, stop)?;
                parts.push((None, data));
                continue;
            };
            let names = names_for(&label.label, &args.names, all);
            if names.is_empty() && !args.names.is_empty() {
                continue;
            }
            match OpenData::open(args, &names, location, stop) {
                Ok(data) => {
                    let member = LayoutMember {
                        member: label.label.clone(),
                        shard: label.shard.clone(),
                        path: data.path().display().to_string(),
                        ..LayoutMember::default()
                    };
                    parts.push((Some(member), data));
                }
                Err(error) if is_interruption(&error) => return Err(error),
                Err(error) => {
                    failure.get_or_insert(error);
                }
            }
        }
        let named = match parts.as_slice() {
            [(None, OpenData::Directory { named, .. })] => named.clone(),
            _ => args.names.clone(),
        };
        match failure {
            Some(error) if parts.is_empty() => Err(error),
            _ => Ok(Self {
                parts,
                uri: all.uri.clone(),
                named,
            }),
        }
    }

    /// Returns the first directory, or the lone file.
    pub fn path(&self) -> &Path {
        let first = self.parts.first();
        first.map_or(Path::new("."), |(_, data)| data.path())
    }
}

/// Returns the names that are meant of a member: those without a label, and those with its own.
fn names_for(label: &str, names: &[String], all: &DataLocations) -> Vec<String> {
    let labels: Vec<_> = all
        .parts
        .iter()
        .filter_map(|(label, _)| label.as_ref())
        .collect();
    let meant = names.iter().filter_map(|name| {
        // A shard's name means all of its members.
        let own = |prefix: &str| name.strip_prefix(prefix)?.strip_prefix('/');
        let of_member = |one: &LocalLabel| own(&one.label).or_else(|| own(one.shard.as_deref()?));
        let mut own_labels = labels.iter().filter(|one| one.label == label);
        match own_labels.find_map(|one| of_member(one)) {
            Some(own) => Some(own.to_string()),
            None => labels
                .iter()
                .all(|one| of_member(one).is_none())
                .then(|| name.clone()),
        }
    });
    meant.collect()
}

impl OpenData {
    /// Opens a directory, or the directory of a file; of that, what `names` says.
    fn open(
        args: &LayoutArgs,
        names: &[String],
        location: &DataLocation,
        stop: &AtomicBool,
    ) -> Result<Self> {
        let path = &location.path;
        if args.lone {
            return Ok(Self::Lone(path.clone()));
        }
        let mut named = names.to_vec();
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
            server: location.server.clone(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_in_front_of_a_name_means_that_member_alone() {
        let part = |label: &str| {
            let label = LocalLabel {
                label: label.into(),
                shard: None,
            };
            (Some(label), DataLocation::default())
        };
        let all = DataLocations {
            parts: vec![part("s0"), part("s1@a:1")],
            uri: None,
            target: None,
            limitations: Vec::new(),
        };
        let names = ["shop.orders/by_n", "s0/shop.orders", "s1@a:1/x.wt"].map(String::from);
        assert_eq!(
            names_for("s0", &names, &all),
            ["shop.orders/by_n", "shop.orders"]
        );
        assert_eq!(
            names_for("s1@a:1", &names, &all),
            ["shop.orders/by_n", "x.wt"]
        );
        assert!(names_for("s0", &names[2..], &all).is_empty());
        let member = |address: &str| {
            let (mut label, location) = part(&format!("s2@{address}"));
            label.as_mut().unwrap().shard = Some("s2".into());
            (label, location)
        };
        let all = DataLocations {
            parts: vec![part("s0"), member("a:1"), member("b:2")],
            ..all
        };
        let of_shard = ["s2/shop.orders".to_string()];
        for label in ["s2@a:1", "s2@b:2"] {
            assert_eq!(names_for(label, &of_shard, &all), ["shop.orders"]);
        }
        assert!(names_for("s0", &of_shard, &all).is_empty());
    }
}
