//! Determines which of the blocks found is a checkpoint or a root.

use std::collections::{HashMap, HashSet};

use crate::block::{BlockFormat, CheckedBlock, Compressor, PageKind};
use crate::bytes::DecodeError;
use crate::cells::AddressKind;
use crate::checkpoint::CheckpointCookie;
use crate::config;
use crate::extents::{CheckpointTrailer, ExtentList};
use crate::file_config::{FileConfig, FileConfigError};
use crate::lone::scan::{FoundBlock, FoundBlocks};
use crate::lone::{LoneError, LoneSource, LoneTree};
use crate::pages;
use crate::tree::BlockAddress;
use crate::wanted::WantedBlocks;

/// How many of the newest checkpoints are kept, and how many trees are returned.
const MAX_TREES: usize = 8;
/// Limit for the links of all internal pages together; some 100 MB of memory and more than a file
/// of 512 GiB has.
const MAX_LINKS: usize = 1 << 20;
/// The compressors to try, in order of likelihood.
const COMPRESSORS: [Compressor; 4] = [
    Compressor::Snappy,
    Compressor::Zstd,
    Compressor::Zlib,
    Compressor::Lz4,
];

/// A search in progress. Blocks that turn out to be something else are not errors.
#[derive(Debug)]
pub struct LoneSearch {
    found: FoundBlocks,
    wanted: WantedBlocks,
    stage: Stage,
    /// Checkpoints, the newest first.
    checkpoints: Vec<(BlockAddress, CheckpointTrailer)>,
    /// Internal pages by address.
    pages: HashMap<BlockAddress, InternalPage>,
    links: usize,
    /// The compressor of the last compressed page.
    compressor: Option<Compressor>,
}

#[derive(Debug, PartialEq, Eq)]
enum Stage {
    Lists,
    InternalPages,
}

#[derive(Debug)]
struct InternalPage {
    write_generation: u64,
    /// The children that are internal pages.
    children: Vec<BlockAddress>,
    /// Whether all leaves it points at have the right checksum in their headers.
    leaves_are_there: bool,
}

/// What is known about whether the tree below an internal page is whole.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wholeness {
    UnderWay,
    Whole,
    Broken,
}

impl LoneSearch {
    pub(crate) fn new(mut found: FoundBlocks) -> Self {
        let lists = readable(&mut found.lists, found.file_bytes);
        let mut search = Self {
            found,
            wanted: WantedBlocks::new(lists),
            stage: Stage::Lists,
            checkpoints: Vec::new(),
            pages: HashMap::new(),
            links: 0,
            compressor: None,
        };
        search.next_stage_if_done();
        search
    }

    /// Returns the blocks to read next, ascending by offset; empty when the search is over.
    #[must_use]
    pub fn wanted(&self) -> &[BlockAddress] {
        self.wanted.remaining()
    }

    /// Supplies the bytes of a wanted block.
    pub fn supply(&mut self, address: &BlockAddress, bytes: &[u8]) {
        if !self.wanted.take(address) {
            return;
        }
        match self.stage {
            Stage::Lists => self.list(address, bytes),
            Stage::InternalPages => self.internal_page(address, bytes),
        }
        self.next_stage_if_done();
    }

    /// Returns what may be the file's tree, the most likely first.
    pub fn finish(self) -> Result<Vec<LoneTree>, LoneError> {
        if !self.wanted().is_empty() {
            return Err(LoneError::NotSupplied);
        }
        let trees = if self.checkpoints.is_empty() {
            self.orphans()
        } else {
            self.described()?
        };
        match trees {
            trees if !trees.is_empty() => Ok(trees),
            _ if self.found.encrypted > 0 => Err(LoneError::Encrypted),
            _ => Err(LoneError::NothingFound),
        }
    }

    /// Goes on to the next stage when one is done. Internal pages matter only if no checkpoint
    /// describes itself.
    fn next_stage_if_done(&mut self) {
        if self.stage == Stage::Lists && self.wanted().is_empty() {
            self.stage = Stage::InternalPages;
            if self.checkpoints.is_empty() {
                let pages = readable(&mut self.found.internal, self.found.file_bytes);
                self.wanted = WantedBlocks::new(pages);
            }
        }
    }

    fn list(&mut self, address: &BlockAddress, bytes: &[u8]) {
        let list = ExtentList::parse(address, bytes, self.found.file_bytes);
        let Some(trailer) = list.ok().and_then(|list| list.trailer) else {
            return;
        };
        let newer =
            |(_, kept): &(_, CheckpointTrailer)| kept.write_generation > trailer.write_generation;
        let at = self.checkpoints.partition_point(newer);
        self.checkpoints.insert(at, (*address, trailer));
        self.checkpoints.truncate(MAX_TREES);
    }

    fn internal_page(&mut self, address: &BlockAddress, bytes: &[u8]) {
        let Ok(block) = CheckedBlock::check(address, bytes) else {
            return;
        };
        if block.kind != PageKind::Internal || self.links >= MAX_LINKS {
            return;
        }
        let guesses = self.compressor.into_iter().chain(COMPRESSORS);
        for compressor in guesses {
            if let Some(page) = self.page(&block, compressor) {
                if block.is_compressed() {
                    self.compressor = Some(compressor);
                }
                self.links += page.children.len() + 1;
                self.pages.insert(*address, page);
                return;
            }
        }
    }

    fn page(&self, block: &CheckedBlock<'_>, compressor: Compressor) -> Option<InternalPage> {
        let image = block.image(compressor).ok()?;
        let mut page = InternalPage {
            write_generation: block.header.write_generation,
            children: Vec::new(),
            leaves_are_there: true,
        };
        let unit = self.found.allocation_bytes;
        pages::for_each_child(block, &image, unit, |child| {
            match child.kind {
                AddressKind::Internal => page.children.push(child.address),
                // A deleted leaf's block may have been reused.
                AddressKind::DeletedLeaf => {}
                _ => page.leaves_are_there &= self.is_leaf(&child.address),
            }
            Ok(())
        })
        .ok()?;
        Some(page)
    }

    fn is_leaf(&self, address: &BlockAddress) -> bool {
        let unit = address.offset / u64::from(self.found.allocation_bytes);
        u32::try_from(unit).is_ok_and(|unit| {
            self.found
                .leaves
                .binary_search(&(unit, address.checksum))
                .is_ok()
        })
    }

    /// Returns the trees of the checkpoints that describe themselves, the newest first.
    fn described(&self) -> Result<Vec<LoneTree>, LoneError> {
        let mut trees = Vec::new();
        let mut first_error = None;
        for (address, trailer) in &self.checkpoints {
            match described(address, trailer, self.found.allocation_bytes) {
                Ok(tree) => trees.push(tree),
                Err(error) => {
                    first_error.get_or_insert(error);
                }
            }
        }
        match first_error {
            Some(error) if trees.is_empty() => Err(error.into()),
            _ => Ok(trees),
        }
    }

    /// Returns the whole trees whose root no page points at, the newest first.
    fn orphans(&self) -> Vec<LoneTree> {
        let inner: HashSet<_> = self
            .pages
            .values()
            .flat_map(|page| &page.children)
            .collect();
        let mut roots: Vec<_> = self
            .pages
            .iter()
            .filter(|(address, _)| !inner.contains(address))
            .collect();
        roots.sort_unstable_by_key(|&(address, page)| {
            std::cmp::Reverse((page.write_generation, *address))
        });
        let mut known = HashMap::new();
        roots.retain(|(address, _)| self.is_whole(**address, &mut known));
        let format = BlockFormat {
            allocation_bytes: self.found.allocation_bytes,
            compressor: self.compressor.unwrap_or(Compressor::None),
        };
        let tree = |(address, page): (&BlockAddress, &InternalPage)| LoneTree {
            source: LoneSource::Orphan,
            write_generation: page.write_generation,
            root: Some(*address),
            avail: None,
            format,
            file_bytes: self.found.file_bytes,
        };
        roots.into_iter().take(MAX_TREES).map(tree).collect()
    }

    /// Returns whether all pages below `root` are there. It does not recurse, as damaged files may
    /// loop.
    fn is_whole(&self, root: BlockAddress, known: &mut HashMap<BlockAddress, Wholeness>) -> bool {
        let mut path = vec![root];
        while let Some(&address) = path.last() {
            let Some(page) = self.pages.get(&address) else {
                known.insert(address, Wholeness::Broken);
                path.pop();
                continue;
            };
            if known
                .get(&address)
                .is_some_and(|&state| state != Wholeness::UnderWay)
            {
                path.pop();
                continue;
            }
            let first_visit = known.insert(address, Wholeness::UnderWay).is_none();
            let states = page.children.iter().map(|child| known.get(child));
            let broken = states.clone().any(|state| {
                state == Some(&Wholeness::Broken)
                    || first_visit && state == Some(&Wholeness::UnderWay)
            });
            if broken || !page.leaves_are_there {
                known.insert(address, Wholeness::Broken);
                path.pop();
            } else if first_visit {
                path.extend(
                    page.children
                        .iter()
                        .filter(|child| !known.contains_key(child)),
                );
            } else {
                known.insert(address, Wholeness::Whole);
                path.pop();
            }
        }
        known.get(&root) == Some(&Wholeness::Whole)
    }
}

/// Returns the newest blocks that together are no longer than the file. Overlapping blocks, which
/// can be forged in any number, would otherwise have us read without end.
fn readable(blocks: &mut Vec<FoundBlock>, file_bytes: u64) -> Vec<BlockAddress> {
    blocks.sort_unstable_by_key(|block| std::cmp::Reverse(block.write_generation));
    let mut left = file_bytes;
    let readable = std::mem::take(blocks).into_iter().map_while(|block| {
        left = left.checked_sub(block.address.length.into())?;
        Some(block.address)
    });
    readable.collect()
}

fn described(
    address: &BlockAddress,
    trailer: &CheckpointTrailer,
    allocation_bytes: u32,
) -> Result<LoneTree, FileConfigError> {
    let block_metadata = config::find(&trailer.metadata, "block_metadata")?;
    let text = block_metadata
        .map(|value| value.text().into_owned())
        .unwrap_or_default();
    let config = FileConfig::parse(&text)?;
    let named = |source: DecodeError| FileConfigError::Cookie {
        name: format!("of write generation {}", trailer.write_generation),
        source,
    };
    let mut cookie = CheckpointCookie::parse(&trailer.cookie, allocation_bytes).map_err(named)?;
    // The list cannot name its own block.
    cookie.avail = Some(*address);
    cookie.file_bytes = trailer.file_bytes;
    Ok(LoneTree {
        write_generation: trailer.write_generation,
        root: cookie.root,
        avail: cookie.avail,
        format: BlockFormat {
            allocation_bytes,
            compressor: config.compressor,
        },
        file_bytes: trailer.file_bytes,
        source: LoneSource::Checkpoint {
            config: Box::new(config),
            cookie,
        },
    })
}
