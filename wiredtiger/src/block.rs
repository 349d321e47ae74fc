//! Blocks: header, checksum, decompression (`src/include/block.h`, `src/include/btmem.h`,
//! `src/block/block_read.c`). Every pointer to a block holds its checksum, so a block that has been
//! replaced since is detected, not trusted.

use std::borrow::Cow;

use thiserror::Error;

use crate::bytes::{ByteReader, DecodeError};
use crate::compression::decompressed;
use crate::tree::BlockAddress;

/// Length of the page header and block header.
pub(crate) const HEADER_BYTES: usize = 40;
/// The leading bytes that a compressed or partly checked block keeps unchanged.
pub(crate) const PLAIN_BYTES: usize = 64;
const CHECKSUM_AT: usize = 32;

/// The longest page that is decoded here. An internal page has a few MB at most (a root that has
/// not been split yet), the longest BSON document 16 MiB, and a list of free blocks of this length
/// describes about ten million holes; a damaged header, however, may claim 4 GiB.
pub const MAX_IMAGE_BYTES: u32 = 64 << 20;

const PAGE_COMPRESSED: u8 = 0x01;
const PAGE_ENCRYPTED: u8 = 0x08;
/// The cells of deleted leaves say who deleted them, and when.
pub(crate) const PAGE_FAST_TRUNCATE: u8 = 0x20;
const BLOCK_CHECKSUM_OF_ALL: u8 = 0x01;

/// How the blocks of a file are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockFormat {
    /// The unit of which all blocks are multiples.
    pub allocation_bytes: u32,
    /// The compressor of those blocks that are flagged as compressed; others are plain.
    pub compressor: Compressor,
}

/// The compressor of a file, set by `block_compressor`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Compressor {
    None,
    Snappy,
    Zlib,
    Zstd,
    Lz4,
}

impl Compressor {
    /// Returns the name used in MongoDB's settings.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Snappy => "snappy",
            Self::Zlib => "zlib",
            Self::Zstd => "zstd",
            Self::Lz4 => "lz4",
        }
    }
}

/// What a block contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PageKind {
    /// A list of extents.
    ExtentList,
    /// One large key or value.
    Overflow,
    Internal,
    Leaf,
}

/// Why a block is not usable.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("block at {} ({} bytes): {fault}", address.offset, address.length)]
pub struct BlockError {
    pub address: BlockAddress,
    pub fault: BlockFault,
    /// The checksum covers only the block's first 64 bytes, so newer bytes may follow them.
    pub partly_checked: bool,
}

/// What is wrong with a block.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BlockFault {
    #[error("the file ends after {have} bytes of it (shrunk or cut off)")]
    Short { have: u64 },
    #[error("its checksum does not match (stale or damaged)")]
    Checksum,
    #[error("its header says {header_bytes} bytes (stale or damaged)")]
    Size { header_bytes: u32 },
    #[error("it is encrypted, and seekscope cannot read encrypted pages")]
    Encrypted,
    #[error("it is a column-store page (type {0}), and seekscope cannot read these")]
    ColumnStore(u8),
    #[error("its page type is {found}, where {wanted} is expected")]
    PageType { found: u8, wanted: &'static str },
    #[error(
        "its image would have {0} bytes, which is less than its header, or more than seekscope \
         accepts for a page"
    )]
    ImageSize(u32),
    #[error("it cannot be decompressed ({compressor:?}): {reason}")]
    Compression {
        compressor: Compressor,
        reason: &'static str,
    },
    #[error("{0}")]
    Malformed(#[from] DecodeError),
    #[error("it lies outside the file, which has {file_bytes} bytes")]
    OutsideFile { file_bytes: u64 },
    #[error("it does not consist of whole allocation units")]
    Unaligned,
    #[error(
        "another block covers the same bytes: the tree contains a cycle, or the file is damaged"
    )]
    CoveredTwice,
    #[error("the tree is more than {0} levels deep, which no valid tree is")]
    TooDeep(u32),
    #[error(
        "with it, the tree has more than {limit} {what}, which is the most that seekscope reads"
    )]
    TooMany { limit: u64, what: &'static str },
    #[error("it was not requested")]
    NotWanted,
    #[error("it was not supplied")]
    NotSupplied,
}

impl BlockError {
    /// Returns whether a running server can be the cause: the block was freed and reused after its
    /// address was read, and starting again from the newest checkpoint helps. Everything else is
    /// final.
    #[must_use]
    pub fn may_be_stale(&self) -> bool {
        match self.fault {
            BlockFault::Short { .. } | BlockFault::Checksum | BlockFault::Size { .. } => true,
            _ => self.partly_checked,
        }
    }
}

impl BlockAddress {
    pub(crate) fn error(&self, fault: impl Into<BlockFault>) -> BlockError {
        BlockError {
            address: *self,
            fault: fault.into(),
            partly_checked: false,
        }
    }
}

/// The header of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockHeader {
    pub write_generation: u64,
    /// Length of the decompressed image, header included.
    pub image_bytes: u32,
    /// Number of cells; for overflow pages and lists of extents, bytes of data.
    pub entries: u32,
    pub page_type: u8,
    pub page_flags: u8,
    pub disk_bytes: u32,
    pub checksum: u32,
    pub block_flags: u8,
}

impl BlockHeader {
    /// Reads the first 40 bytes of a block.
    pub fn read(bytes: &[u8]) -> Result<BlockHeader, DecodeError> {
        let mut reader = ByteReader::starting_at(bytes, 8);
        let (write_generation, image_bytes) = (reader.u64_le()?, reader.u32_le()?);
        let (entries, page_type, page_flags) = (reader.u32_le()?, reader.byte()?, reader.byte()?);
        let mut reader = ByteReader::starting_at(bytes, 28);
        let (disk_bytes, checksum) = (reader.u32_le()?, reader.u32_le()?);
        let block_flags = reader.byte()?;
        ByteReader::new(bytes).take(HEADER_BYTES as u64)?;
        Ok(BlockHeader {
            write_generation,
            image_bytes,
            entries,
            page_type,
            page_flags,
            disk_bytes,
            checksum,
            block_flags,
        })
    }

    /// Returns whether the checksum covers the whole block, not only its first 64 bytes.
    #[must_use]
    pub fn is_checked_whole(&self) -> bool {
        self.block_flags & BLOCK_CHECKSUM_OF_ALL != 0
    }

    fn kind(&self) -> Result<PageKind, BlockFault> {
        match self.page_type {
            1 => Ok(PageKind::ExtentList),
            5 => Ok(PageKind::Overflow),
            6 => Ok(PageKind::Internal),
            7 => Ok(PageKind::Leaf),
            column @ 2..=4 => Err(BlockFault::ColumnStore(column)),
            found => Err(BlockFault::PageType {
                found,
                wanted: "one of a row store",
            }),
        }
    }
}

/// Returns the CRC-32C of a block: over its bytes on disk, with those of the checksum itself as
/// zero, or over the first 64 only.
#[must_use]
pub fn checksum(block: &[u8], of_all: bool) -> u32 {
    let end = if of_all {
        block.len()
    } else {
        block.len().min(PLAIN_BYTES)
    };
    let before = crc32c::crc32c(&block[..CHECKSUM_AT.min(end)]);
    let zeroed = crc32c::crc32c_append(before, &[0; 4]);
    crc32c::crc32c_append(zeroed, block.get(CHECKSUM_AT + 4..end).unwrap_or_default())
}

/// A block whose checksum is right, not yet decompressed.
#[derive(Debug, Clone, Copy)]
pub struct CheckedBlock<'a> {
    pub address: BlockAddress,
    pub header: BlockHeader,
    pub kind: PageKind,
    bytes: &'a [u8],
}

impl<'a> CheckedBlock<'a> {
    /// Checks the bytes read at `address` against it.
    pub fn check(address: &BlockAddress, bytes: &'a [u8]) -> Result<CheckedBlock<'a>, BlockError> {
        if bytes.len() as u64 != u64::from(address.length) {
            return Err(address.error(BlockFault::Short {
                have: bytes.len() as u64,
            }));
        }
        let header = BlockHeader::read(bytes).map_err(|fault| address.error(fault))?;
        if header.checksum != address.checksum {
            return Err(address.error(BlockFault::Checksum));
        }
        if header.disk_bytes != address.length {
            return Err(address.error(BlockFault::Size {
                header_bytes: header.disk_bytes,
            }));
        }
        if checksum(bytes, header.is_checked_whole()) != address.checksum {
            return Err(address.error(BlockFault::Checksum));
        }
        // Encryption is checked first, because everything else is then unreadable.
        if header.page_flags & PAGE_ENCRYPTED != 0 {
            return Err(address.error(BlockFault::Encrypted));
        }
        let kind = header.kind().map_err(|fault| address.error(fault))?;
        Ok(CheckedBlock {
            address: *address,
            header,
            kind,
            bytes,
        })
    }

    /// Makes an error about this block.
    pub(crate) fn error(&self, fault: impl Into<BlockFault>) -> BlockError {
        let partly_checked = !self.header.is_checked_whole();
        BlockError {
            partly_checked,
            ..self.address.error(fault)
        }
    }

    pub(crate) fn wrong_type(&self, wanted: &'static str) -> BlockError {
        self.error(BlockFault::PageType {
            found: self.header.page_type,
            wanted,
        })
    }

    pub(crate) fn is_compressed(&self) -> bool {
        self.header.page_flags & PAGE_COMPRESSED != 0
    }

    /// Returns the contents of a block that is never compressed.
    pub(crate) fn uncompressed(&self) -> Result<&'a [u8], BlockError> {
        if self.is_compressed() || self.address.length > MAX_IMAGE_BYTES {
            return Err(self.error(BlockFault::ImageSize(self.header.image_bytes)));
        }
        Ok(self.bytes)
    }

    /// Returns the page's image, decompressed if need be. Its length is what the header says.
    pub fn image(&self, compressor: Compressor) -> Result<Cow<'a, [u8]>, BlockError> {
        let wanted = self.header.image_bytes;
        if wanted > MAX_IMAGE_BYTES || (wanted as usize) < HEADER_BYTES {
            return Err(self.error(BlockFault::ImageSize(wanted)));
        }
        if !self.is_compressed() {
            let image = self.bytes.get(..wanted as usize);
            return image
                .map(Cow::Borrowed)
                .ok_or_else(|| self.error(BlockFault::ImageSize(wanted)));
        }
        decompressed(self.bytes, wanted as usize, compressor)
            .map(Cow::Owned)
            .map_err(|reason| self.error(BlockFault::Compression { compressor, reason }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(page_type: u8, block_flags: u8) -> (BlockAddress, Vec<u8>) {
        let mut bytes = vec![0; 512];
        bytes[16] = 44;
        bytes[24] = page_type;
        bytes[28..32].copy_from_slice(&512_u32.to_le_bytes());
        bytes[36] = block_flags;
        let sum = checksum(&bytes, block_flags & 1 != 0);
        bytes[32..36].copy_from_slice(&sum.to_le_bytes());
        (
            BlockAddress {
                offset: 512,
                length: 512,
                checksum: sum,
            },
            bytes,
        )
    }

    #[test]
    fn castagnoli_with_its_own_bytes_zeroed() {
        assert_eq!(crc32c::crc32c(b"123456789"), 0xE306_9283);
        let (address, mut bytes) = block(6, 1);
        assert_eq!(
            CheckedBlock::check(&address, &bytes).unwrap().kind,
            PageKind::Internal
        );
        bytes[500] = 1;
        let error = CheckedBlock::check(&address, &bytes).unwrap_err();
        assert!(error.may_be_stale());
        assert_eq!(
            error.to_string(),
            "block at 512 (512 bytes): its checksum does not match (stale or damaged)"
        );
    }

    #[test]
    fn a_checksum_of_64_bytes_leaves_the_rest_in_doubt() {
        let (address, mut bytes) = block(6, 0);
        bytes[500] = 1;
        let checked = CheckedBlock::check(&address, &bytes).unwrap();
        assert!(checked.wrong_type("a leaf").may_be_stale());
        bytes[63] = 1;
        assert!(CheckedBlock::check(&address, &bytes).is_err());
    }

    #[test]
    fn refusals_are_final() {
        for page_type in [0, 2, 3, 4, 8, 255] {
            let (address, bytes) = block(page_type, 1);
            assert!(
                !CheckedBlock::check(&address, &bytes)
                    .unwrap_err()
                    .may_be_stale()
            );
        }
        let (address, bytes) = block(6, 1);
        let short = CheckedBlock::check(&address, &bytes[..100]).unwrap_err();
        assert!(short.may_be_stale(), "{short}");
    }
}
