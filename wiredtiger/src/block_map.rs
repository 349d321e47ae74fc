//! Which parts of a file are in use. No two blocks of a tree overlap; a tree in which they do is
//! damaged, or made to send us round in circles.

use crate::block::{BlockError, BlockFault};
use crate::tree::BlockAddress;

/// One bit per allocation unit, up to the last block seen.
#[derive(Debug)]
pub(crate) struct BlockMap {
    allocation_bytes: u32,
    file_bytes: u64,
    words: Vec<u64>,
}

impl BlockMap {
    /// 64 MiB of bits: 2 TiB of a file with units of 4 KiB.
    pub(crate) const MAX_UNITS: u64 = 1 << 29;

    pub(crate) fn new(allocation_bytes: u32, file_bytes: u64) -> Self {
        Self {
            allocation_bytes,
            file_bytes,
            words: Vec::new(),
        }
    }

    /// Claims a block. Fails if it is outside the file or overlaps one that was claimed before.
    pub(crate) fn claim(&mut self, address: &BlockAddress) -> Result<(), BlockError> {
        let unit = u64::from(self.allocation_bytes);
        let length = u64::from(address.length);
        if !address.offset.is_multiple_of(unit) || !length.is_multiple_of(unit) || length == 0 {
            return Err(address.error(BlockFault::Unaligned));
        }
        let end = address.offset.checked_add(length);
        if address.offset < unit || end.is_none_or(|end| end > self.file_bytes) {
            return Err(address.error(BlockFault::OutsideFile {
                file_bytes: self.file_bytes,
            }));
        }
        let first = address.offset / unit;
        let last = first + length / unit - 1;
        if last >= Self::MAX_UNITS {
            let what = "allocation units below it";
            return Err(address.error(BlockFault::TooMany {
                limit: Self::MAX_UNITS,
                what,
            }));
        }
        let word = |unit: u64| usize::try_from(unit / 64).unwrap_or(usize::MAX);
        let (first_word, last_word) = (word(first), word(last));
        if self.words.len() <= last_word {
            self.words.resize(last_word + 1, 0);
        }
        for (at, word) in (first_word..).zip(&mut self.words[first_word..=last_word]) {
            let below = if at == first_word {
                (1_u64 << (first % 64)) - 1
            } else {
                0
            };
            let above = if at == last_word {
                u64::MAX << 1 << (last % 64)
            } else {
                0
            };
            let claimed = !below & !above;
            if *word & claimed != 0 {
                return Err(address.error(BlockFault::CoveredTwice));
            }
            *word |= claimed;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlaps_are_found() {
        let mut map = BlockMap::new(4096, 1 << 20);
        let block = |offset: u64, length| BlockAddress {
            offset: offset * 4096,
            length,
            checksum: 0,
        };
        assert_eq!(map.claim(&block(1, 8192)), Ok(()));
        assert_eq!(map.claim(&block(3, 4096 * 100)), Ok(()));
        for (at, length) in [(1, 4096), (2, 4096), (102, 8192), (60, 4096)] {
            let fault = map.claim(&block(at, length)).unwrap_err().fault;
            assert_eq!(fault, BlockFault::CoveredTwice, "{at}");
        }
        for (at, length) in [(0, 4096), (255, 8192), (256, 4096), (1 << 40, 4096)] {
            let fault = map.claim(&block(at, length)).unwrap_err().fault;
            assert_eq!(
                fault,
                BlockFault::OutsideFile {
                    file_bytes: 1 << 20
                },
                "{at}"
            );
        }
        for unaligned in [
            block(1, 100),
            block(1, 0),
            BlockAddress {
                offset: 5000,
                ..block(1, 4096)
            },
        ] {
            assert_eq!(
                map.claim(&unaligned).unwrap_err().fault,
                BlockFault::Unaligned
            );
        }
        let mut vast = BlockMap::new(512, u64::MAX);
        assert!(matches!(
            vast.claim(&block(1 << 40, 4096)).unwrap_err().fault,
            BlockFault::TooMany { .. }
        ));
    }
}
