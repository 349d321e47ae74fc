//! Finds which database files a process has open, and where its data lies.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::process::{ProcFs, ProcessError, failed};

/// Files that every WiredTiger home has and that the server keeps open. The first one tells the data directory
/// from other homes in the same process: mongod from 8.2 on spills what exceeds its memory into one.
const HOME_FILES: [&str; 3] = ["mongod.lock", "WiredTiger.wt", "WiredTiger.lock"];

impl ProcFs {
    /// Returns the regular files that the process has open, sorted, each once; deleted ones are left out.
    pub fn open_files(&self, pid: u32) -> Result<Vec<PathBuf>, ProcessError> {
        let folder = self.path(pid, "fd");
        let entries = fs::read_dir(&folder).map_err(|source| failed(pid, folder, source))?;
        let links = entries
            .flatten()
            .filter_map(|entry| fs::read_link(entry.path()).ok());
        let files = links.filter(|link| link.is_absolute() && !is_special(link) && !link.is_dir());
        Ok(files.collect::<BTreeSet<_>>().into_iter().collect())
    }

    /// Returns the open files below `directory`, sorted.
    pub fn open_files_below(
        &self,
        pid: u32,
        directory: &Path,
    ) -> Result<Vec<PathBuf>, ProcessError> {
        let mut files = self.open_files(pid)?;
        files.retain(|file| file.starts_with(directory));
        Ok(files)
    }

    /// Returns the processes that have the file open, as far as they are visible to us, without our own.
    pub fn holders(&self, file: &Path) -> Vec<u32> {
        let file = file.canonicalize().unwrap_or_else(|_| file.into());
        let entries = fs::read_dir(&self.root).into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let others = pids.filter(|&pid| pid != std::process::id());
        let open = |pid: &u32| {
            self.open_files(*pid)
                .is_ok_and(|files| files.contains(&file))
        };
        others.filter(open).collect()
    }

    /// Returns where a server's data lies: the folder of its open WiredTiger files, otherwise what its command
    /// line says (relative to its working directory). `None` if neither is known.
    pub fn dbpath(&self, pid: u32) -> Option<PathBuf> {
        let from_files = self.open_files(pid).ok().and_then(|files| {
            let of_name = |name: &&str| files.iter().find(|file| file.ends_with(*name));
            let home = HOME_FILES.iter().find_map(of_name)?;
            home.parent().map(Path::to_path_buf)
        });
        from_files.or_else(|| {
            let named = dbpath_argument(&self.arguments(pid).ok()?)?;
            // Joining an absolute path gives that path.
            let working =
                fs::read_link(self.path(pid, "cwd")).unwrap_or_else(|_| PathBuf::from("/"));
            Some(working.join(named))
        })
    }
}

/// Devices, pipes and sockets also have links below `/proc/PID/fd`.
fn is_special(link: &Path) -> bool {
    link.starts_with("/dev")
        || link.starts_with("/proc")
        || link.to_string_lossy().ends_with(" (deleted)")
}

/// Returns the data directory that a command line of mongod or secantusd-rs names.
pub(crate) fn dbpath_argument(arguments: &[String]) -> Option<PathBuf> {
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        for option in ["--dbpath", "--dbPath", "--storage-path"] {
            match argument.strip_prefix(option) {
                Some("") => return arguments.next().map(PathBuf::from),
                Some(rest) => {
                    if let Some(value) = rest.strip_prefix('=') {
                        return Some(PathBuf::from(value));
                    }
                }
                None => {}
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(String::from).collect()
    }

    #[test]
    fn command_lines_tell_the_data_directory() {
        let path = |line: &str| dbpath_argument(&words(line));
        assert_eq!(
            path("mongod --dbpath /data/db --fork"),
            Some("/data/db".into())
        );
        assert_eq!(path("mongod --dbpath=/srv/a"), Some("/srv/a".into()));
        assert_eq!(path("secantusd-rs --storage-path rel"), Some("rel".into()));
        assert_eq!(path("mongod --dbpathological x"), None);
        assert_eq!(path("mongod --dbpath"), None);
    }

    #[test]
    fn open_files_win_over_the_command_line() {
        let root = tempfile::tempdir().unwrap();
        let process = root.path().join("9");
        let fd = process.join("fd");
        fs::create_dir_all(&fd).unwrap();
        fs::write(process.join("cmdline"), "mongod\0--dbpath\0data\0").unwrap();
        symlink("/home/x", process.join("cwd")).unwrap();
        let tree = ProcFs::at(root.path());
        assert_eq!(tree.dbpath(9), Some("/home/x/data".into()));

        for (number, link) in [
            ("1", "/dev/null"),
            ("2", "socket:[1]"),
            ("3", "/srv/db/WiredTiger.wt"),
            ("4", "/srv/db/collection-1-2.wt"),
            ("5", "/srv/db/collection-1-2.wt"),
            ("6", "/srv/db/gone.wt (deleted)"),
            ("7", "/var/log/x.log"),
        ] {
            symlink(link, fd.join(number)).unwrap();
        }
        assert_eq!(tree.dbpath(9), Some("/srv/db".into()));
        symlink("/a/spill/WiredTiger.wt", fd.join("8")).unwrap();
        symlink("/srv/db/mongod.lock", fd.join("9")).unwrap();
        assert_eq!(tree.dbpath(9), Some("/srv/db".into()));
        fs::remove_file(fd.join("9")).unwrap();
        let below = tree.open_files_below(9, Path::new("/srv/db")).unwrap();
        let expected: Vec<PathBuf> = vec![
            "/srv/db/WiredTiger.wt".into(),
            "/srv/db/collection-1-2.wt".into(),
        ];
        assert_eq!(below, expected);
    }
}
