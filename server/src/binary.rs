//! Finds a server program to start.

use std::ffi::OsStr;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use seekscope_run::{ErrorKind, Kinded};

use crate::process::ProcFs;

/// The server whose options and files apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerKind {
    Mongod,
    SecantusdRs,
}

impl ServerKind {
    /// Returns the program's file name.
    pub fn program(self) -> &'static str {
        match self {
            Self::Mongod => "mongod",
            Self::SecantusdRs => "secantusd-rs",
        }
    }

    /// Decides by file name: a `secantusd…` is secantusd-rs, everything else takes mongod's options
    /// (`mongod-7.0`, `psmdb`, …).
    fn of_file_name(path: &Path) -> Self {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with("secantusd") {
            Self::SecantusdRs
        } else {
            Self::Mongod
        }
    }
}

/// A server program that exists and may be executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerBinary {
    /// Absolute path.
    pub path: PathBuf,
    pub kind: ServerKind,
}

/// The reason why no server program was found.
#[derive(Debug, thiserror::Error)]
pub enum BinaryError {
    #[error(
        "the server binary {path} cannot be used: {why}; name an executable mongod or secantusd-rs"
    )]
    Unusable { path: PathBuf, why: String },
    #[error(
        "found neither mongod nor secantusd-rs in {searched} directories (PATH and seekscope's own); \
         install one of them, name it, or give the connection string of a running server"
    )]
    NotFound { searched: usize },
}

impl Kinded for BinaryError {
    fn kind(&self) -> Option<ErrorKind> {
        Some(ErrorKind::Usage)
    }
}

impl ServerBinary {
    /// Finds a program. Takes `explicit` if given, and looks for a name without a folder in `search_path`
    /// first; otherwise takes the first `mongod` in the directories of `search_path` (the value of PATH), or
    /// the first `secantusd-rs` there or in `extra_directories`.
    pub fn find(
        explicit: Option<&Path>,
        search_path: Option<&OsStr>,
        extra_directories: &[PathBuf],
    ) -> Result<Self, BinaryError> {
        let mut directories: Vec<PathBuf> = search_path
            .map(|p| std::env::split_paths(p).collect())
            .unwrap_or_default();
        // An empty or relative entry means the current directory: never run what lies there.
        directories.retain(|d| d.is_absolute());
        if let Some(path) = explicit {
            let is_name = path.components().count() == 1;
            let mut named = directories.iter().map(|d| d.join(path));
            let on_path = named.find(|p| is_name && is_executable(p));
            return Self::explicit(on_path.as_deref().unwrap_or(path));
        }
        let on_path = directories.len();
        directories.extend_from_slice(extra_directories);
        let first = |kind: ServerKind, directories: &[PathBuf]| {
            let path = directories
                .iter()
                .map(|d| d.join(kind.program()))
                .find(|p| is_executable(p))?;
            Some(Self { path, kind })
        };
        first(
            ServerKind::Mongod,
            directories.get(..on_path).unwrap_or_default(),
        )
        .or_else(|| first(ServerKind::SecantusdRs, &directories))
        .ok_or(BinaryError::NotFound {
            searched: directories.len(),
        })
    }

    /// Returns the program that a process of this host runs, so that another of the same release can be started:
    /// `None` for a router, which keeps no data, and for one that sees other files than we do, was replaced since, or that
    /// anyone but root and us may write.
    pub fn of_process(proc_fs: &ProcFs, pid: u32) -> Option<Self> {
        let path = proc_fs.exe(pid).ok()?;
        let running = PathBuf::from(format!("/proc/{pid}/exe")).metadata().ok()?;
        let there = path.metadata().ok()?;
        let is_same = (running.dev(), running.ino()) == (there.dev(), there.ino());
        let ours = rustix::process::geteuid().as_raw();
        let is_trusted = [0, ours].contains(&there.uid()) && there.mode() & 0o022 == 0;
        let kind = ServerKind::of_file_name(&path);
        let is_router = path.file_name().is_some_and(|name| name == "mongos");
        let is_usable = is_same && is_trusted && !is_router && is_executable(&path);
        is_usable.then_some(Self { path, kind })
    }

    fn explicit(path: &Path) -> Result<Self, BinaryError> {
        let unusable = |why: String| BinaryError::Unusable {
            path: path.to_path_buf(),
            why,
        };
        let found = path.canonicalize().map_err(|e| unusable(e.to_string()))?;
        if !is_executable(&found) {
            return Err(unusable("it is not an executable file".into()));
        }
        // The name as given decides the kind, since links such as `mongod -> wrapper` are common.
        Ok(Self {
            path: found,
            kind: ServerKind::of_file_name(path),
        })
    }
}

fn is_executable(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn program(directory: &Path, name: &str, mode: u32) {
        fs::create_dir_all(directory).unwrap();
        fs::write(directory.join(name), "#!/bin/sh\n").unwrap();
        fs::set_permissions(directory.join(name), fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn the_program_of_a_process_is_found_where_nobody_else_may_write_it() {
        let root = tempfile::tempdir().unwrap();
        let copy = root.path().join("mongod-9");
        let sleep = ["/usr/bin/sleep", "/bin/sleep"].map(Path::new);
        fs::copy(sleep.into_iter().find(|path| path.exists()).unwrap(), &copy).unwrap();
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).unwrap();
        let mut process = std::process::Command::new(&copy).arg("60").spawn().unwrap();
        let find = || ServerBinary::of_process(&ProcFs::host(), process.id());
        let found = find().map(|found| (found.path, found.kind));
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o757)).unwrap();
        let writable = find();
        fs::remove_file(&copy).unwrap();
        let gone = find();
        process.kill().unwrap();
        process.wait().unwrap();
        assert_eq!(
            found,
            Some((copy.canonicalize().unwrap_or(copy), ServerKind::Mongod))
        );
        assert_eq!((writable, gone), (None, None));
    }

    #[test]
    fn mongod_on_the_path_wins_over_secantusd() {
        let root = tempfile::tempdir().unwrap();
        let (a, b, extra) = (
            root.path().join("a"),
            root.path().join("b"),
            root.path().join("extra"),
        );
        program(&a, "secantusd-rs", 0o755);
        program(&b, "mongod", 0o755);
        program(&extra, "secantusd-rs", 0o755);
        let search = std::env::join_paths([&a, &b]).unwrap();
        let found = ServerBinary::find(None, Some(&search), std::slice::from_ref(&extra)).unwrap();
        assert_eq!(
            (found.kind, found.path),
            (ServerKind::Mongod, b.join("mongod"))
        );

        fs::set_permissions(b.join("mongod"), fs::Permissions::from_mode(0o644)).unwrap();
        let found = ServerBinary::find(None, Some(&search), std::slice::from_ref(&extra)).unwrap();
        assert_eq!(
            (found.kind, found.path),
            (ServerKind::SecantusdRs, a.join("secantusd-rs"))
        );

        let found = ServerBinary::find(None, None, std::slice::from_ref(&extra)).unwrap();
        assert_eq!(found.path, extra.join("secantusd-rs"));
        assert!(matches!(
            ServerBinary::find(None, None, &[]),
            Err(BinaryError::NotFound { searched: 0 })
        ));
    }

    #[test]
    fn an_explicit_path_must_be_executable() {
        let root = tempfile::tempdir().unwrap();
        program(root.path(), "mongod-7.0", 0o755);
        program(root.path(), "secantusd", 0o644);
        let on_path = ServerBinary::find(
            Some(Path::new("mongod-7.0")),
            Some(root.path().as_os_str()),
            &[],
        );
        assert_eq!(on_path.unwrap().path, root.path().join("mongod-7.0"));
        let found = ServerBinary::find(Some(&root.path().join("mongod-7.0")), None, &[]).unwrap();
        assert_eq!(found.kind, ServerKind::Mongod);
        let refused = ServerBinary::find(Some(&root.path().join("secantusd")), None, &[]);
        assert!(
            refused
                .unwrap_err()
                .to_string()
                .contains("not an executable file")
        );
    }
}
