//! Where a file's bytes are: each byte of a cleanly closed file belongs to its descriptor, its tree
//! or its lists of extents, or is free.

use crate::checkpoint::CheckpointCookie;
use crate::extents::ExtentList;
use crate::tree::Tree;

/// A file's bytes at a checkpoint, by use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accounting {
    pub leaf_bytes: u64,
    pub internal_bytes: u64,
    /// Keys and values too large for their pages; known without reading any leaf. `None` if the
    /// cookie's sums contradict the tree.
    pub overflow_bytes: Option<u64>,
    pub free_bytes: u64,
    /// The checkpoint's lists of extents themselves.
    pub list_bytes: u64,
    /// The rest: blocks that an older checkpoint still holds. `None` if more is accounted for than
    /// the file has.
    pub pinned_bytes: Option<u64>,
}

impl Accounting {
    /// Computes the accounting from a walked tree and its list of free extents.
    #[must_use]
    pub fn of(
        cookie: &CheckpointCookie,
        allocation_bytes: u32,
        tree: &Tree,
        free: &ExtentList,
    ) -> Accounting {
        let length =
            |block: Option<crate::BlockAddress>| block.map_or(0, |it| u64::from(it.length));
        let leaf_bytes = tree
            .leaves
            .iter()
            .map(|leaf| u64::from(leaf.length))
            .sum::<u64>();
        let tree_bytes = leaf_bytes + tree.internal_bytes();
        // The engine's sum does not include the root.
        let blocks = cookie.checkpoint_bytes.checked_add(length(cookie.root));
        let overflow_bytes = blocks.and_then(|blocks| blocks.checked_sub(tree_bytes));
        let list_bytes = length(cookie.alloc) + length(cookie.avail) + length(cookie.discard);
        let known = u64::from(allocation_bytes) + tree_bytes + free.bytes() + list_bytes;
        let used = overflow_bytes.and_then(|overflow| known.checked_add(overflow));
        Accounting {
            leaf_bytes,
            internal_bytes: tree.internal_bytes(),
            overflow_bytes,
            free_bytes: free.bytes(),
            list_bytes,
            pinned_bytes: used.and_then(|used| cookie.file_bytes.checked_sub(used)),
        }
    }
}
