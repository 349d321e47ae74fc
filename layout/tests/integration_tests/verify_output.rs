//! What WiredTiger's `verify` prints of a file with `dump_address` and `dump_layout`, read.

use std::collections::{BTreeMap, BTreeSet};

/// A block as `verify` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Block {
    pub offset: u64,
    pub length: u32,
    pub checksum: u32,
}

/// One file, as its own engine sees it.
#[derive(Debug, Default)]
pub struct Verified {
    /// The leaves in key order, those marked as deleted included.
    pub leaves: Vec<Block>,
    /// The root included.
    pub internal: BTreeSet<Block>,
    /// Entries and bytes of the list of free extents; `None` where it was not printed.
    pub free: Option<(u64, u64)>,
}

/// Parses the output of `verify`; returns the results by file name.
pub fn parse(text: &str) -> BTreeMap<String, Verified> {
    let mut files: BTreeMap<String, Verified> = BTreeMap::new();
    let mut current = Verified::default();
    let mut name = None;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("file:") {
            // The tables' lists of free extents that are printed before this line repeat after it.
            files.extend(name.replace(file_name(rest)).zip(Some(current)));
            current = Verified::default();
        } else if let Some(block) = block(line) {
            let kind = line.split(']').nth(1).unwrap_or_default();
            if kind.contains("row-store leaf") {
                current.leaves.push(block);
            } else {
                current.internal.insert(block);
            }
        } else if let Some((_, free)) = line.split_once("read extent list checkpoint.avail, ") {
            current.free = Some(entries_and_bytes(free));
        }
    }
    files.extend(name.zip(Some(current)));
    files
}

/// `a.wt: checkpoint WiredTigerCheckpoint.2`, from 11.3 on `a.wt, ckpt_name: …`.
fn file_name(text: &str) -> String {
    let end = text.find([':', ',']).unwrap();
    text[..end].to_owned()
}

/// `[0: 4096-49152, 45056, 3986896412]`, up to 4.2 without the object's number; `Root: ` may precede.
fn block(line: &str) -> Option<Block> {
    let (before, rest) = line.split_once('[')?;
    let known = ["", "Root: ", "\t> addr: "].contains(&before);
    let (inside, _) = rest.split_once(']').filter(|_| known)?;
    let inside = inside
        .split_once(": ")
        .map_or(inside, |(_, address)| address);
    let mut parts = inside.split(", ");
    let (first, end) = parts.next()?.split_once('-')?;
    let block = Block {
        offset: first.parse().ok()?,
        length: parts.next()?.parse().ok()?,
        checksum: parts.next()?.parse().ok()?,
    };
    assert_eq!(end.parse(), Ok(block.offset + u64::from(block.length)));
    Some(block)
}

/// `2 entries, 16KB (16384) bytes`, or `0 entries, 0B bytes`.
fn entries_and_bytes(text: &str) -> (u64, u64) {
    let entries = text.split(' ').next().unwrap().parse().unwrap();
    let exact = text
        .split_once('(')
        .and_then(|(_, rest)| rest.split_once(')'));
    (
        entries,
        exact.map_or(0, |(bytes, _)| bytes.parse().unwrap()),
    )
}
