//! Copies a folder of data: instantly where the filesystem can share blocks, else byte by byte.

use std::fs::{self, File};
use std::path::Path;

use anyhow::{Context, Result};

/// Copies regular files and folders below `from` into `to`, which is created. A socket or link is an error: a
/// server's data has none.
pub fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("cannot make {}", to.display()))?;
    let entries = fs::read_dir(from).with_context(|| format!("cannot list {}", from.display()))?;
    for entry in entries {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy(&source, &target)?;
        } else if kind.is_file() {
            copy_file(&source, &target)
                .with_context(|| format!("cannot copy {}", source.display()))?;
        } else {
            anyhow::bail!("{} is neither file nor folder", source.display());
        }
    }
    Ok(())
}

fn copy_file(from: &Path, to: &Path) -> std::io::Result<()> {
    let shared = File::open(from).and_then(|source| {
        let target = File::create_new(to)?;
        Ok(rustix::fs::ioctl_ficlone(&target, &source)?)
    });
    match shared {
        Ok(()) => Ok(()),
        // Most filesystems cannot share blocks.
        Err(_) => fs::copy(from, to).map(|_| ()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_it_is_copied_and_no_more() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("a"), folder.path().join("b"));
        fs::create_dir_all(from.join("journal")).unwrap();
        fs::write(from.join("x.wt"), vec![7; 70_000]).unwrap();
        fs::write(from.join("journal/log"), "entry").unwrap();
        copy(&from, &to).unwrap();
        assert_eq!(fs::read(to.join("x.wt")).unwrap(), vec![7; 70_000]);
        assert_eq!(fs::read_to_string(to.join("journal/log")).unwrap(), "entry");
        std::os::unix::fs::symlink("x.wt", from.join("link")).unwrap();
        assert!(copy(&from, &folder.path().join("c")).is_err());
    }
}
