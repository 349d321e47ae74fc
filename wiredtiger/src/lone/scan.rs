//! Examines every allocation unit of a file for the start of a block.

use crate::block::{BlockHeader, HEADER_BYTES, MAX_IMAGE_BYTES};
use crate::lone::{LoneError, LoneSearch};
use crate::tree::BlockAddress;

const MAGIC: u32 = 120_897;
/// Length of the descriptor that starts a file; its checksum covers one allocation unit.
const DESCRIPTOR_BYTES: usize = 16;
const UNITS: std::ops::RangeInclusive<usize> = 512..=1 << 20;
/// The most leaves kept: 128 MB of memory; leaves of 32 KiB in a file of 512 GiB, or every unit of
/// 64 GiB.
const MAX_LEAVES: usize = 16 << 20;
/// The most other blocks kept, of each kind: 24 MB of memory.
const MAX_BLOCKS: usize = 1 << 20;

/// A block whose header looks right; nothing else is known about it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FoundBlock {
    pub(crate) address: BlockAddress,
    pub(crate) write_generation: u64,
}

/// The blocks found in a file, judging by headers alone.
#[derive(Debug, Default)]
pub(crate) struct FoundBlocks {
    pub(crate) allocation_bytes: u32,
    pub(crate) file_bytes: u64,
    pub(crate) lists: Vec<FoundBlock>,
    pub(crate) internal: Vec<FoundBlock>,
    /// Unit and checksum of each leaf, ascending.
    pub(crate) leaves: Vec<(u32, u32)>,
    pub(crate) encrypted: u64,
}

/// A pass over a file from front to back in bounded memory.
#[derive(Debug)]
pub struct LoneScan {
    found: FoundBlocks,
    /// Position of the next byte in the file.
    at: u64,
    /// The file's start while the allocation unit is unknown, afterwards a header split across two
    /// chunks.
    partial: Vec<u8>,
}

impl LoneScan {
    /// Starts a scan of a file of `file_bytes`.
    #[must_use]
    pub fn new(file_bytes: u64) -> LoneScan {
        let found = FoundBlocks {
            file_bytes,
            ..FoundBlocks::default()
        };
        LoneScan {
            found,
            at: 0,
            partial: Vec::new(),
        }
    }

    /// Takes the file's next bytes, however many. Fails if the file does not start as it should.
    pub fn feed(&mut self, chunk: &[u8]) -> Result<(), LoneError> {
        if self.found.allocation_bytes > 0 {
            self.headers(chunk);
            return Ok(());
        }
        self.partial.extend(chunk);
        match allocation_bytes(&self.partial) {
            Some(unit) => {
                self.found.allocation_bytes = unit;
                let start = std::mem::take(&mut self.partial);
                self.at = u64::from(unit);
                self.headers(&start[unit as usize..]);
                Ok(())
            }
            None if self.partial.len() >= *UNITS.end() => Err(LoneError::NotWiredTiger),
            None => Ok(()),
        }
    }

    /// Ends the scan after the last chunk. Returns the search among what was found.
    pub fn finish(self) -> Result<LoneSearch, LoneError> {
        if self.found.allocation_bytes == 0 {
            return Err(LoneError::NotWiredTiger);
        }
        Ok(LoneSearch::new(self.found))
    }

    fn headers(&mut self, mut chunk: &[u8]) {
        let unit = u64::from(self.found.allocation_bytes);
        while !chunk.is_empty() {
            let into_unit = usize::try_from(self.at % unit).unwrap_or(usize::MAX);
            if into_unit < HEADER_BYTES {
                let part = chunk.len().min(HEADER_BYTES - into_unit);
                self.partial.extend(&chunk[..part]);
                chunk = &chunk[part..];
                self.at += part as u64;
                if self.partial.len() == HEADER_BYTES {
                    let header = std::mem::take(&mut self.partial);
                    self.header(self.at - HEADER_BYTES as u64, &header);
                }
            } else {
                let to_next = usize::try_from(unit - self.at % unit).unwrap_or(usize::MAX);
                let part = chunk.len().min(to_next);
                chunk = &chunk[part..];
                self.at += part as u64;
            }
        }
    }

    fn header(&mut self, offset: u64, bytes: &[u8]) {
        let found = &mut self.found;
        let Ok(header) = BlockHeader::read(bytes) else {
            return;
        };
        let (length, checksum) = (header.disk_bytes, header.checksum);
        if !is_plausible(&header, bytes, found.allocation_bytes)
            || offset.saturating_add(length.into()) > found.file_bytes
        {
            return;
        }
        let address = BlockAddress {
            offset,
            length,
            checksum,
        };
        let block = FoundBlock {
            address,
            write_generation: header.write_generation,
        };
        found.encrypted += u64::from(header.page_flags & 0x08 != 0);
        match header.page_type {
            1 if found.lists.len() < MAX_BLOCKS => found.lists.push(block),
            6 if found.internal.len() < MAX_BLOCKS => found.internal.push(block),
            7 if found.leaves.len() < MAX_LEAVES => {
                if let Ok(unit) = u32::try_from(offset / u64::from(found.allocation_bytes)) {
                    found.leaves.push((unit, checksum));
                }
            }
            _ => {}
        }
    }
}

/// Returns whether a file of this allocation unit begins like this. `start` is its first unit.
#[must_use]
pub fn begins_like_a_file(start: &[u8]) -> bool {
    allocation_bytes(start).is_some_and(|unit| unit as usize == start.len())
}

/// Returns the allocation unit: the descriptor's checksum covers exactly one unit, which reveals
/// its length.
fn allocation_bytes(start: &[u8]) -> Option<u32> {
    let magic = start.get(..4)?;
    let expected = start.get(8..12)?;
    if magic != MAGIC.to_le_bytes() {
        return None;
    }
    let mut unit = *UNITS.start();
    let mut covered = DESCRIPTOR_BYTES;
    let before = crc32c::crc32c_append(crc32c::crc32c(&start[..8]), &[0; 4]);
    let mut sum = crc32c::crc32c_append(before, start.get(12..DESCRIPTOR_BYTES)?);
    while unit <= *UNITS.end() {
        sum = crc32c::crc32c_append(sum, start.get(covered..unit)?);
        if sum.to_le_bytes() == expected {
            return u32::try_from(unit).ok();
        }
        covered = unit;
        unit *= 2;
    }
    None
}

fn is_plausible(header: &BlockHeader, bytes: &[u8], allocation_bytes: u32) -> bool {
    let unused_are_zero = [0..8, 26..27, 37..40]
        .into_iter()
        .flatten()
        .all(|at| bytes[at] == 0);
    unused_are_zero
        && bytes[27] <= 1
        && header.block_flags <= 1
        && header.page_flags & 0xC0 == 0
        && header.disk_bytes > 0
        && header.disk_bytes.is_multiple_of(allocation_bytes)
        && header.disk_bytes <= MAX_IMAGE_BYTES
        && header.image_bytes as usize >= HEADER_BYTES
}
