//! Lists of extents: what is free in a file, and what a checkpoint allocated or freed
//! (`src/block/block_ext.c`). From MongoDB 4.2 on, the list of free extents ends with a description
//! of its checkpoint (`src/block/block_ckpt_scan.c`), which makes a lone file readable.

use crate::block::{BlockError, BlockFault, CheckedBlock, HEADER_BYTES, PageKind};
use crate::bytes::{ByteReader, DecodeError};
use crate::tree::BlockAddress;

/// The first pair of every list.
const MAGIC: (u64, u64) = (71_002, 0);
/// Version in the pair that ends a list: plain, or with a checkpoint following.
const PLAIN: u64 = 0;
const WITH_CHECKPOINT: u64 = 1;
/// The most extents kept: 128 MB of memory; holes of 4 KiB in every second place of a file of 64
/// GiB.
const MAX_EXTENTS: u64 = 8 << 20;
/// Bytes that the trailer reserves for the file's size, however long the number is.
const FILE_SIZE_SLOT: u64 = 9;
/// The longest item in the description of a checkpoint; real texts have some thousand bytes.
const MAX_ITEM_BYTES: u64 = 1 << 20;

/// A contiguous part of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Extent {
    pub offset: u64,
    pub bytes: u64,
}

/// A decoded list of extents.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExtentList {
    /// Ascending, with adjacent extents merged. The block of a list of free extents is not
    /// included.
    pub extents: Vec<Extent>,
    pub trailer: Option<CheckpointTrailer>,
}

/// A checkpoint as its list of free extents describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointTrailer {
    /// Increases from checkpoint to checkpoint.
    pub write_generation: u64,
    /// Size of the file at this checkpoint.
    pub file_bytes: u64,
    /// Configuration text with the file's `allocation_size`, `block_compressor`, `key_format`, … in
    /// `block_metadata=[…]`.
    pub metadata: String,
    /// The list of checkpoints that the metadata had before this one.
    pub checkpoints: String,
    /// The checkpoint cookie; its list of free extents is blank, being this very block.
    pub cookie: Vec<u8>,
}

impl ExtentList {
    /// Decodes the block at `address`, which is a list of extents of a file of `file_bytes`.
    pub fn parse(
        address: &BlockAddress,
        bytes: &[u8],
        file_bytes: u64,
    ) -> Result<ExtentList, BlockError> {
        let block = CheckedBlock::check(address, bytes)?;
        if block.kind != PageKind::ExtentList {
            return Err(block.wrong_type("a list of extents (1)"));
        }
        // The data length in its header does not include the checkpoint that may follow.
        let data = block.uncompressed()?;
        let mut list = decode(data, file_bytes).map_err(|fault| block.error(fault))?;
        list.extents = without(merged(list.extents), address);
        Ok(list)
    }

    /// Returns the sum of all extents, bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.extents.iter().map(|extent| extent.bytes).sum()
    }
}

fn decode(data: &[u8], file_bytes: u64) -> Result<ExtentList, BlockFault> {
    let mut reader = ByteReader::starting_at(data, HEADER_BYTES);
    if (reader.varint()?, reader.varint()?) != MAGIC {
        return Err(reader
            .error("a list of extents does not start with the expected number")
            .into());
    }
    let mut list = ExtentList::default();
    // Free extents do not overlap, so together they cannot be larger than the file.
    let mut left = file_bytes;
    loop {
        let start = reader;
        let (offset, bytes) = (reader.varint()?, reader.varint()?);
        if offset == 0 {
            match bytes {
                PLAIN => {}
                WITH_CHECKPOINT => list.trailer = Some(trailer(&mut reader)?),
                _ => {
                    return Err(start
                        .error("a list of extents has an unknown version")
                        .into());
                }
            }
            return Ok(list);
        }
        if bytes == 0 || offset.checked_add(bytes).is_none_or(|end| end > file_bytes) {
            return Err(start.error("an extent is empty or outside the file").into());
        }
        left = left
            .checked_sub(bytes)
            .ok_or(start.error("the extents together are larger than the file"))?;
        if list.extents.len() as u64 == MAX_EXTENTS {
            return Err(BlockFault::TooMany {
                limit: MAX_EXTENTS,
                what: "extents",
            });
        }
        list.extents.push(Extent { offset, bytes });
    }
}

fn trailer(reader: &mut ByteReader<'_>) -> Result<CheckpointTrailer, DecodeError> {
    let write_generation = reader.varint()?;
    let file_bytes = ByteReader::new(reader.take(FILE_SIZE_SLOT)?).varint()?;
    let mut item = || {
        let start = *reader;
        match reader.varint()? {
            length @ ..=MAX_ITEM_BYTES => reader.take(length),
            _ => Err(start.error("the description of a checkpoint is longer than any valid one")),
        }
    };
    let text = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        text.trim_end_matches('\0').to_owned()
    };
    Ok(CheckpointTrailer {
        write_generation,
        file_bytes,
        metadata: text(item()?),
        checkpoints: text(item()?),
        cookie: item()?.to_vec(),
    })
}

/// Sorts extents and merges adjacent and overlapping ones.
fn merged(mut extents: Vec<Extent>) -> Vec<Extent> {
    extents.sort_unstable();
    extents.dedup_by(|next, before| {
        let end = before.offset + before.bytes;
        let joins = next.offset <= end;
        if joins {
            before.bytes = end.max(next.offset + next.bytes) - before.offset;
        }
        joins
    });
    extents
}

/// Removes a block from the extents.
fn without(mut extents: Vec<Extent>, block: &BlockAddress) -> Vec<Extent> {
    let (from, to) = (block.offset, block.offset + u64::from(block.length));
    let first = extents.partition_point(|extent| extent.offset + extent.bytes <= from);
    let after = extents.partition_point(|extent| extent.offset < to);
    let cut = first..after.max(first);
    let parts = |extent: &Extent| {
        let end = extent.offset + extent.bytes;
        let before = from.saturating_sub(extent.offset);
        let start = extent.offset.max(to);
        let rest = Extent {
            offset: start,
            bytes: end.saturating_sub(start),
        };
        [
            Extent {
                offset: extent.offset,
                bytes: before,
            },
            rest,
        ]
    };
    let parts: Vec<Extent> = extents[cut.clone()].iter().flat_map(parts).collect();
    extents.splice(cut, parts.into_iter().filter(|extent| extent.bytes > 0));
    extents
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(offset: u64, bytes: u64) -> Extent {
        Extent { offset, bytes }
    }

    #[test]
    fn two_runs_become_one_without_the_own_block() {
        let runs = vec![extent(8, 4), extent(100, 8), extent(4, 4), extent(12, 20)];
        let all = merged(runs);
        assert_eq!(all, [extent(4, 28), extent(100, 8)]);
        let own = BlockAddress {
            offset: 12,
            length: 8,
            checksum: 0,
        };
        assert_eq!(
            without(all.clone(), &own),
            [extent(4, 8), extent(20, 12), extent(100, 8)]
        );
        let first = BlockAddress {
            offset: 100,
            length: 8,
            checksum: 0,
        };
        assert_eq!(without(all, &first), [extent(4, 28)]);
    }
}
