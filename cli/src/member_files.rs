//! Tells which member a file belongs to and what it holds, where several members of a deployment are looked at together.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use seekscope_run::{FileRecord, PathState};
use seekscope_server::{FileMap, ProcFs};

/// Endings and beginnings of the names of files that only WiredTiger has open.
const TABLE_ENDING: &str = ".wt";
const LOG_BEGINNING: &str = "WiredTigerLog.";

/// The files of several members.
#[derive(Debug, Clone, Default)]
pub struct MemberFiles {
    members: Vec<FilesOfOne>,
}

#[derive(Debug, Clone)]
struct FilesOfOne {
    label: String,
    pid: u32,
    /// Folders of its files, as it sees them: its data directory, and where links from there lead.
    folders: Vec<PathBuf>,
    map: FileMap,
}

impl MemberFiles {
    /// Adds a member, whose data lies in `data`, as it sees paths.
    pub fn add(&mut self, label: &str, pid: u32, data: Option<&Path>, map: FileMap) {
        let mut folders: Vec<PathBuf> = data.map(PathBuf::from).into_iter().collect();
        let open = ProcFs::host().open_files(pid).unwrap_or_default();
        for folder in open
            .iter()
            .filter(|f| is_of_engine(f))
            .filter_map(|f| f.parent())
        {
            if !folders.iter().any(|known| folder.starts_with(known)) {
                folders.push(folder.into());
            }
        }
        self.members.push(FilesOfOne {
            label: label.into(),
            pid,
            folders,
            map,
        });
    }

    /// Adds what is known by now of a member's files.
    pub fn update(&mut self, label: &str, newer: FileMap) {
        if let Some(member) = self.members.iter_mut().find(|m| m.label == label) {
            member.map.update(newer);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Gives a file its member, role and namespace, if its path is known. A file outside all data directories is
    /// nobody's.
    pub fn name(&self, file: &mut FileRecord) {
        if file.path_state == PathState::Unresolved {
            return;
        }
        let path = Path::new(&file.path);
        let owner = self.owner(file);
        file.member = owner.map(|owner| owner.label.clone());
        (file.role, file.namespace) = match owner {
            Some(owner) => owner.map.classify(path),
            None => FileMap::default().classify(path),
        };
    }

    /// Returns the member with the file below one of its folders, the innermost folder first. Servers in containers may
    /// have the same paths: then it is the one in which this very file is there.
    fn owner(&self, file: &FileRecord) -> Option<&FilesOfOne> {
        let path = Path::new(&file.path);
        let depth = |member: &FilesOfOne| {
            let around = member.folders.iter().filter(|f| path.starts_with(f));
            around.map(|folder| folder.components().count()).max()
        };
        let deepest = self.members.iter().filter_map(depth).max()?;
        let owners = self.members.iter();
        let owners: Vec<&FilesOfOne> = owners.filter(|m| depth(m) == Some(deepest)).collect();
        match owners.as_slice() {
            [only] => Some(only),
            _ => owners.into_iter().find(|member| member.has(file)),
        }
    }
}

impl FilesOfOne {
    /// Returns whether the member sees this very file at its path.
    fn has(&self, file: &FileRecord) -> bool {
        let root = PathBuf::from(format!("/proc/{}/root", self.pid));
        let path = Path::new(&file.path);
        let found = fs::metadata(root.join(path.strip_prefix("/").unwrap_or(path)));
        // Some filesystems show `stat` another device than the kernel's programs see.
        found.is_ok_and(|found| found.ino() == file.inode)
    }
}

fn is_of_engine(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy());
    name.is_some_and(|name| name.ends_with(TABLE_ENDING) || name.starts_with(LOG_BEGINNING))
}

#[cfg(test)]
mod tests {
    use seekscope_run::FileRole;

    use super::*;

    fn of(members: &[(&str, &str, &str)]) -> MemberFiles {
        let members = members.iter().map(|(label, folder, namespace)| {
            let mut map = FileMap::default();
            map.add_table("collection-7", namespace, None);
            FilesOfOne {
                label: (*label).into(),
                pid: std::process::id(),
                folders: vec![folder.into()],
                map,
            }
        });
        MemberFiles {
            members: members.collect(),
        }
    }

    fn named(members: &MemberFiles, path: &str, inode: u64) -> FileRecord {
        let mut file = FileRecord {
            file_id: 1,
            path: path.into(),
            path_state: PathState::Known,
            device_major: 0,
            device_minor: 0,
            inode,
            size_bytes: 0,
            role: FileRole::Other,
            namespace: None,
            member: None,
        };
        members.name(&mut file);
        file
    }

    #[test]
    fn the_same_table_name_is_another_collection_in_another_directory() {
        let members = of(&[
            ("shard0", "/data/a", "shop.orders"),
            ("shard1", "/data/b", "shop.lines"),
        ]);
        let first = named(&members, "/data/a/collection-7.wt", 1);
        assert_eq!(
            first.labelled_namespace().as_deref(),
            Some("shard0/shop.orders")
        );
        let second = named(&members, "/data/b/collection-7.wt", 1);
        assert_eq!(
            second.labelled_namespace().as_deref(),
            Some("shard1/shop.lines")
        );
        let journal = named(&members, "/data/b/journal/WiredTigerLog.0000000001", 1);
        assert_eq!(journal.labelled_name(), "shard1/WiredTigerLog.0000000001");
        assert_eq!(journal.role, FileRole::Journal);
    }

    #[test]
    fn a_file_of_nobody_has_no_label() {
        let members = of(&[("shard0", "/data/a", "shop.orders")]);
        let other = named(&members, "/data/ab/collection-7.wt", 1);
        assert_eq!((other.member, other.namespace), (None, None));
    }

    #[test]
    fn a_directory_inside_anothers_wins() {
        let members = of(&[
            ("outer", "/data", "a.outer"),
            ("inner", "/data/b", "a.inner"),
        ]);
        let file = named(&members, "/data/b/collection-7.wt", 1);
        assert_eq!(file.member.as_deref(), Some("inner"));
    }

    #[test]
    fn equal_paths_are_told_apart_by_the_file_itself() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().to_str().unwrap();
        let path = folder.path().join("collection-7.wt");
        fs::write(&path, "").unwrap();
        let inode = fs::metadata(&path).unwrap().ino();
        let members = of(&[("shard0", data, "a.x"), ("shard1", data, "a.y")]);
        let path = path.to_str().unwrap();
        assert_eq!(
            named(&members, path, inode).member.as_deref(),
            Some("shard0")
        );
        assert_eq!(
            named(&members, path, inode + 1).member,
            None,
            "neither has it"
        );
    }
}
