//! Directories of real mongods, the parser's own test data, and the truth about them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

use seekscope_layout::{DataDirectory, WalkOptions};
use seekscope_wiredtiger::{TreeWalk, Turtle, Visit};
use serde_json::Value;
use tempfile::TempDir;

pub(crate) const NAMES: [&str; 4] = ["none", "snappy", "zlib_dirs", "snappy42"];

pub(crate) static GO_ON: AtomicBool = AtomicBool::new(false);

pub(crate) fn options(parallel_reads: usize) -> WalkOptions<'static> {
    WalkOptions {
        parallel_reads,
        reads_per_s: None,
        stop: &GO_ON,
        keep_pages: false,
    }
}

/// A copy of one, unpacked.
pub(crate) struct RealDirectory {
    pub(crate) path: PathBuf,
    pub(crate) expected: Value,
    _folder: TempDir,
}

impl RealDirectory {
    pub(crate) fn unpack(name: &str) -> Self {
        let data = Path::new("../wiredtiger/tests/data");
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let archive = data.join(format!("{name}.tar.gz"));
        let mut tar = Command::new("tar");
        tar.arg("-xzf").arg(archive).arg("-C").arg(folder.path());
        assert!(tar.status().unwrap().success());
        let expected = std::fs::read(data.join(format!("{name}.expected.json"))).unwrap();
        Self {
            path: folder.path().join(name),
            expected: serde_json::from_slice(&expected).unwrap(),
            _folder: folder,
        }
    }

    pub(crate) fn open(&self) -> DataDirectory {
        DataDirectory::open(&self.path, &GO_ON).unwrap()
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The rows of the metadata as a backup cursor writes them, and not yet as a file.
    pub(crate) fn backup_text(&self) -> String {
        let turtle =
            Turtle::parse(&std::fs::read(self.file("WiredTiger.turtle")).unwrap()).unwrap();
        let file = std::fs::read(self.file("WiredTiger.wt")).unwrap();
        let config = turtle.metadata;
        let cookie = config.newest_checkpoint().unwrap().cookie.unwrap();
        let (format, root) = (config.format(), cookie.root.unwrap());
        let mut walk = TreeWalk::new(root, format, cookie.file_bytes, Visit::Rows).unwrap();
        while let Some(&block) = walk.wanted().first() {
            let start = usize::try_from(block.offset).unwrap();
            walk.supply(&block, &file[start..start + block.length as usize])
                .unwrap();
        }
        let text = |bytes: &[u8]| {
            let text = bytes.strip_suffix(&[0]).unwrap_or(bytes);
            String::from_utf8(text.to_vec()).unwrap()
        };
        let rows = walk.rows().unwrap();
        rows.iter()
            .map(|(key, value)| (text(key), text(value)))
            .filter(|(key, _)| key.starts_with("file:"))
            .map(|(key, value)| format!("{key}\n{value}\n"))
            .collect()
    }
}
