//! Finds what a disk is made of: the `slaves` of its folder in `/sys`, and theirs.

use std::fs;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{name_of, whole_disk};
use crate::kernel_files::read_trimmed;

/// A block device that a disk is made of, or the disk itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BlockLayer {
    /// Kernel name, e.g. "dm-0".
    pub name: String,
    /// Device number, `major:minor`.
    pub device: String,
    /// Kind of device: "disk", "loop", "crypt", "lvm", "mapper" (another device-mapper target) or a RAID level such
    /// as "raid1".
    pub kind: String,
}

/// More layers than anyone stacks, so that a circular `/sys` comes to an end.
const LAYERS_MAX: usize = 64;

/// Returns the disk whose folder in `/sys` this is, followed by what it is made of.
pub(super) fn of_disk(disk: &Path) -> Vec<BlockLayer> {
    let mut layers: Vec<BlockLayer> = Vec::new();
    let mut open = vec![disk.to_path_buf()];
    while let Some(folder) = open.pop() {
        let name = name_of(&folder);
        if layers.len() >= LAYERS_MAX || layers.iter().any(|layer| layer.name == name) {
            continue;
        }
        layers.push(BlockLayer {
            device: read_trimmed(folder.join("dev")).unwrap_or_default(),
            kind: kind_of(&folder, &name),
            name,
        });
        let below = fs::read_dir(folder.join("slaves"));
        let below = below.into_iter().flatten().flatten();
        open.extend(below.filter_map(|entry| whole_disk(&entry.path())));
    }
    layers
}

/// Returns the kind of a block device. Device-mapper targets name their creator at the start of their uuid.
fn kind_of(folder: &Path, name: &str) -> String {
    if let Some(uuid) = read_trimmed(folder.join("dm/uuid")) {
        return match uuid.split('-').next() {
            Some("CRYPT") => "crypt",
            Some("LVM") => "lvm",
            _ => "mapper",
        }
        .into();
    }
    if let Some(level) = read_trimmed(folder.join("md/level")) {
        return level;
    }
    if name.starts_with("loop") {
        "loop"
    } else {
        "disk"
    }
    .into()
}
