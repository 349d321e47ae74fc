//! The blocks that the caller is to read.

use crate::tree::BlockAddress;

/// Blocks in ascending order of offset, without those that have been supplied.
#[derive(Debug, Default)]
pub(crate) struct WantedBlocks {
    blocks: Vec<BlockAddress>,
    /// Number of blocks at the front that have been supplied.
    supplied: usize,
}

impl WantedBlocks {
    pub(crate) fn new(mut blocks: Vec<BlockAddress>) -> Self {
        blocks.sort_unstable();
        Self {
            blocks,
            supplied: 0,
        }
    }

    pub(crate) fn remaining(&self) -> &[BlockAddress] {
        self.blocks.get(self.supplied..).unwrap_or_default()
    }

    pub(crate) fn contains(&self, address: &BlockAddress) -> bool {
        self.remaining().binary_search(address).is_ok()
    }

    /// Removes a block. Returns false if it was not wanted.
    pub(crate) fn take(&mut self, address: &BlockAddress) -> bool {
        let Ok(at) = self.remaining().binary_search(address) else {
            return false;
        };
        // Blocks come nearly in order, so this moves next to nothing.
        self.blocks[self.supplied..=self.supplied + at].rotate_right(1);
        self.supplied += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_order_will_do() {
        let block = |offset| BlockAddress {
            offset,
            length: 1,
            checksum: 0,
        };
        let mut wanted = WantedBlocks::new([4, 1, 3, 2].map(block).to_vec());
        assert!(wanted.take(&block(3)));
        assert!(!wanted.take(&block(3)));
        assert_eq!(wanted.remaining(), [1, 2, 4].map(block));
        assert!(wanted.take(&block(1)) && wanted.take(&block(4)) && wanted.contains(&block(2)));
        assert!(wanted.take(&block(2)));
        assert!(wanted.remaining().is_empty());
    }
}
