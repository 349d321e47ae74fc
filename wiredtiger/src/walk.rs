//! Walking a tree level by level: [`TreeWalk::wanted`] names the blocks of the present level, the
//! caller reads and supplies them in any order, and the next level follows from them.

use std::collections::HashMap;

use crate::block::{BlockError, BlockFault, BlockFormat, CheckedBlock, PageKind};
use crate::block_map::BlockMap;
use crate::cells::AddressKind;
use crate::packed_leaf::PackedLeaf;
use crate::pages::{self, Child, Item, Row, RowBudget};
use crate::tree::{BlockAddress, InternalPage, Leaf, LeafKind, Tree};
use crate::wanted::WantedBlocks;

/// What a walk reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visit {
    /// Internal pages only: a thousandth of the file.
    InternalPages,
    /// Leaves and overflow pages as well.
    Rows,
}

/// Key and value.
pub type KeyValue = (Vec<u8>, Vec<u8>);

/// The most levels. No real tree is deeper; 5 levels span terabytes.
pub const MAX_DEPTH: u32 = 32;
/// The most leaves. A walk takes 24 bytes per leaf (8 while it goes on, 16 in its result), so about
/// 400 MB at most; with leaves of 32 KiB this is a file of 512 GiB.
pub const MAX_LEAVES: u64 = 16 << 20;
/// The most pages to read. Far more than [`MAX_LEAVES`] leaves need: an internal page has a hundred
/// children or more. Pages to read take some hundred bytes each.
pub const MAX_PAGES_READ: u64 = 1 << 20;

/// A walk in progress.
#[derive(Debug)]
pub struct TreeWalk {
    format: BlockFormat,
    visit: Visit,
    blocks: BlockMap,
    budget: RowBudget,
    /// The tree as far as it is known, in key order.
    pieces: Vec<Piece>,
    wanted: WantedBlocks,
    /// Where the wanted blocks belong, by offset.
    places: HashMap<u64, Place>,
    /// Leaves that were supplied since rows were last taken, within the present level.
    supplied_leaves: Vec<usize>,
    /// Number of pages to read so far.
    pages: u64,
    leaves: u64,
    /// Only the first 64 bytes of some block have been checked, so what it points at may be stale.
    partly_checked: bool,
    /// Level of the wanted pages; the root's is 1.
    level: u32,
    /// Number of levels known to exist.
    depth: u32,
}

#[derive(Debug)]
enum Piece {
    Page(BlockAddress, Expected),
    /// A supplied internal page and its children, until the next level begins; never nested.
    Children(BlockAddress, Vec<Piece>),
    /// An internal page whose children follow.
    Internal(BlockAddress),
    Leaves(Vec<PackedLeaf>),
    Rows(Leaf, Vec<Row>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    /// The root: the pointer to it does not say of what kind it is.
    Root,
    Internal,
    Leaf(LeafKind),
}

#[derive(Debug, Clone, Copy)]
enum Place {
    Page { piece: usize },
    Key { piece: usize, row: usize },
    Value { piece: usize, row: usize },
}

impl TreeWalk {
    /// Starts a walk at `root`. `file_bytes` is the file's size according to the checkpoint; no
    /// block may lie beyond it. Fails if the root does.
    pub fn new(
        root: BlockAddress,
        format: BlockFormat,
        file_bytes: u64,
        visit: Visit,
    ) -> Result<TreeWalk, BlockError> {
        let mut walk = TreeWalk {
            format,
            visit,
            blocks: BlockMap::new(format.allocation_bytes, file_bytes),
            budget: RowBudget::new(),
            pieces: vec![Piece::Page(root, Expected::Root)],
            wanted: WantedBlocks::default(),
            places: HashMap::new(),
            supplied_leaves: Vec::new(),
            pages: 1,
            leaves: 0,
            partly_checked: false,
            level: 0,
            depth: 1,
        };
        walk.blocks.claim(&root)?;
        walk.want_next_level()?;
        Ok(walk)
    }

    /// Returns the blocks of the present level that have not been supplied yet, ascending by
    /// offset. Empty when the walk is complete.
    #[must_use]
    pub fn wanted(&self) -> &[BlockAddress] {
        self.wanted.remaining()
    }

    /// Supplies the bytes of a wanted block, as many as there were to read. When the last block of
    /// a level has been supplied, [`TreeWalk::wanted`] names the next level. After an error the
    /// walk can no longer be used.
    pub fn supply(&mut self, address: &BlockAddress, bytes: &[u8]) -> Result<(), BlockError> {
        let place = self.places.get(&address.offset).copied();
        let place = place.filter(|_| self.wanted.contains(address));
        let place = place.ok_or_else(|| address.error(BlockFault::NotWanted))?;
        let block = CheckedBlock::check(address, bytes)?;
        self.partly_checked |= !block.header.is_checked_whole();
        let partly_checked = self.partly_checked;
        let placed = self.place(place, &block);
        placed.map_err(|error| BlockError {
            partly_checked,
            ..error
        })
    }

    fn place(&mut self, place: Place, block: &CheckedBlock<'_>) -> Result<(), BlockError> {
        match place {
            Place::Page { piece } => self.page(piece, block)?,
            Place::Key { .. } | Place::Value { .. } => self.overflow(place, block)?,
        }
        self.wanted.take(&block.address);
        if self.wanted().is_empty() {
            self.want_next_level()
        } else {
            Ok(())
        }
    }

    /// Returns the tree, once nothing is wanted any more.
    pub fn finish(self) -> Result<Tree, BlockError> {
        self.result().map(|(tree, _)| tree)
    }

    /// Takes rows out of leaves that have been supplied, in no particular order, so that a table need
    /// not be in memory as a whole. Others, as of leaves with overflow pages, are left to
    /// [`TreeWalk::rows`].
    pub fn take_rows(&mut self) -> Vec<KeyValue> {
        let mut taken = Vec::new();
        for piece in self.supplied_leaves.drain(..) {
            if let Some(Piece::Rows(_, rows)) = self.pieces.get_mut(piece)
                && rows.iter().all(Row::is_whole)
            {
                let whole = std::mem::take(rows);
                taken.extend(whole.into_iter().filter_map(Row::into_bytes));
            }
        }
        taken
    }

    /// Returns the rows that were not taken, in key order, of a walk that visits them, once nothing
    /// is wanted any more.
    pub fn rows(self) -> Result<Vec<KeyValue>, BlockError> {
        self.result().map(|(_, rows)| rows)
    }

    fn result(self) -> Result<(Tree, Vec<KeyValue>), BlockError> {
        if let Some(missing) = self.wanted().first() {
            return Err(missing.error(BlockFault::NotSupplied));
        }
        drop(self.blocks);
        let leaves = usize::try_from(self.leaves).unwrap_or_default();
        let mut tree = Tree {
            leaves: Vec::with_capacity(leaves),
            internal: Vec::new(),
            depth: self.depth,
        };
        let mut rows = Vec::new();
        for piece in self.pieces {
            match piece {
                Piece::Leaves(packed) => {
                    let unit = self.format.allocation_bytes;
                    tree.leaves
                        .extend(packed.into_iter().map(|leaf| leaf.unpack(unit)));
                }
                Piece::Rows(leaf, page) => {
                    tree.leaves.push(leaf);
                    rows.extend(page.into_iter().filter_map(Row::into_bytes));
                }
                Piece::Page(address, _) => return Err(address.error(BlockFault::NotSupplied)),
                Piece::Internal(BlockAddress { offset, length, .. }) => {
                    tree.internal.push(InternalPage {
                        offset,
                        length,
                        leaves_before: tree.leaves.len() as u64,
                    });
                }
                // None remain: after the last page of a level, children take their places.
                Piece::Children(..) => {}
            }
        }
        Ok((tree, rows))
    }

    fn page(&mut self, piece: usize, block: &CheckedBlock<'_>) -> Result<(), BlockError> {
        let Some(&Piece::Page(_, expected)) = self.pieces.get(piece) else {
            return Err(block.error(BlockFault::NotWanted));
        };
        self.pieces[piece] = match (block.kind, expected) {
            (PageKind::Internal, Expected::Root | Expected::Internal) => self.children(block)?,
            (PageKind::Leaf, Expected::Root) => self.leaf(piece, block, LeafKind::Plain)?,
            (PageKind::Leaf, Expected::Leaf(kind)) => self.leaf(piece, block, kind)?,
            (_, Expected::Leaf(_)) => return Err(block.wrong_type("a leaf (7)")),
            (_, Expected::Internal) => return Err(block.wrong_type("an internal page (6)")),
            (_, Expected::Root) => return Err(block.wrong_type("a root (6 or 7)")),
        };
        Ok(())
    }

    fn leaf(
        &mut self,
        piece: usize,
        block: &CheckedBlock<'_>,
        kind: LeafKind,
    ) -> Result<Piece, BlockError> {
        let leaf = Leaf {
            offset: block.address.offset,
            length: block.address.length,
            kind,
        };
        self.count_leaf(&block.address)?;
        let unit = self.format.allocation_bytes;
        if self.visit == Visit::InternalPages {
            return Ok(Piece::Leaves(vec![PackedLeaf::pack(&leaf, unit)]));
        }
        let image = block.image(self.format.compressor)?;
        let rows = pages::rows(block, &image, unit, &mut self.budget);
        self.supplied_leaves.push(piece);
        Ok(Piece::Rows(leaf, rows.map_err(|fault| block.error(fault))?))
    }

    fn children(&mut self, block: &CheckedBlock<'_>) -> Result<Piece, BlockError> {
        if self.level >= MAX_DEPTH {
            return Err(block.error(BlockFault::TooDeep(MAX_DEPTH)));
        }
        self.depth = self.level + 1;
        let image = block.image(self.format.compressor)?;
        let mut children = Vec::new();
        // Half the cells are addresses, of ten bytes and more.
        let mut leaves = Vec::with_capacity(image.len() / 16);
        pages::for_each_child(block, &image, self.format.allocation_bytes, |child| {
            self.blocks.claim(&child.address)?;
            self.child(child, &mut leaves, &mut children)
        })?;
        end_run(&mut leaves, &mut children);
        Ok(Piece::Children(block.address, children))
    }

    fn child(
        &mut self,
        child: Child,
        leaves: &mut Vec<PackedLeaf>,
        children: &mut Vec<Piece>,
    ) -> Result<(), BlockError> {
        let address = child.address;
        let kind = match child.kind {
            AddressKind::Internal => {
                end_run(leaves, children);
                children.push(Piece::Page(address, Expected::Internal));
                return self.count_page(&address);
            }
            AddressKind::Leaf => LeafKind::Plain,
            AddressKind::LeafWithoutOverflow => LeafKind::WithoutOverflow,
            AddressKind::EmptiedLeaf => LeafKind::Emptied,
            AddressKind::DeletedLeaf => LeafKind::Deleted,
        };
        if self.visit == Visit::Rows && kind != LeafKind::Deleted {
            end_run(leaves, children);
            children.push(Piece::Page(address, Expected::Leaf(kind)));
            return self.count_page(&address);
        }
        self.count_leaf(&address)?;
        let leaf = Leaf {
            offset: address.offset,
            length: address.length,
            kind,
        };
        leaves.push(PackedLeaf::pack(&leaf, self.format.allocation_bytes));
        Ok(())
    }

    fn count_page(&mut self, address: &BlockAddress) -> Result<(), BlockError> {
        self.pages += 1;
        if self.pages > MAX_PAGES_READ {
            let (limit, what) = (MAX_PAGES_READ, "pages to read");
            return Err(address.error(BlockFault::TooMany { limit, what }));
        }
        Ok(())
    }

    fn count_leaf(&mut self, address: &BlockAddress) -> Result<(), BlockError> {
        self.leaves += 1;
        if self.leaves > MAX_LEAVES {
            let (limit, what) = (MAX_LEAVES, "leaves");
            return Err(address.error(BlockFault::TooMany { limit, what }));
        }
        Ok(())
    }

    fn overflow(&mut self, place: Place, block: &CheckedBlock<'_>) -> Result<(), BlockError> {
        let item = overflow_item(&mut self.pieces, place);
        let (PageKind::Overflow, Some(item)) = (block.kind, item) else {
            return Err(block.wrong_type("an overflow item (5)"));
        };
        let image = block.image(self.format.compressor)?;
        let bytes = pages::overflow_bytes(block, &image, &mut self.budget);
        *item = Item::Bytes(bytes.map_err(|fault| block.error(fault))?);
        Ok(())
    }

    /// Puts the supplied pages' children in their place and finds what is now known to exist.
    fn want_next_level(&mut self) -> Result<(), BlockError> {
        self.level += 1;
        let mut pieces = Vec::with_capacity(self.pieces.len());
        for piece in std::mem::take(&mut self.pieces) {
            match piece {
                Piece::Children(address, children) => {
                    pieces.push(Piece::Internal(address));
                    pieces.extend(children);
                }
                other => pieces.push(other),
            }
        }
        self.pieces = pieces;
        self.supplied_leaves.clear();
        self.places.clear();
        let (mut wanted, mut overflow_pages) = (Vec::new(), 0);
        for (piece, known) in self.pieces.iter().enumerate() {
            match known {
                Piece::Page(address, _) => {
                    wanted.push(*address);
                    self.places.insert(address.offset, Place::Page { piece });
                }
                Piece::Rows(_, rows) => {
                    for (address, place) in overflow_places(piece, rows) {
                        self.blocks.claim(&address)?;
                        overflow_pages += 1;
                        wanted.push(address);
                        self.places.insert(address.offset, place);
                    }
                }
                Piece::Leaves(_) | Piece::Internal(_) | Piece::Children(..) => {}
            }
        }
        self.pages += overflow_pages;
        if let (true, Some(last)) = (self.pages > MAX_PAGES_READ, wanted.last()) {
            let (limit, what) = (MAX_PAGES_READ, "pages to read");
            return Err(last.error(BlockFault::TooMany { limit, what }));
        }
        self.wanted = WantedBlocks::new(wanted);
        Ok(())
    }
}

fn end_run(leaves: &mut Vec<PackedLeaf>, children: &mut Vec<Piece>) {
    if !leaves.is_empty() {
        let mut run = std::mem::take(leaves);
        run.shrink_to_fit();
        children.push(Piece::Leaves(run));
    }
}

fn overflow_places(piece: usize, rows: &[Row]) -> impl Iterator<Item = (BlockAddress, Place)> {
    rows.iter().enumerate().flat_map(move |(row, items)| {
        let address = |item: &Item| match item {
            Item::Overflow(address) => Some(*address),
            Item::Bytes(_) => None,
        };
        let key = address(&items.key).map(|address| (address, Place::Key { piece, row }));
        let value = address(&items.value).map(|address| (address, Place::Value { piece, row }));
        key.into_iter().chain(value)
    })
}

fn overflow_item(pieces: &mut [Piece], place: Place) -> Option<&mut Item> {
    let (Place::Page { piece } | Place::Key { piece, .. } | Place::Value { piece, .. }) = place;
    match (pieces.get_mut(piece)?, place) {
        (Piece::Rows(_, rows), Place::Key { row, .. }) => Some(&mut rows.get_mut(row)?.key),
        (Piece::Rows(_, rows), Place::Value { row, .. }) => Some(&mut rows.get_mut(row)?.value),
        _ => None,
    }
}
