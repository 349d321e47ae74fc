//! The real WiredTiger engines: the tables they make, and what they themselves find in the files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use seekscope_wiredtiger::{LeafKind, Tree};

use crate::verify_output::{Verified, parse};

/// A release, by where it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// Debian's, of the line of MongoDB 4.2, through C.
    V3_2,
    /// The line of MongoDB 7.0, the one in the local server, through Python.
    V11_2,
    /// The line of MongoDB 8.0, through Python.
    V11_3,
}

/// Compressors of Debian's package; the other releases have theirs built in.
const EXTENSIONS: &str = "libwiredtiger_snappy.so,libwiredtiger_zlib.so";

impl Engine {
    /// Makes a data directory with `tables`, or with every table that this engine can make; returns
    /// what the maker says: first the version.
    pub fn make(self, directory: &Path, seed: u64, tables: &[&str]) -> String {
        std::fs::create_dir_all(directory).unwrap();
        let mut command = match self {
            Self::V3_2 => {
                let mut command = Command::new(compiled(&maker("tables.c"), directory));
                command.arg(directory).arg(seed.to_string()).arg(EXTENSIONS);
                command
            }
            Self::V11_2 | Self::V11_3 => {
                let mut command = self.script("tables.py", directory);
                command.arg(seed.to_string());
                command
            }
        };
        command.args(tables);
        let said = run(&mut command);
        assert!(said.contains(self.version()), "{said}");
        said
    }

    pub fn version(self) -> &'static str {
        match self {
            Self::V3_2 => "3.2.1",
            Self::V11_2 => "11.2.0",
            Self::V11_3 => "11.3.1",
        }
    }

    /// What the engine's own `verify` finds, file by file. It runs on a copy, since opening a
    /// directory changes it.
    pub fn verify(self, directory: &Path) -> BTreeMap<String, Verified> {
        let copy = copy_of(directory);
        let text = match self {
            Self::V3_2 => data_files(directory)
                .iter()
                .map(|file| {
                    run(self
                        .wt(copy.path())
                        .args(["verify", "-d", "dump_address", "-d", "dump_layout"])
                        .arg(format!("file:{file}")))
                })
                .collect(),
            Self::V11_2 | Self::V11_3 => run(self
                .script("verify.py", copy.path())
                .arg("dump_address,dump_layout")),
        };
        parse(&text)
    }

    /// A process that reads a table from its first key to its last.
    pub fn scan(self, directory: &Path, file: &str) -> Command {
        match self {
            Self::V3_2 => {
                let mut command = self.wt(directory);
                command.args(["dump", &format!("file:{file}")]);
                command
            }
            Self::V11_2 | Self::V11_3 => {
                let mut command = self.script("scan.py", directory);
                command.arg(file);
                command
            }
        }
    }

    /// Opening a file, releases from 4.4 on read what the root points at ahead of any scan
    /// (`src/btree/bt_handle.c`); in a tree of two levels that is every leaf, in key order.
    pub fn preloads(self, tree: &Tree) -> bool {
        self != Self::V3_2 && tree.depth == 2
    }

    /// Returns whether a scan passes a leaf of this kind without reading it, where no row of it can be seen any more.
    pub fn skips(self, kind: LeafKind) -> bool {
        self != Self::V3_2 && kind == LeafKind::Emptied
    }

    /// `python NAME DIRECTORY` with this release's module.
    pub fn script(self, name: &str, directory: &Path) -> Command {
        let mut command = Command::new(python());
        if self == Self::V11_3 {
            let module = from_environment("SEEKSCOPE_TEST_WIREDTIGER", "wiredtiger-11.3.1");
            command.env("PYTHONPATH", module);
        }
        command
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .arg(maker(name))
            .arg(directory);
        command
    }

    /// Debian's tool.
    fn wt(self, directory: &Path) -> Command {
        let mut command = Command::new("wt");
        command
            .arg("-h")
            .arg(directory)
            .arg("-C")
            .arg(format!("extensions=[{EXTENSIONS}]"));
        command
    }
}

/// The files of tables, the engine's own left out.
pub fn data_files(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut files: Vec<_> = names
        .filter(|name| name.ends_with(".wt") && !name.starts_with("WiredTiger"))
        .collect();
    files.sort();
    files
}

pub fn copy_of(directory: &Path) -> tempfile::TempDir {
    let copy = folder();
    for entry in std::fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
    }
    copy
}

/// Makes a folder on a real disk: /tmp may be memory, but cargo's folder for test files lies where the build does.
pub fn folder() -> tempfile::TempDir {
    let parent = Path::new(env!("CARGO_TARGET_TMPDIR"));
    std::fs::create_dir_all(parent).unwrap();
    tempfile::tempdir_in(parent).unwrap()
}

/// Python with the engines' modules and MongoDB's driver.
pub fn python() -> PathBuf {
    from_environment("SEEKSCOPE_TEST_PYTHON", "python/bin/python")
}

pub fn maker(name: &str) -> PathBuf {
    Path::new("tests/makers").join(name)
}

/// The program, beside the directory that it is to fill.
fn compiled(source: &Path, directory: &Path) -> PathBuf {
    let program = directory.with_extension("maker");
    run(Command::new("cc")
        .args(["-O2", "-Wall", "-Wextra", "-Werror", "-o"])
        .args([&program, source])
        .args(["-lwiredtiger", "-lpthread"]));
    program
}

/// What the program prints; it must succeed.
pub fn run(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output();
    let output =
        output.unwrap_or_else(|error| panic!("{command:?}: {error}; `./x test` installs it"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

pub fn from_environment(name: &str, below_cache: &str) -> PathBuf {
    std::env::var_os(name).map_or_else(
        || {
            let home = PathBuf::from(std::env::var_os("HOME").unwrap());
            home.join(".cache/seekscope").join(below_cache)
        },
        PathBuf::from,
    )
}
