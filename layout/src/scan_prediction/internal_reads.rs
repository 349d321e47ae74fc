//! When a scan reads internal pages.

use seekscope_wiredtiger::tree::{InternalPage, Leaf};

use crate::order::scanned;

/// A read of an internal page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct InternalRead {
    pub(super) offset: u64,
    pub(super) length: u64,
    /// Leaves that the scan has read by then.
    pub(super) leaves_before: usize,
    /// Bytes of internal pages that it has read by then.
    pub(super) bytes_before: u64,
}

/// The reads in their order. A scan need not come to pages of which it skips all leaves; they are
/// few, and are counted with the next one.
pub(super) fn internal_reads(leaves: &[Leaf], internal: &[InternalPage]) -> Vec<InternalRead> {
    let (mut passed, mut leaves_before, mut bytes_before) = (0, 0, 0);
    let mut reads = Vec::with_capacity(internal.len());
    for page in internal {
        let until = usize::try_from(page.leaves_before).unwrap_or(usize::MAX);
        let between = leaves.get(passed..until.min(leaves.len()));
        leaves_before += between.map_or(0, |some| scanned(some).count());
        passed = passed.max(until);
        let length = u64::from(page.length);
        reads.push(InternalRead {
            offset: page.offset,
            length,
            leaves_before,
            bytes_before,
        });
        bytes_before += length;
    }
    reads
}

#[cfg(test)]
mod tests {
    use super::*;
    use seekscope_wiredtiger::LeafKind;

    #[test]
    fn skipped_leaves_are_not_waited_for() {
        let leaf = |kind| Leaf {
            offset: 4096,
            length: 4096,
            kind,
        };
        let leaves = [LeafKind::Plain, LeafKind::Deleted, LeafKind::Plain].map(leaf);
        let page = |leaves_before| InternalPage {
            offset: 8192,
            length: 4096,
            leaves_before,
        };
        let reads = internal_reads(&leaves, &[page(0), page(0), page(2), page(3), page(9)]);
        let when: Vec<_> = reads.iter().map(|read| read.leaves_before).collect();
        assert_eq!(when, [0, 0, 1, 2, 2]);
        let bytes: Vec<_> = reads.iter().map(|read| read.bytes_before).collect();
        assert_eq!(bytes, [0, 4096, 8192, 12288, 16384]);
    }
}
