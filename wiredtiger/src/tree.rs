//! The result of a walk over a tree's internal pages.

/// A block's place and its expected checksum; every pointer in a file has this form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockAddress {
    /// Offset in the file, bytes; a multiple of the allocation unit, never 0.
    pub offset: u64,
    /// Bytes on disk, including padding; a multiple of the allocation unit.
    pub length: u32,
    /// CRC-32C.
    pub checksum: u32,
}

/// What the parent says about a leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LeafKind {
    /// The leaf may refer to overflow items.
    Plain,
    /// The leaf is known to hold no overflow items.
    WithoutOverflow,
    /// Every row is deleted, and kept for readers of an earlier time. Scans of WiredTiger 10 and later
    /// skip the leaf where they may not see the rows any more (`__wt_btcur_skip_page`), earlier ones
    /// read it.
    Emptied,
    /// Removed by a truncation; the block still exists, and scans skip it.
    Deleted,
}

/// One leaf page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Leaf {
    /// Offset in the file, bytes.
    pub offset: u64,
    /// Bytes on disk.
    pub length: u32,
    pub kind: LeafKind,
}

/// One internal page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct InternalPage {
    /// Offset in the file, bytes.
    pub offset: u64,
    /// Bytes on disk.
    pub length: u32,
    /// Leaves that a scan has passed when it reaches this page, including deleted ones.
    pub leaves_before: u64,
}

/// A tree as its internal pages describe it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tree {
    /// Leaves in key order, including deleted ones.
    pub leaves: Vec<Leaf>,
    /// Internal pages in the order in which a scan reaches them, the root first.
    pub internal: Vec<InternalPage>,
    /// Number of levels, including leaves: 1 for a tree that is a single leaf, 0 for an empty one.
    pub depth: u32,
}

impl Tree {
    /// Returns the bytes of all internal pages.
    #[must_use]
    pub fn internal_bytes(&self) -> u64 {
        let lengths = self.internal.iter().map(|page| u64::from(page.length));
        lengths.sum()
    }
}
