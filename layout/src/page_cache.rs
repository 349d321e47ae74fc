//! Internal pages of files of running servers, kept from one walk to the next. Pages that a
//! checkpoint left alone need not be read again, so walks that have to start again still finish on
//! slow disks, and watching costs only what changed.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use seekscope_wiredtiger::BlockAddress;

/// Bound for one walk, and for all files together between walks.
pub(crate) const BYTES_MAX: usize = 128 << 20;

/// Pages by address. An address holds the block's checksum, so a page found under it is the right
/// one.
pub(crate) type Pages = HashMap<BlockAddress, Vec<u8>>;

/// The pages of all files of a directory, by file name.
#[derive(Debug, Default)]
pub(crate) struct PageCache {
    files: Mutex<HashMap<String, Pages>>,
}

impl PageCache {
    /// Takes a file's pages out, for one walk.
    pub(crate) fn take(&self, file: &str) -> Pages {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.remove(file).unwrap_or_default()
    }

    /// Keeps the pages for the file's next walk, as many as there is room for.
    pub(crate) fn keep(&self, file: &str, mut pages: Pages) {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.remove(file);
        let mut room = BYTES_MAX.saturating_sub(files.values().map(bytes).sum());
        pages.retain(|_, page| match room.checked_sub(page.len()) {
            Some(left) => {
                room = left;
                true
            }
            None => false,
        });
        files.insert(file.to_owned(), pages);
    }
}

/// The pages of one file during a walk.
#[derive(Debug)]
pub(crate) struct WalkPages {
    /// Pages from earlier walks that have not been asked for again yet.
    known: Pages,
    /// Pages of the present tree.
    used: Pages,
    /// Bytes of both.
    bytes: usize,
    bytes_max: usize,
}

impl WalkPages {
    /// `known` are pages of former walks. Those of this one are kept up to `bytes_max`.
    pub(crate) fn new(known: Pages, bytes_max: usize) -> Self {
        Self {
            bytes: bytes(&known),
            known,
            used: Pages::new(),
            bytes_max,
        }
    }

    /// Takes a page out.
    pub(crate) fn take(&mut self, address: &BlockAddress) -> Option<Vec<u8>> {
        let page = self.known.remove(address)?;
        self.bytes -= page.len();
        Some(page)
    }

    /// Keeps a page that was checked to be the right one, if there is room.
    pub(crate) fn keep(&mut self, address: BlockAddress, page: Vec<u8>) {
        if self.bytes + page.len() <= self.bytes_max {
            self.bytes += page.len();
            self.used.insert(address, page);
        }
    }

    /// Returns the pages worth keeping after the walk: those of the tree, or all of them if the
    /// walk failed.
    pub(crate) fn into_pages(mut self, complete: bool) -> Pages {
        if !complete {
            self.used.extend(self.known);
        }
        self.used
    }
}

fn bytes(pages: &Pages) -> usize {
    pages.values().map(Vec::len).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(checksum: u32, bytes: usize) -> (BlockAddress, Vec<u8>) {
        let address = BlockAddress {
            offset: 4096,
            length: 4096,
            checksum,
        };
        (address, vec![0; bytes])
    }

    #[test]
    fn all_files_together_stay_within_bounds() {
        let cache = PageCache::default();
        cache.keep("a", Pages::from([page(1, BYTES_MAX - 10)]));
        cache.keep("b", Pages::from([page(1, 8), page(2, 8)]));
        assert_eq!(cache.take("b").len(), 1, "only 10 bytes are left");
        assert_eq!(cache.take("a").len(), 1);
        assert!(cache.take("a").is_empty(), "taken out before");
        cache.keep("b", Pages::from([page(1, 8), page(2, 8)]));
        assert_eq!(cache.take("b").len(), 2, "a's room is free again");
    }

    #[test]
    fn walks_that_fail_again_and_again_stay_within_bounds() {
        let mut pages = Pages::new();
        for walk in 0..20 {
            let mut now = WalkPages::new(pages, BYTES_MAX);
            for n in 0..4 {
                let (address, page) = page(walk * 4 + n, BYTES_MAX / 10);
                now.keep(address, page);
            }
            pages = now.into_pages(false);
            assert!(bytes(&pages) <= BYTES_MAX);
        }
        assert_eq!(pages.len(), 10);
        // Pages that a complete walk did not use belong to a former tree.
        let mut now = WalkPages::new(pages, BYTES_MAX);
        let (address, _) = page(1, 0);
        let found = now.take(&address).unwrap();
        now.keep(address, found);
        assert_eq!(now.into_pages(true).len(), 1);
        let mut now = WalkPages::new(Pages::new(), 0);
        now.keep(address, vec![1]);
        assert!(now.into_pages(true).is_empty());
    }
}
