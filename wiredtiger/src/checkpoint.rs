//! Checkpoints of a file, as listed in its metadata row, and the cookie that each one carries
//! (`src/block/block_ckpt.c`, `src/meta/meta_ckpt.c`).

use crate::address;
use crate::bytes::{ByteReader, DecodeError};
use crate::tree::BlockAddress;

/// The only version that has existed.
const COOKIE_VERSION: u8 = 1;

/// One entry of a file's checkpoint list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    pub name: String,
    /// Increases with each checkpoint of the file.
    pub order: u64,
    /// Unix time, seconds; 0 if not recorded.
    pub time_s: u64,
    /// 0 if not recorded.
    pub write_generation: u64,
    /// `None` if nothing has been written yet.
    pub cookie: Option<CheckpointCookie>,
}

impl Checkpoint {
    /// Returns the root page; `None` for an empty tree.
    #[must_use]
    pub fn root(&self) -> Option<BlockAddress> {
        self.cookie.and_then(|cookie| cookie.root)
    }
}

/// Where a checkpoint's root and lists of extents lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckpointCookie {
    /// `None` if the tree is empty.
    pub root: Option<BlockAddress>,
    /// List of the blocks allocated since the previous checkpoint.
    pub alloc: Option<BlockAddress>,
    /// List of the free blocks.
    pub avail: Option<BlockAddress>,
    /// List of the blocks freed since the previous checkpoint.
    pub discard: Option<BlockAddress>,
    /// Size of the file at this checkpoint.
    pub file_bytes: u64,
    /// Bytes of the checkpoint's blocks, without the root.
    pub checkpoint_bytes: u64,
}

impl CheckpointCookie {
    /// Decodes a cookie, whose addresses count in units of `allocation_bytes`.
    pub fn parse(bytes: &[u8], allocation_bytes: u32) -> Result<CheckpointCookie, DecodeError> {
        let mut reader = ByteReader::new(bytes);
        if reader.byte()? != COOKIE_VERSION {
            return Err(DecodeError {
                at: 0,
                reason: "a checkpoint cookie has an unknown version",
            });
        }
        let mut address = || address::read(&mut reader, allocation_bytes);
        let (root, alloc, avail, discard) = (address()?, address()?, address()?, address()?);
        let (file_bytes, checkpoint_bytes) = (reader.varint()?, reader.varint()?);
        address::read_object_id(&mut reader)?;
        Ok(CheckpointCookie {
            root,
            alloc,
            avail,
            discard,
            file_bytes,
            checkpoint_bytes,
        })
    }

    /// Like [`CheckpointCookie::parse`], from hexadecimal digits as in the metadata.
    pub fn parse_hex(hex: &str, allocation_bytes: u32) -> Result<CheckpointCookie, DecodeError> {
        Self::parse(&bytes_of_hex(hex)?, allocation_bytes)
    }
}

fn bytes_of_hex(hex: &str) -> Result<Vec<u8>, DecodeError> {
    let digit = |at: usize| {
        let digit = hex
            .as_bytes()
            .get(at)
            .and_then(|&digit| char::from(digit).to_digit(16));
        let digit = digit.and_then(|digit| u8::try_from(digit).ok());
        digit.ok_or(DecodeError {
            at,
            reason: "a cookie does not consist of pairs of hexadecimal digits",
        })
    };
    (0..hex.len())
        .step_by(2)
        .map(|at| Ok(digit(at)? << 4 | digit(at + 1)?))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_of_the_engine() {
        let hex = "019381e48766fc6a9481e4e79223679581e4c000117a808080e3014fc0e25fc0";
        let cookie = CheckpointCookie::parse_hex(hex, 4096).unwrap();
        let block = |offset, checksum| {
            Some(BlockAddress {
                offset,
                length: 4096,
                checksum,
            })
        };
        let expected = CheckpointCookie {
            root: block(81_920, 2_271_681_706),
            alloc: block(86_016, 3_885_122_471),
            avail: block(90_112, 3_221_238_202),
            discard: None,
            file_bytes: 94_208,
            checkpoint_bytes: 32_768,
        };
        assert_eq!(cookie, expected);
        assert_eq!(
            CheckpointCookie::parse_hex(&format!("{hex}0180"), 4096).unwrap(),
            expected
        );
    }

    #[test]
    fn what_is_no_cookie_is_refused() {
        for hex in ["", "0", "02808080", "01", "0g", "é0", "0180808080808080"] {
            assert!(CheckpointCookie::parse_hex(hex, 4096).is_err(), "{hex}");
        }
    }
}
