//! The file for node_exporter's textfile collector, which reads whole files ending in `.prom`.

use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use seekscope_exporter::Format;

use super::exported::Exported;
use crate::exit::Usage;

const NAME: &str = "seekscope.prom";
/// Written first, and not read by the collector.
const PART_NAME: &str = ".seekscope.prom.part";

/// The file. Dropping it removes it: figures of an exporter that has ended would stay for ever.
pub struct Textfile {
    path: PathBuf,
    part: PathBuf,
}

impl Textfile {
    /// Checks that the folder can be written to.
    pub fn create(folder: &Path) -> Result<Self> {
        if !folder.is_dir() {
            let folder = folder.display();
            return Err(Usage(format!("--textfile {folder}: name an existing folder")).into());
        }
        let file = Self {
            path: folder.join(NAME),
            part: folder.join(PART_NAME),
        };
        file.write_text("")?;
        Ok(file)
    }

    /// Replaces the file by the present figures.
    pub fn write(&self, exported: &Exported) -> Result<()> {
        self.write_text(&exported.text(Format::Prometheus))
    }

    fn write_text(&self, text: &str) -> Result<()> {
        let write = || -> std::io::Result<()> {
            let mut part = File::create(&self.part)?;
            part.write_all(text.as_bytes())?;
            // The collector runs as another user.
            part.set_permissions(Permissions::from_mode(0o644))?;
            fs::rename(&self.part, &self.path)
        };
        write().with_context(|| format!("cannot write {}", self.path.display()))
    }
}

impl Drop for Textfile {
    fn drop(&mut self) {
        // There is nobody left to tell.
        let _ = fs::remove_file(&self.part);
        let _ = fs::remove_file(&self.path);
    }
}
