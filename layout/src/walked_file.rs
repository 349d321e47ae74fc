//! The walk over one file of a data directory: its leaves in key order and its free space, as of one
//! checkpoint.

use std::sync::atomic::AtomicBool;

use seekscope_wiredtiger::lone::begins_like_a_file;
use seekscope_wiredtiger::walk::{TreeWalk, Visit};
use seekscope_wiredtiger::{
    Accounting, BlockAddress, BlockFormat, Checkpoint, Compressor, Extent, ExtentList, Tree,
};

use crate::LayoutError;
use crate::data_directory::DataDirectory;
use crate::data_file::DataFile;
use crate::gate::Gate;
use crate::page_cache::{BYTES_MAX, Pages, WalkPages};
use crate::table_files::TableFile;
use crate::tree_reading::TreeReader;

/// How a walk reads.
#[derive(Debug, Clone, Copy)]
pub struct WalkOptions<'a> {
    /// Concurrent reads within a level; 16 to 64 suit SSDs, 1 suits hard disks.
    pub parallel_reads: usize,
    /// The most reads per second, to be gentle on the disk.
    pub reads_per_s: Option<u64>,
    /// When set, the walk ends with [`LayoutError::Interrupted`].
    pub stop: &'a AtomicBool,
    /// Keep internal pages for the file's next walk (128 MiB for all files together), which then
    /// reads only what has changed.
    pub keep_pages: bool,
}

/// How a tree's root was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TreeSource {
    /// Named by the data directory's metadata.
    Metadata,
    /// Found by the newest description of a checkpoint inside the file itself (MongoDB 4.2 and
    /// later).
    OwnDescription,
    /// The newest internal page that nothing points at and whose tree is complete: a guess, as is
    /// the compressor.
    Orphan,
}

/// The result of a walk; every page of it was checked against what its parent says about it.
#[derive(Debug, Clone, PartialEq)]
pub struct WalkedFile {
    /// The tree, without leaves and levels if nothing has been written yet.
    pub tree: Tree,
    /// Extents free for reuse, ascending by offset, adjacent ones joined.
    pub free: Vec<Extent>,
    pub source: TreeSource,
    /// `None` if no checkpoint has ever written the file. Names, times and orders are unknown
    /// (empty, 0) if a lone file's tree was found by its pages.
    pub checkpoint: Option<Checkpoint>,
    pub allocation_bytes: u32,
    pub compressor: Compressor,
    /// Length of the file at that checkpoint.
    pub file_bytes: u64,
    /// Large keys and values outside the leaves. This and the next are `None` if the checkpoint's
    /// sums are unknown (a lone file of MongoDB up to 4.0) or contradict the tree.
    pub overflow_bytes: Option<u64>,
    /// Bytes that nothing else explains: blocks that an older checkpoint holds.
    pub pinned_bytes: Option<u64>,
    /// Bytes requested from the file and the number of reads, over all attempts; the metadata and the
    /// file's first block are not counted.
    pub bytes_read: u64,
    pub reads: u64,
    /// Number of attempts that the server overtook.
    pub restarts: u32,
}

impl DataDirectory {
    /// Walks the file at the newest checkpoint that its directory knows now. Several threads may
    /// walk different files at once.
    pub fn walk(
        &self,
        table: &TableFile,
        options: &WalkOptions<'_>,
    ) -> Result<WalkedFile, LayoutError> {
        let gate = Gate::new(options.stop, options.reads_per_s);
        let (mut reads, mut bytes_read) = (0, 0);
        let mut pages: Pages = self.cache.take(&table.file);
        let mut failed_before = false;
        let walked = self.with_restarts(&gate, &table.file, |snapshot| {
            let keep = options.keep_pages || failed_before || self.may_move_on();
            failed_before = true;
            let bytes_max = if keep { BYTES_MAX } else { 0 };
            let known = WalkPages::new(std::mem::take(&mut pages), bytes_max);
            let config = snapshot.config(&table.file)?;
            let file = self.open_file(&table.file)?;
            let has_tree = config
                .newest_checkpoint()
                .is_some_and(|c| c.cookie.is_some());
            if has_tree {
                gate.pass()?;
                check_start(&file, config.format().allocation_bytes)?;
            }
            let mut reader =
                TreeReader::new(file, &gate, known).in_parallel(options.parallel_reads);
            let checkpoint = config.newest_checkpoint().cloned();
            let walked = walk_checkpoint(&mut reader, config.format(), checkpoint);
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

/// Checks what a server checks when it opens a file, and a walk would not read.
fn check_start(file: &DataFile, allocation_bytes: u32) -> Result<(), LayoutError> {
    let start = file.read(0, allocation_bytes)?;
    match begins_like_a_file(&start) {
        true => Ok(()),
        false => Err(LayoutError::Start {
            path: file.path().into(),
        }),
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
        source: TreeSource::Metadata,
        checkpoint,
        allocation_bytes: format.allocation_bytes,
        compressor: format.compressor,
        file_bytes,
        overflow_bytes: Some(0),
        pinned_bytes: Some(0),
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
    let mut free = ExtentList::default();
    if let Some(avail) = cookie.avail {
        let bytes = reader.block(&avail)?;
        let list = ExtentList::parse(&avail, &bytes, file_bytes);
        free = list.map_err(|source| reader.block_error(source))?;
    }
    let bytes = Accounting::of(&cookie, format.allocation_bytes, &walked.tree, &free);
    walked.overflow_bytes = bytes.overflow_bytes;
    walked.pinned_bytes = bytes.pinned_bytes;
    walked.free = free.extents;
    Ok(walked)
}

/// Walks all leaves below a root.
pub(crate) fn walk_tree(
    reader: &mut TreeReader<'_>,
    root: BlockAddress,
    format: BlockFormat,
    file_bytes: u64,
) -> Result<Tree, LayoutError> {
    let walk = TreeWalk::new(root, format, file_bytes, Visit::InternalPages);
    let mut walk = walk.map_err(|source| reader.block_error(source))?;
    reader.supply(&mut walk, &mut |_| {})?;
    walk.finish().map_err(|source| reader.block_error(source))
}
