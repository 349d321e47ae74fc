//! `--leaves`: the leaf pages of one file, for scripts.

use std::fmt::Write as _;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use seekscope_layout::walk_lone;
use seekscope_wiredtiger::Leaf;

use super::data_location::{DataLocations, OpenData, OpenedData};
use super::measurement::walk_options;
use crate::args::LayoutArgs;
use crate::exit::Usage;
use crate::output;

/// Number of lines printed at once.
const LINES: usize = 10_000;

/// Prints `[offset, length]` of each leaf in key order, as the tree lists them, including leaves that a
/// truncation deleted.
pub fn print(args: &LayoutArgs, location: &DataLocations, stop: &AtomicBool) -> Result<()> {
    let options = walk_options(args, stop, false);
    let opened = OpenedData::open(args, location, stop)?;
    let Some((_, data)) = opened.parts.first() else {
        return Ok(());
    };
    let tree = match data {
        OpenData::Lone(path) => walk_lone(path, &options)?.tree,
        OpenData::Directory {
            directory, wanted, ..
        } => {
            let [file] = wanted.as_slice() else {
                return Err(Usage(
                    "--leaves is of one file: name a collection, an index or a file".into(),
                )
                .into());
            };
            directory.walk(directory.find(file)?, &options)?.tree
        }
    };
    tree.leaves.chunks(LINES).try_for_each(|leaves| {
        output::print(&leaves.iter().fold(String::new(), |mut text, leaf: &Leaf| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "[{}, {}]", leaf.offset, leaf.length);
            text
        }))
    })
}
