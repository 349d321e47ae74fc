//! Internal pages of files on which servers run, kept from one walk to the next: what a checkpoint
//! left alone need not be read again, so walks that have to begin anew still come to an end on slow
//! disks, and watching costs only what changed.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use seekscope_wiredtiger::BlockAddress;

/// All files together.
const BYTES_MAX: usize = 128 << 20;

/// A block's address holds its checksum, so a page found under it is the page that is meant.
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

    /// Of one file, while it is being walked.
    pub(crate) fn has_room(pages_bytes: usize, page: &[u8]) -> bool {
        pages_bytes + page.len() <= BYTES_MAX
    }
}

fn bytes(pages: &Pages) -> usize {
    pages.values().map(Vec::len).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_files_together_stay_within_bounds() {
        let page = |checksum, bytes| {
            let address = BlockAddress {
                offset: 4096,
                length: 4096,
                checksum,
            };
            (address, vec![0; bytes])
        };
        let cache = PageCache::default();
        cache.keep("a", Pages::from([page(1, BYTES_MAX - 10)]));
        cache.keep("b", Pages::from([page(1, 8), page(2, 8)]));
        assert_eq!(cache.take("b").len(), 1, "only 10 bytes are left");
        assert_eq!(cache.take("a").len(), 1);
        assert!(cache.take("a").is_empty(), "taken out before");
        cache.keep("b", Pages::from([page(1, 8), page(2, 8)]));
        assert_eq!(cache.take("b").len(), 2, "a's room is free again");
    }
}
