//! An earlier run on the same data, used as the first of two snapshots.

use std::collections::HashMap;
use std::path::Path;

use anyhow::Result;
use seekscope_run::{LayoutFile, LayoutMeasurement, RunDirectory, RunDocument};
use seekscope_wiredtiger::{Leaf, LeafKind};

use crate::exit::Usage;

/// An earlier run that this one is compared with.
pub struct Since {
    document: RunDocument,
    leaves: HashMap<u32, Vec<Leaf>>,
}

/// A file as it was in the earlier run.
pub struct FormerFile<'a> {
    pub leaves: &'a [Leaf],
    /// Unix time of its checkpoint, or of the run if that is unknown.
    pub time_s: u64,
}

impl Since {
    /// Reads the run.
    pub fn load(run: &Path) -> Result<Self> {
        let (directory, document) = RunDirectory::open(run)?;
        if document.layout.is_none() {
            let why = format!("{} is not a run of `seekscope layout`", run.display());
            return Err(Usage(why).into());
        }
        Ok(Self {
            leaves: leaves_by_file(&directory, |_| true)?,
            document,
        })
    }

    /// Returns the earlier run's file of that name, of the same member.
    pub fn file(&self, file: &LayoutFile) -> Option<FormerFile<'_>> {
        let layout = self.document.layout.as_ref()?;
        let is_same = |f: &&LayoutFile| f.file == file.file && f.member == file.member;
        let former = layout.files.iter().find(is_same)?;
        if former.not_measured.is_some() {
            return None;
        }
        let leaves = self.leaves.get(&former.file_id);
        Some(FormerFile {
            leaves: leaves.map_or(&[], Vec::as_slice),
            time_s: match former.checkpoint_time_s {
                0 => self.document.started.realtime_ns / 1_000_000_000,
                time_s => time_s,
            },
        })
    }
}

/// Reads a run's leaves of the wanted files, in one pass over all of them.
pub fn leaves_by_file(
    directory: &RunDirectory,
    wanted: impl Fn(u32) -> bool,
) -> Result<HashMap<u32, Vec<Leaf>>> {
    let mut leaves: HashMap<u32, Vec<Leaf>> = HashMap::new();
    directory.for_each_leaf(wanted, |leaf| {
        leaves.entry(leaf.file_id).or_default().push(Leaf {
            offset: leaf.offset,
            length: leaf.length,
            kind: LeafKind::Plain,
        });
    })?;
    Ok(leaves)
}

/// Returns the layout of a run, for commands that need one.
pub fn layout_of<'a>(document: &'a RunDocument, run: &Path) -> Result<&'a LayoutMeasurement> {
    document.layout.as_ref().ok_or_else(|| {
        Usage(format!(
            "{} is a run of `seekscope {}`; what can be compared are two runs of layout, two of doctor, or some of bench",
            run.display(),
            document.command
        ))
        .into()
    })
}
