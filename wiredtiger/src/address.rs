//! Address cookies: where a block lies, as its parent stores it (`src/block/block_addr.c`).

use crate::bytes::{ByteReader, DecodeError};
use crate::tree::BlockAddress;

/// Flag byte after an address or a checkpoint cookie: an object id follows (tiered storage).
const FLAG_OBJECT_ID: u8 = 0x01;

/// Reads the three numbers of an address; `None` if they say that there is no block.
pub(crate) fn read(
    reader: &mut ByteReader<'_>,
    allocation_bytes: u32,
) -> Result<Option<BlockAddress>, DecodeError> {
    let start = *reader;
    let (offset, size, checksum) = (reader.varint()?, reader.varint()?, reader.varint()?);
    if size == 0 {
        return Ok(None);
    }
    let unit = u64::from(allocation_bytes);
    let address = (|| {
        Some(BlockAddress {
            offset: offset.checked_add(1)?.checked_mul(unit)?,
            length: u32::try_from(size.checked_mul(unit)?).ok()?,
            checksum: u32::try_from(checksum).ok()?,
        })
    })();
    address
        .map(Some)
        .ok_or(start.error("an address is out of range"))
}

/// Reads what may follow from MongoDB 4.4 on, up to the end of the bytes: flags and an object id.
pub(crate) fn read_object_id(reader: &mut ByteReader<'_>) -> Result<(), DecodeError> {
    if reader.is_empty() {
        return Ok(());
    }
    let start = *reader;
    let flags = reader.byte()?;
    if flags & !FLAG_OBJECT_ID != 0 {
        return Err(start.error("an address has unknown flags"));
    }
    if flags & FLAG_OBJECT_ID != 0 && reader.varint()? != 0 {
        return Err(start.error("an address lies in another object (tiered storage)"));
    }
    if reader.is_empty() {
        Ok(())
    } else {
        Err(reader.error("there are bytes left after an address"))
    }
}

impl BlockAddress {
    /// Decodes a whole address cookie; `None` if it says that there is no block.
    pub fn from_cookie(
        cookie: &[u8],
        allocation_bytes: u32,
    ) -> Result<Option<BlockAddress>, DecodeError> {
        let mut reader = ByteReader::new(cookie);
        let address = read(&mut reader, allocation_bytes)?;
        read_object_id(&mut reader)?;
        Ok(address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_counts_from_the_second_unit() {
        let cookie = [0xc0, 0x08, 0x84, 0xe4, 0xc6, 0xcc, 0xe2, 0x5e];
        let address = BlockAddress {
            offset: 299_008,
            length: 16_384,
            checksum: 3_335_324_318,
        };
        assert_eq!(BlockAddress::from_cookie(&cookie, 4096), Ok(Some(address)));
        let with_object_0 = [&cookie[..], &[0x01, 0x80]].concat();
        assert_eq!(
            BlockAddress::from_cookie(&with_object_0, 4096),
            Ok(Some(address))
        );
        for odd in [&[0x01, 0x81][..], &[0x02], &[0x00, 0x00], &[0x01]] {
            let cookie = [&cookie[..], odd].concat();
            assert!(
                BlockAddress::from_cookie(&cookie, 4096).is_err(),
                "{odd:x?}"
            );
        }
        assert_eq!(
            BlockAddress::from_cookie(&[0x80, 0x80, 0x80], 4096),
            Ok(None)
        );
    }
}
