//! What a walk over a tree's internal pages finds.

/// Where a block lies and what it must sum up to; every pointer in a file is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockAddress {
    /// In the file, bytes; a multiple of the allocation unit, never 0.
    pub offset: u64,
    /// Bytes on disk, padding included; a multiple of the allocation unit.
    pub length: u32,
    /// CRC-32C.
    pub checksum: u32,
}

/// What the parent says of a leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LeafKind {
    /// May refer to overflow items.
    Plain,
    /// Known to hold no overflow items.
    WithoutOverflow,
    /// Removed by a truncation; the block still exists, and scans skip it.
    Deleted,
}

/// One leaf page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Leaf {
    /// In the file, bytes.
    pub offset: u64,
    /// Bytes on disk.
    pub length: u32,
    pub kind: LeafKind,
}

/// One internal page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct InternalPage {
    /// In the file, bytes.
    pub offset: u64,
    /// Bytes on disk.
    pub length: u32,
    /// Leaves that a scan has passed when it comes to this page, deleted ones included.
    pub leaves_before: u64,
}

/// A tree as its internal pages describe it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tree {
    /// In key order, deleted ones included.
    pub leaves: Vec<Leaf>,
    /// In the order in which a scan comes to them, the root first.
    pub internal: Vec<InternalPage>,
    /// Levels, leaves included: 1 for a tree that is a single leaf, 0 for an empty one.
    pub depth: u32,
}

impl Tree {
    /// Bytes of all internal pages.
    #[must_use]
    pub fn internal_bytes(&self) -> u64 {
        let lengths = self.internal.iter().map(|page| u64::from(page.length));
        lengths.sum()
    }
}
