//! The walk over one file of a data directory: its leaves in key order and its free space, as of one
//! checkpoint.

use std::sync::atomic::AtomicBool;

use seekscope_wiredtiger::walk::{TreeWalk, Visit};
use seekscope_wiredtiger::{
    BlockAddress, BlockFormat, Checkpoint, CheckpointCookie, Compressor, Extent, ExtentList, Tree,
};

use crate::LayoutError;
use crate::data_directory::DataDirectory;
use crate::gate::Gate;
use crate::page_cache::Pages;
use crate::snapshot::Snapshot;
use crate::table_files::TableFile;
use crate::tree_reading::TreeReader;

/// Of each file, one allocation unit at its beginning describes it.
const DESCRIPTION_BLOCKS: u64 = 1;

/// How a walk reads.
#[derive(Debug, Clone, Copy)]
pub struct WalkOptions<'a> {
    /// Reads at the same time within a level; 16 to 64 suit SSDs, 1 disks.
    pub parallel_reads: usize,
    /// At most so many, to be gentle.
    pub reads_per_s: Option<u64>,
    /// Set it, and the walk ends with [`LayoutError::Interrupted`].
    pub stop: &'a AtomicBool,
    /// Remember internal pages for the file's next walk (128 MiB for all files together), which then
    /// reads only what has changed.
    pub keep_pages: bool,
}

/// What a walk found; every page it is made of was checked against what its parent says of it.
#[derive(Debug, Clone, PartialEq)]
pub struct WalkedFile {
    /// Without leaves and levels where nothing has been written yet.
    pub tree: Tree,
    /// Free for reuse, ascending by offset, touching ones joined.
    pub free: Vec<Extent>,
    /// `None`: the file has never been written by a checkpoint. Names, times and orders are unknown
    /// (empty, 0) where a lone file's tree was found by its pages.
    pub checkpoint: Option<Checkpoint>,
    pub allocation_bytes: u32,
    pub compressor: Compressor,
    /// At that checkpoint.
    pub file_bytes: u64,
    /// Large keys and values outside the leaves. 0 where it is unknown (a lone file of MongoDB up to
    /// 4.0).
    pub overflow_bytes: u64,
    /// What nothing else explains: blocks that an older checkpoint holds.
    pub pinned_bytes: u64,
    /// Asked of the file, in how many reads, all attempts together; the metadata is not counted.
    pub bytes_read: u64,
    pub reads: u64,
    /// Attempts that the server overtook.
    pub restarts: u32,
}

impl DataDirectory {
    /// Walks the file's newest checkpoint that its directory knows now. Several threads may walk
    /// different files at once.
    pub fn walk(
        &self,
        table: &TableFile,
        options: &WalkOptions<'_>,
    ) -> Result<WalkedFile, LayoutError> {
        let gate = Gate::new(options.stop, options.reads_per_s);
        let (mut reads, mut bytes_read) = (0, 0);
        let mut pages = self.cache.take(&table.file);
        let mut failed_before = false;
        let walked = self.with_restarts(&gate, &table.file, |snapshot| {
            let keep = options.keep_pages || failed_before || self.may_move_on();
            failed_before = true;
            let known = std::mem::take(&mut pages);
            let attempt = Attempt {
                directory: self,
                table,
                known,
                keep,
            };
            let (walked, reader) = attempt.walk(&snapshot, &gate, options.parallel_reads)?;
            reads += reader.reads;
            bytes_read += reader.bytes_read;
            pages = reader.into_pages(walked.is_ok());
            walked
        });
        if options.keep_pages {
            self.cache.keep(&table.file, pages);
        }
        let (walked, restarts) = walked?;
        Ok(WalkedFile {
            reads,
            bytes_read,
            restarts,
            ..walked
        })
    }
}

/// One try at a file.
struct Attempt<'a> {
    directory: &'a DataDirectory,
    table: &'a TableFile,
    known: Pages,
    keep: bool,
}

impl Attempt<'_> {
    /// The outer error is one before anything was read.
    fn walk<'g>(
        self,
        snapshot: &Snapshot,
        gate: &'g Gate<'g>,
        parallel_reads: usize,
    ) -> Result<(Result<WalkedFile, LayoutError>, TreeReader<'g>), LayoutError> {
        let config = snapshot.config(&self.table.file)?;
        let file = self.directory.open_file(&self.table.file)?;
        let mut reader = TreeReader::new(file, gate, self.known)
            .in_parallel(parallel_reads)
            .keeping_pages(self.keep);
        let checkpoint = config.newest_checkpoint().cloned();
        let walked = walk_checkpoint(&mut reader, config.format(), checkpoint);
        Ok((walked, reader))
    }
}

/// Walks a tree and reads its list of free extents.
pub(crate) fn walk_checkpoint(
    reader: &mut TreeReader<'_>,
    format: BlockFormat,
    checkpoint: Option<Checkpoint>,
) -> Result<WalkedFile, LayoutError> {
    let cookie = checkpoint.as_ref().and_then(|checkpoint| checkpoint.cookie);
    let file_bytes = match cookie {
        Some(cookie) => cookie.file_bytes,
        None => reader.file_bytes()?,
    };
    let mut walked = WalkedFile {
        tree: Tree::default(),
        free: Vec::new(),
        checkpoint,
        allocation_bytes: format.allocation_bytes,
        compressor: format.compressor,
        file_bytes,
        overflow_bytes: 0,
        pinned_bytes: 0,
        bytes_read: 0,
        reads: 0,
        restarts: 0,
    };
    let Some(cookie) = cookie else {
        return Ok(walked);
    };
    if let Some(root) = cookie.root {
        walked.tree = walk_tree(reader, root, format, file_bytes)?;
    }
    if let Some(avail) = cookie.avail {
        let bytes = reader.block(&avail)?;
        let list = ExtentList::parse(&avail, &bytes, file_bytes);
        walked.free = list.map_err(|source| reader.block_error(source))?.extents;
    }
    walked.account(&cookie);
    Ok(walked)
}

/// All leaves below a root.
pub(crate) fn walk_tree(
    reader: &mut TreeReader<'_>,
    root: BlockAddress,
    format: BlockFormat,
    file_bytes: u64,
) -> Result<Tree, LayoutError> {
    let walk = TreeWalk::new(root, format, file_bytes, Visit::InternalPages);
    let mut walk = walk.map_err(|source| reader.block_error(source))?;
    reader.supply(&mut walk)?;
    walk.finish().map_err(|source| reader.block_error(source))
}

impl WalkedFile {
    /// Splits the file's bytes up. A checkpoint's size leaves out its root.
    fn account(&mut self, cookie: &CheckpointCookie) {
        let length = |address: Option<BlockAddress>| address.map_or(0, |a| u64::from(a.length));
        let leaf_bytes: u64 = self
            .tree
            .leaves
            .iter()
            .map(|leaf| u64::from(leaf.length))
            .sum();
        let tree_bytes = leaf_bytes + self.tree.internal_bytes;
        let checkpoint_bytes = cookie.checkpoint_bytes.saturating_add(length(cookie.root));
        self.overflow_bytes = checkpoint_bytes.saturating_sub(tree_bytes);
        let free_bytes: u64 = self.free.iter().map(|extent| extent.bytes).sum();
        let lists = length(cookie.alloc) + length(cookie.avail) + length(cookie.discard);
        let explained = u64::from(self.allocation_bytes) * DESCRIPTION_BLOCKS
            + tree_bytes
            + self.overflow_bytes
            + free_bytes
            + lists;
        self.pinned_bytes = self.file_bytes.saturating_sub(explained);
    }
}
