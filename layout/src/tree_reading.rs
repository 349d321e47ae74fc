//! Reading a tree's pages from a file, level by level: in ascending order of offset, several at
//! once.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::thread;

use seekscope_wiredtiger::walk::{KeyValue, TreeWalk};
use seekscope_wiredtiger::{BlockAddress, BlockError};

use crate::LayoutError;
use crate::data_file::DataFile;
use crate::gate::Gate;
use crate::page_cache::{Pages, WalkPages};

/// Below this number of blocks one thread reads them all: starting more would take longer.
const PARALLEL_BLOCKS_MIN: usize = 16;
/// Longer blocks are read one at a time, to bound memory.
const PARALLEL_BYTES_MAX: u32 = 1 << 20;
const PARALLEL_READS_MAX: usize = 256;
/// The most blocks that a thread reads before it hands them over.
const BATCH_MAX: usize = 16;

type Block = (BlockAddress, Vec<u8>);
/// A function that is handed rows as they are read, in no particular order.
pub(crate) type RowSink<'a> = dyn FnMut(KeyValue) + 'a;

/// A file being read, and what that has cost.
#[derive(Debug)]
pub(crate) struct TreeReader<'a> {
    file: Arc<DataFile>,
    gate: &'a Gate<'a>,
    parallel_reads: usize,
    pages: WalkPages,
    pub(crate) reads: u64,
    pub(crate) bytes_read: u64,
}

impl<'a> TreeReader<'a> {
    pub(crate) fn new(file: DataFile, gate: &'a Gate<'a>, pages: WalkPages) -> Self {
        Self {
            file: Arc::new(file.without_read_ahead()),
            gate,
            parallel_reads: 1,
            pages,
            reads: 0,
            bytes_read: 0,
        }
    }

    /// Allows up to `reads` at once.
    pub(crate) fn in_parallel(mut self, reads: usize) -> Self {
        self.parallel_reads = reads.clamp(1, PARALLEL_READS_MAX);
        self
    }

    pub(crate) fn into_pages(self, complete: bool) -> Pages {
        self.pages.into_pages(complete)
    }

    /// Supplies a walk with everything that it wants, and takes rows out of it meanwhile, if it
    /// visits them: a table may be large. Some remain for [`TreeWalk::rows`].
    pub(crate) fn supply(
        &mut self,
        walk: &mut TreeWalk,
        each_row: &mut RowSink<'_>,
    ) -> Result<(), LayoutError> {
        loop {
            self.gate.check()?;
            let mut missing = walk.wanted().to_vec();
            if missing.is_empty() {
                return Ok(());
            }
            let mut found = Vec::new();
            missing.retain(|address| match self.pages.take(address) {
                Some(page) => {
                    found.push((*address, page));
                    false
                }
                None => true,
            });
            for block in found {
                self.hand_over(walk, block, each_row)?;
            }
            self.read_level(walk, &missing, each_row)?;
        }
    }

    /// Reads one block outside the tree.
    pub(crate) fn block(&mut self, address: &BlockAddress) -> Result<Vec<u8>, LayoutError> {
        self.gate.pass()?;
        let bytes = self.file.read(address.offset, address.length)?;
        self.count(&bytes);
        Ok(bytes)
    }

    /// Returns the file's present length.
    pub(crate) fn file_bytes(&self) -> Result<u64, LayoutError> {
        self.file.bytes()
    }

    /// Adds the file's name to the error.
    pub(crate) fn block_error(&self, source: BlockError) -> LayoutError {
        LayoutError::Block {
            path: self.file.path().into(),
            source,
        }
    }

    fn count(&mut self, bytes: &[u8]) {
        self.reads += 1;
        self.bytes_read += bytes.len() as u64;
    }

    fn hand_over(
        &mut self,
        walk: &mut TreeWalk,
        (address, page): Block,
        each_row: &mut RowSink<'_>,
    ) -> Result<(), LayoutError> {
        let supplied = walk.supply(&address, &page);
        supplied.map_err(|source| self.block_error(source))?;
        walk.take_rows().into_iter().for_each(each_row);
        self.pages.keep(address, page);
        Ok(())
    }

    fn read_level(
        &mut self,
        walk: &mut TreeWalk,
        level: &[BlockAddress],
        each_row: &mut RowSink<'_>,
    ) -> Result<(), LayoutError> {
        let long = level.iter().any(|a| a.length > PARALLEL_BYTES_MAX);
        let threads = if long || level.len() < PARALLEL_BLOCKS_MIN {
            1
        } else {
            self.parallel_reads.min(level.len())
        };
        if threads > 1 {
            return self.read_in_parallel(walk, level, threads, each_row);
        }
        for address in level {
            let page = self.block(address)?;
            self.hand_over(walk, (*address, page), each_row)?;
        }
        Ok(())
    }

    /// Threads take the level's blocks in turn; the calling thread decodes what they read.
    fn read_in_parallel(
        &mut self,
        walk: &mut TreeWalk,
        level: &[BlockAddress],
        threads: usize,
        each_row: &mut RowSink<'_>,
    ) -> Result<(), LayoutError> {
        let batch = (level.len() / threads / 2).clamp(1, BATCH_MAX);
        let work = Work {
            batches: level.chunks(batch).collect(),
            next: AtomicUsize::new(0),
            given_up: AtomicBool::new(false),
        };
        let file = Arc::clone(&self.file);
        let gate = self.gate;
        thread::scope(|scope| {
            let (sender, receiver) = mpsc::sync_channel(threads);
            for _ in 0..threads {
                let (work, file, sender) = (&work, &*file, sender.clone());
                scope.spawn(move || work.read(file, gate, &sender));
            }
            drop(sender);
            let mut result = Ok(());
            // Everything that was read is received, even after a failure, so that no thread waits
            // for ever.
            for blocks in receiver {
                if result.is_ok() {
                    result = blocks.and_then(|blocks| {
                        blocks.into_iter().try_for_each(|block| {
                            self.count(&block.1);
                            self.hand_over(walk, block, each_row)
                        })
                    });
                    work.given_up.store(result.is_err(), Ordering::Relaxed);
                }
            }
            result
        })
    }
}

/// A level's blocks, shared out among threads.
struct Work<'a> {
    batches: Vec<&'a [BlockAddress]>,
    next: AtomicUsize,
    given_up: AtomicBool,
}

impl Work<'_> {
    fn read(
        &self,
        file: &DataFile,
        gate: &Gate<'_>,
        sender: &SyncSender<Result<Vec<Block>, LayoutError>>,
    ) {
        while !self.given_up.load(Ordering::Relaxed) {
            let next = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(batch) = self.batches.get(next) else {
                return;
            };
            let read = |address: &BlockAddress| {
                gate.pass()?;
                Ok((*address, file.read(address.offset, address.length)?))
            };
            let blocks: Result<Vec<_>, _> = batch.iter().map(read).collect();
            let failed = blocks.is_err();
            if sender.send(blocks).is_err() || failed {
                return;
            }
        }
    }
}

/// Returns the path of a file that the metadata names. Metadata is hostile: it must not lead
/// elsewhere.
pub(crate) fn path_of(directory: &Path, name: &str) -> Result<PathBuf, LayoutError> {
    let below = |component| matches!(component, Component::Normal(_));
    if name.is_empty() || name.contains('\0') || !Path::new(name).components().all(below) {
        return Err(LayoutError::UnsafeName { name: name.into() });
    }
    Ok(directory.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_do_not_lead_out_of_the_directory() {
        let directory = Path::new("/data/db");
        let path = path_of(directory, "shop/collection-7-12.wt").unwrap();
        assert_eq!(path, Path::new("/data/db/shop/collection-7-12.wt"));
        for name in ["", "/etc/passwd", "../a.wt", "shop/../../a.wt", "a\0b"] {
            let error = path_of(directory, name).unwrap_err();
            assert!(matches!(error, LayoutError::UnsafeName { .. }), "{name:?}");
        }
    }
}
