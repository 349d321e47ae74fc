//! An earlier run of the same data, as the first of two snapshots.

use std::path::Path;

use anyhow::Result;
use seekscope_run::{LayoutFile, LayoutMeasurement, RunDirectory, RunDocument};
use seekscope_wiredtiger::{Leaf, LeafKind};

use crate::exit::Usage;

/// See the module.
pub struct Since {
    directory: RunDirectory,
    document: RunDocument,
}

/// A file as it was.
pub struct FormerFile {
    pub leaves: Vec<Leaf>,
    /// Unix time of its checkpoint, or of the run where that is not known.
    pub time_s: u64,
}

impl Since {
    /// Opens the run.
    pub fn load(run: &Path) -> Result<Self> {
        let (directory, document) = RunDirectory::open(run)?;
        if document.layout.is_none() {
            let why = format!("{} is no run of `seekscope layout`", run.display());
            return Err(Usage(why).into());
        }
        Ok(Self {
            directory,
            document,
        })
    }

    /// The file of that name in it.
    pub fn file(&self, file: &str) -> Result<Option<FormerFile>> {
        let layout = self.document.layout.as_ref();
        let former = layout.and_then(|l| l.files.iter().find(|f| f.file == file));
        let Some(former) = former.filter(|f| f.not_measured.is_none()) else {
            return Ok(None);
        };
        Ok(Some(FormerFile {
            leaves: leaves_of(&self.directory, former)?,
            time_s: match former.checkpoint_time_s {
                0 => self.document.started.realtime_ns / 1_000_000_000,
                time_s => time_s,
            },
        }))
    }
}

/// The leaves of a file that a run holds.
pub fn leaves_of(directory: &RunDirectory, file: &LayoutFile) -> Result<Vec<Leaf>> {
    let mut leaves = Vec::new();
    directory.for_each_leaf(Some(file.file_id), |leaf| {
        leaves.push(Leaf {
            offset: leaf.offset,
            length: leaf.length,
            kind: LeafKind::Plain,
        });
    })?;
    Ok(leaves)
}

/// The layout of a run, for commands that need one.
pub fn layout_of<'a>(document: &'a RunDocument, run: &Path) -> Result<&'a LayoutMeasurement> {
    document.layout.as_ref().ok_or_else(|| {
        Usage(format!(
            "{} is a run of `seekscope {}`; only runs of `seekscope layout` can be compared so far",
            run.display(),
            document.command
        ))
        .into()
    })
}
