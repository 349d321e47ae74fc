//! The file for node_exporter's textfile collector, which reads whole files ending in `.prom`.

use std::fs::{self, File, Permissions, TryLockError};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use seekscope_exporter::TextFormat;

use super::exported::Exported;
use crate::exit::{Elsewhere, Usage};

const NAME: &str = "seekscope.prom";
/// Written first, and not read by the collector.
const PART_NAME: &str = ".seekscope.prom.part";
/// Locked by the exporter that writes there.
const LOCK_NAME: &str = ".seekscope.prom.lock";
/// The metric that tells that an exporter has ended.
const LEFT: &str = "seekscope_exporter_last_reading_timestamp_seconds";

/// The file. Dropping it leaves nothing in it but when each server was read last: other figures would stay as if they
/// were true, and without these nobody would learn that the exporter has ended.
pub struct Textfile {
    path: PathBuf,
    part: PathBuf,
    lock: PathBuf,
    _locked: File,
    /// What is left at the end.
    left: String,
}

impl Textfile {
    /// Checks that the folder can be written to, and that no other exporter writes there.
    pub fn create(folder: &Path) -> Result<Self> {
        let shown = folder.display();
        if !folder.is_dir() {
            return Err(Usage(format!(
                "--textfile {shown} is not a folder; name an existing one"
            ))
            .into());
        }
        let lock = folder.join(LOCK_NAME);
        let cannot = || format!("cannot write {}", lock.display());
        let locked = File::create(&lock).with_context(cannot)?;
        match locked.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let why = format!(
                    "another exporter writes to {shown}; choose another folder with --textfile"
                );
                return Err(Elsewhere(why).into());
            }
            Err(TryLockError::Error(error)) => return Err(error).with_context(cannot),
        }
        Ok(Self {
            path: folder.join(NAME),
            part: folder.join(PART_NAME),
            lock,
            _locked: locked,
            left: String::new(),
        })
    }

    /// Replaces the file by the present figures.
    pub fn write(&mut self, exported: &Exported) -> Result<()> {
        let text = exported.text(TextFormat::Prometheus);
        self.left = left_of(&text);
        self.write_text(&text)
    }

    fn write_text(&self, text: &str) -> Result<()> {
        let write = || -> std::io::Result<()> {
            let mut part = File::create(&self.part)?;
            part.write_all(text.as_bytes())?;
            // The collector runs as another user.
            part.set_permissions(Permissions::from_mode(0o644))?;
            fs::rename(&self.part, &self.path)
        };
        let written = write();
        if written.is_err() {
            // A part of it takes room that is short.
            let _ = fs::remove_file(&self.part);
        }
        written.with_context(|| format!("cannot write {}", self.path.display()))
    }
}

/// Returns the lines of a text that are left when the exporter ends.
fn left_of(text: &str) -> String {
    let is_left = |line: &&str| {
        let line = line.strip_prefix("# ").map_or(*line, |comment| {
            comment.split_once(' ').map_or(comment, |(_, name)| name)
        });
        line.strip_prefix(LEFT)
            .is_some_and(|rest| rest.starts_with(['{', ' ']))
    };
    text.lines()
        .filter(is_left)
        .flat_map(|line| [line, "\n"])
        .collect()
}

impl Drop for Textfile {
    fn drop(&mut self) {
        // There is nobody left to tell.
        let _ = match self.left.is_empty() {
            true => fs::remove_file(&self.path).map_err(anyhow::Error::from),
            false => self.write_text(&self.left),
        };
        let _ = fs::remove_file(&self.part);
        let _ = fs::remove_file(&self.lock);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn when_each_server_was_read_last_is_left() {
        let text = "# HELP seekscope_up x\n# TYPE seekscope_up gauge\nseekscope_up{server=\"a\"} 1\n\
                    # HELP seekscope_exporter_last_reading_timestamp_seconds when\n\
                    # TYPE seekscope_exporter_last_reading_timestamp_seconds gauge\n\
                    seekscope_exporter_last_reading_timestamp_seconds{server=\"a\"} 17\n";
        let left = left_of(text);
        assert_eq!(left.lines().count(), 3, "{left}");
        assert!(!left.contains("seekscope_up"), "{left}");
    }
}
