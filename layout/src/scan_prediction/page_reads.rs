//! The pages that a scan reads, in their order: leaves, and internal pages when it comes to them.

use seekscope_wiredtiger::tree::{InternalPage, Leaf};

use crate::order::scanned;

/// A read of one page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageRead {
    pub(super) offset: u64,
    pub(super) length: u64,
    pub(super) is_leaf: bool,
}

/// Returns the reads of a scan over leaves in key order; deleted ones are left out. A scan need not
/// read internal pages whose leaves it skips; they are few, and are counted with the next one.
pub(super) fn page_reads(leaves: &[Leaf], internal: &[InternalPage]) -> Vec<PageRead> {
    let mut reads = Vec::with_capacity(leaves.len() + internal.len());
    let mut passed = 0;
    for page in internal {
        let until = usize::try_from(page.leaves_before).unwrap_or(usize::MAX);
        let until = until.clamp(passed, leaves.len());
        reads.extend(leaf_reads(&leaves[passed..until]));
        passed = until;
        reads.push(PageRead {
            offset: page.offset,
            length: page.length.into(),
            is_leaf: false,
        });
    }
    reads.extend(leaf_reads(&leaves[passed..]));
    reads
}

fn leaf_reads(leaves: &[Leaf]) -> impl Iterator<Item = PageRead> {
    scanned(leaves).map(|leaf| PageRead {
        offset: leaf.offset,
        length: leaf.length.into(),
        is_leaf: true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use seekscope_wiredtiger::LeafKind;

    #[test]
    fn internal_pages_come_before_their_leaves() {
        let leaf = |offset, kind| Leaf {
            offset,
            length: 4096,
            kind,
        };
        let leaves = [
            leaf(1, LeafKind::Plain),
            leaf(2, LeafKind::Deleted),
            leaf(3, LeafKind::Plain),
        ];
        let page = |offset, leaves_before| InternalPage {
            offset,
            length: 4096,
            leaves_before,
        };
        let internal = [
            page(10, 0),
            page(11, 0),
            page(12, 2),
            page(13, 1),
            page(14, 9),
        ];
        let reads = page_reads(&leaves, &internal);
        let offsets: Vec<_> = reads.iter().map(|read| read.offset).collect();
        assert_eq!(offsets, [10, 11, 1, 12, 13, 3, 14]);
        assert_eq!(reads.iter().filter(|read| read.is_leaf).count(), 2);
    }
}
